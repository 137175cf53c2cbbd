"""What a draft's layers take from per-layer lists, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.layer_lists import read_cut_lists, read_past_lists, read_windowed
from specfix.engines.source.tree import SourceTree

MODELS = "model_executor/models"
OWN = """
    class DraftAttention:
        def __init__(self, window):
            self.attn = Attention(1{more})
    """
BORROWED = """
    from .base import BaseDecoderLayer
    from .utils import maybe_prefix

    class DraftDecoderLayer(BaseDecoderLayer):
        pass
    """


def tree(tmp_path: Path, files: dict[str, str]) -> SourceTree:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return SourceTree(tmp_path)


def methods(module: str = "draft") -> MethodFacts:
    return MethodFacts((), {"DraftModel": f"{module}:DraftModel"}, ("DraftModel",))


@pytest.mark.parametrize(("more", "gives"), [(", per_layer_sliding_window=window", True), ("", False)])
def test_a_window_is_given_or_not(tmp_path: Path, more: str, gives: bool) -> None:
    own = {f"{MODELS}/draft.py": OWN.format(more=more)}
    assert read_windowed(tree(tmp_path / "own", own), methods()) == {"DraftModel": gives}
    borrowed = {f"{MODELS}/draft.py": BORROWED, f"{MODELS}/base.py": OWN.format(more=more), f"{MODELS}/utils.py": ""}
    assert read_windowed(tree(tmp_path / "borrowed", borrowed), methods()) == {"DraftModel": gives}


def test_without_attention_or_file_nothing_is_said(tmp_path: Path) -> None:
    assert read_windowed(tree(tmp_path, {f"{MODELS}/draft.py": "class DraftModel: ..."}), methods()) == {}
    assert read_windowed(tree(tmp_path, {}), methods("vllm.models.other")) == {}


MTP = """
    from .base import BaseDecoderLayer

    class DraftModel:
        def __init__(self, config):
            self.mtp_start_layer_idx = config.num_hidden_layers
            self.layer = BaseDecoderLayer(config)
    """
LAYER = """
    class BaseDecoderLayer:
        def __init__(self, config, layer_idx):
            {test}self.sliding = {looks_up}
    """


@pytest.mark.parametrize(
    ("looks_up", "test", "past"),
    [
        ("config.layer_types[layer_idx]", "", True),
        ("layer_types[self.layer_idx]", "", True),
        ("config.layer_types[0]", "", False),
        ("[*config.layer_types, *config.mtp_layer_types][layer_idx]", "", False),
        ("config.layer_types[layer_idx]", "if layer_idx < len(config.layer_types): ", False),
    ],
)
def test_a_layer_looks_itself_up(tmp_path: Path, looks_up: str, test: str, past: bool) -> None:
    layer = LAYER.format(looks_up=looks_up, test=test)
    files = {f"{MODELS}/draft.py": MTP, f"{MODELS}/base.py": layer}
    assert read_past_lists(tree(tmp_path, files), methods()) == (("DraftModel",) if past else ())


def test_layers_that_begin_at_nought_are_none_of_these(tmp_path: Path) -> None:
    files = {
        f"{MODELS}/draft.py": MTP.replace("config.num_hidden_layers", "0"),
        f"{MODELS}/base.py": LAYER.format(looks_up="config.layer_types[layer_idx]", test=""),
    }
    assert read_past_lists(tree(tmp_path, files), methods()) == ()


@pytest.mark.parametrize(
    ("made", "cut"),
    [
        ("layer_types[: self.num_hidden_layers]", True),
        ("layer_types[:num_hidden_layers]", True),
        ("layer_types", False),
    ],
)
def test_a_config_class_cuts_its_list(tmp_path: Path, made: str, cut: bool) -> None:
    files = {
        "transformers_utils/config.py": '_CONFIG_REGISTRY = LazyConfigDict(novel="NovelConfig", other="OtherConfig")',
        "transformers_utils/configs/novel.py": f"""
            class NovelConfig:
                def __init__(self, num_hidden_layers, layer_types):
                    self.num_hidden_layers = num_hidden_layers
                    self.layer_types = {made}
            """,
    }
    assert read_cut_lists(tree(tmp_path, files)) == (("novel",) if cut else ())
