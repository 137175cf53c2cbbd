"""A drafting head as its checkpoint has it, beside what the release builds of its config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from specfix.deployment import Draft, Target
from specfix.deployment.expected import is_count
from specfix.deployment.model import Tensor
from specfix.engines import Engine
from specfix.engines.drafts import Refused, Unknown, converted
from specfix.engines.facts.drafting import Borrowing, Head
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses, first_known
from specfix.facts.aux import AUX_METHODS, FLAG, AuxPlan
from specfix.record import record

HEADS = AUX_METHODS | {"eagle"}
# one element a number; what is quantised may pack several into one
PLAIN = frozenset({"F64", "F32", "F16", "BF16"})
LAYER = re.compile(r"layers\.(\d+)\.")
NUMBER = re.compile(r"\.\d+(?=\.|$)")
# names that have rules of their own, that quantisation brings, or that AutoWeightsLoader passes over
IGNORED = (
    *("d2t", "scale", "zero_point", "qzeros", "g_idx"),
    "rotary_emb.inv_freq",
    "rotary_emb.cos_cached",
    "rotary_emb.sin_cached",
    "rotary_pos_emb.inv_freq",
)
ANYTHING = "**"
STATE_NORMS = "fc_norm"  # a part, and the key that asks for it
Tied = Literal["target's", "own", "nothing"]


@record(frozen=True)
class DraftHead:
    """A head of EAGLE, EAGLE3, DFlash or DSpark.

    ``architecture``: the class that the release makes it of, and ``built`` what that builds. ``values``: its config as
    the class sees it.
    """

    architecture: str
    built: Head
    draft: Draft
    values: Mapping[str, Any]

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """The checkpoint's, by the names under which the class looks for them. MissingFact without headers."""
        if self.draft.tensors is None:
            raise MissingFact(f"a safetensors header of {self.draft.reference}")
        return {self._renamed(name): tensor for name, tensor in self.draft.tensors.items()}

    @cached_property
    def original(self) -> Mapping[str, str]:
        """The name in the checkpoint by that of ``tensors``."""
        return {self._renamed(name): name for name in self.draft.tensors or ()}

    def _renamed(self, name: str) -> str:
        for pattern, new in self.built.patterns.items():
            name = re.sub(pattern, new, name)
        for old, new in self.built.renames.items():
            if old != "d2t":
                name = name.replace(old, new)
        for old, new in self.built.prefixes.items():
            if name.startswith(old):
                name = new + name.removeprefix(old)
        return name

    def followed(self) -> None:
        """MissingFact where names are changed in ways that are not read: one may have a place, or fill a part, all the
        same."""
        if self.built.renames_unread:
            raise MissingFact(f"which names {self.architecture} gives to what it loads")

    def plain(self, name: str, dimensions: int = 2) -> Tensor | None:
        """A tensor that is there with one element a number; None where it is not, or is packed."""
        found = self.tensors.get(name)
        return found if found and found.dtype in PLAIN and len(found.shape) == dimensions else None

    def named(self, word: str) -> tuple[str, Tensor] | None:
        """The first tensor with ``word`` in its name, by its name in the checkpoint."""
        if self.draft.tensors is None:
            raise MissingFact(f"a safetensors header of {self.draft.reference}")
        return next(((name, tensor) for name, tensor in self.draft.tensors.items() if word in name), None)

    def number(self, key: str) -> int | None:
        """A count of the config; None where there is none."""
        value = self.values.get(key)
        if value is None and not self.draft.speculators:
            value = self.draft.number(key)
        if value is None:
            return None
        if not is_count(value):
            raise MissingFact(f"a whole number as {key} in {self.draft.config.file}")
        return int(value)

    def needed(self, key: str) -> int:
        return known(self.number(key), f"{key} in {self.draft.config.file}")

    def flag(self, key: str) -> bool:
        """Whether a switch of the config is on; in ``eagle_config`` it counts before the top level."""
        block = self.values.get("eagle_config")
        if isinstance(block, Mapping) and key in block and key.startswith("norm_before_fc"):
            return bool(block[key])
        value = self.values.get(key)
        if value is None and not self.draft.speculators:
            value = self.draft.config.value(key)
        return bool(value)

    @property
    def hidden(self) -> int:
        return self.needed("hidden_size")

    @property
    def vocabulary(self) -> int:
        return self.needed("vocab_size")

    @property
    def draft_vocabulary(self) -> int:
        """Rows of the output head that is built."""
        return self.number("draft_vocab_size") or self.vocabulary

    @property
    def layers(self) -> int:
        """Layers that are built."""
        what = f"how many layers {self.architecture} builds"
        return 1 if known(self.built.layers, what) == "one" else self.needed("num_hidden_layers")

    def maps(self, target: Target) -> bool:
        """Whether the class has a place for ``d2t`` beside this target."""
        size, whole = self.draft_vocabulary, target.integer("vocab_size")
        return {"always": True, "other size": size != whole, "smaller": size < whole}.get(
            self.built.mapping or "", False
        )

    def has_place(self, name: str) -> bool:
        """Whether the class may take, or pass over, a tensor of this name (as in ``tensors``). MissingFact where that
        cannot be told."""
        if self.built.passes_unknown or has_any((*self.built.skipped, *IGNORED), name):
            return True
        if name.startswith(f"{STATE_NORMS}.") and STATE_NORMS in self.built.keys and not self.flag(STATE_NORMS):
            return False
        path, _, last = name.rpartition(".")
        path = NUMBER.sub(".*", path)
        if last == "bias" and (biased := self._biased(path)) is not None:
            return biased or self.built.passes_bias
        whole = NUMBER.sub(".*", name)
        found = any(
            whole.startswith(part.removesuffix(ANYTHING)) if part.endswith(ANYTHING) else part in (path, whole)
            for part in self.built.parts
        )
        if not found:
            self.followed()
        return found

    def passed_over(self) -> list[str]:
        """Biases of the checkpoint that no layer has, and that the class passes over."""
        return [
            name
            for name in self.tensors
            if self.built.passes_bias
            and name.endswith(".bias")
            and self._biased(NUMBER.sub(".*", name.removesuffix(".bias"))) is False
        ]

    def _biased(self, path: str) -> bool | None:
        """Whether the layer at ``path`` has a bias; None where it is not read."""
        if path == "fc":
            return self.built.fc_bias
        if re.fullmatch(r"layers\.\*\.self_attn\.[qkv]_proj", path):
            how = self.built.qkv_bias
            return None if how is None else how == "attention_bias" and self.flag(how)
        for part, keys in self.built.biases.items():
            if f"{path}.".startswith(f"layers.*.{part}."):
                return any(map(self.flag, keys))
        return None

    def promised_biases(self) -> Iterator[tuple[str, str]]:
        """(part of a layer, key of the config) of the biases that the config asks the class for."""
        asking = {"self_attn.q_proj": ("attention_bias",)} if self.built.qkv_bias == "attention_bias" else {}
        for part, keys in (asking | self.built.biases).items():
            key = next(filter(self.flag, keys), None)
            if key is not None:
                yield f"{part}.down_proj" if part == "mlp" else part, key

    def layer_indices(self) -> list[int]:
        """Numbers of the layers that the checkpoint holds, ascending. What is passed over makes no layer."""
        passed = (*self.built.skipped, *IGNORED)
        found = {int(match[1]) for name in self.tensors if (match := LAYER.match(name)) and not has_any(passed, name)}
        return sorted(found)


