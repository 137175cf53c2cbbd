"""The versions that a distribution requires: its metadata beside the package, or a source tree's requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email.parser import HeaderParser
from pathlib import Path

from specfix.engines.facts.serving import RequirementFacts
from specfix.engines.source.tree import MAX_FILE, SourceTree

# the host that is asked for: where lines differ by platform, those of this one count
HOST: Mapping[str, str] = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_release": "",
    "platform_version": "",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "implementation_version": "3.12.0",
    "python_version": "3.12",
    "python_full_version": "3.12.0",
    "extra": "",
}
NAMES = ("torch", "transformers")
FILES = ("requirements/common.txt", "requirements/cuda.txt", "requirements-common.txt", "requirements-cuda.txt")
PYTHON = re.compile(r"^requires-python\s*=\s*[\"']([^\"']*)[\"']", re.MULTILINE)
DISTRIBUTION = re.compile(r"vllm([-_.].+)?", re.IGNORECASE)


def read_requirements(tree: SourceTree, unknown: dict[str, str]) -> RequirementFacts:
    beside = tree.package.parent
    metadata = _metadata(beside)
    if metadata is not None:
        headers = HeaderParser().parsestr(metadata)
        python, lines = headers.get("Requires-Python"), headers.get_all("Requires-Dist") or []
    else:
        project = _text(beside / "pyproject.toml")
        match = PYTHON.search(project or "")
        python = match[1] if match else None
        lines = [line for file in FILES for line in _lines(_text(beside / file))]
        if not lines:
            unknown |= {f"requirements.{name}": "no metadata of a distribution is at hand" for name in NAMES}
    if metadata is None and python is None:
        unknown["requirements.python"] = "no metadata of a distribution is at hand"
    ranges = {name: _merged(name, lines, unknown) if lines else None for name in NAMES}
    return RequirementFacts(python=None if python is None else _range([python], "python", unknown), **ranges)


def _metadata(folder: Path) -> str | None:
    """The metadata of the one distribution that put the package here."""
    found = {}
    for file in folder.glob("vllm*.dist-info/METADATA"):
        text = _text(file)
        name = HeaderParser().parsestr(text or "").get("Name", "")
        record = _text(file.with_name("RECORD"))
        owns = name == "vllm" if record is None else "\nvllm/__init__.py," in f"\n{record}"
        if text and owns and DISTRIBUTION.fullmatch(name):
            found[name] = text
    return next(iter(found.values())) if len(found) == 1 else None


def _text(file: Path) -> str | None:
    try:
        fit = file.is_file() and file.stat().st_size <= MAX_FILE  # a pipe would block
        return file.read_text("utf-8") if fit else None
    except (OSError, UnicodeDecodeError):
        return None


def _lines(text: str | None) -> Iterator[str]:
    for line in (text or "").splitlines():
        stripped = line.partition(" #")[0].strip()
        if stripped and not stripped.startswith(("#", "-")):
            yield stripped


def _merged(name: str, lines: list[str], unknown: dict[str, str]) -> str | None:
    """All that is asked of one package on HOST, without extras."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    ranges = []
    for line in lines:
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if canonicalize_name(wanted.name) == name and (wanted.marker is None or wanted.marker.evaluate(dict(HOST))):
            ranges.append(str(wanted.specifier))
    return _range(ranges, name, unknown)


def _range(ranges: list[str], name: str, unknown: dict[str, str]) -> str | None:
    """The ranges as one, in the order of their versions; "" where there are none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    try:
        parts = {part for text in ranges for part in SpecifierSet(text)}
        ordered = sorted(parts, key=lambda part: (Version(part.version.removesuffix(".*")), part.operator))
    except (InvalidSpecifier, ValueError) as error:  # === takes what is no version
        unknown[f"requirements.{name}"] = str(error)
        return None
    return ",".join(map(str, ordered))
