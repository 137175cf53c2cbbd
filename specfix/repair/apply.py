"""A deployment with the plan's changes made, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from specfix.deployment import Deployment, Model, Serving, Shim
from specfix.deployment.config import TEXT_KEYS, Config
from specfix.deployment.json_text import parse_object
from specfix.deployment.load import without_unread
from specfix.deployment.serving import COMMON
from specfix.deployment.shim import PLUGINS, allowed, allowing
from specfix.errors import MissingFact
from specfix.repair.patch_json import patch
from specfix.repair.plan import Change, Changes

AnyModel = TypeVar("AnyModel", bound=Model)
# what chooses how the rest of a config is read: an override comes too late for it
TOO_LATE = frozenset({"model_type", "auto_map", "quantization_config"})
APART = "draft/config.json"  # of a draft that was a part of its target, and is none any more
KEYS = ("method", "num_speculative_tokens")  # of the speculative config, that are options too: others bear flags' names


def apply(deployment: Deployment, changes: Changes) -> Deployment:
    """What will be served when ``changes`` are made."""
    target, draft = with_config(deployment.target, of(changes, "target_config")), deployment.draft
    if draft is not None:
        own = draft.config is deployment.target.config
        if own and target_moves(changes):  # it lies in the same folder
            draft = replace(draft, config=target.config)
        changed = with_config(draft, of(changes, "draft_config"))
        if own and changed is not draft:  # it gets a folder of its own
            changed = replace(changed, config=replace(changed.config, file=APART))
        draft = changed
    target, draft, _ = without_unread(target, draft, deployment.serving.method or "")  # which the new text holds again
    serving = with_options(deployment.serving, changes)
    shim = with_patches(deployment.shim, changes)
    if isinstance(shim, Shim):
        if shim is not deployment.shim and PLUGINS in serving.env:  # a new one must be let in
            serving = replace(serving, env={**serving.env, PLUGINS: allowing(serving.env[PLUGINS])})
        shim = replace(shim, enabled=allowed(serving.env.get(PLUGINS)))
    # a draft that moves is named with its method, which its new path might not say
    moves = any(of(changes, "draft_config"))
    named = deployment.method_given or moves or ("speculative_config", "method") in changes
    if named:
        serving = replace(serving, misfits=tuple(each for each in serving.misfits if each.option != "method"))
    return replace(deployment, target=target, draft=draft, serving=serving, shim=shim, method_given=named)


def of(changes: Changes, *surfaces: str) -> Iterator[Change]:
    """The changes of some surfaces."""
    return (change for change in changes.values() if change.surface in surfaces)


def target_moves(changes: Changes) -> bool:
    """Whether the target is served from a folder of its own: a change to its config that no flag can make."""
    return any(not overridable(change.name, change.value) for change in of(changes, "target_config"))


def overridable(pointer: str, value: object) -> bool:
    """Whether --hf-overrides can make a change: for a plain value at the top, or in the config of the language model.
    An object would be set as it is written, past what the engine makes of such blocks when it reads a config."""
    *homes, key = pointer.split("/")[1:]
    return all(home in TEXT_KEYS for home in homes) and key not in TOO_LATE and not isinstance(value, dict)


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
    options["misfits"] = tuple(misfit for misfit in serving.misfits if misfit.option not in options)  # no more refused
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
