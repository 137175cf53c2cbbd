"""Transformers' config classes: reading them, keeping them as differences, and looking them up by a range."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.transformers import (
    build,
    class_defaults,
    fields,
    has_model_class,
    lookup,
    models,
    resolve,
    types_checked,
)
from specfix.engines.transformers.expressions import evaluate
from specfix.engines.transformers.read import read_classes
from specfix.errors import CannotCheck, MissingFact

ROOT = """
class PreTrainedConfig:
    default_theta = 10000.0
    dtype: str | None = None

    def __post_init__(self, **kwargs):
        for key, value in kwargs.items():
            setattr(self, key, value)
"""
MAPPING = """
from collections import OrderedDict
CONFIG_MAPPING_NAMES = OrderedDict([("tiny", "TinyConfig"), ("tiny_vl", "TinyVLConfig")])
CONFIG_MAPPING_NAMES.update({"tiny-more": "TinyMoreConfig"})
"""
TINY = """
from ...configuration_utils import PreTrainedConfig

class TinyConfig(PreTrainedConfig):
    model_type = "tiny"
    size: int = {size}
    heads: int = 4
    head_dim: int | None = None

    def __post_init__(self, **kwargs):
        if self.head_dim is None:
            self.head_dim = self.size // self.heads
        super().__post_init__(**kwargs)

class TinyVisionConfig(PreTrainedConfig):
    depth: int = 2

class TinyVLConfig(PreTrainedConfig):
    model_type = "tiny_vl"
    sub_configs = {{"text_config": TinyConfig, "vision_config": TinyVisionConfig}}
    text_config: dict | None = None
    vision_config: dict | None = None
"""
MORE = """
from ..tiny.configuration_tiny import TinyConfig

class TinyMoreConfig(TinyConfig):
    extra: int = 1
"""


MODELS = """
    from torch import nn

    class TinyModel(nn.Module):
        pass

    __all__ = [
        "TinyModel",
        "Tiny{name}ForCausalLM",
    ]
"""


HUB = "from huggingface_hub.dataclasses import strict\n"
STRICT = {"_utils.py": HUB, "n_tiny.py": HUB, "n_tiny_more.py": "from ...configuration_utils import strict\n"}


def package(folder: Path, size: int, more: bool = True, strict: dict[str, str] | None = None) -> Path:
    """Of the files whose name ends as a key of ``strict`` does all classes are decorated, by what it imports."""
    files = {
        "models/tiny/modeling_tiny.py": MODELS.format(name="More" if more else ""),
        "models/tiny/modeling_tf_tiny.py": '\n__all__ = ["TFTinyModel"]\n',
        "models/tiny/modeling_broken.py": '\n__all__ = ["Broken",\n',
        "models/tiny/modeling_none.py": "x = 1\n",
        "configuration_utils.py": ROOT,
        "models/auto/configuration_auto.py": MAPPING,
        "models/tiny/configuration_tiny.py": TINY.format(size=size),
        **({"models/tiny_more/configuration_tiny_more.py": MORE} if more else {}),
    }
    for name, text in files.items():
        (folder / "transformers" / name).parent.mkdir(parents=True, exist_ok=True)
        source = textwrap.dedent(text)
        for end, imported in (strict or {}).items():
            if name.endswith(end):
                source = imported + source.replace("class ", "@strict\nclass ")
        (folder / "transformers" / name).write_text(source)
    return folder / "transformers"


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Data of three minors: the second has another default, the last another class as well, and checks types."""
    for version, size, more in (("5.1.2", 64, False), ("5.2.0", 96, False), ("5.10.1", 96, True)):
        package(tmp_path / version, size, more, STRICT if more else None)
    data = tmp_path / "classes.txt"
    versions = ["5.10.1", "5.1.2", "5.2.0"]
    assert build.main(["--from", str(tmp_path), "--out", str(data), *versions]) == 0
    monkeypatch.setattr(lookup, "DATA", data)
    for cached in (lookup._lines, lookup._head, lookup.class_defaults, lookup.types_checked):
        cached.cache_clear()
    yield data
    for cached in (lookup._lines, lookup._head, lookup.class_defaults, lookup.types_checked):
        cached.cache_clear()


