"""The output folder is whole or absent, whoever interferes; models are never written to."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specfix
from specfix.errors import CannotCheck
from specfix.repairing import prepare, write

from .pairs import OPTIONS, change, content, state, write_pair

Fix = Callable[..., specfix.Fixed]


@pytest.fixture
def fix(tmp_path: Path) -> Fix:
    """Fix the pair in ``tmp_path``; afterwards the models are what they were."""
    target, draft = write_pair(tmp_path / "models")

    def run(out: Path = tmp_path / "out", **options: Any) -> specfix.Fixed:
        before = state(tmp_path / "models")
        try:
            return specfix.fix(target, draft, out=out, **OPTIONS | options)
        finally:
            assert state(tmp_path / "models") == before

    return run


def test_the_draft_is_linked_around_its_new_config(fix: Fix, tmp_path: Path) -> None:
    assert fix().written
    draft, home = tmp_path / "out/draft", tmp_path / "models/draft"
    links = {path.name: path.readlink() for path in draft.iterdir() if path.is_symlink()}
    assert links == {name: home / name for name in ("pytorch_model.bin", "sub", "tokenizer.model")}
    assert (draft / "pytorch_model.bin").read_bytes() == b"draft" * 100
    old, new = ((folder / "config.json").read_text() for folder in (home, draft))
    assert new == old.replace("2048", "8192") != old
    assert not (tmp_path / "out/target").exists() and not (tmp_path / "out/shim").exists()


def test_copies_hold_no_link(fix: Fix, tmp_path: Path) -> None:
    fix(copy=True)
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]
    assert (tmp_path / "out/draft/sub/notes.txt").read_text() == "draft"
    assert (tmp_path / "out/draft/pytorch_model.bin").read_bytes() == b"draft" * 100


def test_a_folder_that_links_to_itself_is_not_copied(fix: Fix, tmp_path: Path) -> None:
    (tmp_path / "models/draft/sub/loop").symlink_to("..")
    with pytest.raises(CannotCheck, match="links to a folder that it lies in"):
        fix(copy=True)
    assert fix().written


def test_bom_line_ends_and_spelling_stay(fix: Fix, tmp_path: Path) -> None:
    config = tmp_path / "models/draft/config.json"
    data = b"\xef\xbb\xbf" + config.read_bytes().replace(b"\n", b"\r\n").replace(b"{", b'{"odd": 1.50e3,', 1)
    config.write_bytes(data)
    fix()
    assert (tmp_path / "out/draft/config.json").read_bytes() == data.replace(b"2048", b"8192")


@pytest.mark.parametrize("copy", [False, True])
def test_a_second_run_touches_nothing(fix: Fix, tmp_path: Path, copy: bool) -> None:
    fix(copy=copy)
    before = state(tmp_path)
    folder = (tmp_path / "out").stat()
    assert not fix(copy=copy).written
    assert state(tmp_path) == before
    again = (tmp_path / "out").stat()
    assert (again.st_ino, again.st_mtime_ns) == (folder.st_ino, folder.st_mtime_ns)


def test_a_changed_one_is_replaced_whole(fix: Fix, tmp_path: Path) -> None:
    fix()
    first = content(tmp_path / "out")
    assert fix(max_model_len=4096).written
    assert content(tmp_path / "out") != first
    assert fix().written
    assert content(tmp_path / "out") == first
    (tmp_path / "out/launch.sh").chmod(0o644)
    assert fix().written
    (tmp_path / "out/serve.yaml").unlink()
    assert fix().written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "out"]


def test_what_the_shim_and_launch_leave_behind_does_not_count(fix: Fix, tmp_path: Path) -> None:
    cpu: dict[str, Any] = {"hardware": "cpu"}
    fix(**cpu)
    cached = tmp_path / "out/shim/specfix_shim/__pycache__"
    cached.mkdir()
    (cached / "x.pyc").touch()
    (tmp_path / "out/draft/from-the-cache").symlink_to("/nowhere")
    assert not fix(**cpu).written


def make_file(out: Path) -> None:
    out.write_text("")


def make_foreign(out: Path) -> None:
    out.mkdir()
    (out / "thesis.tex").touch()


def make_empty(out: Path) -> None:
    out.mkdir()


def make_link(out: Path) -> None:
    out.symlink_to(out.parent / "models")


def make_dangling(out: Path) -> None:
    out.symlink_to("/nowhere/at/all")


def make_false_marker(out: Path) -> None:
    make_foreign(out)
    (out / ".specfix").write_text('{"schema": "another/tool"}')


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (make_file, "exists and is no folder"),
        (make_foreign, "was not written by specfix"),
        (make_empty, "was not written by specfix"),
        (make_link, "is a link"),
        (make_dangling, "is a link"),
        (make_false_marker, "was not written by specfix"),
    ],
)
def test_what_is_there_and_not_ours(fix: Fix, tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / "out")
    before = state(tmp_path)
    with pytest.raises(CannotCheck, match=words):
        fix()
    assert state(tmp_path) == before


def test_a_users_file_in_our_folder_is_not_lost(fix: Fix, tmp_path: Path) -> None:
    fix()
    (tmp_path / "out/notes.txt").write_text("mine")
    for options in ({}, {"max_model_len": 4096}):
        with pytest.raises(CannotCheck, match=r"holds notes\.txt, which specfix did not write"):
            fix(**options)
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "place", ["models/draft", "models/draft/out", "models/target/deep/out", "models", "linked/out"]
)
def test_not_in_a_model_nor_around_it(fix: Fix, tmp_path: Path, place: str) -> None:
    (tmp_path / "linked").symlink_to(tmp_path / "models/draft")
    with pytest.raises(CannotCheck, match=r"lies in the (draft|target)|holds the (draft|target)"):
        fix(tmp_path / place)


def test_not_in_the_hub_cache(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hub").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(CannotCheck, match="lies in the Hub cache"):
        fix(tmp_path / "hub/out")


def test_not_the_working_directory(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix()
    for here in ("out", "out/draft"):
        monkeypatch.chdir(tmp_path / here)
        with pytest.raises(CannotCheck, match="is the working directory, or holds it"):
            fix()


def test_no_parent_and_no_strange_name(fix: Fix, tmp_path: Path) -> None:
    with pytest.raises(CannotCheck, match="there is no folder"):
        fix(tmp_path / "no/such/out")
    with pytest.raises(CannotCheck, match="cannot be printed"):
        fix(tmp_path / "out\n")


def test_one_folder_for_both(tmp_path: Path) -> None:
    target, _ = write_pair(tmp_path)
    change(target / "config.json", num_nextn_predict_layers=1)
    (tmp_path / "link").symlink_to(target)
    for draft in (target, tmp_path / "link", target / "config.json"):
        with pytest.raises(CannotCheck, match="TARGET and DRAFT are both"):
            specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS | {"method": "mtp"})
    assert not (tmp_path / "out").exists()


def test_a_config_that_changes_meanwhile(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path)
    planned = prepare(target, draft, out=tmp_path / "out", **OPTIONS)
    change(draft / "config.json", vocab_size=1)
    with pytest.raises(CannotCheck, match="has changed since it was read"):
        write(planned)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("call", ["write_bytes", "symlink_to", "mkdir", "rename"])
@pytest.mark.parametrize("older", [False, True])
def test_a_system_that_refuses(
    fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str, older: bool
) -> None:
    if older:
        fix(max_model_len=4096)
    before = state(tmp_path)

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, call, refuse)
        with pytest.raises(CannotCheck, match=r"out.* cannot be written: ") as refused:
            fix()
    assert ("the disk is full" in str(refused.value)) == (number == errno.ENOSPC)
    assert state(tmp_path) == before
    assert fix().written


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(fix: Fix, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(CannotCheck, match="Permission denied"):
        fix(closed / "out")


def killed_at(step: int, root: Path, act: Callable[[], object]) -> bool:
    """Do ``act`` in a process that ends at its ``step``-th operation on files in ``root``; False if it got through."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event in EVENTS and any(str(argument).startswith(f"{root}{os.sep}") for argument in arguments):
            count += 1
            if count == step:
                os._exit(9)

    try:
        sys.addaudithook(hook)
        act()
        os._exit(0)
    finally:
        os._exit(1)


