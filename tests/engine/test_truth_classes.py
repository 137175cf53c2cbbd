"""Config classes as they were read, held against the imported classes themselves.

Every model type of the Transformers that the engine runs with is made with nothing given, and so are vLLM's own
classes; where the collection of real configs lies beside the repository, each of its configs is made as well, and its
text config too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from specfix.engines.facts.classes import ConfigClass, ConfigClassFacts
from specfix.engines.source.symbolic.machine import INNER, NO_FACTS
from specfix.engines.transformers import class_defaults, fields, resolve
from specfix.errors import MissingFact

from .chosen import releases
from .truth import GATE, VERSIONS, ask, read

pytestmark = pytest.mark.engine

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
AT_MOST_UNKNOWN = 0.03
A_CONFIG = "a config of its own"

# target and draft model types that are served with speculation, which must not be missing from what is compared
SERVED = (
    "cohere",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "exaone4",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3_text",
    "gemma4",
    "gemma4_text",
    "glm4_moe",
    "glm4_moe_lite",
    "glm4v",
    "glm_moe_dsa",
    "gpt_oss",
    "granite",
    "granitemoehybrid",
    "llama",
    "llama4",
    "llama4_text",
    "minimax_m2",
    "ministral3",
    "mistral",
    "mistral3",
    "mixtral",
    "nemotron_h",
    "olmo3",
    "phi3",
    "phimoe",
    "qwen2",
    "qwen2_5_vl",
    "qwen2_audio",
    "qwen3",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_moe",
    "qwen3_next",
    "qwen3_vl",
    "qwen3_vl_moe",
    "qwen3_vl_text",
)
LABELS = ("id2label", "label2id", "num_labels")  # of classifiers; their keys are numbers, which JSON has not
# what the RoPE parameters hold in Transformers 5, and what is read under its own name
OF_ROPE = ("rope_theta", "partial_rotary_factor")


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_classes_make_of_configs_what_was_read(version: str) -> None:
    said = ask(version, "classes")
    required = f"=={said['transformers']}"
    facts = read(version).configs
    kinds: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    wrong: list[str] = []

    def hold(kind: str, name: str, answer: Mapping[str, Any], cls: ConfigClass, values: Mapping[str, Any]) -> None:
        base = class_defaults(cls.base, required) if cls.base else None
        for field, outcome in compared(answer, cls, base, values):
            reason = why(cls, base, values, field) if outcome == "unknown" else ""
            counts = kinds.setdefault(kind, Counter())
            if INNER in reason or A_CONFIG in reason:  # another level's value
                counts["of an inner config"] += 1
                continue
            counts[outcome if outcome in {"same", "unknown"} else "wrong"] += 1
            if reason:
                reasons[reason] += 1
            elif outcome != "same":
                wrong.append(f"{name}: {field} {outcome}")

    for model_type, answer in said["bare"].items():
        cls = class_defaults(model_type, required)
        assert cls is not None, model_type
        if "error" not in answer:
            assert cls.name == answer["class"], model_type
            hold("model types", model_type, answer, cls, {})
        if "error" not in (varied := said["varied"][model_type]):
            hold("model types, varied", model_type, varied, cls, said["values"])
    assert set(SERVED) <= {*said["bare"], *(facts.types or {})}
    for name, answer in said["own"].items():
        if "error" not in answer:
            hold("classes of vLLM", name, answer, facts.classes[name], {})
    for file, key, answer in said["real"]:
        values = json.loads((CORPUS / file).read_text())
        found = class_of(values, facts, required)
        if key:
            found = part_of(found, key, values[key], facts, required)
            values = values[key]
        if "error" not in answer and found is not None:
            assert found.name == answer["class"], (file, key)
            hold("real configs", f"{file} {key}", answer, found, values)
    print(f"\n{version}, Transformers {said['transformers']}")
    for kind, counts in kinds.items():
        print(f"  {kind}: {dict(counts)}")
    print(*(f"    {count} unknown: {reason}" for reason, count in reasons.most_common(12)), sep="\n")
    assert not wrong, "\n".join(wrong[:60])
    for kind, counts in kinds.items():
        assert counts["unknown"] <= AT_MOST_UNKNOWN * counts.total(), kind


def class_of(values: Mapping[str, Any], facts: ConfigClassFacts, required: str) -> ConfigClass | None:
    """vLLM's own class of a config, else Transformers'."""
    model_type = values.get("model_type", "")
    name = (facts.types or {}).get(model_type)
    return facts.classes[name] if name else class_defaults(model_type, required)


def part_of(
    cls: ConfigClass | None, key: str, values: Mapping[str, Any], facts: ConfigClassFacts, required: str
) -> ConfigClass | None:
    """The class of an inner config, as far as it was read."""
    name = cls.parts.get(key) if cls else None
    if cls is None or name is None:
        return None
    if key in cls.named_parts:
        name = values.get("model_type") or name
        if name in (facts.types or {}):
            return class_of({"model_type": name}, facts, required)
    return facts.classes.get(name) or class_defaults(name, required)


def compared(
    answer: Mapping[str, Any], cls: ConfigClass, base: ConfigClass | None, values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Each field of an answer with "same", "unknown", or how the two differ."""
    given = {name: value for name, value in answer["fields"].items() if not of_no_account(name, value)}
    rope = answer["fields"].get("rope_parameters")
    for name in sorted({*given, *fields(cls, base)} - {*answer["parts"], *cls.aliases, *LABELS}):
        if name in values and name not in fields(cls, base):
            continue  # as the config states it: no field of the class
        expected = given.get(name)
        if name in OF_ROPE and name not in given:
            if not isinstance(rope, dict) or any(isinstance(part, dict) for part in rope.values()) or name in values:
                continue  # of each kind of layer, or as the config states it
            if values.get("rope_scaling") or values.get("rope_parameters"):
                continue
            expected = rope.get(name)
        elif name not in given:
            expected = answer["inherited"].get(name)
            if expected is None and name in cls.unknown:
                continue
        try:
            found = resolve(cls, values, name, base)
        except MissingFact:
            yield name, "unknown"
            continue
        yield name, "same" if equal(found, expected) else f"is {expected!r}, read as {found!r}"


def of_no_account(name: str, value: Any) -> bool:
    """What no config.json states: objects, and how a config was made."""
    return name in NO_FACTS or (isinstance(value, str) and value.startswith("<object "))


def equal(one: Any, other: Any) -> bool:
    """As JSON values; a whole float is the integer, sets have no order."""
    return bool(normal(one) == normal(other))


def normal(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [normal(part) for part in value]
    if isinstance(value, set | frozenset):
        return sorted(map(normal, value))
    return {key: normal(part) for key, part in value.items()} if isinstance(value, dict) else value


def why(cls: ConfigClass, base: ConfigClass | None, values: Mapping[str, Any], name: str) -> str:
    try:
        resolve(cls, values, name, base)
    except MissingFact as missing:
        return str(missing).replace(cls.name, "…")
    return ""
