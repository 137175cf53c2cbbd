"""Hub references, against a server on this machine and a cache of the test's own."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from specfix.deployment import Serving, Target, hub
from specfix.deployment.load import load_deployment, load_model
from specfix.errors import CannotCheck

from .fake_hub import COMMIT, TOKEN, FakeHub
from .samples import EAGLE3, LLAMA, TENSORS, safetensors, write_model

WEIGHTS = safetensors(TENSORS)


def files(**more: bytes) -> dict[str, bytes]:
    return {"config.json": json.dumps(LLAMA, indent=2).encode(), **more}


@pytest.fixture
def offline(library: tuple[FakeHub, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and HF_HUB_OFFLINE is set."""
    from huggingface_hub import constants

    return lambda: monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def refusal(reference: str) -> str:
    with pytest.raises(CannotCheck) as refused:
        load_model(reference, "target")
    message = str(refused.value)
    assert TOKEN not in message and "\n" not in message and "http" not in message.replace("(http", "")
    return message


def test_a_repository(fake: FakeHub, capfd: pytest.CaptureFixture[str]) -> None:
    fake.repositories["org/name"] = files(
        **{
            "generation_config.json": b"{}",
            "tokenizer.json": b'{"model": {}}',
            "model.safetensors": WEIGHTS,
            "pytorch_model.bin": b"never fetched",
        }
    )
    model = load_model("org/name", "target")
    assert model.config.file == "org/name:config.json"
    assert model.folder is None
    assert list(model.tensors or ()) == list(TENSORS)
    assert model.generation_config is not None and model.generation_config.file == "org/name:generation_config.json"
    assert model.tokenizer("tokenizer.json") == {"model": {}}
    assert not any("pytorch_model.bin" in path for _, path, _, _ in fake.requests)
    assert capfd.readouterr() == ("", "")


def test_what_the_cache_holds_is_not_fetched_again(fake: FakeHub) -> None:
    fake.repositories["org/name"] = files()
    load_model("org/name", "target")
    fake.requests.clear()
    load_model("org/name", "target")
    assert {method for method, path, _, _ in fake.requests if "/resolve/" in path} == {"HEAD"}


def test_a_revision(fake: FakeHub) -> None:
    fake.repositories["org/name"] = files()
    assert load_model("org/name@v1", "target").config.file == "org/name@v1:config.json"
    assert load_model(f"org/name@{COMMIT}", "target").reference == f"org/name@{COMMIT}"
    assert refusal("org/name@v2") == "org/name@v2 does not exist: the repository has no such revision"
    assert "no such revision" in refusal("org/name@refs/pr/7")


def test_shards_by_range_requests(fake: FakeHub) -> None:
    fc, norm = TENSORS
    index = {"weight_map": {fc: "a.safetensors", norm: "b.safetensors"}}
    many = {f"t{i}": {"dtype": "F8_E4M3", "shape": [0], "data_offsets": [0, 0]} for i in range(4000)}
    fake.repositories["org/name"] = files(
        **{
            "model.safetensors.index.json": json.dumps(index).encode(),
            "a.safetensors": safetensors({fc: TENSORS[fc]}, data=10_000_000),
            "b.safetensors": safetensors({norm: TENSORS[norm], **many}, data=10_000_000),
        }
    )
    tensors = load_model("org/name", "target").tensors
    assert tensors is not None
    assert (tensors[fc].file, tensors[norm].file, len(tensors)) == ("a.safetensors", "b.safetensors", 4002)
    assert all(bytes_range for _, path, bytes_range, _ in fake.requests if path.endswith(".safetensors"))
    assert fake.sent < 1_000_000


def test_a_server_that_ignores_ranges_is_cut_off(fake: FakeHub) -> None:
    fake.ranges = False
    fake.repositories["org/name"] = files(**{"model.safetensors": safetensors(TENSORS, data=50_000_000)})
    assert list(load_model("org/name", "target").tensors or ()) == list(TENSORS)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (b"short", "org/name:model.safetensors is no safetensors file"),
        (WEIGHTS[:50], "org/name:model.safetensors is no safetensors file"),
        (safetensors(TENSORS, data=7), "org/name:model.safetensors ends before the data of tensor"),
        ((4).to_bytes(8, "little") + b"nope", "the header of org/name:model.safetensors, line 1 column 1"),
        ((10**8).to_bytes(8, "little") + bytes(10**8), "has a header of 100,000,000 bytes"),
    ],
    ids=["short", "cut", "data", "json", "long"],
)
def test_damaged_weights(fake: FakeHub, weights: bytes, message: str) -> None:
    fake.repositories["org/name"] = files(**{"model.safetensors": weights})
    assert message in refusal("org/name")


