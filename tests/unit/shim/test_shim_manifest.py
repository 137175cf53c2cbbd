"""The shim believes its own manifest and no other, whoever owns it and however it is mounted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specfix.shim import SCHEMA, shim_files

from .bench import IMPORTS, SETTINGS, Bench, misfits, write_shim
from .fake_vllm import EXPECTED, EXPECTED_ALL
from .using_vllm import DRAFT

BIG = 1 << 30
MEMORY = 512 << 20


def sign(shim: Path) -> None:
    """Write the digests of what is there, as the shim's writer would."""
    files = [*sorted(shim.glob("*.py")), shim / "manifest.json"]
    digests = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (shim / "manifest.sha256").write_text("".join(digests))


def put_other(shim: Path, *names: str) -> None:
    """What another output folder has by these names."""
    other = write_shim(shim.parent / "other", {"draft_positions": {"draft": DRAFT, "max_position_embeddings": 4096}})
    for name in names:
        shutil.copy(other / name, shim / name)


def put_newer(shim: Path) -> None:
    """A manifest with its digests, of a specfix whose patches are others."""
    core = shim / "core.py"
    ours = core.read_text()
    core.write_text(ours + "# newer\n")
    sign(shim)
    core.write_text(ours)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(BIG)


def linked(path: Path, to: str) -> None:
    path.unlink()
    path.symlink_to(to)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


BOTH = ("manifest.json", "manifest.sha256")
SPOILT_FILE: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_text(""),
    "a folder": folder,
    "a FIFO": fifo,
    "a link to nowhere": lambda path: linked(path, "nowhere"),
    "a link to itself": lambda path: linked(path, path.name),
    "without end": lambda path: linked(path, "/dev/zero"),
    "a gigabyte": sparse,
    "no text": lambda path: path.write_bytes(b"\xff\xfe\xff"),
}
SPOILT: dict[str, Callable[[Path], object]] = {
    "manifest of another folder": lambda shim: put_other(shim, "manifest.json"),
    "digests of another folder": lambda shim: put_other(shim, "manifest.sha256"),
    "both of another version": put_newer,
    "code changed": lambda shim: (shim / "log.py").write_text((shim / "log.py").read_text() + "\n"),
    "code missing": lambda shim: (shim / "torch_kernels.py").unlink(),
    "digests of nothing": lambda shim: (shim / "manifest.sha256").write_text(f"{'0' * 64}  core.py\n"),
    "digests outside": lambda shim: (shim / "manifest.sha256").write_text(f"{'0' * 64}  ../../x\n"),
    "digests in a form of their own": lambda shim: (shim / "manifest.sha256").write_text("a b c\n"),
}


@pytest.mark.parametrize("file", BOTH)
@pytest.mark.parametrize("spoilt", SPOILT_FILE)
def test_a_file_that_is_no_manifest(bench: Bench, spoilt: str, file: str) -> None:
    bench.write(EXPECTED, *SETTINGS)
    SPOILT_FILE[spoilt](bench.shim / file)
    does_nothing(bench)


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_manifest_that_is_not_the_shims_own(bench: Bench, spoilt: str) -> None:
    bench.write(EXPECTED, *SETTINGS)
    SPOILT[spoilt](bench.shim)
    does_nothing(bench)


def does_nothing(bench: Bench) -> None:
    (line,) = bench.run(f"""
        from pathlib import Path
        told = Path("/proc/self/status").read_text()  # getrusage() would count what the parent had when it forked
        assert int(told.partition("VmHWM:")[2].split()[0]) * 1024 < {MEMORY}
        {IMPORTS}
    """)
    assert line.startswith("does nothing: manifest "), line


