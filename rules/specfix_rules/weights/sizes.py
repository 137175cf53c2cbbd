"""WGT010: a size in the config is not that of the weights."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.errors import MissingFact
from specfix.facts.weights import DraftHead


@rule(
    "WGT010",
    "sizes-against-weights",
    severity="error",
    evidence=["vllm/model_executor/layers/vocab_parallel_embedding.py", "vllm/model_executor/layers/linear.py"],
)
def sizes(draft: Draft, method: str, draft_head: DraftHead) -> Iterator[Finding]:
    """hidden_size, intermediate_size, vocab_size or draft_vocab_size is not what the weights have."""
    seen = False
    for key, name, held in held_sizes(draft_head, method):
        seen = True
        built = draft_head.draft_vocabulary if key == "draft_vocab_size" else draft_head.number(key)
        mapped = draft_head.named("d2t")
        if built in (None, held) or (key == "draft_vocab_size" and mapped and mapped[1].shape == (held,)):
            continue  # WGT004 speaks of a config that states another number than weights and map
        cut = key == "intermediate_size" and held > built
        end = "only the first of them are loaded, and what the draft says is wrong" if cut else "they do not load"
        yield Finding(
            f"{name} has {held}, and {key} is {built}: {end}.",
            draft.at(key),
            "silent" if cut else "load",
            repair=repair(draft, draft_head, key, held),
        )
        return  # weights of another model differ in all
    yield from inputs(draft, draft_head)
    if not seen:
        raise MissingFact(f"unpacked weights in the safetensors header of {draft.reference}")


def inputs(draft: Draft, head: DraftHead) -> Iterator[Finding]:
    """What the first layer's attention reads: hidden states, and in EAGLE3 the embedding beside them."""
    query = head.plain("layers.0.self_attn.q_proj.weight")
    if query is None or head.number("kv_lora_rank"):  # latent attention reads otherwise
        return
    read = (2 if head.built.doubled else 1) * head.hidden
    if query.shape[1] != read:
        what = f"twice the hidden_size {head.hidden}" if head.built.doubled else "its hidden_size"
        yield Finding(
            f"The first layer's q_proj.weight takes {query.shape[1]} inputs, and a {head.architecture} gives it "
            f"{read}, {what}: they do not load.",
            draft.at("hidden_size"),
            "load",
            repair=Repair("manual", "take the config.json that was published with these weights", ("draft_config",)),
        )


def held_sizes(head: DraftHead, method: str) -> Iterator[tuple[str, str, int]]:
    """(key of the config, tensor, its size) of what a plain checkpoint tells."""
    first = next(iter(head.layer_indices()), 0)
    fc, gate, down = (
        head.plain(name)
        for name in ("fc.weight", f"layers.{first}.mlp.gate_proj.weight", f"layers.{first}.mlp.down_proj.weight")
    )
    if fc:
        yield "hidden_size", "fc.weight", fc.shape[0]
    if gate:
        yield "hidden_size", "gate_proj.weight", gate.shape[1]
        yield "intermediate_size", "gate_proj.weight", gate.shape[0]
    if down:
        yield "intermediate_size", "down_proj.weight", down.shape[1]
    embed, own = head.plain("embed_tokens.weight"), head.plain("lm_head.weight")
    if embed and (method != "eagle" or "embed_tokens" in head.built.notes_own):
        yield "vocab_size", "embed_tokens.weight", embed.shape[0]
        yield "hidden_size", "embed_tokens.weight", embed.shape[1]
    if own and "lm_head" in head.built.parts:
        yield "draft_vocab_size", "lm_head.weight", own.shape[0]
        yield "hidden_size", "lm_head.weight", own.shape[1]


def repair(draft: Draft, head: DraftHead, key: str, held: int) -> Repair:
    """The value of the weights, where it decides nothing else."""
    if key == "intermediate_size" and {value for name, _, value in held_sizes(head, "") if name == key} == {held}:
        change: Change = ("draft_config", draft.at(key).pointer, held)
        return Repair("safe", f"{key} {held}, as the weights have it", ("draft_config",), (change,))
    return Repair("manual", "take the config.json that was published with these weights", ("draft_config",))
