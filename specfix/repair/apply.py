"""A deployment with the plan's changes made, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from specfix.deployment import Deployment, Model, Serving, Shim
from specfix.deployment.config import Config
from specfix.deployment.json_text import parse_object
from specfix.deployment.serving import COMMON
from specfix.deployment.shim import PLUGINS, allowed, allowing
from specfix.errors import MissingFact
from specfix.repair.patch_json import patch
from specfix.repair.plan import Change, Changes

AnyModel = TypeVar("AnyModel", bound=Model)
KEYS = ("method", "num_speculative_tokens")  # of the speculative config, that are options too: others bear flags' names


def apply(deployment: Deployment, changes: Changes) -> Deployment:
    """What will be served when ``changes`` are made."""
    target = with_config(deployment.target, of(changes, "target_config"))
    draft = deployment.draft and with_config(deployment.draft, of(changes, "draft_config"))
    serving = with_options(deployment.serving, changes)
    shim = with_patches(deployment.shim, changes)
    if isinstance(shim, Shim):
        if shim is not deployment.shim and PLUGINS in serving.env:  # a new one must be let in
            serving = replace(serving, env={**serving.env, PLUGINS: allowing(serving.env[PLUGINS])})
        shim = replace(shim, enabled=allowed(serving.env.get(PLUGINS)))
    named = deployment.method_given or any(change.name == "method" for change in of(changes, "speculative_config"))
    return replace(deployment, target=target, draft=draft, serving=serving, shim=shim, method_given=named)


def of(changes: Changes, *surfaces: str) -> Iterator[Change]:
    """The changes of some surfaces."""
    return (change for change in changes.values() if change.surface in surfaces)


def with_config(model: AnyModel, changes: Iterator[Change]) -> AnyModel:
    """The model with another config.json."""
    text = model.config.text
    for change in changes:
        text = patch(text, change.name, change.value)
    if text == model.config.text:
        return model
    return replace(model, config=Config(parse_object(text, model.config.file), model.config.file, text))


def with_options(serving: Serving, changes: Changes) -> Serving:
    """The options with flags, keys and variables set or taken away."""
    options: dict[str, object] = {}
    others = {"engine_args": dict(serving.flags), "speculative_config": dict(serving.speculative)}
    env: dict[str, object] = dict(serving.env)
    for change in of(changes, *others):
        name = change.name.replace("-", "_")
        if name in (KEYS if change.surface == "speculative_config" else COMMON):
            options[name] = Serving.__dataclass_fields__[name].default if change.value is None else change.value
        else:
            put(others[change.surface], name, change.value)
    for change in of(changes, "env"):
        put(env, change.name, None if change.value is None else str(change.value))
    options |= {"env": env, "flags": others["engine_args"], "speculative": others["speculative_config"]}
    return replace(serving, **options)  # type: ignore[arg-type]


def put(values: dict[str, object], name: str, value: object) -> None:
    """Set a value, or take it away where it is None."""
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value


def with_patches(shim: Shim | MissingFact | None, changes: Changes) -> Shim | MissingFact | None:
    """The shim with more patches, in a folder that is still to be chosen; the very same where none is added."""
    patches = {change.name: change.value for change in of(changes, "shim")}
    if not patches:
        return shim
    return Shim("", {**(shim.patches if isinstance(shim, Shim) else {}), **patches})