EVENTS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.symlink", "os.remove", "os.rmdir", "os.chmod", "os.utime", "shutil.copyfile"}
)


@pytest.mark.parametrize(("older", "copy"), [(False, True), (True, False)])
def test_killed_at_any_moment(fix: Fix, tmp_path: Path, older: bool, copy: bool) -> None:
    out, models = tmp_path / "work/out", state(tmp_path / "models")
    out.parent.mkdir()
    options: dict[str, Any] = {"copy": copy}
    fix(out, **options, max_model_len=4096)
    old = content(out)
    shutil.copytree(out, tmp_path / "older", symlinks=True)
    fix(out, **options)
    new = content(out)
    seen, step = set(), 0
    while True:
        step += 1
        shutil.rmtree(out.parent)
        out.parent.mkdir()
        if older:
            shutil.copytree(tmp_path / "older", out, symlinks=True)
        killed = killed_at(step, out.parent, lambda: fix(out, **options))
        there = content(out) if out.exists() else None
        assert there in ([None, old, new] if older else [None, new])
        seen.add(None if there is None else there == new)
        assert state(tmp_path / "models") == models
        fix(out, **options)
        assert content(out) == new
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        if not killed:
            break
    assert step > 20
    assert seen == ({None, False, True} if older else {None, True})
