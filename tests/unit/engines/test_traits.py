"""Traits of architectures, and the keys that make a model MoE, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.traits import read_traits
from specfix.engines.source.tree import SourceTree

MODELS = """
    class IsHybrid:
        is_hybrid = True

    class Both(IsHybrid):
        has_inner_state: ClassVar = True

    class Not(IsHybrid):
        is_hybrid = False

    class Made(somewhere(Both)): ...
"""


def tree(root: Path, **files: str) -> SourceTree:
    for name, text in {"model_executor/models/net.py": MODELS, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return SourceTree(root)


def test_the_nearest_mark_counts(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    methods = MethodFacts((), {name: f"net:{name}" for name in ("Both", "Not", "Made")})
    facts = read_traits(tree(tmp_path), unknown, methods)
    assert facts.having == {"is_hybrid": ("Both",), "is_attention_free": (), "has_inner_state": ("Both",)}
    assert facts.unreadable == ("Made",)
    assert unknown.keys() == {"traits.having.Made", "traits.expert_keys"}


@pytest.mark.parametrize(
    "files",
    [
        {"config/model.py": "def get_num_experts(self):\n    for name in ['a', 'b']: ..."},
        {"config/__init__.py": "def _verify_with_expert_parallelism(self):\n    names = ['a', 'b']"},
        {"config.py": "def _verify_with_expert_parallelism(self):\n    names = ['a', 'b']"},
        {
            "transformers_utils/model_arch_config_convertor.py": "def get_num_experts(self):\n    NAMES['experts']",
            "transformers_utils/config.py": "NAMES = {'experts': ['a', 'b']}",
        },
    ],
)
def test_expert_keys_where_releases_keep_them(tmp_path: Path, files: dict[str, str]) -> None:
    assert read_traits(tree(tmp_path, **files), {}, MethodFacts((), {})).expert_keys == ("a", "b")
