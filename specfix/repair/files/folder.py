"""The whole output folder, in memory."""

from __future__ import annotations

from pathlib import Path

from specfix.checker.report import Report
from specfix.deployment import Deployment, Model
from specfix.engines import Engine
from specfix.repair.files import launch_sh, overrides_json, report_json, serve_yaml
from specfix.repair.files.entry import Entry, File, Folder
from specfix.repair.files.model_folder import model_folder
from specfix.repair.launch import DRAFT, SHIM, TARGET, Launch, Place, draft_moves, place
from specfix.repair.plan import Plan
from specfix.shim import SCHEMA, shim_files

Moved = dict[str, tuple[Place, Model, Model]]


def output_folder(out: Path, report: Report, plan: Plan, launch: Launch, *, copy: bool) -> Folder:
    """Every entry of the output folder at ``out``. Raises CannotCheck for a model that cannot be linked or copied."""
    engine = report.engine
    folder: dict[str, Entry] = {}
    for name, (home, before, after) in moved(report.deployment, plan.after.deployment, launch).items():
        for file, entry in model_folder(before, after, home, copy).items():
            folder[f"{name}/{file}"] = entry
    if launch.shim is not None:
        manifest = {"schema": SCHEMA, "patches": dict(launch.shim)}
        folder |= {f"{SHIM}/{file}": File(content) for file, content in shim_files(manifest).items()}
    private = bool(report.deployment.serving.env)  # what was given may be secret
    command = script(report.deployment, plan.after.deployment, launch, engine)
    return folder | {
        "overrides.json": text(overrides_json.render(launch, str(out)), private=private),
        "serve.yaml": text(serve_yaml.render(launch, engine, str(out))),
        "launch.sh": text(command, executable=True, private=private),
        "report.json": text(report_json.render(report, plan)),
    }


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
