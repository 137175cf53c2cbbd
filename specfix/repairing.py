"""fix(): from what the user says to an output folder. The command line and the library come in by this door."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from specfix.checker.report import Report, Reported
from specfix.checking import Case, gather
from specfix.deployment import Deployment
from specfix.deployment.files import read_folder
from specfix.deployment.load import without_unread
from specfix.deployment.shim import PATH, find_shim
from specfix.errors import CannotCheck
from specfix.launching import find_launch, gather_launch, refuse_lone_draft, stated
from specfix.repair import diff, output
from specfix.repair.apply import AnyModel, apply
from specfix.repair.edit.launch_file import LaunchFile
from specfix.repair.files.entry import Folder
from specfix.repair.files.folder import moved, output_folder
from specfix.repair.in_launch import InLaunch, inside
from specfix.repair.launch import DRAFT, SHIM, TARGET, Launch, check_path, launch, place
from specfix.repair.plan import Plan, identity, keeping_draft, make_plan
from specfix.report.secrets import SECRET

Seen = Callable[[Report], Report]


@dataclass(frozen=True, slots=True)
class Fixed:
    """What came of it: ``report`` on what was given, the ``plan`` with what is left, how the result is started, and its
    folder. ``written`` is False where nothing was written, since the folder held all this before; ``note`` says what of
    an older one could not be taken away. ``inside`` is the launch file that was given, ``file`` what is made of it."""

    case: Case
    report: Report
    plan: Plan
    launch: Launch
    out: Path
    written: bool = False
    seen: Seen = field(default=lambda report: report)
    note: str | None = None
    inside: InLaunch | None = None
    file: LaunchFile | None = None
    again: Callable[[LaunchFile, Path], Case] | None = None

    def diff(self) -> str:
        """What the plan changes, as unified diffs."""
        files = (self.inside.file, self.file) if self.inside and self.file else None
        return diff.render(self.report, self.plan, self.launch, str(self.out), files)


def fix(
    target: str | os.PathLike[str],
    draft: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    unsafe: bool = False,
    copy: bool = False,
    keep_draft: bool = False,
    **options: Any,
) -> Fixed:
    """Repair a pair, as ``specfix fix`` does, into the folder ``out``; ``options`` are those of :func:`specfix.check`.

    ``unsafe`` also makes repairs that change numerics or need a run to confirm; ``copy`` copies the files of a repaired
    model instead of linking them; ``keep_draft`` serves the draft from where it is, repaired by the shim. Raises
    CannotCheck, and then nothing was written.
    """
    return write(prepare(target, draft, out=out, unsafe=unsafe, keep_draft=keep_draft, **options), copy=copy)


def prepare(
    target: str | os.PathLike[str],
    draft: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    unsafe: bool = False,
    keep_draft: bool = False,
    **options: Any,
) -> Fixed:
    """The plan, and how what it makes is started. Writes nothing. Raises CannotCheck."""
    folder = output.settled(Path(out))
    case = gather(target, draft, **options)
    if not case.deployment.config_given:  # the command that is written names the method
        case = replace(case, deployment=replace(case.deployment, method_given=True))
    return planned(case, folder, unsafe, keep_draft)


def prepare_launch(
    file: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    draft: str | os.PathLike[str] | None = None,
    *,
    out: str | os.PathLike[str],
    at: str | None = None,
    unsafe: bool = False,
    keep_draft: bool = False,
    **options: Any,
) -> Fixed:
    """The same for the launch in a file, which is to be changed itself; ``options`` are those of gather_launch().
    ``at`` is where the folder will be, as the server sees it. Raises CannotCheck."""
    folder = output.settled(Path(out))
    path = Path(file)
    found, index = find_launch(path, **options)
    if target is None:
        refuse_lone_draft(found, **options)
    case = gather_launch(found, target=target, draft=draft, **options)
    given = LaunchFile(path, found.sources[str(path)], index, case.engine, stated)
    seen_at = at.rstrip("/") if at else inside(str(folder), found.launch.mounts or ()) or str(folder)
    given_launch = InLaunch(given, case.deployment, seen_at)
    fixed = planned(case, folder, unsafe, keep_draft, given_launch)

    def again(text: LaunchFile, sides: Path) -> Case:
        """The written launch, with the models that it names in the folder."""
        moving = moved(case.deployment, fixed.plan.after.deployment, fixed.launch)
        return gather_launch(
            text.found(),
            target=sides / TARGET if TARGET in moving else target,
            draft=sides / DRAFT if DRAFT in moving else draft,
            **options,
        )

    return replace(fixed, file=given_launch.result(fixed.plan, fixed.launch), again=again)


def planned(case: Case, folder: Path, unsafe: bool, keep_draft: bool, at: InLaunch | None = None) -> Fixed:
    """The plan for a case. Raises CannotCheck."""
    before = case.deployment
    refuse_one_folder(before)
    report = case.check(before)

    def seen(report: Report) -> Report:
        report = keeping_draft(report) if keep_draft else report
        return at.seen(report) if at else report

    plan = make_plan(seen(report), lambda changes: seen(case.check(apply(before, changes))), unsafe=unsafe)
    start = launch(before, plan.after.deployment, plan.changes, case.engine)
    refuse_bytes(folder, before, start)
    home = at.at if at else str(folder)
    drafting = start.draft_in(home) or (start.target_in(home) if before.draft else None)
    stays = start.draft is not None if start.has_draft else start.target is not None
    if drafting is not None and not (at and stays):  # of one that stays the launch's own words count
        check_path(drafting, before.serving.method, case.engine)
    return Fixed(case, report, plan, start, folder, seen=seen, inside=at)


def write(fixed: Fixed, *, copy: bool = False) -> Fixed:
    """Write the folder. Raises CannotCheck, and then it is as it was."""
    folder = entries(fixed, copy)
    done = output.write(fixed.out, folder, kept(fixed.case.deployment, fixed.file), lambda new: verify(new, fixed))
    return replace(fixed, written=done.new, note=done.note)


def holds(fixed: Fixed, *, copy: bool = False) -> bool:
    """Whether the folder is there already, as it would be written. Raises CannotCheck for what write() would refuse."""
    return output.check(fixed.out, entries(fixed, copy), kept(fixed.case.deployment, fixed.file))


def entries(fixed: Fixed, copy: bool) -> Folder:
    """What is to lie in the folder. Raises CannotCheck."""
    refuse_colon(fixed.inside.at if fixed.inside else str(fixed.out), fixed.launch)
    try:
        return output_folder(fixed.out, fixed.report, fixed.plan, fixed.launch, copy=copy, file=fixed.file)
    except OSError as error:
        raise CannotCheck(f"{error.filename} cannot be read: {error.strerror}") from None


def refuse_one_folder(deployment: Deployment) -> None:
    """Raise CannotCheck where the draft was given as the target's own folder."""
    target, draft = deployment.target, deployment.draft
    if draft is not None and draft.config is not target.config and place(target).same_as(place(draft)):
        raise CannotCheck(
            f"TARGET and DRAFT are both {place(target).served}, and one config cannot be repaired for two: leave DRAFT "
            "out where the target holds its own MTP layers, else give the draft's own folder"
        )


