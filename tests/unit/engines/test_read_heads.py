"""What the classes of drafting heads build, what they borrow, what a release looks for: by the shape of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.engines.facts.drafting import Borrowing
from specfix.engines.readers.borrowing import read_borrowing, read_load_config, read_mask_places
from specfix.engines.readers.heads import (
    built_beside,
    load_keys,
    passes_bias,
    passes_unknown,
    read_head,
    refuses_missing,
    strict_loader,
)
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree

HEAD = """
import torch
from torch import nn
from vllm.model_executor.layers.linear import Norm, ParallelLMHead, QKVParallelLinear, ReplicatedLinear
from .base import DecoderLayer

class DecoderLayer(DecoderLayer):
    def __init__(self, config, layer_idx):
        super().__init__(config)
        qkv_bias = getattr(config, "attention_bias", False)
        width = 2 * self.hidden_size if layer_idx == 0 else self.hidden_size
        self.self_attn.qkv_proj = QKVParallelLinear(width, bias=qkv_bias)
        self.hidden_norm = Norm(config.hidden_size)

class Inner(nn.Module):
    hf_to_vllm_mapper = WeightsMapper(orig_to_new_substr={"midlayer.": "layers.0."})

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.quant_config = get_quant_config(config)
        self.layers = nn.ModuleList([DecoderLayer(config, i) for i in range(config.num_hidden_layers)])
        self.norm_before_fc = getattr(config, "norm_before_fc", False)
        self.fc = ReplicatedLinear(input_size=config.hidden_size * 2, bias=False)

    def load_weights(self, weights):
        return AutoWeightsLoader(self).load_weights(weights, mapper=self.hf_to_vllm_mapper)

class Head(nn.Module):
    def __init__(self, config):
        nn.Module.__init__(self)
        self.model = Inner(config)
        self.lm_head = ParallelLMHead(config.draft_vocab_size)
        if config.draft_vocab_size != target_vocab_size:
            self.draft_id_to_target_id = nn.Parameter(torch.zeros(1))
        else:
            self.draft_id_to_target_id = None

    def load_weights(self, weights):
        for name, weight in weights:
            if "t2d" in name:
                continue
            elif "lm_head" not in name:
                name = "model." + name
            process_eagle_weight(self, name)
        skip_substrs = ["confidence_head"]
        AutoWeightsLoader(self, skip_substrs=skip_substrs).load_weights(weights)
"""
BASE = """
from torch import nn
from vllm.model_executor.layers.linear import QKVParallelLinear

class Attention(nn.Module):
    def __init__(self, config):
        self.qkv_proj = QKVParallelLinear(config.hidden_size)
        self.o_proj = QKVParallelLinear(config.hidden_size)

class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.hidden_size = config.hidden_size
        bias = getattr(config, "attention_bias", False) or getattr(config, "bias", False)
        bias_o = bias
        if hasattr(config, "qkv_bias"):
            bias = config.qkv_bias
        self.self_attn = Attention(config, bias=bias, bias_o_proj=bias_o)
        self.mlp = nn.Linear(8, 8, bias=getattr(config, "mlp_bias", False))
"""
LAYERS = """
class QKVParallelLinear:
    def __init__(self): self.weight = 1
class ReplicatedLinear: ...
class ParallelLMHead: ...
class Norm: ...
"""


def tree(folder: Path, **files: str) -> SourceTree:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceTree(folder)


MODELS = "model_executor__models__"


def test_a_head(tmp_path: Path) -> None:
    source = tree(
        tmp_path,
        **{f"{MODELS}head": HEAD, f"{MODELS}base": BASE, "model_executor__layers__linear": LAYERS},
    )
    head = read_head(Classes(source), "head:Head")
    assert head is not None
    assert {"fc", "lm_head", "layers.*.hidden_norm", "layers.*.self_attn.q_proj"} <= set(head.parts)
    assert not {"quant_config", "norm_before_fc"} & set(head.parts) and not any("**" in part for part in head.parts)
    assert (head.layers, head.doubled, head.mapping) == ("config", True, "other size")
    assert (head.qkv_bias, head.fc_bias, head.fc_states) == ("attention_bias", False, ("2",))
    assert head.renames == {"midlayer.": "layers.0."} and head.skipped == ("confidence_head", "t2d")
    assert {"norm_before_fc", "num_hidden_layers"} <= set(head.keys) and head.notes_own == ("embed_tokens", "lm_head")
    assert head.scaled_by is None


SCALED = """        logit_scale = getattr(self.config, "logit_scale", 1.0)
        self.logits_processor = LogitsProcessor(config.draft_vocab_size, scale=logit_scale)