def has_any(words: Iterable[str], name: str) -> bool:
    return any(word in name for word in words)


def draft_head(draft: Draft, method: str, engine: Engine, draft_classes: DraftClasses) -> DraftHead:
    """The head; NotApplicable for other methods, MissingFact for a class that is not read."""
    if method not in HEADS:
        raise NotApplicable(f"a {method} draft is no head on the target's states")
    if draft_classes.refused is not None:
        raise NotApplicable(f"{engine} refuses the draft's config")
    name = first_known(draft_classes.built, engine)
    what = f"what {engine} builds of a {name or method} draft"
    built = known(engine.eagle.heads.get(known(name, what)), what)
    return DraftHead(str(name), built, draft, config_of(draft, engine))


def config_of(draft: Draft, engine: Engine) -> Mapping[str, Any]:
    """The config as the draft's class sees it, without the defaults of its config class."""
    if not draft.speculators:
        _, values = draft.config.levels[0]
        return values
    try:
        return converted(engine.speculators, draft.config.values)
    except Refused as refused:
        raise NotApplicable(f"{engine} refuses the draft's config: {refused}") from None
    except Unknown as unknown:
        raise MissingFact(f"what {engine} makes of {draft.config.file}: it hangs on {unknown}") from None


def borrowing_of(engine: Engine, runner: str, method: str) -> Borrowing:
    """What the runner gives a draft of this method of the target's own."""
    found = engine.eagle.borrowing
    what = f"what the {runner} runner of {engine} gives a {method} draft of the target's"
    return known(found.get(f"{runner} {method}") or found.get(runner), what)


def output_head(runner: str, target: Target, head: DraftHead, method: str, engine: Engine) -> Tied:
    """Whose output head the draft ends up with; "nothing": memory that nobody filled."""
    how = borrowing_of(engine, runner, method).lm_head
    rule = how.get(method, how.get("", ""))
    own = head.named("lm_head") is not None
    same = head.draft_vocabulary == target.integer("vocab_size") and head.hidden == target.integer("hidden_size")
    borrowed = {
        "missing": not own,
        "always": True,
        "never": False,
        "same shape": same,
        "unmapped": not head.maps(target),
    }.get(rule)
    if known(borrowed, f"when {engine} gives a {method} draft the target's output head"):
        return "target's"
    return "own" if own else "nothing"