def test_classes_of_a_package(tmp_path: Path) -> None:
    found = read_classes(package(tmp_path, 64))
    assert set(found) == {"PreTrainedConfig", "tiny", "tiny_vl", "tiny-more", "TinyVisionConfig"}
    assert found["tiny"]["defaults"] == {"heads": 4, "size": 64}  # dtype is the base class's
    assert found["tiny-more"]["defaults"]["extra"] == 1
    assert found["tiny_vl"]["parts"] == {"text_config": "tiny", "vision_config": "TinyVisionConfig"}
    with pytest.raises(CannotCheck):
        read_classes(tmp_path)


@pytest.mark.parametrize(
    ("changed", "checked"),
    [
        ({}, True),
        ({"n_tiny.py": "from huggingface_hub import strict\n"}, True),
        ({"n_tiny.py": "from . import strict\n"}, False),
        ({"n_tiny.py": "from ...utils import strict\n"}, False),
        ({"n_tiny_more.py": "from huggingface_hub.dataclasses import as_validated_field\n"}, False),
        ({"_utils.py": "from .dataclasses import strict\n"}, False),
        ({"_utils.py": "from dataclasses import strict\n"}, False),
        (dict.fromkeys(STRICT), False),
    ],
)
def test_classes_that_check_types(changed: dict[str, str | None], checked: bool, tmp_path: Path) -> None:
    imports = {end: text for end, text in {**STRICT, **changed}.items() if text}
    found = read_classes(package(tmp_path, 64, strict=imports))
    assert found["PreTrainedConfig"].get("checks_types", False) is checked
    assert not any("checks_types" in state for name, state in found.items() if name != "PreTrainedConfig")


CHECK = """
    def validate_layer_type(self):
        if self.num_hidden_layers != len(self.layer_types):
            raise ValueError
"""


@pytest.mark.parametrize(
    ("strict", "base", "own", "marks"),
    [
        (STRICT, CHECK, "", (True, None)),
        (STRICT, CHECK, "    def validate_layer_type(self): ...\n", (True, False)),
        (STRICT, "", "", (None, None)),
        (STRICT, CHECK.replace("raise ValueError", "log()"), "", (None, None)),
        (None, CHECK, "", (None, None)),
    ],
)
def test_classes_that_count_layers(
    strict: dict[str, str] | None, base: str, own: str, marks: tuple[bool | None, bool | None], tmp_path: Path
) -> None:
    folder = package(tmp_path, 64, strict=strict)
    for name, more in (("configuration_utils.py", base), ("models/tiny/configuration_tiny.py", own)):
        file = folder / name
        file.write_text(f"{file.read_text().rstrip()}\n{more}")
    found = read_classes(folder)
    assert (found["PreTrainedConfig"].get("counts_layers"), found["tiny_vl"].get("counts_layers")) == marks
    assert found["tiny"].get("counts_layers") is None


@pytest.mark.parametrize("end", STRICT)
def test_one_class_that_checks_no_types(end: str, tmp_path: Path) -> None:
    imports = {other: text for other, text in STRICT.items() if other != end}
    assert "checks_types" not in read_classes(package(tmp_path, 64, strict=imports))["PreTrainedConfig"]


def test_a_range_that_checks_types(shipped: Path) -> None:
    assert types_checked(">=5.10") and not types_checked(">=5.2") and not types_checked("<5.10") and not types_checked()
    with pytest.raises(MissingFact):
        types_checked(">=6")


