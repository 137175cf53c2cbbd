"""VOC002: the draft model's tokenizer gives the ids another meaning than the target's."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.facts.tokens import Vocabularies, VocabularySizes, allows_two

KEY = "vocab_size"


@rule(
    "VOC002",
    "tokenizers-differ",
    severity="error",
    evidence=["sgl-project/sglang#23838", "ggml-org/llama.cpp#3812", "vllm/v1/spec_decode/draft_model.py"],
    requires=["VOC001"],
)
def tokenizers_differ(
    target: Target,
    draft: Draft,
    serving: Serving,
    method: str,
    engine: Engine,
    vocabulary_sizes: VocabularySizes,
    vocabularies: Vocabularies,
) -> Iterator[Finding]:
    """Ids go from one side to the other as they are, whatever they stand for."""
    if vocabulary_sizes.mapped or vocabularies.alike or vocabularies.example is None:
        return
    number, ours, theirs = vocabularies.example
    way = vocabulary_sizes.way_out
    possible = way is not None and allows_two(way, serving, method, engine)
    end = (
        "what it drafts is noise, and next to nothing is accepted"
        if vocabularies.foreign
        else "fewer drafts are accepted"
    )
    yield Finding(
        f"Of the {vocabularies.shared} ids that both tokenizers have, {vocabularies.differing} mean another token on "
        f"the other side: {number} is {ours!r} for the target and {theirs!r} for the draft. The draft reads the "
        f"target's ids as its own: {end}.",
        draft.at(KEY),
        "silent",
        related=(target.at(KEY),),
        repair=Repair(
            "unsafe",
            f"set {way} in the speculative config: tokens are translated by their text. How much is accepted then only "
            "a run shows",
            ("speculative_config",),
            (("speculative_config", way, True),),
        )
        if possible and way is not None
        else Repair("manual", "take a draft of the target's own family, with the same tokenizer"),
        severity="error" if vocabularies.foreign else "warning",
    )
