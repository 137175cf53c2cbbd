"""WGT004: the map from the draft's tokens to the target's is missing, of another size, or has no place."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.facts.weights import DraftHead


@rule(
    "WGT004",
    "vocabulary-map",
    severity="error",
    evidence=["NVIDIA-NeMo/Automodel#2447", "vllm/model_executor/models/llama_eagle3.py"],
)
def vocabulary_map(target: Target, draft: Draft, engine: Engine, draft_head: DraftHead) -> Iterator[Finding]:
    """``d2t`` does not fit draft_vocab_size, or is missing where the draft's vocabulary is reduced."""
    found, rows = draft_head.named("d2t"), draft_head.draft_vocabulary
    at, other = draft.at("draft_vocab_size"), (target.at("vocab_size"),)
    wanted = draft_head.maps(target)
    if found is None:
        # a vocabulary that is only padded otherwise maps each token to itself
        if wanted and rows < min(draft_head.vocabulary, target.integer("vocab_size")):
            refused = "d2t" in draft_head.built.demands
            end = f"{engine} refuses it" if refused else "the draft's tokens are taken for the target's first ones"
            yield Finding(
                f"The draft has {rows} of the target's {draft_head.vocabulary} tokens (draft_vocab_size), and its "
                f"weights hold no d2t to say which: {end}.",
                at,
                "load" if refused else "silent",
                related=other,
                repair=Repair("manual", "take a checkpoint of the draft that holds its d2t", ()),
            )
        return
    name, tensor = found
    if not wanted:
        yield Finding(
            f"The draft's weights hold {name}, and {engine} has no place for it in a {draft_head.architecture} of "
            f"{rows} tokens beside a target of {target.integer('vocab_size')}: the weights do not load.",
            at,
            "load",
            related=other,
            repair=Repair(
                "manual", f"take {name} out of the checkpoint: a draft with all of the target's tokens needs none", ()
            ),
        )
    elif len(tensor.shape) == 1 and tensor.shape[0] != rows:
        yield size_of(name, tensor.shape[0], rows, draft, draft_head)


def size_of(name: str, held: int, rows: int, draft: Draft, head: DraftHead) -> Finding:
    """The map is of another size than the vocabulary that is built."""
    own = head.plain("lm_head.weight")
    agrees = own is not None and own.shape[0] == held
    summary = f"draft_vocab_size {held}, as {name} and lm_head.weight have it"
    repair = Repair("safe", summary, ("draft_config",), (("draft_config", draft.at("draft_vocab_size").pointer, held),))
    return Finding(
        f"{name} maps {held} tokens, and the config states {rows} (draft_vocab_size): the weights do not load.",
        draft.at("draft_vocab_size"),
        "load",
        repair=repair if agrees else Repair("manual", "take the config.json that was published with these weights", ()),
    )