def test_model_classes_of_a_range(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "DATA", shipped.with_name("models.txt"))
    models._text.cache_clear()
    assert has_model_class("TinyModel") and has_model_class("TinyModel", "==5.2.0")
    assert has_model_class("TinyForCausalLM", ">=5.2") and not has_model_class("TinyForCausalLM", ">=5.10")
    assert has_model_class("TinyMoreForCausalLM", ">=5.2") and not has_model_class("TinyMoreForCausalLM", "<5.10")
    for name in ("TFTinyModel", "Broken", "Tiny", "", "minors", "5.1", "TinyModel TinyForCausalLM"):
        assert not has_model_class(name)
    with pytest.raises(MissingFact):
        has_model_class("TinyModel", ">=6")
    models._text.cache_clear()


def test_what_a_range_agrees_in(shipped: Path) -> None:
    exact = class_defaults("tiny", "==5.2.0")
    assert exact is not None and exact.name == "TinyConfig" and not exact.missing_in
    assert resolve(exact, {}, "size") == 96 and resolve(exact, {"heads": 3}, "head_dim") == 32
    assert resolve(exact, {}, "dtype") is None and "dtype" in fields(exact)
    both = class_defaults("tiny", ">=5.1,<5.10")
    assert both is not None and resolve(both, {}, "heads") == 4
    with pytest.raises(MissingFact, match=r"5\.1 and 5\.2 differ"):
        resolve(both, {}, "size")
    assert resolve(both, {"size": 8}, "head_dim") == 2  # both say so
    more = class_defaults("tiny-more", ">=5.2")
    assert more is not None and more.missing_in == ("5.2",) and resolve(more, {}, "extra") == 1
    assert class_defaults("tiny-more", "<5.10") is None and class_defaults("nothing") is None
    named = class_defaults("TinyMoreConfig", "==5.10.1")
    assert named is not None and named.defaults == more.defaults


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        (None, ["5.1", "5.2", "5.10"]),
        (">=5.1.9", ["5.1", "5.2", "5.10"]),
        (">5.1", ["5.1", "5.2", "5.10"]),
        (">=5.2.0,<5.10.0", ["5.2"]),
        ("<5.10.2,>=5.10.1", ["5.10"]),
        ("<=5.2", ["5.1", "5.2"]),
        ("!=5.1.*,!=5.2.0,>=4.56", ["5.2", "5.10"]),
        ("==5.*", ["5.1", "5.2", "5.10"]),
        ("~=5.2.0", ["5.2"]),
        ("~=5.2", ["5.2", "5.10"]),
    ],
)
def test_minors_of_a_range(required: str | None, expected: list[str], shipped: Path) -> None:
    assert lookup.minors(required) == expected


@pytest.mark.parametrize("required", [">=6", "<5.1.0", "==5.3.1", "latest"])
def test_a_range_without_a_known_minor(required: str, shipped: Path) -> None:
    with pytest.raises(MissingFact, match="Transformers"):
        class_defaults("tiny", required)


