"""Whether the order of the draft's layer names is a fixed one, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.layers import read_layers
from specfix.engines.source.tree import SourceTree

NO_METHODS = MethodFacts((), {})
FILE = "v1/spec_decode/proposer.py"
PROPOSER = """
    class Proposer:
        def load(self, target_attn_layer_names):
            layers = all_layers()
            ordered = {{name: layer for name, layer in layers.items()}}
            self._draft_attn_layer_names = {names}

        def use(self, mapping):
            groups = {{}}
{use}
    """
SET = "set(layers) - target_attn_layer_names"
GROUPING = "for name in {names}:\n    if kind(name) not in groups:\n        groups[kind(name)] = name"


def iteration(tmp_path: Path, names: str, use: str, file: str = FILE) -> dict[str, str]:
    lines = "\n".join("            " + line for line in use.splitlines())
    path = tmp_path / "vllm" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(PROPOSER.format(names=names, use=lines)))
    return dict(read_layers(SourceTree(tmp_path / "vllm"), {}, NO_METHODS).iteration)


@pytest.mark.parametrize(
    ("names", "use", "found"),
    [
        (SET, GROUPING.format(names="self._draft_attn_layer_names"), "unsorted"),
        (SET, GROUPING.format(names="sorted(self._draft_attn_layer_names)"), "sorted"),
        (SET, "for name in self._draft_attn_layer_names:\n    groups.append(name)", "unsorted"),
        (SET, "for name in self._draft_attn_layer_names:\n    groups[name] = mapping", None),
        (SET, "return {name: mapping for name in self._draft_attn_layer_names}", None),
        (SET, "return next(iter(self._draft_attn_layer_names)) in mapping", None),
        (SET, "return mapping[next(iter(self._draft_attn_layer_names))]", "unsorted"),
        (f"list({SET})", "return mapping[self._draft_attn_layer_names[0]]", "unsorted"),
        ("{name for name in layers}", GROUPING.format(names="self._draft_attn_layer_names"), "unsorted"),
        ("list(ordered.keys())", "return mapping[self._draft_attn_layer_names[0]]", None),
        (f"sorted({SET})", "return mapping[self._draft_attn_layer_names[0]]", None),
    ],
)
def test_orders(tmp_path: Path, names: str, use: str, found: str | None) -> None:
    assert iteration(tmp_path, names, use) == ({FILE: found} if found else {})


def test_a_set_that_another_file_fills_and_the_target_layers(tmp_path: Path) -> None:
    iteration(tmp_path, SET, "pass")
    heir = tmp_path / "vllm/v1/worker/heir.py"
    heir.parent.mkdir(parents=True)
    heir.write_text("def f(self):\n    return self.drafter._draft_attn_layer_names[0]\n")
    other = tmp_path / "vllm/v1/worker/other.py"
    other.write_text("def f(self):\n    return self.target_attn_layer_names[0]\n")
    assert read_layers(SourceTree(tmp_path / "vllm"), {}, NO_METHODS).iteration == {"v1/worker/heir.py": "unsorted"}


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    assert read_layers(SourceTree(tmp_path), unknown, NO_METHODS).iteration == {}
    assert "layers.iteration" in unknown
