"""What starts the engine: models, flags, speculative config and environment, each as this release takes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfix.deployment import Deployment, Model, Serving, Shim
from specfix.deployment.load import DRAFTLESS, HUB_ID
from specfix.deployment.serving import AUTO, COMMON
from specfix.engines import Engine
from specfix.errors import CannotCheck
from specfix.repair.apply import of, target_moves
from specfix.repair.plan import Changes

CACHE_KEY = "additional-config"  # a part of VllmConfig.compute_hash, and of nothing else on GPUs and CPUs
BACKEND, BACKEND_VARIABLE = "attention-backend", "VLLM_ATTENTION_BACKEND"
SPECULATIVE = ("method", "num_speculative_tokens")  # of Serving; `greedy` is no flag of the engine's
FLAGS = sorted(COMMON - {*SPECULATIVE, "greedy"})

TARGET, DRAFT, SHIM = "target", "draft", "shim"  # folders of the output


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is: a folder here, or a repository on the Hub (and a revision of it)."""

    folder: Path | None = None
    hub_id: str = ""
    revision: str | None = None

    def same_as(self, other: Place) -> bool:
        if self.folder and other.folder:
            return self.folder.resolve() == other.folder.resolve()
        return self == other

    @property
    def served(self) -> str:
        """As the engine's flag takes it."""
        return str(self.folder) if self.folder else self.hub_id


@dataclass(frozen=True, slots=True)
class Launch:
    """The engine's start. ``target`` and ``draft`` are None where the repaired model in the output folder is meant;
    a draft that is no model of its own (``has_draft`` False) has none. ``shim`` is the manifest's patches where the
    output folder holds one. ``env`` holds what is to be set, in addition to what the shim needs."""

    target: Place | None
    draft: Place | None
    has_draft: bool
    engine_args: Mapping[str, Any]
    speculative_config: Mapping[str, Any]
    hf_overrides: Mapping[str, Any]
    env: Mapping[str, str]
    unset_env: tuple[str, ...]
    shim: Mapping[str, Any] | None

    def target_in(self, out: str) -> str:
        """What the engine is given as its model, when the output folder is ``out``."""
        return self.target.served if self.target else f"{out}/{TARGET}"

    def draft_in(self, out: str) -> str | None:
        """The same for the draft; None where there is none."""
        if not self.has_draft:
            return None
        return self.draft.served if self.draft else f"{out}/{DRAFT}"

    def speculative_in(self, out: str) -> dict[str, Any]:
        """The whole speculative config."""
        draft = self.draft_in(out)
        return {**self.speculative_config, **({} if draft is None else {"model": draft})}


def place(model: Model) -> Place:
    """Where a model is. Raises CannotCheck for a lone file, which no engine can load."""
    if model.folder is not None:
        return Place(model.folder.absolute())
    path = Path(model.reference).expanduser() if model.reference.startswith("~") else Path(model.reference)
    if path.exists():
        if path.name != "config.json":
            raise CannotCheck(f"{model.reference} is a lone file: give the model's folder, or its config.json there")
        return Place(path.absolute().parent)
    match = HUB_ID.fullmatch(model.reference)
    if match is None:
        raise CannotCheck(f"{model.reference} is not here any more")
    return Place(None, match["id"], match["revision"])