def embeddings(runner: str, target: Target, head: DraftHead, method: str, engine: Engine) -> Tied:
    """Whose embeddings the draft ends up with."""
    rule = borrowing_of(engine, runner, method).embeddings
    own = head.named("embed_tokens") is not None
    width = head.hidden == target.integer("hidden_size")
    borrowed = {
        "missing": not own,
        "missing, same width": not own and width,
        "same shape": width and head.vocabulary == target.integer("vocab_size"),
        "always": True,
    }.get(known(rule, f"when {engine} gives a {method} draft the target's embeddings"))
    if borrowed:
        return "target's"
    return "own" if own else "nothing"


def fc_inputs(head: DraftHead, plan: AuxPlan | None) -> tuple[int, str]:
    """Inputs of the ``fc`` that is built, and what they are made of, in words."""
    if not head.built.fc_ids:  # EAGLE: the embedding and one hidden state
        states = head.built.fc_states
        if len(states) == 1 and states[0].isdigit():
            return int(states[0]) * head.hidden, f"{states[0]} x {head.hidden}"
        raise MissingFact(f"how wide the fc of {head.architecture} is")
    width = head.number("target_hidden_size") or head.hidden
    count = id_count(head, plan)
    return count * width, f"{count} layers of {width}"


def id_count(head: DraftHead, plan: AuxPlan | None) -> int:
    """How many states the ``fc`` of a parallel drafter is built for."""
    if head.built.fc_ids == ("*",):
        if plan is None:
            raise MissingFact("which layers the draft reads")
        return len(plan.ids) if plan.place is not None else head.needed("num_hidden_layers")
    blocks = [block for key in ("dflash_config", "eagle_config") for block in [head.values.get(key)] if block]
    for key in head.built.fc_ids:
        for block in blocks:
            if isinstance(block, Mapping) and isinstance(block.get(key), list):
                return len(block[key])
    return head.needed("num_hidden_layers")


def expected(head: DraftHead) -> Iterator[str]:
    """Paths of what the class surely builds, and what nothing but the checkpoint can fill."""
    parts = set(head.built.parts)
    for name in ("fc", "norm", "hidden_norm"):
        states = head.built.doubled or bool(head.built.fc_ids)
        if name in parts and (states or name == "fc") and not (name == "fc" and reads_no_states(head)):
            yield name
    if "input_norm" in parts and head.flag("norm_before_fc"):
        yield "input_norm"
    if f"{STATE_NORMS}.*" in parts and head.flag(STATE_NORMS):
        yield f"{STATE_NORMS}.0"
    # of these a class builds some under conditions that are not read
    unsure = [part for part, mark in (("mlp", "experts"), ("self_attn", "kv_a_proj")) if any(mark in p for p in parts)]
    for layer in head.layer_indices()[: head.layers]:
        for part in PER_LAYER:
            if f"layers.*.{part}" not in parts or part.startswith(tuple(unsure)):
                continue
            # EAGLE's first layer has no input_layernorm, and EAGLE3's others make no use of their hidden_norm
            if part != ("hidden_norm" if layer else "" if head.built.doubled else "input_layernorm"):
                yield f"layers.{layer}.{part}"


PER_LAYER = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "self_attn.q_norm",
    "self_attn.k_norm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
    "input_layernorm",
    "post_attention_layernorm",
    "hidden_norm",
)
FUSED = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), "qkv_proj"),
    **dict.fromkeys(("gate_proj", "up_proj"), "gate_up_proj"),
}


def reads_no_states(head: DraftHead) -> bool:
    """The config says that no auxiliary states are read: there is no ``fc`` then."""
    blocks = [head.values.get(key) for key in ("eagle_config", "dflash_config")]
    return any(isinstance(block, Mapping) and block.get(FLAG) is False for block in blocks)


def attention(head: DraftHead) -> tuple[int, int, int]:
    """Query heads, key and value heads, and the size of one, as Llama's attention and its kin take them."""
    if head.number("kv_lora_rank") or any("kv_a_proj" in name for name in head.tensors):
        raise NotApplicable("latent attention has no heads of one size")
    heads = head.needed("num_attention_heads")
    size = head.number("head_dim") or head.hidden // max(heads, 1)
    return heads, head.number("num_key_value_heads") or heads, size


def absent(head: DraftHead) -> list[str]:
    """Of ``expected``, what the checkpoint has no tensor for. MissingFact where names are not followed."""
    paths = {name.rpartition(".")[0] for name in head.tensors} | set(head.tensors)
    held = paths | {path.rpartition(".")[0] for path in paths}  # q_proj.weight.scale
    missing = []
    for path in expected(head):
        home, _, last = path.rpartition(".")
        if path not in held and f"{home}.{FUSED.get(last, '')}" not in held:
            missing.append(path)
    if missing:
        head.followed()
    return missing
