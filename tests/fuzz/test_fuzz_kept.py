"""What fuzzers begin with, and each input that broke something once, without a fuzzer."""

from __future__ import annotations

from pathlib import Path

import pytest

from .seeds import seeds
from .targets import TARGETS

KEPT = sorted(file for file in (Path(__file__).parent / "crashes").glob("*/*") if file.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read_or_refused(name: str) -> None:
    assert seeds()[name]
    for data in seeds()[name]:
        TARGETS[name](data)


@pytest.mark.parametrize("file", KEPT, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_what_broke_it_once(file: Path) -> None:
    TARGETS[file.parent.name](file.read_bytes())
