"""VOC001: the draft model's vocab_size is not the target's, and the release ends the start over it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.facts.tokens import Vocabularies, VocabularySizes, allows_two

KEY = "vocab_size"


@rule(
    "VOC001",
    "vocabulary-size",
    severity="error",
    evidence=["vllm-project/vllm#42775", "vllm-project/vllm#7252", "vllm-project/vllm#13849"],
)
def vocabulary_size(
    target: Target,
    draft: Draft,
    serving: Serving,
    method: str,
    engine: Engine,
    vocabulary_sizes: VocabularySizes,
    runners: tuple[str, ...],
    vocabularies: Vocabularies | None = None,
) -> Iterator[Finding]:
    """The release wants both sizes to be equal, padding included."""
    sizes = vocabulary_sizes
    if not sizes.refused:
        return
    if vocabularies is None:
        tokens = ""
    elif vocabularies.alike:
        tokens = " The tokenizers agree: the sizes differ by padding, or by tokens at the end, alone."
    else:
        tokens = f" The tokenizers differ, too: {told(vocabularies)}."
    yield Finding(
        f"The draft has a vocab_size of {sizes.draft}, the target one of {sizes.target}: {engine} refuses a draft "
        f"model whose vocab_size is not the target's, padding included.{tokens}",
        draft.at(KEY),
        "config",
        related=(target.at(KEY),),
        repair=repair(sizes, vocabularies, serving, method, engine, runners),
    )


def told(vocabularies: Vocabularies) -> str:
    """How far they differ."""
    text = f"{vocabularies.differing} of the {vocabularies.shared} ids that both have mean another token"
    if vocabularies.example is None:
        return text
    number, ours, theirs = vocabularies.example
    return f"{text}; {number} is {ours!r} for the target and {theirs!r} for the draft"


def repair(
    sizes: VocabularySizes,
    vocabularies: Vocabularies | None,
    serving: Serving,
    method: str,
    engine: Engine,
    runners: tuple[str, ...],
) -> Repair:
    """The key that lets tokens be translated, where the release has one; else other weights."""
    way = sizes.way_out
    if way is not None and allows_two(way, serving, method, engine):
        alike = vocabularies is not None and vocabularies.alike
        translates = "V2" not in runners or any(
            way in name for step in engine.runner.unsupported for name in step.names
        )
        return Repair(
            "safe" if alike and translates else "unsafe",
            f"set {way} in the speculative config: tokens are translated between the two tokenizers by their text"
            + ("" if alike else ", and those of which the other side has none are never drafted"),
            ("speculative_config",),
            (("speculative_config", way, True),),
        )
    padded = max(sizes.target, sizes.draft)
    return Repair(
        "manual",
        f"pad the embedding and the output head of the {'draft' if sizes.draft < padded else 'target'} with zeros to "
        f"{padded} rows, and state that vocab_size; or take a draft of that size, or an EAGLE3 or MTP draft",
    )
