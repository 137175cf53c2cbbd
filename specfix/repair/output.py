"""The output folder: written beside its place and put there by one rename, so that it is whole or absent.

Whoever kills this leaves the folder as it was, the new one, or none (between two renames, where it replaces an older
one), and perhaps a hidden folder beside it, which the next run takes away.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specfix import __version__
from specfix.errors import CannotCheck
from specfix.interrupts import waiting
from specfix.repair.alone import locked
from specfix.repair.files.entry import Copy, Entry, File, Folder, Link
from specfix.repair.launch import SHIM
from specfix.whole import reason, unwritable, working_directory

MARKER = ".specfix"
SCHEMA = "specfix/output-v1"
LINKED_LATER = ("draft/", "target/")  # where launch.sh puts links into the Hub cache

Verify = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Written:
    """``new`` is False where the folder held all this already; ``note`` says what of an older one is still there."""

    new: bool
    note: str | None = None


def settled(out: Path) -> Path:
    """``out`` with its parent's links followed, once and for all: ``link/..`` is not where it seems."""
    out = working_directory() / out
    try:
        out = Path(os.path.realpath(out)) if out.name in ("", "..") else out.parent.resolve() / out.name
    except (OSError, RuntimeError):  # links in a circle
        raise CannotCheck(f"--out {out} leads in a circle: choose another place") from None
    return out


def check(out: Path, folder: Folder, keep: list[tuple[str, Path]]) -> bool:
    """Whether ``out`` holds ``folder`` already. Raises CannotCheck where it could not be written there."""
    refuse(out, keep)
    if not out.exists():
        return False
    refuse_foreign(out)
    return same(out, {MARKER: marker(folder), **folder})


def write(out: Path, folder: Folder, keep: list[tuple[str, Path]], verify: Verify) -> Written:
    """Make ``out``, which is settled, hold ``folder``; where it does already, nothing is touched.

    ``keep`` are (what it is, folder) that must not be written into, nor away. ``verify`` looks at the written folder
    before it gets its name, and may raise. Raises CannotCheck, and then ``out`` is as it was.
    """
    refuse(out, keep)
    new, old = beside(out, "new"), beside(out, "old")
    with locked(out.parent) as alone, waiting() as acting:
        with acting():
            if check(out, folder, keep):
                return Written(False, tidied(new, old) if alone else None)
            if alone:
                remove(new)
        mine = claimed(new, out)
        try:
            with acting():
                if not out.exists() and not old.is_symlink() and whole(old):
                    old.rename(out)  # it was set aside by one that was killed before the new one got its name
                    refuse_foreign(out)
                remove(old)
                refuse_copies(out, folder)
                fill(new, {MARKER: marker(folder), **folder})
                verify(new)
                if out.exists():
                    out.rename(old)
                new.rename(out)
                sync(out.parent)
        except BaseException as error:  # an interrupt too
            left = put_back(out, new, old, mine)
            if isinstance(error, OSError):
                raise unwritable(out, error, left) from None
            raise
        return Written(True, tidied(old))


def beside(out: Path, part: str) -> Path:
    return out.with_name(f".{out.name}.specfix-{part}")


def claimed(new: Path, out: Path) -> int:
    """Make the folder that will be ``out``: there it is known by its inode. Where there are no locks, it is one."""
    try:
        new.mkdir()
        return new.stat().st_ino
    except FileExistsError:
        raise CannotCheck(
            f"{new} is there: another run is writing {out}, or was killed. Try again; where none is running, remove it"
        ) from None
    except OSError as error:
        raise unwritable(out, error) from None


def put_back(out: Path, new: Path, old: Path, mine: int) -> str | None:
    """Make ``out`` what it was before, and say what cannot be."""
    try:
        if out.exists() and out.stat().st_ino == mine:
            out.rename(new)
        if old.exists() and not out.exists():
            old.rename(out)
    except OSError as error:
        left = f"{old} is what it was, and the next run puts it back" if old.exists() else reason(out, error)
        return "; ".join(filter(None, [left, tidied(new)]))
    return tidied(new)


def refuse(out: Path, keep: list[tuple[str, Path]]) -> None:
    """Raise CannotCheck for a place that is not one for an output folder."""
    if not str(out).isprintable():
        raise CannotCheck(f"--out {str(out)!r} holds a character that cannot be printed: choose another name")
    if not out.name:
        raise CannotCheck(f"--out {out} is no name of a new folder: choose another place")
    for path in (out, beside(out, "new")):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:  # a folder that may not be looked into, a name that is too long
            raise unwritable(out, error) from None
    if out.is_symlink():
        raise CannotCheck(f"--out {out} is a link, and would be replaced by a folder: name the folder itself")
    real = out.parent.resolve() / out.name
    for what, folder in keep:
        kept = folder.resolve()
        if real == kept or kept in real.parents:
            raise CannotCheck(f"--out {out} lies in {what}, {folder}, which is never written to: choose another place")
        if real in kept.parents:
            raise CannotCheck(f"--out {out} holds {what}, {folder}: choose another place")
    here = working_directory()
    if real == here or real in here.parents:
        raise CannotCheck(f"--out {out} is the working directory, or holds it: choose another place")
    ours = next((above for above in real.parents if files_of(above) is not None), None)
    if ours is not None:
        raise CannotCheck(f"--out {out} lies in {ours}, which specfix wrote: choose another place")
    if not out.parent.is_dir():
        raise CannotCheck(f"--out {out}: there is no folder {out.parent}")


