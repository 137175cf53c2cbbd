"""Methods, registry, EAGLE3 support, default aux layers and traits, against what the imported engine says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from specfix.engines import Engine
from specfix.engines.source.classes import Classes, Lineage
from specfix.engines.source.tree import SourceTree
from specfix.facts.aux import evaluate

from .chosen import releases
from .truth import GATE, VERSIONS, ask, package, read

pytestmark = [pytest.mark.engine, pytest.mark.parametrize("version", releases(VERSIONS, *GATE))]

MODELS = "vllm.model_executor.models"
IMPORTED = 250  # of the registered classes; the rest want modules that a CPU build does without


def test_methods_and_registry(version: str) -> None:
    said, facts = ask(version, "models"), read(version).methods
    registry = {
        name: home if home.startswith("vllm.") else f"{MODELS}.{home}" for name, home in facts.architectures.items()
    }
    assert list(facts.methods) == said["methods"]
    assert registry == said["registry"]
    assert sorted(facts.drafts) == sorted(said["drafts"])
    assert facts.dropped == said["dropped"]
    print(f"\n{version}: {len(facts.methods)} methods, {len(registry)} architectures, {len(said['dropped'])} dropped")


def test_support_and_traits_of_each_class(version: str) -> None:
    """Support is what `supports_eagle3` says; where specfix says no in spite of it, the class's model must lack what
    the engine asks of it."""
    said, engine = ask(version, "models"), read(version)
    counts: Counter[str] = Counter()
    wrong: list[tuple[object, ...]] = []
    for name, cls in same_classes(said, engine, package(version).parent, counts).items():
        verdict = engine.eagle.support[name]
        if verdict is None:
            counts["support unknown"] += 1
        elif verdict == cls["eagle3"]:
            counts["support"] += 1
        elif verdict is False and cls["gives_states"] is False:
            counts["support, but no states"] += 1
        else:
            wrong.append((name, verdict, cls["eagle3"], cls["gives_states"]))
        for trait, holds in cls["traits"].items():
            if name in engine.traits.unreadable:
                counts["trait unknown"] += 1
            elif holds == (name in engine.traits.having[trait]):
                counts["trait"] += 1
            else:
                wrong.append((name, trait, holds))
    print(f"\n{version}: {dict(counts)}; not imported: {Counter(why[:60] for why in said['failed'].values())}")
    assert not wrong
    assert len(said["classes"]) >= IMPORTED
    assert counts["support unknown"] <= 0.03 * len(said["classes"]) >= counts["trait unknown"]


def test_default_aux_layers(version: str) -> None:
    said, engine = ask(version, "models"), read(version)
    counts: Counter[str] = Counter()
    formulas = engine.eagle.default_aux or {}
    wrong = []
    for name, cls in same_classes(said, engine, package(version).parent, counts).items():
        for layers, ids in cls["default_aux"].items() if engine.eagle.support[name] else ():
            terms = formulas.get(name, formulas.get(""))
            if terms is None or ids is None:
                counts["unknown" if terms is None else "not said by a class alone"] += 1
            elif [evaluate(term, int(layers)) for term in terms] == ids:
                counts["equal"] += 1
            else:
                wrong.append((name, layers, ids, terms))
    print(f"\n{version}: default aux layers {dict(counts)}")
    assert not wrong
    assert counts["equal"] > 200 and counts["unknown"] <= 0.03 * counts["equal"]


def same_classes(said: Any, engine: Engine, site: Any, counts: Counter[str]) -> dict[str, Any]:
    """The imported classes, without those of which another stands on CUDA, whose facts are read."""
    classes = Classes(SourceTree(site / "vllm"))
    kept = {}
    for name, cls in said["classes"].items():
        found = classes.at(engine.methods.architectures[name])
        lineages = [classes.lineage(each) for each in found if each]
        if lineages and all(cls["class"] != home(lineage) for lineage in lineages):
            counts["class of another platform"] += 1
        else:
            kept[name] = cls
    return kept


def home(lineage: Lineage) -> str:
    cls = lineage.classes[0]
    return f"vllm.{cls.file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}:{cls.name}"
