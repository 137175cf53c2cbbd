"""MTH005: a draft with multi-head latent attention that the release takes for one without."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses

MLA_MODULES = "deepseek"  # the modules of the release whose attention is MLA where the config's type says so
RANK = "kv_lora_rank"


@rule(
    "MTH005",
    "draft-attention-not-mla",
    severity="error",
    evidence=["vllm-project/vllm#45764", "vllm/transformers_utils/model_arch_config_convertor.py: is_deepseek_mla"],
    requires=["MTH002", "MTH003", "MTH004"],
)
def draft_attention_not_mla(
    target: Target, draft: Draft, method: str, draft_classes: DraftClasses, engine: Engine
) -> Iterator[Finding]:
    """The draft's model_type is not on the release's list of those with latent attention."""
    if draft.is_part_of(target) or draft.config.stated(RANK) is None:
        raise NotApplicable("the draft has no latent attention of its own")
    renamed = method in known(engine.methods.renamed, f"the names that {engine} gives a draft's classes")
    types = engine.methods.mla_types_of_heads if renamed else engine.methods.mla_types
    listed = known(types, f"the model types that have latent attention in {engine}")
    homes = [engine.methods.architectures.get(name, "") for name in draft_classes.built]
    model_type = known(draft_classes.model_type, f"model_type in {draft.config.file}")
    if model_type in listed or not any(home.startswith(MLA_MODULES) for home in homes):
        return
    yield Finding(
        f"The draft has latent attention ({RANK} {draft.config.value(RANK)}), but {engine} looks for it only in drafts "
        f"of model_type {', '.join(listed)}, and this one's is {show(model_type)}: its weights are loaded into another "
        "attention.",
        draft.at("model_type"),
        "load",
        "likely",
        related=(draft.at(RANK),),
        repair=Repair("manual", "take a release whose list has it, or set a model_type of that list", ("engine_args",)),
    )
