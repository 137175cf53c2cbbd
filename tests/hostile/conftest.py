"""The command line over files of strangers, in this process or in one whose memory is bounded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specfix.cli import main

from .makers import Said

Run = Callable[..., Said]


@pytest.fixture
def specfix(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``specfix`` with these arguments in this process."""

    def run(*arguments: str) -> Said:
        return Said(main(arguments), *capsys.readouterr())

    return run
