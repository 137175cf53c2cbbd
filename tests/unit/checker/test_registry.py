"""Where rules are looked for."""

from __future__ import annotations

import threading
import time
from types import ModuleType

import pytest

from specfix.checker import registry


def test_threads_wait_for_the_one_that_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is known before its rules are: who looked meanwhile would miss them."""
    begun: list[int] = []

    def slow() -> list[ModuleType]:
        begun.append(1)
        time.sleep(0.05)
        return found

    found = registry.rule_packages()
    expected = registry.load_rules()
    monkeypatch.setattr(registry, "rule_packages", slow)
    registry._loaded.cache_clear()
    got: list[object] = []
    threads = [threading.Thread(target=lambda: got.append(registry.load_rules())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == 1 and got == [expected] * 4
