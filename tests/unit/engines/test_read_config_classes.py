"""The keys of the engine's config classes, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.serving import ConfigClass
from specfix.engines.readers.config_classes import read_config_classes
from specfix.engines.source.tree import SourceTree

ARGUMENTS = "from vllm.config import OuterConfig\n"
HOME = "from vllm.config.outer import OuterConfig\n"
FORBIDS = """
    from typing import overload
    from pydantic import ConfigDict
    from pydantic.dataclasses import dataclass

    @overload
    def config(cls): ...

    def config(cls=None, *, config=None):
        merged = ConfigDict(extra="forbid")
        def decorator(cls):
            return dataclass(cls, config=merged)
        return decorator if cls is None else decorator(cls)
    """
PLAIN = """
    def config(cls):
        return cls
    """
OUTER = """
    from dataclasses import InitVar, field
    from typing import Any, ClassVar
    from pydantic import Field, SkipValidation, field_validator, model_validator
    from vllm.config.utils import config

    @config
    class InnerConfig:
        depth: int = 1

    @config
    class OuterConfig:
        kind: str = "a"
        limit: InitVar[int] = 3
        inner: InnerConfig = Field(default_factory=InnerConfig)
        perhaps: "InnerConfig | None" = None
        either: InnerConfig | dict[str, Any] = None
        unchecked: SkipValidation[InnerConfig] = None
        made: list[str] = field(default_factory=list, init=False)
        shared: ClassVar[int] = 0
        _own: bool = False

        @field_validator("kind", mode="before")
        def lower(cls, value):
            return value.lower()

        @model_validator(mode="after")
        def check(self):
            return self
    """


def read(folder: Path, outer: str, utils: str = FORBIDS) -> tuple[dict[str, ConfigClass | None], dict[str, str]]:
    package = folder / "vllm"
    files = {"engine/arg_utils.py": ARGUMENTS, "config/__init__.py": HOME}
    for name, text in {**files, "config/utils.py": utils, "config/outer.py": outer}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_config_classes(SourceTree(package), ["OuterConfig"], unknown), unknown


def test_keys_are_the_fields_that_are_taken(tmp_path: Path) -> None:
    found, unknown = read(tmp_path, OUTER)
    assert unknown == {}
    assert found["OuterConfig"] == ConfigClass(
        ("kind", "limit", "inner", "perhaps", "either", "unchecked", "_own"),
        {"inner": "InnerConfig", "perhaps": "InnerConfig"},
        True,
    )
    assert found["InnerConfig"] == ConfigClass(("depth",), {}, True)


@pytest.mark.parametrize("module", ["dataclasses", "pydantic.dataclasses"])
def test_without_forbid_others_are_dropped(tmp_path: Path, module: str) -> None:
    outer = f"from {module} import dataclass\n" + dedent(OUTER).replace("@config\n", "@config\n@dataclass\n")
    found, _ = read(tmp_path, outer, PLAIN)
    assert found["OuterConfig"] and found["OuterConfig"].refuses_others is False


def test_a_config_of_its_own_may_forbid(tmp_path: Path) -> None:
    made = '@dataclass(config=ConfigDict(extra="forbid"))\n'
    outer = "from pydantic import ConfigDict\nfrom pydantic.dataclasses import dataclass\n" + dedent(OUTER)
    found, _ = read(tmp_path, outer.replace("@config\n", made), PLAIN)
    assert found["OuterConfig"] and found["OuterConfig"].refuses_others is True


def test_a_decorator_that_is_not_understood(tmp_path: Path) -> None:
    found, unknown = read(tmp_path, dedent(OUTER).replace("from vllm.config.utils", "from elsewhere"))
    assert found["OuterConfig"] and found["OuterConfig"].refuses_others is None
    assert unknown == {"serve.config_classes.OuterConfig.refuses_others": "how OuterConfig is made is not understood"}


def test_fields_of_a_base_count(tmp_path: Path) -> None:
    outer = dedent(OUTER).replace("class OuterConfig:", "class OuterConfig(InnerConfig):")
    found, _ = read(tmp_path, outer)
    assert found["OuterConfig"] and "depth" in found["OuterConfig"].keys


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("class OuterConfig:", "class OuterConfig(Far):", "its base Far is not found"),
        ('mode="after"', 'mode="before"', "check sees the keys before they are read"),
        ('kind: str = "a"', 'kind: str = Field("a", alias="sort")', "kind has another name"),
        ("def check(self)", "def __init__(self)", "it has an __init__ of its own"),
    ],
)
def test_a_class_that_may_take_other_keys(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in OUTER
    found, unknown = read(tmp_path, OUTER.replace(old, new))
    assert found["OuterConfig"] is None
    assert unknown["serve.config_classes.OuterConfig"].endswith(reason)


def test_a_class_that_is_not_found(tmp_path: Path) -> None:
    found, unknown = read(tmp_path, dedent(OUTER).replace("class OuterConfig", "class Other"))
    assert found == {"OuterConfig": None}
    assert "is not found" in unknown["serve.config_classes.OuterConfig"]