def test_the_data_is_whole_and_checked(shipped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    releases, states = lookup.known_states(shipped)
    assert list(releases.items()) == [("5.1", "5.1.2"), ("5.2", "5.2.0"), ("5.10", "5.10.1")]
    assert build.as_text(releases, states) == shipped.read_text()
    assert states["5.10"] == read_classes(tmp_path / "5.10.1" / "transformers")
    check = ["--check", "--from", str(tmp_path), "--out", str(shipped)]
    assert build.main([*check, "5.2.0"]) == 0
    package(tmp_path / "5.2.0", 100, more=False)
    assert build.main([*check, "5.2.0"]) == 1
    assert "tiny" in capsys.readouterr().out
    names = shipped.with_name("models.txt").read_text()
    assert models.as_text(releases, models.known_names(names)) == names
    package(tmp_path / "5.1.2", 64, more=True)
    assert build.main([*check, "5.1.2"]) == 1
    assert "TinyForCausalLM, TinyMoreForCausalLM" in capsys.readouterr().out


def test_differences_tell_numbers_apart() -> None:
    old = {"name": "A", "defaults": {"one": 1, "gone": 2, "flag": True}, "unknown": {"x": "why"}}
    new = {"name": "A", "defaults": {"one": 1.0, "flag": 1, "new": None}}
    change = lookup.difference(old, new)
    assert change == {"-defaults": ["gone"], "-unknown": None, "defaults": {"one": 1.0, "flag": 1, "new": None}}
    assert lookup.same(lookup.applied(old, change), new)


def test_rope_parameters_are_completed() -> None:
    rope = ["rope", ["or", ["given", "rope_scaling", None], ["given", "rope_parameters", None]],
            ["given", "rope_theta", 1e4], ["given", "partial_rotary_factor"], ["absent"], ["given", "positions", 64],
            None]  # fmt: skip
    assert evaluate(rope, {}) == {"rope_theta": 1e4, "rope_type": "default"}
    assert evaluate(rope, {"rope_theta": 5.0, "partial_rotary_factor": 0.5}) == {
        "rope_theta": 5.0, "partial_rotary_factor": 0.5, "rope_type": "default",
    }  # fmt: skip
    assert evaluate(rope, {"rope_scaling": {"type": "yarn", "factor": 2.0}}) == {
        "type": "yarn", "factor": 2.0, "rope_theta": 1e4, "rope_type": "yarn", "original_max_position_embeddings": 64,
    }  # fmt: skip
    with pytest.raises(MissingFact, match="kind of layer"):
        evaluate(rope, {"rope_parameters": {"full_attention": {"rope_theta": 1.0}}})


def test_expressions_fail_as_missing_facts() -> None:
    for broken in (
        ["//", 1, 0],
        ["item", ["lit", {}], "x"],
        ["range", 1 << 40],
        ["+", 1, "x"],
        ["*", ["lit", [1]], 1 << 40],
    ):
        with pytest.raises(MissingFact):
            evaluate(broken, {})


def test_the_shipped_classes() -> None:
    """Values that are stated in Transformers' documentation."""
    old = class_defaults("llama", "==4.57.6")
    new = class_defaults("llama", "==5.24.0")
    assert old is not None and new is not None
    for cls in (old, new):
        assert resolve(cls, {}, "max_position_embeddings") == 2048 and resolve(cls, {}, "rope_theta") == 10000.0
        assert resolve(cls, {"num_attention_heads": 16}, "num_key_value_heads") == 16
        assert resolve(cls, {"hidden_size": 2048}, "head_dim") == 64
        assert resolve(cls, {}, "tie_word_embeddings") is False
    qwen = class_defaults("qwen3_5", ">=5.16.1,<5.20.0")
    assert qwen is not None
    text = class_defaults(qwen.parts["text_config"], ">=5.16.1,<5.20.0")
    assert text is not None and resolve(text, {"num_hidden_layers": 4}, "layer_types")[-1] == "full_attention"


def test_the_shipped_classes_check_types() -> None:
    assert types_checked("==5.24.0") and types_checked(">=5.5.3,<5.20.0") and not types_checked("==4.57.6")
    assert not types_checked(">=4.56.0,!=5.0.*,!=5.1.*,!=5.2.*,!=5.3.*,!=5.4.*,!=5.5.0")


def test_the_shipped_model_classes() -> None:
    assert has_model_class("LlamaForCausalLM", "==4.57.6") and has_model_class("LlamaForCausalLM", "==5.24.0")
    assert has_model_class("Qwen3_5ForCausalLM", ">=5.2") and not has_model_class("Qwen3_5ForCausalLM", "<5")
    assert not has_model_class("LlamaForCausalLMs") and not has_model_class("Eagle3LlamaForCausalLM")
    names = models.DATA.read_text()
    assert list(models.known_names(names)) == list(lookup.known_states()[0])


def test_the_cold_path_is_light() -> None:
    """No reader, no packaging, no pydantic: a look-up is part of each check."""
    code = (
        "import sys; from specfix.engines.transformers import class_defaults; class_defaults('llama', '<5');"
        "print(*sorted(m for m in sys.modules if m in {'packaging', 'pydantic', 'specfix.engines.source.tree'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_class_of_nothing() -> None:
    assert resolve(ConfigClass("Empty"), {"key": 1}, "key") == 1 and resolve(ConfigClass("Empty"), {}, "key") is None