def refuse_foreign(out: Path) -> None:
    """Raise CannotCheck where ``out`` was not written by specfix, or holds what was not."""
    if not out.is_dir():
        raise CannotCheck(f"--out {out} exists and is no folder")
    files = files_of(out)
    if files is None:
        raise CannotCheck(f"--out {out} exists and was not written by specfix: choose another name, or move it away")
    for name in sorted(set(present(out)) - {*files, MARKER}):
        if not linked_later(out, name):
            raise CannotCheck(f"--out {out} holds {name}, which specfix did not write: move that away first")


def files_of(out: Path) -> list[str] | None:
    """The files that specfix wrote in a folder; None where it did not write the folder."""
    with suppress(OSError, ValueError, AttributeError):
        given = json.loads((out / MARKER).read_text("utf-8"))
        files = given.get("files") if given.get("schema") == SCHEMA else None
        return files if isinstance(files, list) else None
    return None


def whole(folder: Path) -> bool:
    """Whether specfix wrote a folder and nothing of it was removed since."""
    files = files_of(folder)
    return files is not None and set(files) <= set(present(folder))


def linked_later(out: Path, name: str) -> bool:
    return name.startswith(LINKED_LATER) and (out / name).is_symlink()


def marker(folder: Folder) -> File:
    """What says that the folder is ours, and which files in it are."""
    content = {"schema": SCHEMA, "version": __version__, "files": sorted(folder)}
    return File((json.dumps(content, indent=2) + "\n").encode())


def present(out: Path) -> Iterator[str]:
    """Every file and link below ``out``. What running or installing the shim leaves there does not count."""
    for root, folders, files in os.walk(out):
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        installed = Path(root) == out / SHIM
        folders[:] = [name for name in folders if not (name == "__pycache__" or (installed and by_pip(name)))]
        for name in (*files, *links):
            yield (Path(root) / name).relative_to(out).as_posix()


def by_pip(name: str) -> bool:
    return name == "build" or name.endswith(".egg-info")


def same(out: Path, folder: Folder) -> bool:
    """Whether ``out`` holds just this."""
    names = {name for name in present(out) if name in folder or not linked_later(out, name)}
    return names == set(folder) and all(unchanged(out / name, entry) for name, entry in folder.items())


def unchanged(path: Path, entry: Entry) -> bool:
    try:
        if isinstance(entry, Link):
            return path.is_symlink() and path.readlink() == entry.to
        if path.is_symlink():
            return False
        if isinstance(entry, Copy):
            ours, theirs = path.stat(), entry.of.stat()
            return (ours.st_size, ours.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)
        mode = path.stat().st_mode
        closed = not entry.private or not mode & 0o077
        return closed and bool(mode & 0o100) == entry.executable and path.read_bytes() == entry.content
    except OSError:
        return False


def fill(new: Path, folder: Folder) -> None:
    """Write it all into an empty folder, down to the disk."""
    for name, entry in folder.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, Link):
            path.symlink_to(entry.to)
            continue
        if isinstance(entry, Copy):
            shutil.copyfile(entry.of, path)
            times = entry.of.stat()
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        else:
            if entry.private:
                path.touch(0o600)  # before anything is in it
            path.write_bytes(entry.content)
            if entry.executable:
                path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o444) >> 2)  # for whoever may read it
        sync(path)
    for root, _, _ in os.walk(new):
        sync(Path(root))


def refuse_copies(out: Path, folder: Folder) -> None:
    """Raise CannotCheck where a file to be copied cannot be read, or all of them do not fit on the disk."""
    needed = 0
    for entry in folder.values():
        if isinstance(entry, Copy):
            try:
                with entry.of.open("rb") as file:
                    needed += os.fstat(file.fileno()).st_size
            except OSError as error:
                raise CannotCheck(f"{entry.of} cannot be read, and so not copied: {error.strerror}") from None
    if needed and needed > (free := shutil.disk_usage(out.parent).free):
        raise CannotCheck(
            f"--copy needs {needed:,} bytes, and {out.parent} has {free:,} free: leave --copy out, or choose another "
            "place"
        )


def sync(path: Path) -> None:
    """Have a file or a folder on the disk, and not just in memory; where the file system can."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(handle)


def remove(*leftovers: Path) -> None:
    """Take away what an earlier run left. Only a real folder of that very name is ours."""
    for path in leftovers:
        if path.is_symlink() or path.is_file():
            raise CannotCheck(f"{path} is in the way: move it away")
        while path.exists():
            try:
                shutil.rmtree(path)
            except FileNotFoundError:  # another run takes it away as well
                continue
            except OSError as error:
                raise CannotCheck(f"{path}, left by an earlier run, cannot be removed: {reason(path, error)}") from None


def tidied(*leftovers: Path) -> str | None:
    """Take away what is left, and say what cannot be: it is in nobody's way yet."""
    try:
        remove(*leftovers)
    except CannotCheck as error:
        return str(error)
    return None
