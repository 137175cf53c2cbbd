"""WGT020: a whole model's checkpoint is without its output head."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.engines import Engine
from specfix.errors import known
from specfix.facts.decoder import BuiltModel

HEAD = "lm_head"
KEY = "tie_word_embeddings"


@rule(
    "WGT020",
    "model-head-missing",
    severity="error",
    evidence=["vllm/model_executor/model_loader/default_loader.py"],
    requires=["WGT016"],
)
def model_head_missing(
    engine: Engine, built_target: BuiltModel, built_draft_model: BuiltModel | None = None
) -> Iterator[Finding]:
    """The target, or a draft model, does not tie its output head to its embeddings, and has none in its weights."""
    checked = engine.eagle.checks_heads
    for one in filter(None, (built_target, built_draft_model)):
        # what else stands beside the model may be the head by another name
        if HEAD not in one.built.beside or any(HEAD in name or not name.startswith("model.") for name in one.tensors):
            continue
        config = one.model.config
        if known(config.value(KEY), f"{KEY} in {config.file}"):
            continue
        if checked:
            end = "what nothing was loaded into ends the start"
        elif one.side == "target":
            end = "that is not checked, and it answers with what was in memory"
        else:
            end = "that is not checked, and it drafts with what was in memory"
        yield Finding(
            f"{engine} builds the {one.side} as {one.architecture} with an output head of its own ({KEY} is false"
            f"{config.source(KEY)}), and its weights hold no {HEAD}.weight: {end}.",
            one.model.at(KEY),
            "load" if checked else "silent",
            repair=Repair(
                "manual", f"take the whole checkpoint, or set {KEY} true where the model was trained with tied ones", ()
            ),
        )