def test_no_headers_to_be_had(fake: FakeHub) -> None:
    fake.repositories["org/name"] = files(**{"pytorch_model.bin": b"x"})
    assert load_model("org/name", "target").tensors is None
    index = {"weight_map": {"fc.weight": "absent.safetensors"}}
    fake.repositories["org/other"] = files(**{"model.safetensors.index.json": json.dumps(index).encode()})
    assert load_model("org/other", "target").tensors is None


def test_large_files_are_left_alone(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hub.LIMITS, "tokenizer.json", 100)
    fake.repositories["org/name"] = files(**{"tokenizer.json": b"{" + b" " * 200 + b"}"})
    assert load_model("org/name", "target").tokenizer_files == ()
    fake.repositories["org/big"] = {"config.json": b" " * 17_000_000}
    assert "org/big:config.json is larger than" in refusal("org/big")


def test_absent(fake: FakeHub) -> None:
    missing = "org/absent is no folder here, and is not on the Hub, or is private: check its name"
    assert refusal("org/absent").startswith(missing)
    fake.repositories["org/name"] = {"README.md": b"x"}
    assert refusal("org/name") == "org/name has no config.json on the Hub"
    assert "is no folder here, and no valid name" in refusal("org/na--me")


@pytest.mark.parametrize(
    ("part", "status", "code", "message"),
    [
        ("/resolve/", 403, "GatedRepo", "org/name is gated: ask for access on its page"),
        ("/api/", 401, "GatedRepo", "org/name is gated"),
        ("/api/", 404, "RepoNotFound", "org/name is no folder here, and is not on the Hub, or is private"),
        ("/api/", 401, "", "org/name is no folder here, and is not on the Hub, or is private"),
        ("/api/", 404, "", "answers with status 404 for org/name"),
        ("/api/", 403, "", "the Hub forbids reading org/name"),
        ("/api/", 418, "", "answers with status 418 for org/name"),
        ("/api/", 429, "", "it answers with status 429"),
        ("/api/", 500, "", "it answers with status 500"),
        ("/api/", 503, "", "it answers with status 503"),
        ("/resolve/", 404, "EntryNotFound", "lacks a file that its own list names"),
    ],
)
def test_the_hub_says_no(fake: FakeHub, part: str, status: int, code: str, message: str) -> None:
    fake.repositories["org/name"] = files(**{"model.safetensors": WEIGHTS})
    fake.statuses[part] = (status, code)
    assert message in refusal("org/name")


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (500, "", "it answers with status 500"),
        (429, "", "it answers with status 429"),
        (401, "", "the Hub refuses the token used for org/name:model.safetensors"),
        (403, "", "the Hub forbids reading org/name:model.safetensors"),
        (404, "EntryNotFound", "the Hub answers with status 404 for org/name:model.safetensors"),
        (416, "", "the Hub answers with status 416 for org/name:model.safetensors"),
    ],
)
def test_headers_that_are_not_handed_out_are_done_without(
    fake: FakeHub, tmp_path: Path, status: int, code: str, message: str
) -> None:
    fake.repositories["org/name"] = files(**{"model.safetensors": WEIGHTS})
    fake.statuses[".safetensors"] = (status, code)
    target, note = noted(tmp_path)
    assert target.tensors is None
    assert note.startswith(f"the safetensors headers of org/name are left aside: {message}")
    assert "cache" not in note


