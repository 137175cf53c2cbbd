"""Files of a model from strangers: refused in one line, before they are read, waited for, or fill memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run
from .makers import (
    DEEP,
    DRAFT,
    HOW,
    INDEX,
    NO_FILES,
    TARGET,
    Maker,
    bounded,
    config,
    config_with,
    model,
    refused,
    sparse,
    tensor,
    tensors,
)

WEIGHTS = "model.safetensors"


def mapped(file: str) -> bytes:
    return json.dumps({"weight_map": {"a": file}}).encode()


def many(value: str, size: int) -> str:
    """A list that repeats a value until its text has this size."""
    return "[" + f"{value}," * (size // (len(value) + 1)) + f"{value}]"


@pytest.mark.parametrize(
    ("file", "made", "message"),
    [
        ("config.json", sparse(100 << 20), "config.json is larger than 8,388,608 bytes"),
        ("config.json", config_with(f'"x": {many("[]", 8_000_000)}'), "holds more values than"),
        (INDEX, sparse(100 << 20), f"{INDEX} is larger than 67,108,864 bytes"),
        (INDEX, f'{{"weight_map": {many("[]", 60_000_000)}}}'.encode(), "holds more values than"),
        (INDEX, b'{"weight_map": {"a":"b"' + b',"a":"b"' * 1_200_000 + b"}}", "holds more values than"),
        (WEIGHTS, tensors(f'{{"a": {many("[]", 24_000_000)}}}'.encode()), "the header of "),
        (WEIGHTS, (1 << 62).to_bytes(8, "little") + b"{}", "end before its header does"),
    ],
    ids=["config", "config of lists", "index", "index of lists", "index of pairs", "header of lists", "header"],
)
def test_size_is_bounded_before_memory_is(tmp_path: Path, file: str, made: Maker | bytes, message: str) -> None:
    refused(
        bounded("check", str(TARGET), model(tmp_path / "m", {file: made}), *HOW), str(tmp_path / "m" / file), message
    )


def test_a_tokenizer_of_a_gigabyte_skips_the_rules_that_need_it(tmp_path: Path) -> None:
    """A tokenizer that cannot be read is a missing fact: few rules ask for it."""
    target = model(tmp_path / "t", {"tokenizer.json": sparse(1 << 30)}, TARGET)
    draft = model(tmp_path / "d", {"tokenizer.json": sparse(1 << 30)}, TARGET)
    said = bounded("check", target, draft, "--method", "draft_model", *HOW[2:], "--format", "json")
    assert said.status < 2 and said.err == ""
    reasons = {each["code"]: each["reason"] for each in json.loads(said.out)["skipped"]}
    assert any("tokenizer.json is larger than 33,554,432 bytes" in reason for reason in reasons.values()), reasons


def vocabulary(count: int, length: int, start: str, **more: object) -> bytes:
    tokens = {f"{start}{number}".ljust(length, "x"): number for number in range(count)}
    return json.dumps({"model": {"vocab": tokens, "merges": []}, **more}, ensure_ascii=False).encode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="nothing tells how much memory was taken")
def test_two_large_vocabularies_fit_into_little_memory(tmp_path: Path) -> None:
    """Nothing is kept of a file but its tokens, and none of the first while the second is read."""
    files = {side: {"tokenizer.json": vocabulary(349_000, 46, side)} for side in "td"}
    assert len(files["t"]["tokenizer.json"]) > 20_000_000
    target, draft = (model(tmp_path / side, made, TARGET) for side, made in files.items())
    command = ["check", target, draft, "--method", "draft_model", *HOW[2:], "--select", "VOC"]
    start = "from specfix.__main__ import main; main(); print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", start, *command], capture_output=True, text=True, check=True)
    assert "Of the 349000 ids that both tokenizers have, 349000 mean another token" in " ".join(done.stdout.split())
    peak = re.search(r"^VmHWM:\s*(\d+) kB$", done.stdout, re.MULTILINE)
    assert peak is not None and int(peak[1]) < 200_000


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: vocabulary(700_001, 14, "a"), "holds some 700,004 keys"),
        (lambda: vocabulary(1, 1, "a", wide="x" * 17_000_000 + "\U0001f600"), "takes more than 67,108,864 bytes"),
        (lambda: vocabulary(700_001, 14, "a")[:-1] + b', "merges": 1}', "holds some 700,005 keys"),
        (lambda: vocabulary(700_001, 46, "a"), "is larger than 33,554,432 bytes"),
    ],
    ids=["keys", "wide", "other keys", "large"],
)
def test_a_vocabulary_beyond_all_others_is_not_read(tmp_path: Path, made: Callable[[], bytes], words: str) -> None:
    target, draft = (model(tmp_path / side, {"tokenizer.json": made()}, TARGET) for side in "td")
    (Path(draft) / "tokenizer.json").write_bytes(b'{"model": {"vocab": {"a": 0}}}')
    said = bounded("check", target, draft, "--method", "draft_model", *HOW[2:], "--select", "VOC", "--format", "json")
    assert said.status < 2 and said.err == ""
    reasons = [each["reason"] for each in json.loads(said.out)["skipped"]]
    assert any(words in each for each in reasons)


def test_a_vocabulary_of_a_speech_model_is_read(tmp_path: Path) -> None:
    """Tokens of sounds by the ten thousand, each with its seven keys."""
    more = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for side in "td":
        added = [{"id": 128_000 + i, "content": f"<|{side}{i}|>", **more, "special": True} for i in range(65_800)]
        files = {"tokenizer.json": vocabulary(128_000, 14, f"\u0120{side}", added_tokens=added)}
        model(tmp_path / side, files, TARGET)
    said = bounded(
        "check", str(tmp_path / "t"), str(tmp_path / "d"), "--method", "draft_model", *HOW[2:], "--select", "VOC"
    )
    assert "Of the 193800 ids that both tokenizers have, 193800 mean another token" in " ".join(said.out.split())


def test_a_whole_header_of_a_huge_file_is_read(tmp_path: Path) -> None:
    def huge(path: Path) -> None:
        path.write_bytes(tensors({"a": tensor(shape=[2, 1 << 38], end=1 << 40)}))
        os.truncate(path, path.stat().st_size + (1 << 40))

    assert bounded("check", str(TARGET), model(tmp_path / "m", {WEIGHTS: huge}), *HOW).status == 1


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "hf_quant_config.json", INDEX])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_not_waited_for(specfix: Run, tmp_path: Path, file: str, kind: str) -> None:
    said = specfix("check", str(TARGET), model(tmp_path / "m", {file: NO_FILES[kind]}), *HOW)
    if kind == "loop" and file in ("generation_config.json", "hf_quant_config.json"):
        assert said.status == 1 and said.err == ""  # a link to nowhere: no such file
    else:
        refused(said, str(tmp_path / "m" / file))


@pytest.mark.parametrize("kind", NO_FILES)
def test_weights_and_tokenizers_that_are_no_files_are_absent(specfix: Run, tmp_path: Path, kind: str) -> None:
    files: dict[str, Maker | bytes] = {
        WEIGHTS: NO_FILES[kind],
        "tokenizer.json": NO_FILES[kind],
        "a.safetensors": NO_FILES[kind],
    }
    for folder, made in (("m", files), ("n", {**files, INDEX: mapped("a.safetensors")})):
        said = specfix("check", str(TARGET), model(tmp_path / folder, made), *HOW)
        assert said.status == 1 and "a safetensors header of" in said.out


@pytest.mark.skipif(not Path("/proc/kmsg").exists() or os.geteuid() != 0, reason="needs what the kernel says")
def test_what_calls_itself_a_file_and_blocks(specfix: Run, tmp_path: Path) -> None:
    said = specfix(
        "check", str(TARGET), model(tmp_path / "m", {"config.json": lambda path: path.symlink_to("/proc/kmsg")})
    )
    refused(said, "config.json")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_what_may_not_be_read(specfix: Run, tmp_path: Path) -> None:
    folder = model(tmp_path / "m", {})
    (tmp_path / "m/config.json").chmod(0)
    refused(specfix("check", str(TARGET), folder, *HOW), "config.json cannot be read: Permission denied")


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", INDEX])
def test_json_that_is_nested_without_end(specfix: Run, tmp_path: Path, file: str) -> None:
    made = {file: config_with(f'"weight_map": {DEEP}')}
    refused(specfix("check", str(TARGET), model(tmp_path / "m", made), *HOW), file, "nested more than 100 levels deep")


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ('"rope_theta": NaN', "/rope_theta is NaN"),
        ('"rope_theta": 1e999', "/rope_theta is Infinity"),
        ('"max_position_embeddings": -Infinity', "/max_position_embeddings is -Infinity"),
        (f'"x": {"9" * 10_000}', "holds an integer of 10,000 digits"),
        ('"model_type": "\\udc00"', "half of a surrogate pair"),
        ('"x": "\0"', "not valid JSON"),
        ('"x": 1, "x": 2', '"x" twice: 1 and 2'),
        ('"x": {"y": [1], "y": [2]}', '"y" twice: [1] and [2]'),
    ],
)
def test_values_that_are_none(specfix: Run, tmp_path: Path, member: str, message: str) -> None:
    said = specfix("check", str(TARGET), model(tmp_path / "m", {"config.json": config_with(member)}), *HOW)
    refused(said, str(tmp_path / "m/config.json"), message)


def test_a_byte_order_mark_is_legal(specfix: Run, tmp_path: Path) -> None:
    made = {"config.json": b"\xef\xbb\xbf" + config_with('"x": 1, "x": 1')}
    assert "POS001" in specfix("check", str(TARGET), model(tmp_path / "m", made), *HOW).out


@pytest.mark.parametrize("file", ["../../etc/x", "/etc/passwd", "/dev/zero", "a/../../b", "x\0", "x" * 5_000])
def test_an_index_names_files_of_its_own_folder(specfix: Run, tmp_path: Path, file: str) -> None:
    said = specfix("check", str(TARGET), model(tmp_path / "m", {INDEX: mapped(file)}), *HOW)
    refused(said, str(tmp_path / "m" / INDEX), f"names the file {json.dumps(file)[:20]}")


@pytest.mark.parametrize(("other", "status"), [("b", 2), ("a", None)])
def test_an_index_with_one_tensor_in_two_files(specfix: Run, tmp_path: Path, other: str, status: int | None) -> None:
    index = f'{{"weight_map": {{"x": "a.safetensors", "y": "a.safetensors", "x": "{other}.safetensors"}}}}'.encode()
    said = specfix("check", str(TARGET), model(tmp_path / "m", {INDEX: index}), *HOW)
    if status is None:
        assert said.status == 1 and said.err == ""
    else:
        refused(said, f'{tmp_path / "m" / INDEX} has "x" twice: "a.safetensors" and "b.safetensors"')


TWICE = json.dumps({"a": tensor()})[:-1] + "," + json.dumps({"a": tensor()})[1:]
HEADERS = {
    "outside": ({"a": tensor()}, 'the data of tensor "a"'),
    "far outside": ({"a": tensor(begin=2**62, end=2**62 + 8)}, 'the data of tensor "a"'),
    "reversed": ({"a": tensor(begin=8, end=0)}, 'tensor "a"'),
    "negative": ({"a": tensor(begin=-8, end=0)}, 'describes tensor "a"'),
    "truth": ({"a": tensor(begin=False, end=True)}, 'describes tensor "a"'),
    "overlap": ({"a": tensor("U8", [4], 0, 4), "b": tensor("U8", [3], 1, 4)}, '"a" and "b" the same bytes'),
    "another size": ({"a": tensor("U8", [4], 0, 3)}, 'describes tensor "a"'),
    "dtype": ({"a": tensor(3)}, 'describes tensor "a"'),
    "shape": ({"a": tensor("U8", "4", 0, 4)}, 'describes tensor "a"'),
    "number in shape": ({"a": tensor("U8", [4.0], 0, 4)}, 'describes tensor "a"'),
    "elements": ({"a": tensor("X9", [10**300, 10**300], 0, 4)}, 'describes tensor "a"'),
    "dimensions": ({"a": tensor("U8", [1] * 1_000_000, 0, 1)}, 'describes tensor "a"'),
    "twice": (TWICE.encode(), '"a" twice'),
    "deep": (f'{{"a": {DEEP}}}'.encode(), "nested more than 100 levels deep"),
    "mark": (b"\xef\xbb\xbf{}", "not valid JSON"),
}


@pytest.mark.parametrize(("described", "message"), HEADERS.values(), ids=HEADERS)
def test_headers_that_lie(specfix: Run, tmp_path: Path, described: object, message: str) -> None:
    made = {WEIGHTS: tensors(described, data=4 if message != '"a" twice' else 8)}
    refused(specfix("check", str(TARGET), model(tmp_path / "m", made), *HOW), str(tmp_path / "m" / WEIGHTS), message)


def test_layers_beyond_all_number_take_no_time(tmp_path: Path) -> None:
    """What is looked at one by one, or compared with each other, is not so for hundreds of thousands."""
    ids = model(tmp_path / "ids", {"config.json": config(eagle_aux_hidden_state_layer_ids=list(range(300_000)))})
    assert bounded("check", str(TARGET), ids, *HOW).status == 1
    layers = json.dumps({"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "hidden_size": 4096})
    pattern = f'{layers[:-1]}, "hybrid_override_pattern": "{"M*-" * 100_000}"}}'
    target = model(tmp_path / "pattern", {"config.json": pattern.encode()})
    assert bounded("check", target, str(DRAFT), *HOW).status in (0, 1)
