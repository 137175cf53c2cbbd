"""Whose quantisation drafts are built with, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.quantisation import QuantisationFacts
from specfix.engines.readers.quantisation import read_quantisation
from specfix.engines.source.tree import SourceTree

BASE = """
    class Layer(Module):
        def __init__(self, vllm_config, prefix=""):
            quant_config = self.get_quant_config(vllm_config)
            self.mlp = MLP(quant_config=quant_config, cache_config=vllm_config.cache_config)

        def get_quant_config(self, vllm_config):
            return vllm_config.quant_config
    """
HEAD = """
    from vllm.model_executor.models.base import Layer

    class Head(Module):
        def __init__(self, *, vllm_config, prefix=""):
            self.model = Inner(vllm_config=vllm_config)

    class Inner(Module):
        def __init__(self, *, vllm_config):
            quant_config = vllm_config.quant_config
            fc_quant = None if (quant_config and quant_config.get_name() == "modelopt_fp4") else quant_config
            self.plain = torch.nn.Linear(8, 8, bias=False)
            self.fc = ColumnParallelLinear(8, 8, quant_config=fc_quant)
            self.wide = ReplicatedLinear(8, 8, quant_config=quant_config)
            self.layers = nn.ModuleList([DraftLayer(vllm_config) for _ in range(2)])

    class DraftLayer(Layer):
        OWN
    """
REGISTRY = """
    QuantizationMethods = Literal["fp8", "gptq"]

    def get_quantization_config(quantization):
        from .fp8 import Fp8Config
        from .gptq import GPTQConfig

        method_to_config: dict[str, type] = {"fp8": Fp8Config, "gptq": GPTQConfig}
        return method_to_config[quantization]
    """
GPTQ = """
    class GPTQConfig(Config):
        @classmethod
        def from_config(cls, config):
            return cls(cls.get_from_keys_or(config, ["dynamic"], {}), config["modules_in_block_to_quantize"])

        def get_quant_method(self, layer, prefix):
            if isinstance(layer, FusedMoE):
                return MoE(EXPERTS)
            return Linear(self.modules)

        def maybe_update_config(self, name):
            self.modules = get_safetensors_params_metadata(name)
    """


def read(root: Path, own: str = "pass", **files: str) -> QuantisationFacts:
    home = "model_executor/layers/quantization"
    written = {
        "model_executor/models/base.py": BASE,
        "model_executor/models/head.py": HEAD.replace("OWN", own),
        f"{home}/__init__.py": REGISTRY,
        f"{home}/fp8.py": 'class Fp8Config:\n    KEYS = ["ignored_layers"]\n',
        f"{home}/gptq.py": GPTQ,
        **files,
    }
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    return read_quantisation(SourceTree(root), {}, MethodFacts((), {"Head": "head:Head"}, ("Head",)))


@pytest.mark.parametrize(
    ("own", "origin"),
    [
        ("pass", "target"),
        ("def get_quant_config(self, vllm_config): return get_draft_quant_config(vllm_config)", "draft"),
        ("def get_quant_config(self, vllm_config): self.quant_config = make(vllm_config)", "own"),
        (
            "def __init__(self, vllm_config): self.mlp = MLP(quant_config=None); self.attn(vllm_config.quant_config)",
            "own",
        ),
        ("def get_quant_config(self, vllm_config): align_mtp_quant_config(vllm_config.quant_config)", "own"),
    ],
)
def test_whose_quantisation(tmp_path: Path, own: str, origin: str) -> None:
    assert read(tmp_path, own).drafts == {"Head": origin}


def test_layers_that_are_given_none(tmp_path: Path) -> None:
    files = {
        "model_executor/models/head.py": "class Head:\n    def __init__(self):\n        self.fc = nn.Linear(8, 8)\n"
    }
    facts = read(tmp_path, **files)
    assert (facts.drafts, facts.joins, facts.kv_cache_dtype) == ({"Head": "none"}, {"Head": {"fc": None}}, ())


def test_how_joins_are_built(tmp_path: Path) -> None:
    facts = read(tmp_path)
    assert facts.joins == {"Head": {"plain": None, "fc": ("modelopt_fp4",), "wide": ()}}
    assert facts.kv_cache_dtype == ("Head",)


def test_what_a_config_says_of_layers(tmp_path: Path) -> None:
    facts = read(tmp_path)
    assert facts.names == ("fp8", "gptq")
    assert facts.ignore_keys == {"fp8": ("ignored_layers",), "gptq": ("dynamic", "modules_in_block_to_quantize")}
    assert (facts.reads_tensors, facts.experts_too) == (("gptq",), ())
    home = "model_executor/layers/quantization/gptq.py"
    assert read(tmp_path, **{home: GPTQ.replace("EXPERTS", "self.modules")}).experts_too == ("gptq",)


@pytest.mark.parametrize(
    ("line", "holds"), [('quant_method = quant_method if quant_method != "" else None', True), ("pass", False)]
)
def test_no_method_counts_as_none(tmp_path: Path, line: str, holds: bool) -> None:
    text = f"class ModelConfig:\n    def _verify_quantization(self):\n        {line}\n"
    assert read(tmp_path, **{"config/model.py": text}).empty_method_is_none is holds


def test_backends_for_plain_experts(tmp_path: Path) -> None:
    text = """
        def map_unquantized_backend(runner_backend):
            mapping = {"triton": 1, "aiter": 2}
            if backend := mapping.get(runner_backend):
                return backend
            raise ValueError
        """
    files = {
        "model_executor/layers/fused_moe/oracle/unquantized.py": text,
        "v1/spec_decode/eagle.py": "made = replace(config, moe_backend=spec.moe_backend)",
        "v1/worker/gpu/spec_decode/eagle.py": "pass",
    }
    facts = read(tmp_path, **files)
    assert (facts.unquantised_moe, facts.draft_moe_backend) == (("triton", "aiter"), ("V1",))


STAGE = """
    class ModelConfig:
        def _verify_quantization(self):
            if self.quantization not in supported_quantization:
                ACTION
    """
LOADER = """
    def get_quant_config(model_config):
        raise ValueError(f"Cannot find the config file for {model_config.quantization}")
    """
CLAIMS = """
    class GPTQConfig(Config):
        @classmethod
        def get_config_filenames(cls):
            return ["quantize_config.json"]

        @classmethod
        def override_quantization_method(cls, hf_quant_cfg, user_quant):
            if hf_quant_cfg.get("quant_method") == "odd-gptq":
                return "gptq"
    """


def test_names_that_a_method_claims(tmp_path: Path) -> None:
    home = "model_executor/layers/quantization/gptq.py"
    files = {home: CLAIMS, "config/model.py": STAGE.replace("ACTION", "raise ValueError")}
    assert read(tmp_path, **files).overridden == ("gptq", "odd-gptq", "quant_method")
    assert read(tmp_path, **{"config/model.py": STAGE.replace("ACTION", "pass")}).overridden is None


def test_files_that_a_quantisation_needs(tmp_path: Path) -> None:
    files = {"model_executor/layers/quantization/gptq.py": CLAIMS}
    assert read(tmp_path, **files).config_files is None
    files["model_executor/model_loader/weight_utils.py"] = LOADER
    assert read(tmp_path, **files).config_files == {"gptq": ("quantize_config.json",)}
    files["config/quantization.py"] = '_ONLINE_SHORTHANDS = {"gptq": 1}'
    assert read(tmp_path, **files).config_files == {}