"""


@pytest.mark.parametrize(
    ("code", "key"),
    [
        (SCALED, "logit_scale"),
        (SCALED.replace("logit_scale", "output_scale"), "output_scale"),
        (SCALED.replace(", 1.0", ""), None),
        (SCALED.replace("scale=logit_scale", "scale=1.0"), None),
    ],
)
def test_what_logits_are_multiplied_by(tmp_path: Path, code: str, key: str | None) -> None:
    text = HEAD.replace("        self.lm_head =", f"{code}        self.lm_head =")
    source = tree(tmp_path, **{f"{MODELS}head": text, f"{MODELS}base": BASE, "model_executor__layers__linear": LAYERS})
    head = read_head(Classes(source), "head:Head")
    assert head is not None and head.scaled_by == key


@pytest.mark.parametrize(
    ("old", "new", "biases"),
    [
        ("", "", {"mlp": ("mlp_bias",), "self_attn.o_proj": ("attention_bias", "bias")}),
        ("bias_o_proj=bias_o", "bias_o_proj=bias", {"mlp": ("mlp_bias",)}),  # it hangs on a condition
        ("bias_o_proj=bias_o", "", {"mlp": ("mlp_bias",)}),
        ('getattr(config, "mlp_bias", False)', "False", {"mlp": (), "self_attn.o_proj": ("attention_bias", "bias")}),
        ("self.mlp =", "if moe: self.mlp =", {"self_attn.o_proj": ("attention_bias", "bias")}),
    ],
)
def test_biases_by_key(tmp_path: Path, old: str, new: str, biases: dict[str, tuple[str, ...]]) -> None:
    base = BASE.replace(old, new) if old else BASE
    source = tree(tmp_path, **{f"{MODELS}head": HEAD, f"{MODELS}base": base, "model_executor__layers__linear": LAYERS})
    head = read_head(Classes(source), "head:Head")
    assert head is not None and head.biases == biases


def test_biases_of_the_nearest_class(tmp_path: Path) -> None:
    own = HEAD.replace(
        "        self.hidden_norm", "        self.mlp = Norm(config.hidden_size)\n        self.hidden_norm"
    )
    source = tree(tmp_path, **{f"{MODELS}head": own, f"{MODELS}base": BASE, "model_executor__layers__linear": LAYERS})
    head = read_head(Classes(source), "head:Head")
    assert head is not None and "mlp" not in head.biases


def test_a_head_that_loads_otherwise(tmp_path: Path) -> None:
    source = tree(tmp_path, **{f"{MODELS}head": HEAD.replace('"model." + name', "name")})
    assert read_head(Classes(source), "head:Head") is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("if not self.model.has_own_lm_head: self.model.lm_head = target.lm_head", {"": "missing"}),
        ("if config.method != 'eagle3': self.model.lm_head = target.lm_head", {"": "always", "eagle3": "never"}),
        ("if self.model.draft_id_to_target_id is None: model.lm_head = target.lm_head", {"": "unmapped"}),
        ("model.lm_head = target.lm_head", {"": "always"}),
    ],
)
def test_the_head_that_is_lent(tmp_path: Path, code: str, said: dict[str, str]) -> None:
    source = tree(tmp_path, v1__spec_decode__eagle=f"class P:\n    def load_model(self, target):\n        {code}\n")
    assert read_borrowing(source) == {"V1": Borrowing(None, said)}


def test_embeddings_of_one_width(tmp_path: Path) -> None:
    code = """
