"""Find the engine that the user means: a shipped release, an image's, the one installed here, or one at a path."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from specfix.engines.engine import Engine
from specfix.engines.place import NAME, Place, at_path, installed
from specfix.engines.serial import load
from specfix.errors import CannotCheck

if TYPE_CHECKING:
    from packaging.version import Version

DATA = Path(__file__).parent / "data"
SHIPPED = "shipped"
BY_TAG = "shipped, by the image's tag"

_RELEASE = re.compile(r"(?:vllm(?:-cpu)?\s*(?:===?|@|:|\s)\s*)?v?(?P<version>\d[\w.!+-]{0,99})", re.IGNORECASE)


def find_engine(spec: str | None = None, python: str | None = None) -> Engine:
    """The engine named by ``spec``: ``vllm==0.26.0``, ``0.26.0``, an image's reference, or the path of an engine, a
    wheel or an interpreter; or the one that ``python``, an interpreter that is run for this, would import.

    Neither: the engine installed here, else the newest release known. CannotCheck for one that cannot be had.
    """
    if python is not None:
        from specfix.engines.ask_python import OPTION, ask_python  # it is costly to import what starts processes

        if spec is not None:
            raise CannotCheck(f"--engine {spec} and {OPTION} {python} name two engines: give one")
        return _read(ask_python(python))
    if spec is None:
        place = installed()
        return _read(place) if place else _shipped(shipped_versions()[-1], SHIPPED)
    if not spec.strip():
        raise CannotCheck("the engine is empty: give a release (vllm==0.26.0) or a path")
    match = _RELEASE.fullmatch(spec.strip())
    if match and _file(match["version"]).is_file():  # as nearly all say it: no need to parse versions
        return _shipped(match["version"], SHIPPED)
    if match and (wanted := _parsed(match["version"])):
        return _release(wanted, SHIPPED)
    if path := _existing(spec):
        if path.suffix == ".whl" and path.is_file():
            return _read_wheel(path)
        try:
            place = at_path(path)
        except OSError as error:
            raise CannotCheck(f"{error.filename} cannot be read: {error.strerror}") from None
        return _read(place)
    from specfix.engines.images import parse_image

    image = parse_image(spec.strip().removeprefix("docker://").removeprefix("oci://"))
    if image and (wanted := _parsed(image.release())):
        return _release(wanted, BY_TAG)
    raise CannotCheck(
        f"engine {spec[:300]!r} is no release (vllm==0.26.0), no image (vllm/vllm-openai:v0.26.0) and no existing path"
    )


def shipped_versions() -> list[str]:
    """The releases whose facts come with specfix, oldest first."""
    return list(_versions_in(DATA))


@cache
def _versions_in(data: Path) -> tuple[str, ...]:
    from packaging.version import Version

    stem = f"{NAME}-"
    found = [file.stem.removeprefix(stem) for file in data.glob(f"{stem}*.json")]
    if not found:
        raise CannotCheck(f"no engine facts in {data}: this installation of specfix is broken")
    return tuple(sorted(found, key=Version))


def installed_version() -> str | None:
    """Version of the vLLM installed here, or None. It is not imported."""
    place = installed()
    return None if place is None else _version(place)


def _existing(spec: str) -> Path | None:
    with suppress(OSError, RuntimeError, ValueError):  # no path at all: too long, an unknown ~user
        path = Path(spec).expanduser()
        return path if path.exists() else None
    return None


def _release(wanted: Version, source: str) -> Engine:
    shipped = shipped_versions()
    for version in shipped:
        if _same(version, wanted):
            return _shipped(version, source)
    place = installed() if source == SHIPPED else None  # an image holds one of its own
    if place and _same(_version(place), wanted):
        return _read(place)
    _refuse(wanted, shipped)


def _refuse(wanted: Version, shipped: list[str]) -> NoReturn:
    raise CannotCheck(
        f"{NAME} {wanted} is not known; the nearest known: {', '.join(_nearest(wanted, shipped))}. Where it is "
        "installed, --engine PATH or --engine-python PATH reads it"
    )


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


def _version(place: Place) -> str | None:
    """As the distribution's metadata say, else as the package says itself."""
    if place.version:
        return place.version
    from specfix.engines.source.tree import SourceTree

    return SourceTree(place.package).version


def _shipped(version: str, source: str) -> Engine:
    return _loaded(_file(version), source)


def _file(version: str) -> Path:
    return DATA / f"{NAME}-{version}.json"


@cache
def _loaded(file: Path, source: str) -> Engine:
    """The engine of a file of facts, read once in a process: a gate asks for it with each launch."""
    try:
        return load(file.read_text("utf-8"), source)
    except (OSError, ValueError) as error:
        raise CannotCheck(f"{file} is damaged ({error}): this installation of specfix is broken") from error


def _read(place: Place) -> Engine:
    from specfix.engines.cache import read_cached  # the readers cost more to import than a shipped file to load

    return _narrowed(read_cached(place.package, place.source, place.version), place)


def _read_wheel(file: Path) -> Engine:
    import tempfile

    from specfix.engines.apart import read_engine
    from specfix.engines.cache import cached
    from specfix.engines.wheel import Wheel

    wheel = Wheel(file)

    def read() -> Engine:
        with tempfile.TemporaryDirectory(prefix="specfix-") as folder:
            try:
                wheel.unpack(Path(folder))
                return read_engine(Path(folder) / NAME, str(file), wheel.version)
            except OSError as error:
                raise CannotCheck(f"{file} cannot be unpacked into {folder}: {error.strerror}") from None
            except CannotCheck as problem:
                raise CannotCheck(str(problem).replace(f"{Path(folder) / NAME}", str(file))) from None

    return cached(wheel.contents(), str(file), wheel.version, read)


def _narrowed(engine: Engine, place: Place) -> Engine:
    """What the engine requires in a range is installed beside it in one version, and that one counts."""
    exact = {name: f"=={version}" for name, version in place.beside.items() if hasattr(engine.requirements, name)}
    if not exact:
        return engine
    unknown = {fact: why for fact, why in engine.unknown.items() if fact not in {f"requirements.{n}" for n in exact}}
    return replace(engine, requirements=replace(engine.requirements, **exact), unknown=unknown)
