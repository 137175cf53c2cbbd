from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from specfix.deployment.headers import HEADER_LIMIT, INDEX, read_tensors
from specfix.deployment.model import Tensor
from specfix.errors import CannotCheck

from .samples import TENSORS, safetensors


def write_index(folder: Path, weight_map: Any) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))


def test_single_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(TENSORS))
    assert read_tensors(tmp_path) == {
        "fc.weight": Tensor("BF16", (4, 12), "model.safetensors"),
        "norm.weight": Tensor("BF16", (4,), "model.safetensors"),
    }


def test_shards_are_those_of_the_index(tmp_path: Path) -> None:
    fc, norm = TENSORS
    (tmp_path / "a.safetensors").write_bytes(safetensors({fc: TENSORS[fc]}))
    (tmp_path / "b.safetensors").write_bytes(safetensors({norm: TENSORS[norm]}))
    (tmp_path / "stray.safetensors").write_bytes(b"damaged")
    write_index(tmp_path, {fc: "a.safetensors", norm: "b.safetensors"})
    tensors = read_tensors(tmp_path)
    assert tensors is not None
    assert {name: tensor.file for name, tensor in tensors.items()} == {
        fc: "a.safetensors",
        norm: "b.safetensors",
    }


def test_no_headers_to_be_had(tmp_path: Path) -> None:
    assert read_tensors(tmp_path) is None
    (tmp_path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert read_tensors(tmp_path) is None
    write_index(tmp_path, {"fc.weight": "absent.safetensors"})
    assert read_tensors(tmp_path) is None


def test_a_git_lfs_pointer_is_not_a_weight_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert read_tensors(tmp_path) is None


def test_mistral_copy_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "consolidated.safetensors").write_bytes(safetensors({"tok.weight": TENSORS["norm.weight"]}))
    assert list(read_tensors(tmp_path) or ()) == ["tok.weight"]
    (tmp_path / "model.safetensors").write_bytes(safetensors(TENSORS))
    assert list(read_tensors(tmp_path) or ()) == list(TENSORS)


def header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


DAMAGED = {
    "empty": (b"", "its 0 bytes end before its header does"),
    "short": (b"\x01\x00\x00", "its 3 bytes end before"),
    "no header": ((1 << 62).to_bytes(8, "little"), "its 8 bytes end before"),
    "cut off": (safetensors(TENSORS)[:40], "its 40 bytes end before"),
    "long": (HEADER_LIMIT.to_bytes(8, "little") + bytes(HEADER_LIMIT), "the header of "),
    "too long": (
        (HEADER_LIMIT + 1).to_bytes(8, "little") + bytes(HEADER_LIMIT + 1),
        "a header of 25,000,001 bytes",
    ),
    "no json": (header(b"{,}"), "line 1 column 2: not valid JSON"),
    "no utf-8": (header(b'{"\xff": 1}'), "is not UTF-8 text"),
    "no object": (header(b"[]"), "holds [] where a JSON object"),
    "deep": (header(b"[" * 100_000), "is nested more than 100 levels deep"),
    "no tensor": (header(b'{"a": 1}'), 'describes tensor "a" as 1'),
    "no dtype": (header(b'{"a": {"shape": [], "data_offsets": [0, 0]}}'), 'describes tensor "a"'),
    "shape": (safetensors({"a": {"dtype": "F8", "shape": [-1], "data_offsets": [0, 0]}}), 'tensor "a"'),
    "bool shape": (
        safetensors({"a": {"dtype": "F8", "shape": [True], "data_offsets": [0, 0]}}),
        'tensor "a"',
    ),
    "offsets": (
        safetensors({"a": {"dtype": "F8", "shape": [1], "data_offsets": [4, 2]}}),
        "ends before the data",
    ),
    "past the end": (safetensors(TENSORS, data=103), 'ends before the data of tensor "norm.weight"'),
}


@pytest.mark.parametrize(("data", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_file(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    start = time.process_time()
    with pytest.raises(CannotCheck) as refused:
        read_tensors(tmp_path)
    assert time.process_time() - start < 10  # at once, however busy the machine is
    assert message in str(refused.value)
    assert str(tmp_path / "model.safetensors") in str(refused.value)


@pytest.mark.parametrize(
    "file",
    ["../../etc/passwd", "/etc/passwd", "a/../../b", "..", ".", "", "C:\\x", "..\\x", "a\0b", "\\\\host\\x"],
)
def test_an_index_does_not_lead_out_of_the_folder(tmp_path: Path, file: str) -> None:
    write_index(tmp_path, {"fc.weight": file})
    with pytest.raises(CannotCheck, match="outside the model's folder"):
        read_tensors(tmp_path)


@pytest.mark.parametrize("weight_map", [None, {}, [], {"fc.weight": 1}, {"fc.weight": ["a"]}])
def test_damaged_index(tmp_path: Path, weight_map: Any) -> None:
    write_index(tmp_path, weight_map)
    with pytest.raises(CannotCheck, match="weight_map"):
        read_tensors(tmp_path)


def test_an_index_of_too_many_files(tmp_path: Path) -> None:
    write_index(tmp_path, {f"t{i}": f"{i}.safetensors" for i in range(10_001)})
    with pytest.raises(CannotCheck, match="more than 10,000"):
        read_tensors(tmp_path)
