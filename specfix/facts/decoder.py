"""A whole model of plain layers: its checkpoint beside what the release builds of its config."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from specfix.deployment import Draft, Model, Serving, Target
from specfix.deployment.model import Tensor
from specfix.engines import Engine
from specfix.engines.facts.drafting import Decoder
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import first_known
from specfix.facts.quantisation import stated
from specfix.facts.weights import IGNORED, PLAIN
from specfix.record import record

LAYER = re.compile(r"model\.layers\.(\d{1,6})\.(\w+)")
# formats of a whole checkpoint in safetensors; others load no weights, or in ways of their own
FORMATS = frozenset({None, "auto", "hf", "safetensors"})
Side = Literal["target", "draft"]


@record(frozen=True)
class BuiltModel:
    """A target, or a draft model of its own, in a class that the release builds of plain layers. Not quantised."""

    model: Model
    side: Side
    architecture: str
    built: Decoder

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """The checkpoint's. MissingFact where it has no header, or is not of plain numbers under the usual names."""
        tensors = self.model.tensors
        if tensors is None:
            raise MissingFact(f"a safetensors header of {self.model.reference}")
        if "model.embed_tokens.weight" not in tensors or "model.layers.0.input_layernorm.weight" not in tensors:
            raise MissingFact(f"weights under the usual names in the safetensors header of {self.model.reference}")
        if any(tensor.dtype not in PLAIN for name, tensor in tensors.items() if name.endswith("_proj.weight")):
            raise MissingFact(f"unpacked weights in the safetensors header of {self.model.reference}")
        return tensors

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers that the checkpoint holds, ascending."""
        return tuple(sorted({int(match[1]) for match in map(LAYER.match, self.tensors) if match}))

    def size(self, name: str, axis: int) -> int | None:
        """One side of a matrix; ``*`` is the layer's number. None where it is absent, or is not the same in all
        layers."""
        if "*" in name:
            found = {self._side(name.replace("*", str(layer)), axis) for layer in self.layers}
            return found.pop() if len(found) == 1 else None
        return self._side(name, axis)

    def _side(self, name: str, axis: int) -> int | None:
        tensor = self.tensors.get(name)
        return tensor.shape[axis] if tensor and len(tensor.shape) > axis else None

    def heads(self) -> tuple[int, int, int]:
        """Query heads, key heads, and the size of one."""
        heads = self.model.integer("num_attention_heads")
        size = self.model.number("head_dim") if self.built.head_dim else None
        if not heads:
            raise MissingFact(f"a number of heads in {self.model.config.file}")
        return (
            heads,
            self.model.number("num_key_value_heads") or heads,
            size or self.model.integer("hidden_size") // heads,
        )

    def has_place(self, name: str) -> bool:
        """Whether the class may take, or pass over, a tensor of this name."""
        if name.endswith("_proj.weight_scale"):  # nothing is quantised
            return False
        home, _, rest = name.partition(".")
        if name.endswith(".bias") or any(word in name for word in IGNORED):
            return True
        if home != "model":
            return not self.built.beside or home in self.built.beside
        match = LAYER.match(name)
        if match:
            return match[2] in self.built.layer_parts
        return rest.partition(".")[0] in self.built.parts


def built_target(target: Target, serving: Serving, engine: Engine) -> BuiltModel:
    """The target so; NotApplicable where it is quantised, MissingFact for a class that is not read."""
    return of_model(target, "target", serving, engine)


def built_draft_model(draft: Draft, serving: Serving, method: str, engine: Engine) -> BuiltModel:
    """A ``draft_model`` so."""
    if method != "draft_model":
        raise NotApplicable(f"a {method} draft is no model of its own")
    return of_model(draft, "draft", serving, engine)


def of_model(model: Model, side: Side, serving: Serving, engine: Engine) -> BuiltModel:
    quantised = serving.flag("quantization") if side == "target" else serving.speculative.get("quantization")
    if quantised is not None or serving.flag("quantization") is not None or stated(model, engine) is not None:
        raise NotApplicable(f"the {side} is quantised")
    if serving.flag("load_format") not in FORMATS or serving.flag("model_impl") not in {None, "auto", "vllm"}:
        raise NotApplicable("the weights are loaded in another way")
    if len(model.config.levels) > 1:
        raise MissingFact(f"how {engine} builds the language model inside {model.config.file}")
    name = first_known(model.architectures, engine)
    what = f"what {engine} builds of {name or 'a model without architectures'}"
    return BuiltModel(model, side, str(name), known(engine.eagle.decoders.get(known(name, what)), what))
