"""Pairs of real configs. Nothing but the standard library: an engine's interpreter reads this too.

They come from a corpus, a folder with ``PAIRS.tsv`` (target, draft, method, class, completeness, …) and the configs
under ``target/ORG__NAME/config.json`` and ``draft/NAME/config.json``, and ``BUILTIN_MTP.tsv``, the targets that state
layers for drafting in their own checkpoint. ``configs.jsonl`` holds the values of those that count, so that nobody
needs the corpus: what their makers meant to be served together and published whole, and the real mistakes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CARRIED = Path(__file__).with_name("configs.jsonl")
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length")
INNER = ("thinker_config", "text_config", "llm_config")
LEFT_OUT = 2048  # what most config classes take for a length that the file leaves out
KINDS = {"intended": "good", "draft_model": "good", "REAL-MISTAKE": "mistake"}
# what a corpus calls a method, where vLLM serves such a draft under another name
METHODS = {"p-eagle": "eagle3", "hass(eagle-derived)": "eagle", "dflash2": "dflash"}
MORE = {"p-eagle": {"parallel_drafting": True}}
TOKENS = 3


@dataclass(frozen=True)
class Pair:
    """Two configs, and how they are to be served: bf16, at a length that both allow.

    A target that drafts with its own layers has no draft: the name is empty and the config None."""

    target: str
    draft: str
    method: str
    kind: str
    target_config: Mapping[str, Any] = field(repr=False)
    draft_config: Mapping[str, Any] | None = field(repr=False)

    @property
    def name(self) -> tuple[str, str, str]:
        return self.target, self.draft, self.method

    @property
    def served_method(self) -> str:
        """The method by the engine's name."""
        return METHODS.get(self.method, self.method)

    @property
    def length(self) -> int:
        return min(stated_length(config) for config in (self.target_config, self.draft_config) if config is not None)

    @property
    def speculative(self) -> dict[str, Any]:
        """The speculative config, but for the draft's place."""
        more = MORE.get(self.method, {})
        if self.served_method == "dspark":  # the draft says how many
            return {"method": self.served_method, **more}
        tokens = TOKENS if self.draft else 1  # as many as the target has layers for, and none has fewer
        return {"method": self.served_method, "num_speculative_tokens": tokens, **more}


def stated_length(config: Mapping[str, Any]) -> int:
    for key in INNER:
        if isinstance(config.get(key), dict):
            return stated_length(config[key])
    return next((config[key] for key in LENGTHS if config.get(key)), LEFT_OUT)


def pairs(source: Path = CARRIED) -> list[Pair]:
    """Those that are carried, or those of a corpus."""
    if source.is_dir():
        return [*corpus_pairs(source), *own_layers(source)]
    return [Pair(**json.loads(line)) for line in source.read_text("utf-8").splitlines()]


def carry(found: list[Pair]) -> None:
    CARRIED.write_text("".join(json.dumps(asdict(pair), separators=(",", ":")) + "\n" for pair in found), "utf-8")


def corpus_pairs(corpus: Path) -> Iterator[Pair]:
    with (corpus / "PAIRS.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["completeness"] == "full" and row["class"] in KINDS:
                target, draft = read(corpus, row["target"], "target"), read(corpus, row["draft"], "draft", "target")
                yield Pair(row["target"], row["draft"], row["method"], KINDS[row["class"]], target, draft)


def own_layers(corpus: Path) -> Iterator[Pair]:
    """The targets that state how many layers they have for drafting, and not that they have none."""
    with (corpus / "BUILTIN_MTP.tsv").open(encoding="utf-8", newline="") as file:
        names = [row["target"] for row in csv.DictReader(file, delimiter="\t") if row["value"] != "0"]
    for name in dict.fromkeys(names):
        yield Pair(name, "", "mtp", "good", read(corpus, name, "target"), None)


def read(corpus: Path, name: str, *sides: str) -> dict[str, Any]:
    """The config of a model; a small model may draft for a larger one."""
    files = [corpus / side / name.replace("/", "__") / "config.json" for side in sides]
    found: dict[str, Any] = json.loads(next(filter(Path.is_file, files)).read_text("utf-8-sig"))
    return found