def share(draft, target):
    one = target.weight.shape[-1]
    other = draft.embed_tokens.weight.shape[-1]
    if not draft.has_own_embed_tokens and {}:
        draft.model.embed_tokens = target
    draft.lm_head = target
"""
    file = "v1__spec_decode__llm_base_proposer"
    guarded = tree(tmp_path / "a", **{file: code.format("not one != other")})
    assert read_borrowing(guarded)["V1"].embeddings == "missing, same width"
    assert read_borrowing(tree(tmp_path / "b", **{file: code.format("one")}))["V1"].embeddings == "missing"


def test_mask_tokens(tmp_path: Path) -> None:
    code = """
def mask(config):
    if dflash_config and "mask_token_id" in dflash_config:
        return 1
    if hasattr(config, "pard_token"):
        return 2
    {}
"""
    raising = tree(tmp_path / "a", v1__spec_decode__eagle=code.format("raise ValueError"))
    assert read_mask_places(raising) == {"V1": ("dflash_config.mask_token_id", "pard_token")}
    assert read_mask_places(tree(tmp_path / "b", v1__spec_decode__eagle=code.format("return 3"))) == {}


def test_load_config(tmp_path: Path) -> None:
    files = {
        "v1__spec_decode__eagle": "get_model(draft_load_config)",
        "v1__worker__gpu__spec_decode__eagle__u": "get_model()",
    }
    assert read_load_config(tree(tmp_path, **files)) == {"V1": True, "V2": False}


MTP = """
from torch import nn
class Layer(nn.Module):
    def __init__(self): self.shared_head = Shared()
class Shared(nn.Module):
    def __init__(self): self.head = nn.Linear()
class Inner(nn.Module):
    def __init__(self):
        self.embed_tokens = nn.Embedding()
        self.layers = nn.ModuleDict({i: Layer() for i in range(2)})
class MTP(nn.Module):
    def __init__(self): self.model = Inner()
    def _rewrite_spec_layer_name(self, name): ...
    def load_weights(self, weights):
        for name, weight in weights:
            BEFORE
            if spec_layer is None:
                continue
        AFTER
        return loaded_params
