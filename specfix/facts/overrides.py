"""The target's config as --hf-overrides leave it: the engine sees no other.

Read in ``ModelConfig`` (vllm/config/model.py): a plain value is set at the top; an object updates the inner config of
that name, and takes the place of any other value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from specfix.deployment import Deployment
from specfix.deployment.config import TEXT_KEYS, Config, escape
from specfix.deployment.expected import as_read

FLAG = "hf_overrides"
ROPE = ("rope_scaling", "rope_parameters")  # two names of one block


def with_overrides(deployment: Deployment) -> Deployment:
    """``deployment`` with its target as the flag leaves it; the draft as it was. Raises CannotCheck."""
    given = deployment.serving.flags.get(FLAG)
    if not isinstance(given, Mapping) or not given:
        return deployment
    given = as_read(Config(given, "--hf-overrides"), deployment.serving.method or "")[0].values
    config = deployment.target.config
    changed = replace(config, values=merged(config.values, given, inner=TEXT_KEYS), overridden=frozenset(places(given)))
    return replace(deployment, target=replace(deployment.target, config=changed))


def merged(values: Mapping[str, Any], given: Mapping[str, Any], inner: tuple[str, ...] | None = None) -> dict[str, Any]:
    """``values`` with ``given`` put in. Objects of the keys in ``inner`` (None: of all) are merged, others replaced."""
    made = dict(values)
    for key, value in given.items():
        held = made.get(key)
        if key in ROPE:  # whatever the other name held is gone
            held = next((block for name in ROPE if (block := made.pop(name, None))), None)
        update = isinstance(value, dict) and isinstance(held, dict) and (inner is None or key in inner)
        made[key] = merged(held, value) if update and held is not None else value
    return made


def places(given: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """JSON pointers of what the flag sets."""
    for key, value in given.items():
        pointer = f"{above}/{escape(key)}"
        if key in TEXT_KEYS and isinstance(value, dict):
            yield from places(value, pointer)
        else:
            yield pointer
