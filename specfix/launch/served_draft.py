"""A launch whose MODEL is a draft of the speculators library: the engine serves the verifier that its config names,
with it (``maybe_override_with_speculators``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfix.deployment import Misfit
from specfix.deployment.json_text import read_json_object, show
from specfix.deployment.load import HUB_ID, find_files
from specfix.errors import CannotCheck
from specfix.launch.arguments import Arguments, Given, spot
from specfix.launch.stated import TOKENS, Options, one_key

if TYPE_CHECKING:
    from specfix.engines import Engine

BLOCK = "speculators_config"
COMMON_KEYS = ("method", TOKENS)  # keys of the speculative config that are options too
NAMED = "speculator"  # in the name of a model on the Hub: others are not looked at there


def draft_config(model: str) -> Mapping[str, Any] | None:
    """The config of such a draft, by the place of a model; None for any other. Raises CannotCheck where the Hub does
    not say."""
    file = Path(model).expanduser() / "config.json"
    values: Mapping[str, Any] = {}
    try:
        if file.is_file():
            values, _ = read_json_object(file, str(file))
        elif NAMED in model.lower() and HUB_ID.fullmatch(model):
            values = find_files(model, "draft").config.values
    except (OSError, ValueError):  # no name of a file
        return None
    return values if values.get(BLOCK) is not None else None


def with_verifier(
    arguments: Arguments, options: Options, model: str, config: Mapping[str, Any], engine: Engine
) -> Arguments:
    """The arguments with the verifier as the model; ``options`` get what the release takes of the draft's ``config``.
    Raises CannotCheck where it does not say, or this release does not read it."""
    facts, given = engine.speculators, arguments.model
    algorithm = (facts.algorithms or {}).get(str(config.get("speculators_model_type")))
    verifier = at(config, facts.verifier)
    if given is None or algorithm is None or facts.user_config is None or not isinstance(verifier, str):
        raise CannotCheck(f"{model} is a draft, of which {engine} makes no pair: give TARGET and DRAFT")
    word = given.word
    if facts.local_verifier is False and (not HUB_ID.fullmatch(verifier) or Path(verifier).exists()):
        message = (
            f"{engine} takes a repository on the Hub for the verifier of a draft that is served by itself, and "
            f"{model} names {show(verifier)}"
        )
        options.misfits.append(Misfit(message, spot(word), repair="name both models, by --speculative-config"))
    if facts.user_config == "dropped":
        drop(options, engine)
    asked = {*options.speculative, *options.values, *(name.removeprefix("speculative.") for name in options.unknown)}
    theirs = asked - set(facts.locked)
    stated = {**algorithm.speculative, "model": given.value, facts.tokens_as or TOKENS: at(config, facts.tokens)}
    if facts.user_config == "kept" and "speculative_config" in options.places:
        stated = {}
    for key, value in stated.items():
        if key not in theirs:
            options.unknown.pop(key if key in COMMON_KEYS else f"speculative.{key}", None)
            one_key(key, value, None, spot(word), options, engine)
    options.said.append(f"target {verifier}: the verifier that {model} names")
    return replace(arguments, model=Given(verifier, word))


def drop(options: Options, engine: Engine) -> None:
    """Take out what was asked for beside the draft."""
    whole = options.places.get("speculative_config")
    if whole is not None:
        message = f"{engine} takes what the draft's own config says, and drops --speculative-config beside it"
        options.misfits.append(Misfit(message, whole, ignored=True))
    for name in COMMON_KEYS:
        options.values.pop(name, None)
    options.speculative.clear()
    for name in [each for each in options.unknown if each in COMMON_KEYS or each.startswith("speculative")]:
        del options.unknown[name]


def at(config: Any, path: str | None) -> Any:
    """What is at a dotted path; None where nothing is."""
    for step in path.split(".") if path else ():
        if isinstance(config, list):
            config = config[int(step)] if step.isdigit() and int(step) < len(config) else None
        else:
            config = config.get(step) if isinstance(config, Mapping) else None
    return config if path else None
