"""What an entry of the output folder is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class File:
    """A file that is written; a ``private`` one is for nobody else to read."""

    content: bytes
    executable: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    to: Path


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a file. Its time is the original's, so that an unchanged one is known without reading it."""

    of: Path


Entry = File | Link | Copy
Folder = Mapping[str, Entry]
"""Relative path, with slashes -> entry."""
