"""Config classes run on symbols: what a config of any keys becomes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.source.classes import Class
from specfix.engines.source.defaults import Defaults
from specfix.engines.source.tree import SourceTree
from specfix.engines.transformers import resolve
from specfix.errors import MissingFact

OLD_ROOT = """
class PretrainedConfig:
    attribute_map = {}

    def __init__(self, *, tie_word_embeddings=True, bos_token_id=None, **kwargs):
        self.tie_word_embeddings = tie_word_embeddings
        self.bos_token_id = bos_token_id
        for key, value in kwargs.items():
            try:
                setattr(self, key, value)
            except AttributeError as err:
                raise err
"""
NEW_ROOT = """
class PreTrainedConfig:
    dtype: str | None = None

    def __post_init__(self, **kwargs):
        self._name = kwargs.pop("name_or_path", "")
        for key, value in kwargs.items():
            setattr(self, key, value)
"""

Read = Callable[..., ConfigClass]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the class ``Config`` of a source, which is given its root class."""

    def reader(source: str, root: str = OLD_ROOT) -> ConfigClass:
        (tmp_path / "base.py").write_text(root)
        name = "PretrainedConfig" if root == OLD_ROOT else "PreTrainedConfig"
        (tmp_path / "config.py").write_text(f"from .base import {name}\n{textwrap.dedent(source)}")
        tree = SourceTree(tmp_path)
        node = tree.class_("config.py", "Config")
        assert node is not None
        return Defaults(tree, "transformers").read(Class("config.py", node))

    return reader


def missing(cls: ConfigClass, values: dict[str, Any], key: str) -> str:
    with pytest.raises(MissingFact) as caught:
        resolve(cls, values, key)
    return str(caught.value)


def test_a_constructor_of_the_4_series(read: Read) -> None:
    cls = read(
        """
        class Config(PretrainedConfig):
            attribute_map = {"num_layers": "depth"}

            def __init__(self, hidden=64, heads=4, kv_heads=None, head_dim=None, depth=2, kinds=None, bos_token_id=1,
                         **kwargs):
                self.hidden = hidden
                self.heads = heads
                if kv_heads is None:
                    kv_heads = heads
                self.kv_heads = kv_heads
                self.head_dim = head_dim if head_dim is not None else self.hidden // self.heads
                self.depth = depth
                self.every = kwargs.pop("every", 2)
                self.kinds = kinds
                if self.kinds is None:
                    self.kinds = ["full" if (i + 1) % self.every == 0 else "sliding" for i in range(depth)]
                super().__init__(bos_token_id=bos_token_id, **kwargs)
        """
    )
    assert cls.defaults == {
        "hidden": 64, "heads": 4, "depth": 2, "every": 2, "bos_token_id": 1, "tie_word_embeddings": True,
    }  # fmt: skip
    assert cls.derived["head_dim"] == [
        "none", ["given", "head_dim", None], ["//", ["field", "hidden"], ["field", "heads"]],
    ]  # fmt: skip
    assert resolve(cls, {}, "kv_heads") == 4 and resolve(cls, {"heads": 8}, "kv_heads") == 8
    assert resolve(cls, {"head_dim": None, "hidden": 96}, "head_dim") == 24
    assert resolve(cls, {"head_dim": 7}, "head_dim") == 7
    assert resolve(cls, {"num_layers": 3}, "depth") == resolve(cls, {"num_layers": 3}, "num_layers") == 3
    assert resolve(cls, {"depth": 4, "every": 4}, "kinds") == ["sliding", "sliding", "sliding", "full"]
    assert resolve(cls, {"other": 5}, "other") == 5 and resolve(cls, {}, "other") is None
    assert not cls.unknown


def test_fields_and_post_init_of_the_5_series(read: Read) -> None:
    cls = read(
        """
        class Parent(PreTrainedConfig):
            heads: int = 4
            rate: float = interval(min=0.0)(default=0.5)

        class Config(Parent):
            sub_configs = {"text_config": TextConfig, "any_config": AutoConfig}
            heads: int = 8
            names: list | None = field(default_factory=list)
            kv_heads: int | None = None
            text_config: dict | None = None
            note: ClassVar[str] = "no field"

            def __post_init__(self, **kwargs):
                self.kv_heads = self.kv_heads or self.heads
                self.window = kwargs.pop("window_size", None)
                if isinstance(self.text_config, dict):
                    self.text_config = TextConfig(**self.text_config)
                super().__post_init__(**kwargs)

            @property
            def groups(self):
                return self.heads // self.kv_heads
        """,
        NEW_ROOT,
    )
    assert cls.defaults == {"heads": 8, "rate": 0.5, "names": [], "dtype": None}
    assert cls.parts == {"text_config": "TextConfig", "any_config": ""} and cls.named_parts == ("any_config",)
    assert resolve(cls, {"kv_heads": 2}, "groups") == 4
    assert resolve(cls, {"window_size": 9}, "window") == 9
    assert "a config of its own" in missing(cls, {}, "text_config")
    assert not cls.unknown


