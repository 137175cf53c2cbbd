"""What `check` foretells is what real engines do, over mutations that nobody chose.

    pytest -s tests/agreement                       on what the engines did, as kept in results-VERSION.jsonl
    pytest -m engine -s tests/agreement             on real engines: the bases, kept mutations again, and fresh ones

SPECFIX_SEED chooses the fresh ones; it is printed.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from specfix.deployment.expected import KEYS

from .bases import BASES
from .bench import run
from .collect import kept, results
from .compare import (
    HEAD,
    HOST,
    MATRIX,
    OUTCOMES,
    RUNS,
    Verdict,
    agreement,
    counted,
    explained,
    mutated,
    report_on,
    verdicts,
)
from .fields import FIELDS, NOT_MUTATED
from .mutations import base, drawn, fresh

LEAST = 0.97
MOST_REFUSED = 1 / 3
FRESH, AGAIN = 20, 20  # mutations of a release on its engine: new ones, and kept ones
# What comes of these hangs on what was in memory: parameters that nothing fills, or rows that nobody wrote. Or on the
# CPU: a cache in fp8 asks for AVX-512.
UNSTEADY = ("=no-", "draft:num_hidden_layers=", "bias=", "[5, 4, 2]", "kv_cache_dtype=another-model's \"fp8")
# Of the fresh ones, which nobody has looked into: 217 of 240 were foretold (seeds 202 and 303). There are not rules for
# all that one can write into a config. Even where one in eight is wrong, one draw in 2,900 has more than eight.
MOST_WRONG = 8


@cache
def judged(release: str) -> list[Verdict]:
    return list(verdicts(release, RUNS[release].cases(), results(release)))


@pytest.fixture(params=RUNS)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_the_generator_makes_what_was_run(release: str) -> None:
    made, ran = set(RUNS[release].cases()), set(results(release))
    assert ran <= made and len(made - ran) == RUNS[release].unrun


def test_every_field_is_mutated() -> None:
    places = {mutation.place for mutation in drawn().values()}
    assert {str(one) for one in FIELDS} <= places
    assert {mutation.base for mutation in drawn().values()} == set(BASES)


def test_every_key_that_is_read_is_mutated() -> None:
    """Keys of configs are those that have a type; a new one needs a line in fields.py."""
    mutated = {one.path[-1] for one in FIELDS} | {name for names in NOT_MUTATED.values() for name in names}
    assert set(KEYS) - mutated == set()


def test_a_mutation_changes_its_own_copy_only() -> None:
    before = {name: base(name) for name in BASES}
    for mutation in drawn().values():
        mutation.case()
    assert {name: base(name) for name in BASES} == before


def test_fresh_mutations_hang_on_their_seed_alone() -> None:
    assert list(fresh(10, 1)) == list(fresh(10, 1)) != list(fresh(10, 2))
    assert not set(fresh(10, 1)) & set(drawn())


def test_enough_was_run_and_enough_of_it_starts(release: str) -> None:
    outcomes = [result["outcome"] for result in results(release).values()]
    assert len(outcomes) >= 300
    assert set(outcomes) <= set(OUTCOMES)
    assert outcomes.count("refused") / len(outcomes) <= MOST_REFUSED


def test_the_check_agrees_with_the_engine(release: str) -> None:
    known = explained()[release]
    print(*report_on(release, judged(release), known, False), sep="\n")
    assert agreement(judged(release)) >= LEAST
    assert [one.line for one in judged(release) if not one.agrees and one.name not in known] == []


def test_the_matrix_is_what_is_counted(release: str) -> None:
    head, *rows = MATRIX.read_text(encoding="utf-8").splitlines()
    assert head == HEAD
    assert [row for row in rows if row.startswith(f"{release}\t")] == list(counted(release, judged(release)))


def test_only_what_disagrees_is_explained(release: str) -> None:
    wrong = {one.name for one in judged(release) if not one.agrees}
    assert set(explained()[release]) <= wrong


@pytest.mark.engine
@pytest.mark.parametrize("release", [name for name, one in RUNS.items() if one.host is HOST])
def test_on_the_engine(release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every base is accepted whole; kept results come again; and the check agrees about mutations never seen before."""
    seed = int(os.environ.get("SPECFIX_SEED") or secrets.randbelow(10**6))
    new = {name: mutation.case() for name, mutation in fresh(3 * FRESH, seed).items() if is_steady(name)}
    new = dict(list(new.items())[:FRESH])
    steady = list(filter(is_steady, mutated()))
    again = {name: mutated()[name] for name in random.Random(seed).sample(steady, AGAIN)}
    unmutated = {name: base(name) for name in BASES}
    did = {
        result["name"]: kept(result)
        for result in run(release, {**unmutated, **again, **new}, tmp_path)
        if "outcome" in result
    }

    fresh_ones = list(verdicts(release, new, did))
    with capsys.disabled():
        print(f"\nSPECFIX_SEED={seed}", *report_on(release, fresh_ones, {}, True), sep="\n")
    assert {name: did[name]["outcome"] for name in BASES} == dict.fromkeys(BASES, "fine")
    assert list(differing(release, did, set(again))) == []
    assert sum(not one.agrees for one in fresh_ones) <= MOST_WRONG


def is_steady(name: str) -> bool:
    return not any(part in name for part in UNSTEADY)


def differing(release: str, did: dict[str, dict[str, str]], names: set[str]) -> Iterator[str]:
    """Kept mutations of which the engine made something else this time."""
    before = results(release)
    for name in sorted(names):
        if did[name]["outcome"] != before[name]["outcome"]:
            yield f"{name}: {before[name]['outcome']} before, now {did[name]['outcome']}: {did[name].get('message')}"
