"""Facts as text and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from specfix.engines.engine import Engine
from specfix.engines.facts.hardware import KernelSizes
from specfix.engines.readers import NEEDED, read_engine
from specfix.engines.serial import as_json, dump, load
from specfix.errors import CannotCheck


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    package = tmp_path_factory.mktemp("engine") / "vllm"
    for file, cls in NEEDED.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(f"class {cls}: ..." if cls else "")
    return read_engine(package, "here", "1.0")


def test_what_was_written_is_what_is_read(engine: Engine) -> None:
    sizes = KernelSizes((16,), None, "a test", (KernelSizes((64,), None), KernelSizes(None, (16,))))
    odd = replace(engine, blocks=replace(engine.blocks, backends={"ODD": sizes}), unknown={"blocks.default": 'a\n "b"'})
    text = dump(odd)
    again = load(text, source="elsewhere")
    assert (again.source, again.unknown) == ("elsewhere", odd.unknown)
    assert again.blocks == odd.blocks
    assert as_json(load(text)) == as_json(odd)
    assert json.loads(text)["name"] == "vllm"


def test_only_what_is_no_default_of_an_entry_is_written(engine: Engine) -> None:
    content = json.loads(dump(replace(engine, blocks=replace(engine.blocks, backends={"A": KernelSizes((1,), None)}))))
    assert content["blocks"]["backends"] == {"A": {"multiples": None, "sizes": [1]}}
    assert set(content["blocks"]) == set(engine.blocks.__dataclass_fields__)


def test_a_section_is_made_when_it_is_asked_for(engine: Engine) -> None:
    text = dump(engine).replace('\n "rope": {', '\n "rope": {"odd": 1, ', 1)
    damaged = load(text)
    assert damaged.lengths == engine.lengths
    with pytest.raises(CannotCheck, match="damaged"):
        _ = damaged.rope
    assert not hasattr(damaged, "no_section")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: "{",
        lambda text: text.replace("specfix/engine-v1", "specfix/engine-v0"),
        lambda text: text.replace('\n "rope": ', '\n "ropes": '),
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('\n "version": "', '\n "version": '),
        lambda text: json.dumps(json.loads(text)),
    ],
)
def test_other_texts_are_refused(engine: Engine, change: object) -> None:
    assert callable(change)
    with pytest.raises(ValueError, match=r"."):
        load(change(dump(engine)))
