"""MTH008: a drafter that refuses a multimodal target, or a draft with M-RoPE."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of

TEXT_ONLY = ("limit_mm_per_prompt", "language_model_only")  # flags that may make the target one of text alone


@rule(
    "MTH008",
    "not-with-images",
    severity="error",
    evidence=[
        "vllm-project/vllm#42005",
        "vllm-project/vllm#35714",
        "vllm/v1/spec_decode/llm_base_proposer.py: _raise_if_multimodal, _raise_if_mrope",
    ],
    requires=["MTH003", "MTH007"],
)
def not_with_images(
    target: Target, draft: Draft, serving: Serving, method: str, runner: str, engine: Engine
) -> Iterator[Finding]:
    """A draft model or parallel drafting is refused for a multimodal target, or for a draft with M-RoPE."""
    tokens = serving.num_speculative_tokens or 0
    asked = str(serving.speculative.get("parallel_drafting")).lower() in {"true", "1", "yes", "on"}
    parallel = asked and method in {"eagle", "eagle3"} and tokens > 1
    if method not in {"draft_model", "dflash"} and not parallel:
        raise NotApplicable("the draft needs no more input slots than the target")
    if runner != "V1":
        raise NotApplicable(f"the {runner} model runner has drafters of its own")
    refuses = known(engine.methods.extra_slots_refuse, f"what the drafters of {engine} refuse")
    what = "a draft model" if method == "draft_model" else "parallel drafting"
    other = Repair("manual", "take EAGLE3 or MTP, or a release that serves it", ("speculative_config",))
    if "multimodal" in refuses and method not in refuses["multimodal"]:
        classes = known(engine.methods.multimodal, f"the multimodal models of {engine}")
        if architecture_of(target, engine) in classes:
            if any(serving.flag(name) for name in TEXT_ONLY):
                raise MissingFact("whether the target is served for text alone")
            yield Finding(
                f"{engine} refuses {what} beside a multimodal target ({architecture_of(target, engine)}): the server "
                "stops when it starts its workers.",
                target.at("architectures"),
                "load",
                related=(serving.at("speculative.method"),),
                repair=other,
            )
            return
    if "mrope" in refuses and method not in refuses["mrope"]:
        sections = [rope for rope in draft.ropes if rope.parameters.get("mrope_section")]
        if sections:
            yield Finding(
                f"{engine} refuses {what} with a draft that has M-RoPE (mrope_section "
                f"{sections[0].parameters['mrope_section']}): the server stops when it starts its workers.",
                draft.at("rope_scaling"),
                "load",
                related=(serving.at("speculative.method"),),
                repair=other,
            )
