"""The output folder is whole or absent, whoever interferes; models are never written to."""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
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
    for name in ("specfix_shim/__pycache__", "build/lib", "specfix_shim.egg-info"):
        (tmp_path / "out/shim" / name).mkdir(parents=True)
        (tmp_path / "out/shim" / name / "x").touch()
    (tmp_path / "out/draft/from-the-cache").symlink_to("/nowhere")
    assert not fix(**cpu).written
    assert fix(**cpu, max_model_len=4096).written
    (tmp_path / "out/build").mkdir()
    (tmp_path / "out/build/mine").touch()
    with pytest.raises(CannotCheck, match="holds build/mine"):
        fix(**cpu)


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


@pytest.mark.parametrize("out", ["out", "/nowhere/out"])
def test_a_working_directory_that_is_gone(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    """No circle of links, and nothing is written anywhere."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(CannotCheck, match="the working directory is gone"):
        fix(Path(out))
    monkeypatch.chdir(tmp_path)


def test_not_in_an_earlier_result(fix: Fix, tmp_path: Path) -> None:
    fix()
    before = state(tmp_path)
    for place in ("out/again", "out/draft/again"):
        with pytest.raises(CannotCheck, match=r"lies in .*/out, which specfix wrote"):
            fix(tmp_path / place)
    assert state(tmp_path) == before


def test_links_on_the_way_to_it_are_followed_once(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "lk").symlink_to("deep/er")
    monkeypatch.chdir(tmp_path)
    fixed = fix(Path("lk/../zz"))
    assert fixed.written and fixed.out == tmp_path / "deep/zz"
    assert f'"draft": "{tmp_path}/deep/zz/draft"' in (tmp_path / "deep/zz/overrides.json").read_text()
    assert not (tmp_path / "zz").exists()
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(CannotCheck, match=r"leads in a circle|there is no folder"):
        fix(tmp_path / "a/out")


def test_what_was_set_aside_comes_back_first(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between the two renames, and then a run that fails."""
    fix(max_model_len=4096)
    before = state(tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.specfix-old")
    with monkeypatch.context() as patched:
        patched.setattr("specfix.repair.output.fill", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "I/O")))
        with pytest.raises(CannotCheck, match="I/O"):
            fix()
    assert state(tmp_path / "out") == before
    assert fix().written


def test_half_of_what_was_set_aside_does_not_come_back(
    fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it took that away, and then someone removed the new one."""
    fix(max_model_len=4096)
    (tmp_path / "out").rename(tmp_path / ".out.specfix-old")
    (tmp_path / ".out.specfix-old/launch.sh").unlink()
    with monkeypatch.context() as patched:
        patched.setattr("specfix.repair.output.fill", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "I/O")))
        with pytest.raises(CannotCheck, match="I/O"):
            fix()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync(fix: Fix, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    assert fix().written


@pytest.mark.parametrize("out", ["/", "n" * 250])
def test_no_name_for_a_folder(fix: Fix, tmp_path: Path, out: str) -> None:
    with pytest.raises(CannotCheck, match=r"no name of a new folder|File name too long"):
        fix(tmp_path / out)


def test_what_was_never_ours_does_not_come_back(fix: Fix, tmp_path: Path) -> None:
    make_foreign(tmp_path / ".out.specfix-old")
    assert fix().written
    assert not (tmp_path / "out/thesis.tex").exists()


def test_an_older_one_that_cannot_be_removed_is_told(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fix(max_model_len=4096)

    def refuse(path: Path) -> None:
        raise OSError(errno.EACCES, "Permission denied", str(path / "draft"))

    words = r"\.out\.specfix-old, left by an earlier run, cannot be removed: Permission denied \(.*/draft\)"
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", refuse)
        for written in (True, False):
            fixed = fix()
            assert fixed.written == written
            assert re.search(words, fixed.note or "")
        with pytest.raises(CannotCheck, match=words):  # its name is needed now
            fix(max_model_len=4096)
    assert fix().note is None and not (tmp_path / ".out.specfix-old").exists()


def test_the_way_of_a_program_with_signals_stays(fix: Fix, tmp_path: Path) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    fix()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    worker = threading.Thread(target=lambda: fix(max_model_len=4096))
    worker.start()
    worker.join()
    assert not fix(max_model_len=4096).written


def test_copies_that_do_not_fit(fix: Fix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=500))
    needed = sum(path.stat().st_size for path in (tmp_path / "models/draft").rglob("*") if path.is_file())
    needed -= (tmp_path / "models/draft/config.json").stat().st_size
    with pytest.raises(CannotCheck, match=f"--copy needs {needed:,} bytes, and .* has 500 free"):
        fix(copy=True)
    assert [path.name for path in tmp_path.iterdir()] == ["models"]
    assert fix().written


def test_a_copy_of_what_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = write_pair(tmp_path / "models")
    source = draft / "tokenizer.model"
    opened = Path.open

    def refuse(self: Path, *arguments: Any, **options: Any) -> Any:
        if self == source:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CannotCheck, match=f"{source} cannot be read, and so not copied: Permission denied"):
        specfix.fix(target, draft, out=tmp_path / "out", copy=True, **OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def test_variables_are_for_nobody_else_to_read(fix: Fix, tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "out").iterdir() if path.is_file()}

    fix()
    assert all(modes().values())
    fix(env={"HF_TOKEN": "hunter2"})
    assert [name for name, mode in sorted(modes().items()) if not mode] == ["launch.sh", "overrides.json"]
    assert (tmp_path / "out/launch.sh").stat().st_mode & 0o700 == 0o700
    assert not fix(env={"HF_TOKEN": "hunter2"}).written
    (tmp_path / "out/overrides.json").chmod(0o644)
    assert fix(env={"HF_TOKEN": "hunter2"}).written


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
