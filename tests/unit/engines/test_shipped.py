"""The facts that come with the package: whole, honest about what is not known, small and quick to load."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields

import pytest
from pydantic import TypeAdapter

from specfix.engines.coverage import coverage
from specfix.engines.engine import SECTIONS, Engine
from specfix.engines.find import DATA, find_engine, shipped_versions
from specfix.engines.serial import dump, load

VERSIONS = shipped_versions()
MAY_BE_UNKNOWN = 0.03  # of a kind of fact
MOST = 2_000_000  # bytes, compressed
# facts of which None says something: there is no such rule, list or limit, or no speculators format
MAY_BE_NONE = {
    "blocks.cpu_latent",
    "cpu.refuses",
    "eagle.config_stage",
    "lengths.overriding_key",
    "lengths.raised_rope_types",
    "speculators.local_verifier",
    "speculators.tokens",
    "speculators.tokens_as",
    "speculators.user_config",
    "speculators.verifier",
    "triton.sampler_min_rows",
}


@pytest.fixture(scope="module", params=VERSIONS)
def engine(request: pytest.FixtureRequest) -> Engine:
    return find_engine(request.param)


def test_each_release_is_there() -> None:
    assert len(VERSIONS) >= 39
    assert VERSIONS[0] == "0.10.0"


def test_a_file_is_what_the_types_say_and_as_dumped(engine: Engine) -> None:
    for name in SECTIONS:
        section = getattr(engine, name)
        TypeAdapter(type(section)).validate_python(asdict(section))
    assert (DATA / f"vllm-{engine.version}.json").read_text("utf-8") == dump(engine)


def test_what_is_none_is_listed_with_its_reason(engine: Engine) -> None:
    assert all(engine.unknown.values())
    silent = {path for path in _none(engine) if path not in engine.unknown}
    assert silent <= MAY_BE_NONE
    named = {tuple(path.split(".")[:2]) for path in engine.unknown}
    facts = {(name, field.name) for name in SECTIONS for field in fields(getattr(engine, name))}
    assert named <= facts


def _none(engine: Engine) -> Iterator[str]:
    for name in SECTIONS:
        section = getattr(engine, name)
        for field in fields(section):
            if getattr(section, field.name) is None:
                yield f"{name}.{field.name}"


def test_few_of_a_kind_are_unknown() -> None:
    """Over all releases: a kind may have no more than a handful of entries in one."""
    lost: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for version in VERSIONS:
        for kind, (unknown, total) in coverage(find_engine(version)).items():
            lost[kind] += unknown
            of[kind] += total
    assert len(of) > 100
    assert not {kind: (count, of[kind]) for kind, count in lost.items() if count > MAY_BE_UNKNOWN * of[kind]}


def test_few_entries_of_a_kind_are_unknown_in_one_release(engine: Engine) -> None:
    kinds = {kind: counts for kind, counts in coverage(engine).items() if ".*" in kind}
    assert len(kinds) > 50
    assert not {kind: (lost, of) for kind, (lost, of) in kinds.items() if lost > max(2, MAY_BE_UNKNOWN * of)}


def test_all_of_it_is_small() -> None:
    files = [file for file in DATA.parent.rglob("*") if file.is_file() and file.suffix not in {".py", ".pyc"}]
    assert {DATA / f"vllm-{version}.json" for version in VERSIONS} <= set(files)
    assert sum(len(zlib.compress(file.read_bytes())) for file in files) < MOST


def test_a_file_is_loaded_in_milliseconds() -> None:
    text = max((file.read_text("utf-8") for file in DATA.glob("*.json")), key=len)
    assert min(_seconds(text) for _ in range(20)) < 0.05


def _seconds(text: str) -> float:
    start = time.process_time()
    load(text)
    return time.process_time() - start
