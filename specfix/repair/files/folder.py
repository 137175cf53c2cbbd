"""The whole output folder, in memory."""

from __future__ import annotations

from pathlib import Path

from specfix.checker.report import Report
from specfix.deployment import Deployment, Model
from specfix.engines import Engine
from specfix.errors import CannotCheck
from specfix.repair.edit.launch_file import LaunchFile
from specfix.repair.files import launch_sh, overrides_json, report_json, serve_yaml
from specfix.repair.files.entry import Entry, File, Folder
from specfix.repair.files.model_folder import BOM, model_folder
from specfix.repair.launch import DRAFT, SHIM, TARGET, Launch, Place, draft_moves, place
from specfix.repair.plan import Plan
from specfix.report.secrets import hidden_in_launch, secret
from specfix.shim import SCHEMA, shim_files

Moved = dict[str, tuple[Place, Model, Model]]


def output_folder(
    out: Path, report: Report, plan: Plan, launch: Launch, *, copy: bool, file: LaunchFile | None = None
) -> Folder:
    """Every entry of the output folder at ``out``; ``file`` is the launch file that starts it, where one was given.
    Raises CannotCheck for a model that cannot be linked or copied."""
    engine = report.engine
    folder: dict[str, Entry] = {}
    for name, (home, before, after) in moved(report.deployment, plan.after.deployment, launch).items():
        folder |= {f"{name}/{part}": entry for part, entry in model_folder(before, after, home, copy).items()}
    if launch.shim is not None:
        manifest = {"schema": SCHEMA, "patches": dict(launch.shim)}
        folder |= {f"{SHIM}/{part}": File(content) for part, content in shim_files(manifest).items()}
    folder["report.json"] = text(report_json.render(report, plan))
    if file is not None:
        return {**folder, **launch_file(file, folder)}
    serving = report.deployment.serving
    told = secret(serving.flags) or secret(serving.speculative)
    private = bool(serving.env) or told  # what was given may be secret
    command = script(report.deployment, plan.after.deployment, launch, engine)
    return folder | {
        "overrides.json": text(overrides_json.render(launch, str(out)), private=private),
        "serve.yaml": text(serve_yaml.render(launch, engine, str(out)), private=told),
        "launch.sh": text(command, executable=True, private=private),
    }


def launch_file(file: LaunchFile, folder: Folder) -> Folder:
    """The changed file, under its own name; for whom it is to read and to run, as it was, but one with secrets is for
    nobody else. Raises CannotCheck."""
    name = file.path.name
    if any(entry.partition("/")[0] == name for entry in folder):
        raise CannotCheck(f"{file.path}: the output folder has its own {name}; call the file otherwise")
    mode = file.path.stat().st_mode
    start = BOM if file.path.read_bytes().startswith(BOM) else b""
    private = not mode & 0o077 or hidden_in_launch(file.text) != file.text
    return {name: File(start + file.text.encode(), bool(mode & 0o100), private)}


def script(before: Deployment, after: Deployment, launch: Launch, engine: Engine) -> str:
    """launch.sh."""
    draft = (
        f" with {before.draft.reference}" if before.draft and before.draft.config is not before.target.config else ""
    )
    what = f"{before.target.reference}{draft} ({after.serving.method}) on {engine}"
    on_hub = {
        name: (home, model) for name, (home, model, _) in moved(before, after, launch).items() if home.folder is None
    }
    return launch_sh.render(launch, engine, what, on_hub)


def moved(before: Deployment, after: Deployment, launch: Launch) -> Moved:
    """The models that get a folder of their own: where each is, as it is there, and as it will be."""
    found: Moved = {}
    if before.draft and after.draft and draft_moves(before, after):
        found[DRAFT] = (place(before.draft), before.draft, after.draft)
    if launch.target is None:
        found[TARGET] = (place(before.target), before.target, after.target)
    return found


def text(content: str, *, executable: bool = False, private: bool = False) -> File:
    return File(content.encode(), executable, private)
