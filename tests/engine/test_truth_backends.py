"""Attention backends and platforms: what was read, against what the imported classes answer on a CPU build.

Not asked: backends whose module does not import there (flashinfer, CUDA kernels); ROCm's and XPU's platforms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from specfix.engines.conditions import choose, evaluate
from specfix.engines.facts.backends import Backend
from specfix.engines.facts.decisions import Step
from specfix.engines.facts.hardware import KernelSizes

from .ask.backends import CAPABILITIES, DTYPES, FLAGS, HEAD_SIZES
from .chosen import releases
from .truth import GATE, VERSIONS, ask, read

pytestmark = pytest.mark.engine

CPU: Mapping[str, object] = {"platform": "cpu", "capability": None, "capability.major": None, "capability.minor": None}
PRESENT = ("ModuleNotFoundError: No module named 'vllm.v1", "AttributeError: module 'vllm.v1")
UNKNOWN = 0.03  # of the answers


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_backends(version: str) -> None:
    engine = read(version)
    said = ask(version, "backends")["backends"]
    facts = engine.backends.backends
    counts: Counter[str] = Counter()
    assert {name: backend.path for name, backend in facts.items()} == {n: given["path"] for n, given in said.items()}
    for name, given in said.items():
        absent = given.get("error", "").startswith(PRESENT)
        assert facts[name].present is not absent, name
        if "error" in given or given["path"] is None:
            counts["not asked" if given["path"] else "no class"] += 1
            continue
        compare = {field: (answer, said_of(facts[name], field)) for field, answer in given.items() if field in FIELDS}
        for field, (answer, found) in compare.items():
            verdict = judge(f"backends.backends.{name}.{field}", field, answer, found, engine.unknown)
            counts[verdict] += 1
            assert verdict != "wrong", (name, field, answer, found)
        if "block_sizes" in given:
            verdict = blocks(given["block_sizes"], engine.blocks.backends.get(name))
            counts[f"block sizes {verdict}"] += 1
            assert verdict != "wrong", (name, given["block_sizes"], engine.blocks.backends.get(name))
    print(f"\n{version}: {len(said)} backends:", dict(counts))
    assert counts["unknown"] <= UNKNOWN * sum(counts.values())
    assert counts["right"] > 10 * len(FIELDS)


FIELDS = {
    "dtypes": DTYPES,
    "kv_cache_dtypes": (),
    "head_sizes": tuple(HEAD_SIZES),
    "attention_types": (),
    "capability": CAPABILITIES,
    "layouts": (),
    **dict.fromkeys(FLAGS, ()),
}


def said_of(backend: Backend, field: str) -> Any:
    """The field as the question is put to the engine; in lists of values None beside those that hang on something."""
    value = getattr(backend, field)
    if field == "capability" and value is not None:
        pairs = {pair: {**CPU, "capability": list(pair)} for pair in CAPABILITIES}
        known = {p: {**v, "capability.major": p[0], "capability.minor": p[1]} for p, v in pairs.items()}
        return [(pair, evaluate(value, values)) for pair, values in known.items()]
    if field == "head_sizes":
        condition = backend.conditions.get(field)
        if condition is not None:
            return [(size, evaluate(condition, {**CPU, "head_size": size})) for size in HEAD_SIZES]
        return None if value is None else [(size, not value or size in value) for size in HEAD_SIZES]
    if field == "layouts" and value is not None:
        chosen = choose(value, CPU)
        return [] if not value else None if chosen.step is None else list(chosen.then)
    if field in {"dtypes", "kv_cache_dtypes", "attention_types"} and value is not None:
        parts = {name.partition(".")[2]: c for name, c in backend.conditions.items() if name.startswith(f"{field}.")}
        return [*((one, True) for one in value), *((one, evaluate(c, CPU)) for one, c in parts.items())]
    if field in FLAGS and field in backend.conditions:
        return evaluate(backend.conditions[field], CPU)
    return value


def judge(path: str, field: str, answer: Any, found: Any, unknown: Mapping[str, str]) -> str:
    if path in unknown:
        return "unknown"
    if field in FLAGS or field == "layouts":
        return "hangs on the machine" if found is None else "right" if found == answer else "wrong"
    if found is None:
        return "wrong"
    given = [tuple(one) if isinstance(one, list) else one for one in answer]
    sure = {value for value, holds in found if holds}
    open_ = {value for value, holds in found if holds is None}
    if not sure <= set(given) or not set(given) <= sure | open_:
        return "wrong"
    return "hangs on the machine" if open_ else "right"


def blocks(answer: list[Any], found: KernelSizes | None) -> str:
    if found is None or (found.sizes is None and found.multiples is None):
        return "unknown"
    sizes = tuple(size for size in answer if isinstance(size, int))
    multiples = tuple(size["multiple"] for size in answer if not isinstance(size, int))
    ways = [(way.sizes or (), way.multiples or ()) for way in (found, *found.special)]
    return "right" if (sizes, multiples) in ways else "wrong"


@pytest.mark.parametrize("version", releases(("0.26.0", "0.32.0"), "0.32.0"))
def test_the_cache_that_an_attention_has_of_its_own(version: str) -> None:
    said = ask(version, "backends")["own_cache"]
    found = read(version).quantisation.own_caches["DeepseekV4ForCausalLM"]
    assert said == {"refuses": list(found.refuses), "plain": list(found.plain)}
    assert ("auto" in said["refuses"]) is (version == "0.26.0")


@pytest.mark.parametrize("version", releases(VERSIONS, *GATE))
def test_platforms(version: str) -> None:
    said, facts = ask(version, "backends")["platforms"], read(version).platforms
    counts: Counter[str] = Counter()
    for what, steps, values, answer in questions(said, facts):
        chosen = choose(steps, values)
        assert chosen.step is not None, (what, values, chosen.needs)
        assert chosen.then == answer, (what, values, answer, chosen)
        counts[what] += 1
    print(f"\n{version}:", dict(counts))
    assert counts["priorities"] == 2 * 2 * len(CAPABILITIES)
    assert facts.per_worker == ("cpu",)
    pairs = zip(said["cpu"]["batch"], said["cpu"]["batch of two"], strict=True)
    assert all(two[who] == 2 * one[who] for one, two in pairs for who in one)


def questions(said: Any, facts: Any) -> Iterator[tuple[str, tuple[Step, ...], dict[str, object], object]]:
    tables = (facts.max_num_batched_tokens, facts.max_num_seqs)
    for case in said["cuda"]["priorities"]:
        values = {**capability(case["capability"]), "use_mla": case["use_mla"], "num_heads": case["num_heads"]}
        # what the function's parameters are where nobody gives them
        values |= {"kv_cache_dtype": None, "use_non_causal": False, "head_size": None, "use_mm_prefix": False}
        yield "priorities", facts.backends["cuda"], values, case["order"]
    for case in said["cuda"]["batches"]:
        values = {**capability((9, 0)), "device_memory": case["device_memory"], "device_name": case["device_name"]}
        for table, answer in zip(tables, case["batch"], strict=True):
            yield "batches", table["cuda"], values, answer
    for case in said["cuda"]["dtypes"]:
        yield "dtypes", facts.dtypes["cuda"], capability(case["capability"]), case["dtypes"]
    for table, answer in zip(tables, said["cpu"]["batch"], strict=True):
        yield "batches of a CPU", table["cpu"], {}, answer
    values = {"cpu_architecture": said["cpu"]["architecture"]}
    yield "dtypes of a CPU", facts.dtypes["cpu"], values, said["cpu"]["dtypes"]


def capability(pair: Any) -> dict[str, object]:
    return {"capability": list(pair), "capability.major": pair[0], "capability.minor": pair[1]}
