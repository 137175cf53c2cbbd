"""MTH014: a speculators config whose layer config leaves out what layers are made by."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.engines.drafts import Refused, Unknown, converted
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses, first_known

BLOCK = "transformer_layer_config"
POSITIONS = "max_position_embeddings"


@rule(
    "MTH014",
    "layer-config-incomplete",
    severity="error",
    evidence=["vllm/transformers_utils/configs/speculators/base.py", "vllm/model_executor/models/llama_eagle3.py"],
    requires=["MTH003", "MTH009"],
)
def layer_config_incomplete(draft: Draft, draft_classes: DraftClasses, engine: Engine) -> Iterator[Finding]:
    """A speculators draft lacks a key of its transformer_layer_config that its class cannot be made without."""
    if not draft.speculators:
        raise NotApplicable("no config of the speculators library")
    name = first_known(draft_classes.built, engine)
    what = f"the keys that {name} of {engine} reads"
    keys = known((engine.traits.keys_read or {}).get(known(name, "the draft's class")), what)
    try:
        made = converted(engine.speculators, draft.config.values)
    except (Refused, Unknown) as unclear:
        raise MissingFact(f"what {engine} makes of the config: {unclear}") from None
    lacking = [key for key in keys if made.get(key) is None]
    if POSITIONS in made and made[POSITIONS] is None:  # left out it has a default; null is no length of a table
        lacking.append(POSITIONS)
    if not lacking:
        return
    place = BLOCK if draft.config.stated(BLOCK) else "speculators_model_type"
    yield Finding(
        f"The draft's {BLOCK} has no {', '.join(lacking)}. {engine} makes its config of that alone, without the "
        f"defaults of any model's class, and {name} dies of the missing key.",
        draft.config.at(f"/{place}"),
        "load",
        repair=Repair("manual", f"write {', '.join(lacking)} into {BLOCK}, as the weights have it", ("draft_config",)),
    )