def test_a_git_lfs_pointer_on_the_hub(fake: FakeHub, tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    fake.repositories["org/name"] = files(**{"model.safetensors": pointer})
    target, note = noted(tmp_path)
    assert target.tensors is None
    assert note.endswith("org/name:model.safetensors is a Git LFS pointer, not the weights")


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors.index.json"])
def test_other_files_that_are_not_handed_out_are_done_without(fake: FakeHub, tmp_path: Path, file: str) -> None:
    weights = safetensors({"norm.weight": TENSORS["norm.weight"]})
    fake.repositories["org/name"] = files(**{file: b"{}", "a.safetensors": weights})
    fake.statuses[f"/{file}"] = (403, "")
    target, note = noted(tmp_path)
    assert note.startswith(f"org/name:{file} is left aside: the Hub forbids reading org/name:{file}")
    assert (target.tensors is None) == ("index" in file)


def noted(tmp_path: Path) -> tuple[Target, str]:
    """org/name as the target of a deployment, and what the deployment says of its files."""
    draft = write_model(tmp_path / "draft", EAGLE3, TENSORS)
    deployment = load_deployment("org/name", str(draft), Serving(method="eagle3"), "cpu")
    (note,) = deployment.assumptions
    return deployment.target, note


def test_sizes_that_nobody_tells(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hub.LIMITS, "tokenizer.json", 100_000)
    fake.sizes = False
    weights = safetensors(TENSORS, data=50_000_000)
    fake.repositories["org/name"] = files(**{"tokenizer.json": bytes(40_000_000), "model.safetensors": weights})
    model = load_model("org/name", "target")
    assert (model.tokenizer_files, list(model.tensors or ())) == ((), list(TENSORS))
    fake.repositories["org/big"] = {"config.json": b" " * 40_000_000}
    assert "org/big:config.json is larger than" in refusal("org/big")
    assert fake.sent < 10_000_000


@pytest.mark.parametrize("commit", ["../../x", "..", "-x", "/tmp/x", "", 5, None])
def test_a_commit_leads_nowhere_else(fake: FakeHub, cache: Path, commit: object) -> None:
    """The cache makes a path of it."""
    fake.repositories["org/name"] = files(**{"tokenizer.json": b"{}"})
    fake.commit = commit
    if commit:
        assert "what answers there is no Hub" in refusal("org/name")
        assert not cache.exists()
    else:
        assert load_model("org/name", "target").tokenizer("tokenizer.json") == {}


@pytest.mark.parametrize("revision", ["..", "../x", "a/../../x", "a/..", ".git", "-x", "a/-x", "a//b", "a/", "/a"])
def test_a_revision_leads_nowhere_else(cache: Path, offline: Callable[[], None], revision: str) -> None:
    offline()
    assert "is no org/name[@revision]" in refusal(f"org/name@{revision}")


def test_messages_name_the_repository_and_not_the_cache(
    fake: FakeHub, cache: Path, offline: Callable[[], None]
) -> None:
    index = {"weight_map": {"x": "../x"}}
    fake.repositories["org/name"] = files(**{"model.safetensors.index.json": json.dumps(index).encode()})
    message = 'org/name:model.safetensors.index.json names the file "../x", which is outside'
    assert refusal("org/name").startswith(message)
    offline()
    assert refusal("org/name").startswith(message)


def test_nobody_answers(fake: FakeHub) -> None:
    fake.answers = False
    message = "org/name is no folder here, cannot be read from the Hub (it does not answer: "
    assert message in refusal("org/name")


def test_silence(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "SECONDS", 0.2)
    fake.delay = 0.5
    assert "it does not answer: ReadTimeout" in refusal("org/name")


def test_a_list_of_files_without_end(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read to its end, and nothing else is asked for."""
    monkeypatch.setattr(hub, "LIST_LIMIT", 100_000)
    fake.repositories["org/name"] = files(**{f"{number}.txt": b"" for number in range(1_000)})
    assert load_model("org/name", "target").reference == "org/name"
    fake.repositories["org/name"] |= {f"{number}.txt": b"" for number in range(3_000)}
    fake.requests.clear()
    assert refusal("org/name").startswith(
        "org/name is too large: the Hub's list of its files has more than 100,000 bytes; give a folder"
    )
    assert [path for _, path, _, _ in fake.requests] == ["/api/models/org/name"]


def test_nonsense(fake: FakeHub) -> None:
    fake.statuses["/api/"] = (200, "")
    assert "what answers there is no Hub" in refusal("org/name")


def cached(cache: Path, name: str, commit: str = COMMIT) -> Path:
    """A repository as the cache holds it."""
    folder = cache / f"models--{name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit)
    return write_model(folder / "snapshots" / commit, EAGLE3, TENSORS)


def test_offline(cache: Path, tmp_path: Path, offline: Callable[[], None]) -> None:
    offline()
    cached(cache, "org/draft")
    target = write_model(tmp_path / "target", LLAMA)
    deployment = load_deployment(str(target), "org/draft", hardware="cpu")
    assert deployment.draft is not None
    assert deployment.draft.config.file == "org/draft:config.json"
    assert list(deployment.draft.tensors or ()) == list(TENSORS)
    assert deployment.assumptions[0] == "org/draft as the cache has it (HF_HUB_OFFLINE is set)"
    assert f"and is not in the cache {cache}" in refusal("org/other")
    assert "(HF_HUB_OFFLINE is set)" in refusal("org/draft@v9")


def test_a_cache_where_nobody_may_look(
    cache: Path, offline: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of root, and not ours."""
    offline()
    before = Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        if path.name == "snapshots":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return before(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert f"and may not be looked for in the cache {cache}" in refusal("org/other")


def test_what_was_fetched_is_there_offline(fake: FakeHub, offline: Callable[[], None]) -> None:
    fake.repositories["org/name"] = files()
    online = load_model("org/name", "target")
    offline()
    assert load_model("org/name", "target").config == online.config


def test_the_cache_stands_in_for_a_hub_that_is_down(fake: FakeHub, cache: Path) -> None:
    cached(cache, "org/draft")
    fake.statuses["/"] = (503, "")
    assert load_model("org/draft", "draft").kind == "eagle3"


def test_a_cache_that_cannot_be_written(fake: FakeHub, cache: Path) -> None:
    fake.repositories["org/name"] = files()
    cache.write_text("a file where the folder should be")
    assert f"org/name cannot be kept in the cache {cache}: " in refusal("org/name")
