"""What token ids mean on both sides, and what a release does where the two differ.

Read in ``SpeculativeConfig.verify_equal_vocab_size_if_draft_model`` and v1/spec_decode/draft_model.py: a draft model of
its own is fed the target's ids as they are, and the ids that it drafts are taken for the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from specfix.deployment import Draft, Model, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.record import record

TOKENIZER = "tokenizer.json"
TOLD = 100  # characters of a token that is told: some are no words
SIZES = ("target_model_config.get_vocab_size()", "draft_model_config.get_vocab_size()")
# how the families of tokenizers write a space at the start of a word
SPACES = str.maketrans({"\u0120": " ", "\u2581": " "})


@record(frozen=True)
class Vocabularies:
    """The two maps of ids to tokens, compared. ``shared``: ids that both give a token; ``differing``: those of them
    with another token on each side; ``example``: the first such id, with the starts of the target's token and the
    draft's."""

    shared: int
    differing: int
    example: tuple[int, str, str] | None = None

    @property
    def alike(self) -> bool:
        """Whether the two are one vocabulary, up to special tokens that the chat formats of its models name anew."""
        return self.differing * 100 <= self.shared

    @property
    def foreign(self) -> bool:
        """Whether most ids mean something else on the other side."""
        return self.differing * 2 > self.shared


def vocabularies(target: Target, draft: Draft) -> Vocabularies:
    """From the tokenizer.json of both; MissingFact where one is not at hand or is not understood."""
    paths = target.tokenizer_path(TOKENIZER), draft.tokenizer_path(TOKENIZER)
    ours = token_map(target)
    if same_bytes(*paths):
        return Vocabularies(len(ours), 0)
    theirs = token_map(draft)
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        raise MissingFact(f"ids that {TOKENIZER} of both sides give a token")
    differing = [i for i in shared if ours[i] != theirs[i] and spelled(ours[i]) != spelled(theirs[i])]
    if not differing:
        return Vocabularies(len(shared), 0)
    first = differing[0]
    return Vocabularies(len(shared), len(differing), (first, ours[first][:TOLD], theirs[first][:TOLD]))


def same_bytes(one: Path, other: Path) -> bool:
    """Whether two files are alike, byte by byte; False where one cannot be read, which its reader tells better."""
    from filecmp import cmp

    try:
        return cmp(one, other, shallow=False)
    except OSError:
        return False


def spelled(token: str) -> str:
    """The token with a space written as one."""
    return token.translate(SPACES)


def token_map(model: Model) -> dict[int, str]:
    """Ids to tokens, those added to the model's vocabulary included."""
    content = model.tokenizer(TOKENIZER)
    inner = content.get("model")
    vocabulary = inner.get("vocab") if isinstance(inner, Mapping) else None
    found: dict[int, str] = {}
    if isinstance(vocabulary, Mapping):  # BPE, WordPiece, WordLevel
        found = {number: token for token, number in vocabulary.items() if isinstance(number, int)}
    elif isinstance(vocabulary, list):  # Unigram: pairs of a token and its score
        pairs = [entry for entry in vocabulary if isinstance(entry, list) and entry and isinstance(entry[0], str)]
        found = {number: entry[0] for number, entry in enumerate(pairs)} if len(pairs) == len(vocabulary) else {}
    if not found:
        raise MissingFact(f"a vocabulary in {TOKENIZER} of {model.reference}")
    added = content.get("added_tokens")
    for entry in added if isinstance(added, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int) and isinstance(entry.get("content"), str):
            found[entry["id"]] = entry["content"]
    return found


@record(frozen=True)
class VocabularySizes:
    """vocab_size of both sides, as the release compares them: whether it ends the start over this pair, and the key of
    the speculative config that allows for two vocabularies, None where there is none. ``mapped``: that key is set."""

    target: int
    draft: int
    refused: bool
    way_out: str | None
    mapped: bool


def vocabulary_sizes(target: Target, draft: Draft, serving: Serving, method: str, engine: Engine) -> VocabularySizes:
    """Of a draft model of its own."""
    if method != "draft_model":
        raise NotApplicable(f"a {method} draft has its target's vocabulary")
    refusals = known(engine.speculative.refusals, f"what {engine} refuses")
    compared = [step for step in refusals if SIZES[0] in step.names and SIZES[1] in step.names]
    if not compared:
        raise NotApplicable(f"{engine} has no draft models of their own")
    sizes = target.integer("vocab_size"), draft.integer("vocab_size")
    values = {"method": method, **dict(zip(SIZES, sizes, strict=True)), **speculative_values(serving, engine)}
    holds = [step.holds(values) for step in compared]
    if None in holds:
        raise MissingFact(f"whether {engine} refuses drafts with another vocab_size")
    keys = engine.speculative.keys or {}
    unequal = {**values, SIZES[0]: 2, SIZES[1]: 1}
    ways = (key for step in compared for key in step.names if key in keys and keys[key].type == "bool")
    way = next((key for key in ways if all(s.holds({**unequal, key: True}) is False for s in compared)), None)
    mapped = way is not None and bool(values[way])
    return VocabularySizes(*sizes, any(holds), way, mapped)


def allows_two(way: str, serving: Serving, method: str, engine: Engine) -> bool:
    """Whether nothing else that the user asks for ends the start once ``way`` is set."""
    values = {"method": method, **speculative_values(serving, engine), way: True}
    stated = [step for step in engine.speculative.refusals or () if way in step.names and SIZES[0] not in step.names]
    return all(step.holds(values) is False for step in stated)


def speculative_values(serving: Serving, engine: Engine) -> dict[str, Any]:
    """The keys of the speculative config with the values that they will have; what the engine fills in is left out."""
    keys = engine.speculative.keys or {}
    defaults = {name: key.default for name, key in keys.items() if key.default is not None}
    return {**defaults, **serving.speculative}
