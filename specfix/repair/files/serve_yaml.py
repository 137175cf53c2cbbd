"""serve.yaml, for ``vllm serve --config``: in the form that the release's own reader understands."""

from __future__ import annotations

import json
from typing import Any

import yaml

from specfix.engines import Engine
from specfix.repair.launch import SHIM, Launch
from specfix.report.secrets import masked

HEADER = """\
# For `vllm serve --config`, by {engine}. Its paths hold while this folder stays where it was written;
# launch.sh beside it starts the same from anywhere.
"""


def render(launch: Launch, engine: Engine, out: str) -> str:
    return (
        HEADER.format(engine=" ".join(str(engine).split()))
        + environment(launch, out)
        + yaml.safe_dump(document(launch, engine, out), sort_keys=False, allow_unicode=True, width=4096)
    )


def document(launch: Launch, engine: Engine, out: str) -> dict[str, Any]:
    """Flags and values. A release that does not read a nested mapping takes its JSON text, as on the command line; one
    that drops ``key: false`` takes ``no-key: true``."""
    values: dict[str, Any] = {"model": launch.target_in(out), **launch.engine_args}
    if launch.hf_overrides:
        values["hf-overrides"] = dict(launch.hf_overrides)
    values["speculative-config"] = launch.speculative_in(out)
    found: dict[str, Any] = {}
    for flag, value in values.items():
        if isinstance(value, dict) and not engine.serve.yaml_nested:
            found[flag] = json.dumps(value)
        elif value is False and not engine.serve.yaml_false:
            found[f"no-{flag}"] = True
        else:
            found[flag] = value
    return found


def environment(launch: Launch, out: str) -> str:
    """What a YAML file cannot do, as comments. Secrets stand in launch.sh, which others may not read."""
    wanted = [f"unset {name}" for name in launch.unset_env]
    wanted += [f"{name}={json.dumps(value)}" for name, value in masked(launch.env).items()]
    if launch.shim is not None:
        wanted.append(f"{json.dumps(f'{out}/{SHIM}')} first on PYTHONPATH, and named by VLLM_PLUGINS if that is set")
    return "".join(f"# environment, which it cannot set: {line}\n" for line in wanted)
