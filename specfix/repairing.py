"""fix(): from what the user says to an output folder. The command line and the library come in by this door."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specfix.checker.report import Report
from specfix.checking import Case, gather
from specfix.deployment import Deployment
from specfix.deployment.files import read_folder
from specfix.deployment.shim import PATH, find_shim
from specfix.errors import CannotCheck
from specfix.repair import diff, output
from specfix.repair.apply import AnyModel, apply
from specfix.repair.files.entry import Folder
from specfix.repair.files.folder import moved, output_folder
from specfix.repair.launch import DRAFT, SHIM, TARGET, Launch, check_path, launch, place
from specfix.repair.plan import Plan, identity, keeping_draft, make_plan


@dataclass(frozen=True, slots=True)
class Fixed:
    """What came of it: ``report`` on what was given, the ``plan`` with what is left, how the result is started, and its
    folder. ``written`` is False where nothing was written, since the folder held all this before; ``note`` says what of
    an older one could not be taken away."""

    case: Case
    report: Report
    plan: Plan
    launch: Launch
    out: Path
    written: bool = False
    keep_draft: bool = False
    note: str | None = None

    def diff(self) -> str:
        """What the plan changes, as unified diffs."""
        return diff.render(self.report, self.plan, self.launch, str(self.out))


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
    before = case.deployment
    refuse_one_folder(before)
    report = case.check(before)
    seen = keeping_draft if keep_draft else unchanged
    plan = make_plan(seen(report), lambda changes: seen(case.check(apply(before, changes))), unsafe=unsafe)
    start = launch(before, plan.after.deployment, plan.changes, case.engine)
    refuse_bytes(folder, before, start)
    drafting = start.draft_in(str(folder)) or (start.target_in(str(folder)) if before.draft else None)
    if drafting is not None:
        check_path(drafting, before.serving.method, case.engine)
    return Fixed(case, report, plan, start, folder, keep_draft=keep_draft)


def write(fixed: Fixed, *, copy: bool = False) -> Fixed:
    """Write the folder. Raises CannotCheck, and then it is as it was."""
    folder = entries(fixed, copy)
    done = output.write(fixed.out, folder, kept(fixed.case.deployment), lambda new: verify(new, fixed))
    return replace(fixed, written=done.new, note=done.note)


def holds(fixed: Fixed, *, copy: bool = False) -> bool:
    """Whether the folder is there already, as it would be written. Raises CannotCheck for what write() would refuse."""
    return output.check(fixed.out, entries(fixed, copy), kept(fixed.case.deployment))


def entries(fixed: Fixed, copy: bool) -> Folder:
    """What is to lie in the folder. Raises CannotCheck."""
    refuse_colon(fixed.out, fixed.launch)
    try:
        return output_folder(fixed.out, fixed.report, fixed.plan, fixed.launch, copy=copy)
    except OSError as error:
        raise CannotCheck(f"{error.filename} cannot be read: {error.strerror}") from None


def unchanged(report: Report) -> Report:
    return report


def refuse_one_folder(deployment: Deployment) -> None:
    """Raise CannotCheck where the draft was given as the target's own folder."""
    target, draft = deployment.target, deployment.draft
    if draft is not None and draft.config is not target.config and place(target).same_as(place(draft)):
        raise CannotCheck(
            f"TARGET and DRAFT are both {place(target).served}, and one config cannot be repaired for two: leave DRAFT "
            "out where the target holds its own MTP layers, else give the draft's own folder"
        )


def refuse_colon(folder: Path, start: Launch) -> None:
    """Raise CannotCheck for a folder from which the shim could not be loaded."""
    if start.shim is not None and ":" in str(folder):
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
            shown = "" if what.startswith("--env") else f" {value}"
            raise CannotCheck(f"{what}{shown} is not UTF-8: it cannot be written into the result") from None


def kept(deployment: Deployment) -> list[tuple[str, Path]]:
    """Folders that are never written to."""
    from specfix.deployment.hub import cache

    places = [("the target", deployment.target), ("the draft", deployment.draft)]
    folders = [(what, home) for what, model in places if model and (home := place(model).folder)]
    return [*folders, ("the Hub cache", cache())]


def verify(new: Path, fixed: Fixed) -> None:
    """Check the written folder once more, from its files. Raises CannotCheck where that finds what the plan did not."""
    case, plan = fixed.case, fixed.plan
    after = plan.after.deployment
    sides = moved(case.deployment, after, fixed.launch)
    target, draft = after.target, after.draft
    if TARGET in sides:
        target = reread(target, new / TARGET)
    if DRAFT in sides and draft:
        draft = reread(draft, new / DRAFT)
    shim = after.shim
    if fixed.launch.shim is not None:
        shim = find_shim({**after.serving.env, PATH: str(new / SHIM)})
    report = case.check(replace(after, target=target, draft=draft, shim=shim))
    if fixed.keep_draft:
        report = keeping_draft(report)
    planned, found = (Counter(map(identity, each.findings)) for each in (plan.after, report))
    if planned != found:
        codes = ", ".join(sorted({code for code, *_ in (planned - found) + (found - planned)}))
        raise CannotCheck(
            f"the written result was checked again and is not what was planned ({codes}); nothing was kept. This is a "
            "bug of specfix or of a plugin: please report it"
        )


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