"""


def test_built_in_drafts(tmp_path: Path) -> None:
    plain = MTP.replace("BEFORE", "pass").replace("AFTER", "pass")
    classes = Classes(tree(tmp_path / "a", **{f"{MODELS}mtp": plain}))
    assert built_beside(classes, "mtp:MTP") == ("embed_tokens", "shared_head.head")
    assert not refuses_missing(classes, "mtp:MTP")
    filled = MTP.replace("BEFORE", "if name == 'lm_head.weight': name = 'x'").replace("AFTER", "pass")
    assert built_beside(Classes(tree(tmp_path / "b", **{f"{MODELS}mtp": filled})), "mtp:MTP") == ()
    checked = MTP.replace("BEFORE", "pass").replace("AFTER", "if 1 not in loaded_layers: raise ValueError")
    assert refuses_missing(Classes(tree(tmp_path / "c", **{f"{MODELS}mtp": checked})), "mtp:MTP")


def test_a_loader_that_checks(tmp_path: Path) -> None:
    code = "class L:\n    def load_weights(self):\n        left = weights_to_load - loaded_weights\n        {}\n"
    file = "model_executor__model_loader__default_loader"
    assert strict_loader(tree(tmp_path / "a", **{file: code.format("raise ValueError")}))
    assert not strict_loader(tree(tmp_path / "b", **{file: code.format("x = 'process_weights_after_loading'")}))


@pytest.mark.parametrize(
    ("loading", "loader", "passed"),
    [
        ("AutoWeightsLoader(self).load_weights(weights)", "self.ignore_unexpected_suffixes.append('.bias')", True),
        ("AutoWeightsLoader(self).load_weights(weights)", "pass", False),
        ("[n for n in weights if name.endswith('.bias') and name not in params_dict]", "pass", True),
        ("params_dict[name]", "self.ignore_unexpected_suffixes.append('.bias')", False),
    ],
)
def test_a_bias_without_a_place(tmp_path: Path, loading: str, loader: str, passed: bool) -> None:
    source = tree(
        tmp_path,
        **{
            f"{MODELS}inner": f"class Inner:\n    def load_weights(self, weights): {loading}",
            f"{MODELS}utils": f"class AutoWeightsLoader:\n    def load_weights(self, weights): {loader}",
        },
    )
    classes = Classes(source)
    (inner,) = classes.at("inner:Inner")
    assert inner is not None
    lineage = classes.lineage(inner)
    method = lineage.method("load_weights")
    assert method and passes_bias(classes, lineage, method[1]) is passed


@pytest.mark.parametrize(
    ("statement", "passed"),
    [
        ("if name not in params_dict: continue", True),
        ("if name.endswith('.bias') and name not in params_dict: continue", False),
        ("if name not in params_dict: raise KeyError", False),
        ("if 'sink' in name:\n                if name not in params_dict: continue", False),
        ("for each in stacked: pass\n            else:\n                if name not in params_dict: continue", True),
    ],
)
def test_names_that_are_passed_over(tmp_path: Path, statement: str, passed: bool) -> None:
    loading = f"def load_weights(self, weights):\n        for name in weights:\n            {statement}\n"
    classes = Classes(tree(tmp_path, **{f"{MODELS}inner": f"class Inner:\n    {loading}"}))
    (inner,) = classes.at("inner:Inner")
    method = classes.lineage(inner).method("load_weights") if inner else None
    assert inner and method and passes_unknown(classes.lineage(inner), method[1]) is passed


@pytest.mark.parametrize(
    ("statement", "passed"),
    [
        ("if name in params: fill(params[name])", True),
        ("if 1: pass\n            if name in params: fill(params[name])\n            else: raise KeyError", False),
        ("if name in params: continue\n            raise KeyError", False),
        ("for each in stacked: pass\n            else:\n                if name in params: fill(name)", True),
        ("AutoWeightsLoader(self)\n            if name in params: fill(name)", False),  # the inner model's counts
    ],
)
def test_a_class_that_fills_the_parameters_itself(tmp_path: Path, statement: str, passed: bool) -> None:
    code = f"""
class Inner:
    def load_weights(self, weights): self.params[name]
class Outer:
    def load_weights(self, weights):
        for name in weights:
            {statement}
"""
    classes = Classes(tree(tmp_path, **{f"{MODELS}outer": code}))
    inner, outer = (
        classes.lineage(found) for name in ("Inner", "Outer") for found in classes.at(f"outer:{name}") if found
    )
    method = outer.method("load_weights")
    assert method and passes_unknown(inner, method[1]) is passed


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("if name == 't2d': continue", "t2d"),
        ("if sub == 'mix.L':\n                kept = weight\n                continue", "mix.L"),
        ("mapper = WeightsMapper(orig_to_new_prefix={'model.mask_embedding': None})", "mask_embedding"),
        ("mapper = WeightsMapper(orig_to_new_substr={'kept': 'new'})", None),
    ],
)
def test_words_that_are_passed_over(tmp_path: Path, said: str, word: str | None) -> None:
    text = HEAD.replace('if "t2d" in name:\n                continue', f"{said}\n            if 0: pass")
    assert said in text
    source = tree(tmp_path, **{f"{MODELS}head": text, f"{MODELS}base": BASE, "model_executor__layers__linear": LAYERS})
    head = read_head(Classes(source), "head:Head")
    assert head is not None and head.skipped == tuple(sorted({"confidence_head", word} - {None}, key=str))


@pytest.mark.parametrize(
    ("code", "keys"),
    [
        ('allowed_keys = {"num_threads", "enable_weights_track"}', ("enable_weights_track", "num_threads")),
        ("if load_config.model_loader_extra_config: raise ValueError", ()),
        ("allowed_keys = KEYS", None),
        ("pass", None),
    ],
)
def test_keys_that_a_loader_takes(tmp_path: Path, code: str, keys: tuple[str, ...] | None) -> None:
    text = f"class DefaultModelLoader:\n    def __init__(self, load_config):\n        {code}\n"
    assert load_keys(tree(tmp_path, model_executor__model_loader__default_loader=text)) == keys
