"""The same Hub as the deployment's tests have, and signals that end what is started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.deployment.fake_hub import cache, fake, library

__all__ = ["cache", "fake", "library"]

USUAL: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """What a runner ignores that outlives its terminal (nohup, a shell's &), all that it starts would ignore, too."""
    before = {number: signal.signal(number, usual) for number, usual in USUAL.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
