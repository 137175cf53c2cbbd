"""A plan that is carried out in a launch file: what it would change there, and what has to be done by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from specfix.checker.finding import Repair
from specfix.checker.report import Report, Reported
from specfix.deployment import Deployment
from specfix.deployment.shim import PLUGINS, allowing
from specfix.launch.command import Mount, outside
from specfix.repair.apply import overridable
from specfix.repair.edit.launch_file import Edit, Flag, Key, LaunchFile, Model, PathEntry, Variable
from specfix.repair.edit.written import CannotEdit
from specfix.repair.launch import BACKEND, BACKEND_VARIABLE, CACHE_KEY, DRAFT, SHIM, TARGET, Launch, place
from specfix.repair.plan import Plan
from specfix.report.place import shown

Changes = Iterable[tuple[str, str, Any]]  # surface, name, value


@dataclass(frozen=True, slots=True)
class InLaunch:
    """``at`` is where the output folder will be, as the server sees it; ``copy`` not: its models are linked."""

    file: LaunchFile
    before: Deployment
    at: str
    tried: dict[str, str | None] = field(default_factory=dict)

    def seen(self, report: Report) -> Report:
        """The report with a repair left to the user where the file cannot be changed for it."""
        return replace(report, findings=tuple(map(self.possible, report.findings)))

    def possible(self, found: Reported) -> Reported:
        repair = found.finding.repair
        if repair is None or not repair.changes:
            return found
        key = repr(repair.changes)
        if key not in self.tried:
            self.tried[key] = self.problem(repair)
        why = self.tried[key]
        if why is None:
            return found
        by_hand = Repair("manual", f"{repair.summary}; {why}", repair.surfaces)
        return replace(found, finding=replace(found.finding, repair=by_hand))

    def problem(self, repair: Repair) -> str | None:
        """Why the file cannot be changed for a repair."""
        try:
            self.file.edited(list(self.edits(repair.changes)))
        except CannotEdit as why:
            return str(why)
        return None

    def result(self, plan: Plan, start: Launch) -> LaunchFile:
        """The file with the plan's changes. Raises CannotEdit."""
        changes = [(change.surface, change.name, change.value) for change in plan.changes.values()]
        digest = digest_of(start.engine_args.get(CACHE_KEY))
        method = plan.after.deployment.serving.method
        return self.file.edited(list(self.edits(changes, digest, method)))

    def edits(self, changes: Changes, digest: str | None = None, method: str | None = None) -> Iterator[Edit]:
        """What is to be edited. Raises CannotEdit for a model on the Hub that would have to lie in the folder."""
        changes = list(changes)
        flags = self.file.engine.serve.flags or {}
        target = [(name, value) for surface, name, value in changes if surface == "target_config"]
        moves = any(not overridable(name, value) for name, value in target)
        for surface, name, value in changes:
            if surface == "engine_args":
                flag = name.replace("_", "-")
                if flag == BACKEND and flag not in flags and self.file.engine.serve.backend_variable:
                    yield Variable(BACKEND_VARIABLE, value)
                else:
                    yield Flag(flag, value)
            elif surface == "speculative_config":
                yield Key("speculative-config", f"/{name}", value)
            elif surface == "env":
                yield Variable(name, None if value is None else str(value))
        if moves:
            self.refuse_hub("target")
            yield Model(f"{self.at}/{TARGET}")
            if "served_model_name" not in self.before.serving.flags:
                yield Flag("served-model-name", self.file.says()["model"])
        else:
            for name, value in target:
                yield Key("hf-overrides", name, value)
        if any(surface == "draft_config" for surface, _, _ in changes):
            self.refuse_hub("draft")
            yield Key("speculative-config", "/model", f"{self.at}/{DRAFT}")
            named = any((surface, name) == ("speculative_config", "method") for surface, name, _ in changes)
            if method is not None and not named and not self.before.method_given:  # else the draft's path decides
                yield Key("speculative-config", "/method", method)
            if digest is not None:
                yield Key(CACHE_KEY, "/specfix_draft", digest)
        if any(surface == "shim" for surface, _, _ in changes):
            yield PathEntry(f"{self.at}/{SHIM}")
            plugins = self.before.serving.env.get(PLUGINS)
            if plugins is not None and allowing(plugins) != plugins:
                yield Variable(PLUGINS, allowing(plugins))

    def refuse_hub(self, side: str) -> None:
        model = self.before.target if side == "target" else self.before.draft
        if model is not None and place(model).folder is None:
            raise CannotEdit(
                f"the {side} {model.reference} is on the Hub, and a launch file cannot put its weights beside another "
                f"config: give TARGET and DRAFT as folders that are here"
                + (", or --keep-draft" if side == "draft" else "")
            )

    def next_steps(self, made: LaunchFile, start: Launch, out: Path, copy: bool) -> Iterator[str]:
        """What is to be done with the file that was made."""
        draft = start.has_draft and start.draft is None
        if draft or start.target is None or start.shim is not None:
            launch = self.file.found().launch
            image = launch.image is not None or launch.mounts is not None
            if (image and inside(str(out), launch.mounts or ()) != self.at) or (not image and self.at != str(out)):
                yield f"{shown(str(out))} is to be seen as {self.at} by the server{': mount it there' if image else ''}"
            if image and not copy and (draft or start.target is None):
                yield "its models are links, which lead nowhere in a container: --copy writes files"
        name = self.file.path.name
        if made.text == self.file.text:
            yield f"{name} is as it was: nothing is to be changed there"
        else:
            yield f"next: put {shown(str(out / name))} in the place of {shown(str(self.file.path))}"


def digest_of(given: object) -> str | None:
    """What is to be said of the draft to the compile cache; nothing where the draft's config stays as it is."""
    with suppress(ValueError, RecursionError):  # the flag may hold anything of the user's own
        held = json.loads(given) if isinstance(given, str) else None
        return held.get("specfix_draft") if isinstance(held, dict) else None
    return None


def inside(path: str, mounts: Sequence[Mount]) -> str | None:
    """Where a path of this machine is seen in a container; None where no mount holds it."""
    holding = [each for each in mounts if each.outside and PurePosixPath(path).is_relative_to(each.outside)]
    for each in sorted(holding, key=lambda each: -len(str(each.outside))):
        seen = str(PurePosixPath(each.inside, PurePosixPath(path).relative_to(str(each.outside))))
        if outside(seen, mounts) == path:  # no other mount lies over it
            return seen
    return None
