"""A disk that is full, read-only or broken: one message that says what to do, and what was there is as it was."""

from __future__ import annotations

import errno
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from specfix.cli import main

from . import points
from .cases import Known, Place, here

REFUSALS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EROFS: "Read-only file system",
    errno.EACCES: "Permission denied",
    errno.EIO: "Input/output error",
}
FREEING = {"os.remove", "os.rmdir", "os.rename", "renamed"}  # what a full disk lets one do


def one_message(said: str) -> str:
    """What was said, which is one line of an error and nothing else."""
    assert re.fullmatch(r"specfix: error: [^\n]+\n", said), said
    return said


@pytest.mark.parametrize(
    ("number", "older", "lasting", "each"),
    [
        (errno.ENOSPC, True, True, 3),
        *(
            pytest.param(number, older, lasting, 1, marks=pytest.mark.faults)
            for number, older, lasting in itertools.product(REFUSALS, [False, True], [False, True])
        ),
    ],
)
def test_refused_at_each_point(
    tmp_path: Path, number: int, older: bool, lasting: bool, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, or from there on; in haste at every third."""
    known = Known.make(tmp_path, "folder", older)
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def refuse(what: str, path: str) -> None:
        if not (REFUSALS[number].startswith("the ") and what in FREEING):
            raise OSError(number, os.strerror(number), path)

    step, ended = 0, None
    while ended is None or len(ended.names) >= step:
        step += each
        known.reset()
        ended = known.place.forked(known.arguments, step, refuse, lasting=lasting)
        new = known.hold()
        left = known.place.names() - {"out"}
        if ended.status:
            assert ended.status == 2
            said = one_message(ended.said)
            assert f"{known.place.out} cannot be written: {REFUSALS[number]}" in said
            assert "choose another place" in said and ("free some space" in said) == ("the " in REFUSALS[number])
            assert new is (False if older else None) or lasting
        else:
            assert new
            said = ended.said
        assert all(f"{known.place.work / name}" in said for name in left)
        assert not left or lasting or (new and "cannot be removed" in said)
        known.run_again()
    assert step > 40


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can look into, unlike the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="specfix-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(arguments: list[str]) -> int:
    os.seteuid(65534)
    return main(arguments)


@pytest.mark.parametrize("mode", [0o555, 0o444, 0o000])
def test_a_folder_of_someone_else(open_folder: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(open_folder)
    arguments = place.arguments()
    assert here(arguments) == 0
    shutil.rmtree(place.out)
    place.work.chmod(mode)
    place.beside.chmod(0o777)
    if os.geteuid() == 0:  # who may write anywhere
        monkeypatch.setattr(points, "main", as_nobody)
    ended = place.forked(arguments)
    place.work.chmod(0o755)
    assert ended.status == 2
    said = one_message(ended.said)
    assert str(place.work) in said and "Permission denied" in said and "choose another place" in said
    assert not place.names()


LOOK = 'find "$WORK" -mindepth 1 -not -name filler -exec stat -c "%n %s %Y %N" {} + | sort'
DISK = f"""
mount -t tmpfs -o "$ROOM" tmpfs "$WORK" || exit 99
eval "$FIRST"
{LOOK} > "$BESIDE/before"
"$@"
echo $? > "$BESIDE/status"
{LOOK} > "$BESIDE/after"
"""
FILL = 'dd if=/dev/zero of="$WORK/filler" bs=4k 2>/dev/null; truncate -s "-$FREE" "$WORK/filler"'


def on_a_disk(place: Place, arguments: list[str], room: str, first: str, **variables: str) -> str:
    """Run ``specfix`` with a disk of its own under the output: it is refused and leaves all as it was. What it said.

    ``room`` are the disk's mount options, ``first`` what is done there before, in shell.
    """
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", DISK, "sh"]
    environment = {"WORK": str(place.work), "BESIDE": str(place.beside), "ROOM": room, "FIRST": first, **variables}
    done = subprocess.run(
        [*command, sys.executable, "-m", "specfix", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    if not (place.beside / "status").exists():
        pytest.skip(f"no disk can be had here: {done.stderr}")
    before, after, status = ((place.beside / name).read_text() for name in ("before", "after", "status"))
    assert (status, done.stdout) == ("2\n", "")
    assert before == after
    return one_message(done.stderr)


@pytest.mark.faults
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("free", range(0, 32, 4))
def test_a_disk_that_is_really_full(tmp_path: Path, free: int, older: bool) -> None:
    place = Place(tmp_path)
    first = f"{shlex.join([sys.executable, '-m', 'specfix', *place.arguments(4096)])} > /dev/null; " if older else ""
    said = on_a_disk(place, place.arguments(), "size=128k", first + FILL, FREE=f"{free}k")
    assert f"{place.out} cannot be written: the disk is full" in said


@pytest.mark.faults
@pytest.mark.parametrize("inodes", [1, 2, 5, 9])
def test_a_disk_without_room_for_names(tmp_path: Path, inodes: int) -> None:
    place = Place(tmp_path)
    said = on_a_disk(place, place.arguments(), f"nr_inodes={inodes}", "")
    assert f"{place.out} cannot be written: the disk is full" in said


@pytest.mark.faults
@pytest.mark.parametrize("older", [False, True])
def test_a_disk_that_is_really_read_only(tmp_path: Path, older: bool) -> None:
    place = Place(tmp_path)
    first = f"{shlex.join([sys.executable, '-m', 'specfix', *place.arguments(4096)])} > /dev/null; " if older else ""
    said = on_a_disk(place, place.arguments(), "size=1m", f'{first} mount -o remount,ro "$WORK"')
    assert f"{place.out} cannot be written: Read-only file system" in said


SERVED = """
mount -t tmpfs -o size=2m tmpfs "$WORK" || exit 99
"$@" > /dev/null && mount -o remount,ro "$WORK" || exit 99
touch "$WORK/new" 2> /dev/null && exit 99
"$@"
echo "again: $?"
bash "$WORK/out/launch.sh"
"""


@pytest.mark.faults
def test_a_result_is_served_from_a_disk_that_is_read_only(tmp_path: Path) -> None:
    """As where a volume is mounted into a container: nothing is written for it, neither by a second run nor at start,
    and there is no home."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here")
    place = Place(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "vllm").write_text(f'#!/bin/sh\necho "$@"\nexec {shlex.quote(sys.executable)} -m specfix_shim status\n')
    (tools / "vllm").chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VLLM"))}
    environment |= {"WORK": str(place.work), "HOME": "/nonexistent", "PATH": f"{tools}:{os.environ['PATH']}"}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SERVED, "sh", sys.executable, "-m"]
    done = subprocess.run(
        [*command, "specfix", *place.arguments(), "--keep-draft"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if done.returncode == 99:
        pytest.skip(f"no disk can be had here: {done.stderr}")
    assert done.stderr == ""
    assert "is as it was: it held all this already" in done.stdout and "again: 0" in done.stdout
    assert f"manifest {place.out}/shim/specfix_shim/manifest.json: draft_positions" in done.stdout
    assert "plugin found by its entry point" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_report_that_cannot_be_printed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "specfix", *place.arguments()], stdout=full, stderr=-1, text=True, check=False
        )
    assert done.returncode == 2
    assert one_message(done.stderr).endswith("standard output cannot be written: No space left on device\n")
    assert place.names() == {"out"}
