"""The output folder: written beside its place and put there by one rename, so that it is whole or absent.

Whoever kills this leaves the folder as it was, the new one, or none (between two renames, where it replaces an older
one), and perhaps a hidden folder beside it, which the next run takes away.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from specfix import __version__
from specfix.errors import CannotCheck
from specfix.repair.files.entry import Copy, Entry, File, Folder, Link

MARKER = ".specfix"
SCHEMA = "specfix/output-v1"
LINKED_LATER = ("draft/", "target/")  # where launch.sh puts links into the Hub cache

Verify = Callable[[Path], None]


def write(out: Path, folder: Folder, keep: list[tuple[str, Path]], verify: Verify) -> bool:
    """Make ``out`` hold ``folder``; False where it does already, and nothing is touched.

    ``keep`` are (what it is, folder) that must not be written into, nor away. ``verify`` looks at the written folder
    before it gets its name, and may raise. Raises CannotCheck, and then ``out`` is as it was.
    """
    out = out.absolute()
    refuse(out, keep)
    folder = {MARKER: marker(folder), **folder}
    new, old = (out.with_name(f".{out.name}.specfix-{part}") for part in ("new", "old"))
    with locked(out.parent):
        if out.exists():
            refuse_foreign(out)
            if same(out, folder):
                remove(new, old)
                return False
        remove(new, old)
        try:
            fill(new, folder)
            verify(new)
            if out.exists():
                out.rename(old)
            new.rename(out)
        except BaseException as error:  # an interrupt too
            if old.exists() and not out.exists():
                old.rename(out)
            with suppress(CannotCheck):
                remove(new)
            if isinstance(error, OSError):
                raise unwritable(out, error) from None
            raise
        sync(out.parent)
        with suppress(CannotCheck):  # it is done; what is left of the older one goes with the next run
            remove(old)
    return True


def refuse(out: Path, keep: list[tuple[str, Path]]) -> None:
    """Raise CannotCheck for a place that is not one for an output folder."""
    if not str(out).isprintable():
        raise CannotCheck(f"--out {str(out)!r} holds a character that cannot be printed: choose another name")
    if out.is_symlink():
        raise CannotCheck(f"--out {out} is a link, and would be replaced by a folder: name the folder itself")
    real = out.parent.resolve() / out.name
    for what, folder in keep:
        kept = folder.resolve()
        if real == kept or kept in real.parents:
            raise CannotCheck(f"--out {out} lies in {what}, {folder}, which is never written to: choose another place")
        if real in kept.parents:
            raise CannotCheck(f"--out {out} holds {what}, {folder}: choose another place")
    here = Path.cwd()
    if real == here or real in here.parents:
        raise CannotCheck(f"--out {out} is the working directory, or holds it: choose another place")
    if not out.parent.is_dir():
        raise CannotCheck(f"--out {out}: there is no folder {out.parent}")


def refuse_foreign(out: Path) -> None:
    """Raise CannotCheck where ``out`` was not written by specfix, or holds what was not."""
    if not out.is_dir():
        raise CannotCheck(f"--out {out} exists and is no folder")
    files = None
    with suppress(OSError, ValueError, AttributeError):
        given = json.loads((out / MARKER).read_text("utf-8"))
        files = given.get("files") if given.get("schema") == SCHEMA else None
    if not isinstance(files, list):
        raise CannotCheck(f"--out {out} exists and was not written by specfix: choose another name, or move it away")
    for name in sorted(set(present(out)) - {*files, MARKER}):
        if not linked_later(out, name):
            raise CannotCheck(f"--out {out} holds {name}, which specfix did not write: move that away first")


def linked_later(out: Path, name: str) -> bool:
    return name.startswith(LINKED_LATER) and (out / name).is_symlink()


def marker(folder: Folder) -> File:
    """What says that the folder is ours, and which files in it are."""
    content = {"schema": SCHEMA, "version": __version__, "files": sorted(folder)}
    return File((json.dumps(content, indent=2) + "\n").encode())


def present(out: Path) -> Iterator[str]:
    """Every file and link below ``out``; Python's own caches, which come with running the shim, do not count."""
    for root, folders, files in os.walk(out):
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*files, *links):
            yield (Path(root) / name).relative_to(out).as_posix()


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
        executable = bool(path.stat().st_mode & 0o100)
        return executable == entry.executable and path.read_bytes() == entry.content
    except OSError:
        return False


def fill(new: Path, folder: Folder) -> None:
    """Write it all, down to the disk."""
    new.mkdir()
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
            path.write_bytes(entry.content)
            if entry.executable:
                path.chmod(path.stat().st_mode | (path.stat().st_mode & 0o444) >> 2)  # for whoever may read it
        sync(path)
    for root, _, _ in os.walk(new):
        sync(Path(root))


def sync(path: Path) -> None:
    """Have a file or a folder on the disk, and not just in memory."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(*leftovers: Path) -> None:
    """Take away what an earlier run left. Only a real folder of that very name is ours."""
    for path in leftovers:
        if path.is_symlink() or path.is_file():
            raise CannotCheck(f"{path} is in the way: move it away")
        if path.exists():
            try:
                shutil.rmtree(path)
            except OSError as error:
                raise unwritable(path, error) from None


@contextmanager
def locked(parent: Path) -> Iterator[None]:
    """One writer at a time in ``parent``; the lock goes with the process."""
    try:
        handle = os.open(parent, os.O_RDONLY)
    except OSError as error:
        raise unwritable(parent, error) from None
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def unwritable(path: Path, error: OSError) -> CannotCheck:
    """What the system says, in words that name the place."""
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(path) else ""
    return CannotCheck(f"{path} cannot be written: {reason}{where}")