def test_a_manifest_that_may_not_be_read(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    (bench.shim / "manifest.json").chmod(0)
    ran = bench.python(f"""
        import os, specfix_shim.core
        if os.geteuid() == 0:
            os.seteuid(65534)  # who may not even look into the folder
        specfix_shim.activate()
        os.seteuid(os.getuid())
        {IMPORTS}
    """)
    (line,) = ran.stderr.splitlines()
    assert line.startswith("specfix shim: does nothing: manifest cannot be read: [Errno 13] Permission denied"), line


DEEP = "[" * 100_000 + "]" * 100_000
TEXTS = {
    **{text: text for text in ("", "{", "[]", "null", "1e999", "NaN", '{"schema": "specfix/shim-v2", "patches": {}}')},
    **{
        f"patches {value}": f'{{"schema": "{SCHEMA}", "patches": {value}}}'
        for value in ("null", "[]", '"x"', '{"a": 1}')
    },
    "no patches": f'{{"schema": "{SCHEMA}"}}',
    "deep": DEEP,
    "deep within": f'{{"schema": "{SCHEMA}", "patches": {{"a": {DEEP}}}}}',
    "a number of many digits": "9" * 10_000,
    "half a character": '"\\ud800',
    "UTF-16": json.dumps({"schema": SCHEMA}).encode("utf-16").decode("latin-1"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_manifest_of_another_form(bench: Bench, text: str) -> None:
    """Though it is the one that the shim was written with."""
    bench.write(EXPECTED, "draft_positions")
    (bench.shim / "manifest.json").write_bytes(TEXTS[text].encode("latin-1"))
    sign(bench.shim)
    (line,) = bench.run("import vllm.config")
    assert line.startswith("does nothing: manifest is not "), line[:200]
    assert len(line) < 400


ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\0",
    "\ud800",
    [],
    [1],
    {},
    {"a": {}},
)


def test_settings_of_every_kind(bench: Bench) -> None:
    """In the place of each patch's settings, and of each of these: a step gives what it gave, or what it should."""
    bench.write(EXPECTED_ALL, *SETTINGS)
    manifests = []
    for patch, settings in SETTINGS.items():
        manifests += [SETTINGS | {patch: value} for value in ODD if isinstance(value, dict)]
        manifests += [SETTINGS | {patch: settings | {key: value}} for key in settings for value in ODD]
        manifests.append(SETTINGS | {patch: settings | {"else": 1}})
    odd = [[str(n), signed(manifest)] for n, manifest in enumerate(manifests)]
    told = bench.odd(odd)
    whole = told.pop("as it is")
    assert len(told) == len(manifests) > 40
    for number, came in told.items():
        assert misfits(came, whole) == [], manifests[int(number)]


def signed(patches: dict[str, Any]) -> dict[str, str]:
    """The manifest and its digests, by their places in the bench."""
    files = shim_files({"schema": SCHEMA, "patches": patches})
    return {f"specfix_shim/{name}": files[f"specfix_shim/{name}"].decode() for name in BOTH}


def test_settings_that_make_no_sense(bench: Bench) -> None:
    bench.write(EXPECTED)
    write_shim(bench.folder, {"draft_positions": {"draft": DRAFT}})
    (line,) = bench.run("import vllm.config")
    assert line == "draft_positions: did nothing: the manifest lacks the draft or its max_position_embeddings"


def test_only_what_the_manifest_names(bench: Bench) -> None:
    bench.write(EXPECTED, "no_such_patch", "hooks")
    assert bench.run(IMPORTS) == [
        f"{name}: did nothing: this shim has no such patch" for name in ("no_such_patch", "hooks")
    ]


@pytest.mark.parametrize("manifest", [{}, {"schema": SCHEMA}, {"schema": "specfix/shim-v0", "patches": {}}])
def test_a_manifest_that_cannot_be_written(manifest: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a manifest"):
        shim_files(manifest)


def test_the_digests_are_those_of_sha256sum(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    ran = subprocess.run(
        ["sha256sum", "--check", "manifest.sha256"], cwd=bench.shim, capture_output=True, text=True, check=True
    )
    assert len(ran.stdout.splitlines()) == len(list(bench.shim.glob("*.py"))) + 1


# Mounted into a container, where the process is root and the files are anybody's


def as_config_map(shim: Path) -> None:
    """A volume of Kubernetes: each name is a link through ..data, which is a link to the files of one version."""
    version = shim / "..2026_01_01"
    version.mkdir()
    for file in [path for path in shim.iterdir() if path.is_file()]:
        file.rename(version / file.name)
        file.symlink_to(f"..data/{file.name}")
    (shim / "..data").symlink_to(version.name)


def as_link(shim: Path) -> None:
    shim.rename(shim.with_name("elsewhere"))
    shim.symlink_to("elsewhere")


def give_away(shim: Path) -> None:
    for path in (shim, *shim.iterdir()):
        os.chown(path, 12345, 12345)


def open_to_all(shim: Path) -> None:
    for path in (shim, *shim.iterdir()):
        path.chmod(0o777)


def read_only(shim: Path) -> None:
    for path in (*shim.iterdir(), shim, shim.parent):
        path.chmod(path.stat().st_mode & 0o555)


def with_strays(shim: Path) -> None:
    for name in ("._core.py", "core.py.orig", "notes.py", "__pycache__"):
        (shim / name).mkdir() if name.startswith("__") else (shim / name).write_text("no Python")


MOUNTED = [as_config_map, as_link, open_to_all, read_only, with_strays]


@pytest.mark.parametrize("mounted", [*MOUNTED, *([give_away] if os.geteuid() == 0 else [])])
def test_it_is_usable_however_it_is_mounted(bench: Bench, mounted: Callable[[Path], None]) -> None:
    bench.write(EXPECTED, *SETTINGS)
    mounted(bench.shim)
    lines = bench.run(IMPORTS)
    assert sorted(line.partition(":")[0] for line in lines) == sorted(set(SETTINGS) - {"draft_positions"})
    assert not [line for line in lines if "nothing" in line]
    bench.folder.chmod(0o755)
