"""What a path is, and whether one may look there, where a Path raises or says another thing."""

from __future__ import annotations

import os
from pathlib import Path


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - a Path raises where it may not look


def is_link(path: Path) -> bool:
    return os.path.islink(path)  # noqa: PTH114 - a Path raises where it may not look


def barred(path: Path) -> OSError | None:
    """Why a link, to a folder perhaps, may not be followed; None for one that may be, or leads nowhere."""
    if is_link(path):
        try:
            path.stat()
        except PermissionError as error:
            return error
        except OSError:
            pass
    return None


def pass_through(folder: str | Path) -> None:
    """Raise OSError for a folder in which nothing can be opened, though it may be listed."""
    os.stat(os.path.join(folder, "."))  # noqa: PTH116, PTH118 - a Path drops the dot, which tells
