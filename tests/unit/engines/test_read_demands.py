"""What the making of a model asks of its config, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.readers.traits import read_traits
from specfix.engines.source.tree import SourceTree

LLAMA = """
    class LlamaMLP(nn.Module):
        def __init__(self, hidden_size, hidden_act):
            if hidden_act != "silu":
                raise ValueError

    class LlamaAttention(nn.Module):
        def __init__(self, config):
            if layer_types := getattr(config, "layer_types", None):
                is_sliding = layer_types[0] == "sliding_attention"
                if is_sliding:
                    sliding_window = config.sliding_window

    class LlamaDecoderLayer(nn.Module):
        def __init__(self, vllm_config, config=None, attn_layer_type: type = LlamaAttention):
            self.self_attn = attn_layer_type(config)
            self.mlp = LlamaMLP(config.hidden_size, config.hidden_act)

    class Llama(nn.Module):
        def __init__(self, *, vllm_config, layer_type: type = LlamaDecoderLayer):
            self.layers = [layer_type(vllm_config) for _ in range(vllm_config.config.num_hidden_layers)]

    class Free(nn.Module):
        def __init__(self, *, vllm_config):
            self.norm = RMSNorm(getattr(config, "hidden_size", 8), eps=config.rms_norm_eps)
            if hidden_act != "silu":
                logger.warning("slow")
    """


def test_what_classes_ask(tmp_path: Path) -> None:
    (tmp_path / "model_executor/models").mkdir(parents=True)
    (tmp_path / "model_executor/models/llama.py").write_text(dedent(LLAMA))
    names = {name: f"llama:{name}" for name in ("Llama", "Free", "Other")}
    facts = read_traits(SourceTree(tmp_path), {}, MethodFacts((), names, drafts=("Free",)), ("Llama",))
    assert facts.silu_only == facts.window_read == ("Llama",)
    assert facts.keys_read == {"Free": ("rms_norm_eps",)}