def launch(before: Deployment, after: Deployment, changes: Changes, engine: Engine) -> Launch:
    """How ``after``, which is ``before`` with ``changes`` made, is started. Raises CannotCheck for a flag that the
    release does not have."""
    moved = target_moves(changes)
    serving = after.serving
    overrides: dict[str, Any] = {}
    if not moved and any(of(changes, "target_config")):
        overrides = deepcopy(given_object(serving, "hf_overrides"))
        for change in of(changes, "target_config"):
            override(overrides, change.name, change.value)
    target = place(before.target)
    args: dict[str, Any] = {}
    if moved:
        args["served-model-name"] = target.served
    elif target.revision:
        args["revision"] = target.revision
    args |= engine_args(serving)
    if overrides:
        args.pop("hf-overrides", None)  # they are among those now
    env = dict(serving.env)
    if BACKEND in args and engine.serve.flags and BACKEND not in engine.serve.flags and engine.serve.backend_variable:
        env[BACKEND_VARIABLE] = args.pop(BACKEND)
    args = {flag: value for flag, value in args.items() if value is not None}
    changed = draft_moves(before, after)
    if changed and after.draft and not serving.enforce_eager and CACHE_KEY in (engine.serve.flags or ()):
        # the size of the draft's tables is compiled in, and not every release's cache key tells two of them apart
        digest = hashlib.sha256(after.draft.config.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        args[CACHE_KEY] = json.dumps({**given_object(serving, "additional_config"), "specfix_draft": digest})
    known = engine.serve.flags or {}
    names = {*known, *(flag.dest.replace("_", "-") for flag in known.values() if flag.dest)}
    for flag in (*args, *(["hf-overrides"] if overrides else [])):
        if known and flag not in names:
            raise CannotCheck(f"{engine} has no --{flag}")
    own = before.draft is None or (before.draft.config is before.target.config and not changed)
    draft = None if own or changed or before.draft is None else place(before.draft)
    unset = {change.name for change in of(changes, "env") if change.value is None}
    planned = isinstance(after.shim, Shim) and any(of(changes, "shim"))
    return Launch(
        target=None if moved else target,
        draft=draft,
        has_draft=not own,
        engine_args=args,
        speculative_config=speculative_config(serving, target if own else draft),
        hf_overrides=overrides,
        env=env,
        unset_env=tuple(sorted(unset)),
        shim=after.shim.patches if planned and isinstance(after.shim, Shim) else None,
    )


def given_object(serving: Serving, flag: str) -> dict[str, Any]:
    """What is given for a flag that takes an object; nothing where it is not."""
    given = serving.flags.get(flag)
    return given if isinstance(given, dict) else {}


def draft_moves(before: Deployment, after: Deployment) -> bool:
    """Whether the draft's config was changed: no flag reaches it, so it needs a folder of its own. One that is a part
    of the target goes along with it."""
    if before.draft is None or after.draft is None or after.draft.config is after.target.config:
        return False
    return before.draft.config.text != after.draft.config.text


def engine_args(serving: Serving) -> dict[str, Any]:
    """Flags that are given, or differ from their defaults."""
    defaults = Serving()
    common = {name: value for name in FLAGS if (value := getattr(serving, name)) != getattr(defaults, name)}
    common |= {name: text for name, text in serving.unknown.items() if text == AUTO}
    return {name.replace("_", "-"): value for name, value in {**common, **serving.flags}.items()}


def speculative_config(serving: Serving, home: Place | None) -> dict[str, Any]:
    """All but the draft's place, which is ``home``. The method is always written: else the draft's path decides."""
    config: dict[str, Any] = {name: value for name in SPECULATIVE if (value := getattr(serving, name)) is not None}
    config |= serving.speculative
    if home is not None and home.revision and serving.method not in DRAFTLESS:
        config["revision"] = home.revision
    return config


def override(overrides: dict[str, Any], pointer: str, value: object) -> None:
    *homes, key = pointer.split("/")[1:]
    for home in homes:
        overrides = overrides.setdefault(home, {})
    overrides[key.replace("~1", "/").replace("~0", "~")] = value


def check_path(path: str, method: str | None, engine: Engine) -> None:
    """Raise CannotCheck where a word in the draft's path would make this release take another method."""
    for word, named in diverting(method, engine):
        if word in path.lower():
            raise CannotCheck(
                f"{engine} takes method {named} for a draft whose path holds {word!r}, whatever is asked for, and "
                f"{method} is asked for with {path}: move the draft, or choose another --out"
            )


def diverting(method: str | None, engine: Engine) -> list[tuple[str, str]]:
    """(word, method) for each word that, in the draft's path, makes this release take another method."""
    if method is None or method in DRAFTLESS or method in engine.serve.method_kept:
        return []
    return [(word, named) for word, named in engine.serve.method_words or () if named != method]
