"""An engine small enough to be read at once, and a cache of its own for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.engines.readers import NEEDED


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "specfix" / "facts"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Makes the files without which a folder is no engine, in ``site``/vllm, and what an installer leaves of
    distributions, as far as their versions go."""

    def make(site: str = "site", metadata: str | None = None, own: str | None = None, **beside: str) -> Path:
        package = tmp_path / site / "vllm"
        for file, cls in {"__init__.py": None, **NEEDED}.items():
            (package / file).parent.mkdir(parents=True, exist_ok=True)
            (package / file).write_text(f"class {cls}: ..." if cls else "")
        for name, version in {**({"vllm": metadata} if metadata else {}), **beside}.items():
            info = tmp_path / site / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
        if own:
            (package / "_version.py").write_text(f"__version__ = version = {own!r}")
        return package

    return make