def refuse_colon(folder: str, start: Launch) -> None:
    """Raise CannotCheck for a folder from which the shim could not be loaded."""
    if start.shim is not None and ":" in folder:
        raise CannotCheck(f"--out {folder} holds a ':', and PYTHONPATH, which leads to the shim, splits there")


def refuse_bytes(folder: Path, before: Deployment, start: Launch) -> None:
    """Raise CannotCheck for what is no text: the files are UTF-8, and JSON and YAML have no other way to write it."""
    given = {"--out": str(folder), "TARGET": place(before.target).served}
    if before.draft is not None:
        given["DRAFT"] = place(before.draft).served
    given |= {f"--{flag}": str(value) for flag, value in start.engine_args.items()}
    given |= {f"--env {name}": value for name, value in start.env.items()}
    for what, value in given.items():
        try:
            value.encode()
        except UnicodeEncodeError:
            shown = "" if what.startswith("--env") or SECRET.search(what) else f" {value}"
            raise CannotCheck(f"{what}{shown} is not UTF-8: it cannot be written into the result") from None


def kept(deployment: Deployment, file: LaunchFile | None = None) -> list[tuple[str, Path]]:
    """What is never written to."""
    from specfix.deployment.hub import cache

    places = [("the target", deployment.target), ("the draft", deployment.draft)]
    folders = [(what, home) for what, model in places if model and (home := place(model).folder)]
    return [*folders, ("the Hub cache", cache()), *([("the launch file", file.path)] if file else [])]


def verify(new: Path, fixed: Fixed) -> None:
    """Check the written folder once more, from its files. Raises CannotCheck where that finds what the plan did not."""
    case, plan = fixed.case, fixed.plan
    after = plan.after.deployment
    sides = moved(case.deployment, after, fixed.launch)
    target, draft = after.target, after.draft
    if TARGET in sides:
        own = draft is not None and draft.config is target.config
        target = reread(target, new / TARGET)
        if draft is not None and own:
            draft = replace(reread(draft, new / TARGET), config=target.config)
    if DRAFT in sides and draft:
        draft = reread(draft, new / DRAFT)
    target, draft, _ = without_unread(target, draft, after.serving.method or "")
    shim = after.shim
    if fixed.launch.shim is not None:
        shim = find_shim({**after.serving.env, PATH: str(new / SHIM)})
    result = replace(after, target=target, draft=draft, shim=shim)
    key: Callable[[Reported], tuple[Any, ...]] = identity
    if fixed.file is not None and fixed.again is not None:
        result = replace(fixed.again(fixed.file, new).deployment, target=target, draft=draft, shim=shim)
        key = by_code  # a value that was added stands elsewhere than was thought
    report = fixed.seen(case.check(result))
    wanted, found = (Counter(map(key, each.findings)) for each in (plan.after, report))
    if wanted != found:
        codes = ", ".join(sorted({code for code, *_ in (wanted - found) + (found - wanted)}))
        raise CannotCheck(
            f"the written result was checked again and is not what was planned ({codes}); nothing was kept. This is a "
            "bug of specfix or of a plugin: please report it"
        )


def by_code(found: Reported) -> tuple[str]:
    return (found.code,)


def reread(model: AnyModel, folder: Path) -> AnyModel:
    """The model as it lies in ``folder`` now. Of one on the Hub only the config does."""
    files = read_folder(folder)
    if model.folder is None:
        return replace(model, config=files.config)
    return replace(
        model,
        config=files.config,
        tensors=files.tensors,
        generation_config=files.generation_config,
        tokenizer_files=files.tokenizer_files,
    )
