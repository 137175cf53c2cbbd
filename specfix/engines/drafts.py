"""What a release makes of a draft's config before it loads the draft, by the facts of ``mtp`` and ``speculators``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from specfix.engines.facts.speculative import Copied, Count, MtpFacts, SpeculatorsFacts

INITIAL = "initial."
FIRST_CLASS = ("architectures.0", f"{INITIAL}architectures.0")
TEXT = ("text_config?", "get_text_config()")  # the text config, or the config itself where it has none


class Refused(Exception):
    """The release ends the start over this config; the message says where."""


class Unknown(Exception):
    """What the release makes of this config is not known; the message says what it hangs on."""


@dataclass
class _Names(Mapping[str, Any]):
    """The names of a condition, as a config has them."""

    config: Mapping[str, Any]
    initial: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        config = self.initial if name.startswith(INITIAL) else self.config
        if name in FIRST_CLASS and not config.get("architectures"):
            raise Refused("the config has no architectures")
        found = _at(config, name.removeprefix(INITIAL))
        return self.defaults.get(name) if found is None else found

    def __contains__(self, name: object) -> bool:
        return True  # what is not there is None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def overridden(facts: MtpFacts, config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with the ``model_type``, ``architectures`` and ``n_predict`` that ``hf_config_override`` gives it; of
    other keys that it writes the values are those of before. Raises Refused and Unknown."""
    if facts.overrides is None:
        raise Unknown("the overrides of this release")
    made = dict(config)
    for override in facts.overrides:
        needs: set[str] = set()
        holds = override.holds(_Names(made, config, override.defaults), needs)
        if holds is False:
            continue
        if holds is None or override.unread:
            raise Unknown(", ".join(sorted(needs)) or f"the step at line {override.line}")
        if override.refused:
            raise Refused(f"line {override.line}")
        count = None if override.n_predict is None else _count(override.n_predict, made)
        if override.becomes is not None:
            part = _at(made, override.becomes)
            if not isinstance(part, Mapping):
                raise Refused(f"the config has no {override.becomes}")
            made = dict(part)
        if override.model_type is not None:
            made["model_type"] = override.model_type
        if override.architectures is not None:
            made["architectures"] = list(override.architectures)
        if override.n_predict is not None:
            made["n_predict"] = count
        if override.last:
            break
    return made


def converted(facts: SpeculatorsFacts, config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of a draft in the speculators format as the release hands it on. Raises Refused and Unknown."""
    name = str(config.get("speculators_model_type"))
    if facts.algorithms is not None and name not in facts.algorithms:
        raise Refused(f"the release knows no algorithm {name}")
    algorithm = (facts.algorithms or {}).get(name)
    if algorithm is None:
        raise Unknown(f"the algorithm {name}")
    layer = deepcopy(dict(config.get("transformer_layer_config", {})))
    model_type = str(layer.get("model_type", algorithm.model_type))
    if "" not in algorithm.architectures and model_type not in algorithm.architectures:
        raise Refused(f"no architecture for the model type {model_type}")
    for place, copied in algorithm.keys.items():
        if "." in place and copied.when == "always":  # a new object, whatever the layer config has there
            layer.pop(place.partition(".")[0], None)
    for place, copied in algorithm.keys.items():
        _copy(copied, config, layer, place)
    own = [name for name in config.get("architectures") or () if name in algorithm.kept]
    made = algorithm.architectures.get(model_type, algorithm.architectures.get("", ()))
    return {**layer, "architectures": own or list(made)}


def _copy(copied: Copied, config: Mapping[str, Any], layer: dict[str, Any], place: str) -> None:
    value = copied.default if copied.source is None else config.get(copied.source, copied.default)
    if copied.required and copied.source not in config:
        raise Refused(f"the config has no {copied.source}")
    if (copied.when == "given" and value is None) or (copied.when == "true" and not value):
        return
    if copied.change == "less one":
        value = [number - 1 for number in value]
    elif copied.change == "negated":
        value = not value
    *outer, last = place.split(".")
    for key in outer:
        layer = layer.setdefault(key, {})
    layer[last] = value


def _count(count: Count, config: Mapping[str, Any]) -> int | None:
    values = [_at(config, key) for key in count.keys]
    stated = next((value for value in values if value is not None), None)
    if stated is None and count.required:
        raise Refused(f"the config has no {count.keys[0]}")
    return count.default if stated is None else stated


def _at(config: Any, path: str) -> Any:
    """What is at a dotted path, None where nothing is."""
    if "." not in path and path not in TEXT and isinstance(config, dict):
        return config.get(path)
    for step in path.split("."):
        if step in TEXT:
            inner = config.get("text_config") if isinstance(config, Mapping) else None
            config = config if inner is None else inner
        elif isinstance(config, list) and step.isdigit():
            config = config[int(step)] if int(step) < len(config) else None
        else:
            config = config.get(step) if isinstance(config, Mapping) else None
    return config
