"""Classes found through imports and bases, without importing anything."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree

FILES = {
    "model_executor/models/a.py": """
        import torch
        from torch import nn
        from . import c
        from .b import Left as Renamed, Right
        from .e import Flagged, wrap
        from vllm.missing import Gone

        class Diamond(Renamed, Right[int], torch.nn.Module): ...
        class ByModule(c.Other, nn.Module): ...
        class Lost(Gone): ...
        class Made(make()): ...
        Alias = Diamond
        Built = make()

        class Itself(Circle): ...
        Circle = Itself

        if TYPE_CHECKING:
            WrappedBase = Diamond
            Nothing_ = c.Other
        else:
            WrappedBase = wrap(Diamond)
            Nothing_ = object

        class Wrapped(WrappedBase): ...
        class Marked(wrap(Flagged)): ...
        class Undecided(wrap(Renamed, Right)): ...
        class Bare(Nothing_, Right): ...
        """,
    "model_executor/models/b.py": """
        class Root:
            def hello(self): ...

        class Left(Root):
            if True:
                flag = 1

        class Right(Root):
            flag = 2
            def hello(self): ...
        """,
    "model_executor/models/c.py": """
        from typing import TYPE_CHECKING
        from vllm.platforms import current_platform

        try:
            from .b import Root as Other
        except ImportError:
            Other = None

        if TYPE_CHECKING or current_platform.is_rocm():
            from .b import Left as Picked
        else:
            from .b import Right as Picked

        from .d import Round
        """,
    "model_executor/models/d.py": "from .c import Round\n",
    "model_executor/models/e.py": """
        def is_done(model):
            return getattr(model, "is_done", False)

        class Flagged:
            is_done = True

        def first(cls):
            from .b import Left

            class Inner(cls, Left):
                pass

            return Inner

        def wrap(cls):
            if is_done(cls):
                return cls

            class Outer(first(cls)):
                is_done = True

            return Outer
        """,
    "picked/__init__.py": """
        from vllm.platforms import current_platform

        def __getattr__(name):
            if name in ("Late", "Later"):
                if current_platform.is_rocm():
                    from ..model_executor.models.b import Left as Late
                else:
                    from ..model_executor.models.b import Right as Late
                return {"Late": Late}[name]
        """,
}


@pytest.fixture
def classes(tmp_path: Path) -> Classes:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return Classes(SourceTree(tmp_path))


def lineage(classes: Classes, path: str) -> tuple[list[str], bool]:
    (found,) = classes.at(path)
    assert found is not None
    read = classes.lineage(found)
    return [each.name for each in read.classes], read.complete


@pytest.mark.parametrize("path", ["a:Diamond", "a:Alias", "vllm.model_executor.models.a.Diamond"])
def test_bases_in_pythons_order(classes: Classes, path: str) -> None:
    assert lineage(classes, path) == (["Diamond", "Left", "Right", "Root"], True)


@pytest.mark.parametrize(
    ("path", "names", "complete"),
    [
        ("a:ByModule", ["ByModule", "Root"], True),
        ("c:Picked", ["Right", "Root"], True),
        ("a:Lost", ["Lost"], False),
        ("a:Made", ["Made"], False),
        ("a:Itself", ["Itself", "Itself"], False),
        ("a:Wrapped", ["Wrapped", "Outer", "Inner", "Diamond", "Left", "Right", "Root"], True),
        ("a:Marked", ["Marked", "Flagged"], True),  # given back as it is
        ("a:Undecided", ["Undecided"], False),
        ("a:Bare", ["Bare", "Right", "Root"], True),
        ("vllm.picked:Late", ["Right", "Root"], True),
    ],
)
def test_what_is_known_of_the_bases(classes: Classes, path: str, names: list[str], complete: bool) -> None:
    assert lineage(classes, path) == (names, complete)


@pytest.mark.parametrize("path", ["a:Built", "a:Nothing", "nowhere:Thing", "c:Round"])
def test_what_cannot_be_told(classes: Classes, path: str) -> None:
    assert classes.at(path) == [None]


def test_members_are_found_at_their_nearest_owner(classes: Classes) -> None:
    (found,) = classes.at("a:Diamond")
    assert found is not None
    read = classes.lineage(found)
    flag, hello = read.find("flag"), read.method("hello")
    assert flag is not None
    assert hello is not None
    assert (flag[0].name, hello[0].name) == ("Left", "Right")
    assert read.method("flag") is None
    assert read.find("absent") is None
