"""AUX004: another number of aux layers than the head's ``fc`` takes."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable
from specfix.facts.architecture import DraftClasses
from specfix.facts.aux import AuxPlan, fc_states, mismatch_phase, says_no_states

FC = ("fc.weight", "model.fc.weight")
# one element an input; what is quantised may pack several into one
PLAIN = frozenset({"F64", "F32", "F16", "BF16"})


@rule(
    "AUX004",
    "aux-count-against-fc",
    severity="error",
    evidence=["vllm-project/vllm#48113", "vllm/model_executor/models/llama_eagle3.py"],
    requires=["AUX002", "AUX003"],
)
def aux_count_against_fc(
    target: Target,
    draft: Draft,
    engine: Engine,
    method: str,
    aux_plan: AuxPlan,
    runners: tuple[str, ...],
    draft_classes: DraftClasses | None = None,
) -> Iterator[Finding]:
    """The aux layers, what the engine builds ``fc`` for, and the width of ``fc.weight`` are not one number."""
    if method != "eagle3":
        raise NotApplicable(f"a {method} draft's fc follows its ids")
    if says_no_states(draft):
        raise NotApplicable("the draft has no fc")
    names = draft_classes.built if draft_classes else ()
    built, count = fc_states(draft, engine, names), len(aux_plan.ids)
    source = f"the draft names {list(aux_plan.ids)}" if aux_plan.place else f"{engine} guesses {list(aux_plan.ids)}"
    if count != built:
        yield Finding(
            f"{engine} builds the head's fc for {built} aux states, and {source}: {count} states arrive, and drafting "
            "fails on their shape.",
            aux_plan.location(draft),
            mismatch_phase(runners),
            repair=Repair(
                "manual",
                f"num_aux_hidden_states {count}, where the weights are made for {count} layers",
                ("draft_config",),
            ),
        )
    arriving = target.integer("hidden_size")
    hidden = draft.number("target_hidden_size") or draft.number("hidden_size") or arriving
    if hidden != arriving:
        yield Finding(
            f"{engine} builds the head's fc for states of {hidden} (the draft's target_hidden_size, else its own "
            f"hidden_size), and the target's are of {arriving}: drafting fails on their shape.",
            draft.at("target_hidden_size" if draft.config.find("target_hidden_size") else "hidden_size"),
            mismatch_phase(runners),
            related=(target.at("hidden_size"),),
            repair=Repair("manual", "take the draft that was trained for this target", ("draft_config",)),
        )
    fc = draft.tensor(*FC)
    if fc.dtype not in PLAIN or len(fc.shape) != 2:
        raise MissingFact(f"how many inputs fc.weight of {fc.dtype} and shape {list(fc.shape)} takes in {fc.file}")
    width = fc.shape[-1]
    if width != built * hidden:
        made = f"{width // hidden} aux layers" if width % hidden == 0 else f"another hidden size than {hidden}"
        yield Finding(
            f"fc.weight takes {width} inputs, so the head was made for {made}; {engine} builds it for {built} states "
            f"of {hidden}, {built * hidden} inputs, and {source}. The weights do not load.",
            aux_plan.location(draft),
            "load",
            related=(target.at("hidden_size"),),
            repair=Repair(
                "manual", "take the draft that was trained for this target, with its own config", ("draft_config",)
            ),
        )