def test_what_is_not_followed_is_unknown_and_nothing_else(read: Read) -> None:
    cls = read(
        """
        class Config(PretrainedConfig):
            def __init__(self, size=1, scaling=None, total=0, shape=None, **kwargs):
                self.size = size
                self.scaling = scaling
                if self.scaling is not None and "type" in self.scaling:
                    self.scaling["rope_type"] = self.scaling["type"]
                for part in scaling or ():
                    total = total + part
                self.total = total
                self.shape = solve(size) if shape is None else shape
                super().__init__(**kwargs)
        """
    )
    assert cls.defaults["size"] == 1
    assert resolve(cls, {}, "total") == 0 and "a loop" in missing(cls, {"scaling": {"x": 1}}, "total")
    assert "solve" in missing(cls, {}, "shape") and resolve(cls, {"shape": 3}, "shape") == 3
    assert resolve(cls, {"scaling": {"type": "x"}}, "scaling") == {"type": "x", "rope_type": "x"}
    assert resolve(cls, {}, "scaling") is None


def test_two_unknown_tests_are_not_one(read: Read) -> None:
    """Nor is what raises in one branch taken for what the class does."""
    cls = read(
        """
        class Config(PretrainedConfig):
            def __init__(self, one=[1], two=2, **kwargs):
                if one != order(one):
                    raise ValueError
                if not check(two):
                    raise ValueError
                self.two = two
                super().__init__(**kwargs)
        """
    )
    assert cls.defaults["two"] == 2


def test_keys_that_are_taken_away_one_by_one(read: Read) -> None:
    cls = read(
        """
        class Config(PretrainedConfig):
            def __init__(self, size=1, **kwargs):
                taken = {key: kwargs.pop(key) for key in names() if key in kwargs}
                self.size = size
                super().__init__(**kwargs)
        """
    )
    assert resolve(cls, {}, "size") == 1 and resolve(cls, {}, "tie_word_embeddings") is True
    assert "are computed" in missing(cls, {"tie_word_embeddings": False}, "tie_word_embeddings")


def test_setters_run_for_keys_too(read: Read) -> None:
    cls = read(
        """
        class Config(PretrainedConfig):
            attribute_map = {"first": "size", "second": "size"}

            def __init__(self, size=1, window=4, **kwargs):
                self.size = size
                self.window = window
                super().__init__(**kwargs)

            @property
            def half(self):
                return self.window // 2

            @half.setter
            def half(self, value):
                self.window = value * 2
        """
    )
    assert resolve(cls, {"half": 8}, "window") == 16 and resolve(cls, {"half": 8}, "half") == 8
    assert resolve(cls, {"window": 6}, "half") == 3
    assert resolve(cls, {"size": 2, "second": 4, "first": 3}, "size") == 3  # the last one counts
    assert resolve(cls, {}, "second") == 1


def test_what_a_method_changes(read: Read) -> None:
    """Methods are followed, checks are left out, and a call that hands the config on loses all."""
    source = """
        class Config(PretrainedConfig):
            def __init__(self, size=1, **kwargs):
                self.size = size
                self.double()
                self.validate_size()
                {call}
                super().__init__(**kwargs)

            def double(self):
                self.size = self.size * 2

            def validate_size(self):
                if self.size > limit():
                    raise ValueError
        """
    assert resolve(read(source.format(call="pass")), {"size": 5}, "size") == 10
    assert read(source.format(call="adjust(self)")).unknown["size"] == "a call of adjust"


def test_a_class_that_changes_how_attributes_are_read_is_unknown(read: Read) -> None:
    cls = read(
        """
        class Config(PretrainedConfig):
            def __init__(self, size=1, **kwargs):
                self.size = size
                super().__init__(**kwargs)

            def __getattribute__(self, key):
                return other(key)
        """
    )
    assert not cls.defaults and cls.unknown["size"] == "its __getattribute__"


def test_a_class_of_vllm_extends_one_that_is_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        textwrap.dedent(
            """
            from transformers import PretrainedConfig

            class Config(PretrainedConfig):
                def __init__(self, size=3, bos_token_id=7, heads=None, **kwargs):
                    self.size = size
                    super().__init__(bos_token_id=bos_token_id, **kwargs)
                    self.heads = heads or size
            """
        )
    )
    tree = SourceTree(tmp_path)
    node = tree.class_("own.py", "Config")
    assert node is not None
    cls = Defaults(tree, "vllm").read(Class("own.py", node))
    base = ConfigClass("PretrainedConfig", {"bos_token_id": None, "tie_word_embeddings": True, "size": 0})
    assert cls.base == "PreTrainedConfig"
    assert resolve(cls, {}, "bos_token_id", base) == 7 and resolve(cls, {"bos_token_id": 1}, "bos_token_id", base) == 1
    assert resolve(cls, {}, "tie_word_embeddings", base) is True
    assert resolve(cls, {"size": 5}, "heads", base) == 5
    assert resolve(cls, {"size": 5}, "size", base) == 0  # the base sets it anew, and is not handed it
    assert "PreTrainedConfig" in missing(cls, {}, "bos_token_id")
