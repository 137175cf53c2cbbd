"""overrides.json: all that starts the engine, as data (``specfix/overrides-v1``)."""

from __future__ import annotations

import json
from typing import Any

from specfix.repair.launch import SHIM, Launch

SCHEMA = "specfix/overrides-v1"


def render(launch: Launch, out: str) -> str:
    return json.dumps(document(launch, out), indent=2, ensure_ascii=False) + "\n"


def document(launch: Launch, out: str) -> dict[str, Any]:
    """Each value is just what the engine's flag takes. ``shim`` is to stand first on PYTHONPATH."""
    return {
        "schema": SCHEMA,
        "target": launch.target_in(out),
        "draft": launch.draft_in(out),
        "engine_args": dict(launch.engine_args),
        "speculative_config": launch.speculative_in(out),
        "hf_overrides": dict(launch.hf_overrides),
        "env": dict(launch.env),
        "unset_env": list(launch.unset_env),
        "shim": None if launch.shim is None else f"{out}/{SHIM}",
    }
