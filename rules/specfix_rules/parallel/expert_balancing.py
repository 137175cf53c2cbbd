"""PAR010: expert load balancing over a target and a draft."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses

FLAG = "enable_eplb"


@rule(
    "PAR010",
    "expert-balancing",
    severity="error",
    evidence=[
        "vllm-project/vllm#57549",
        "vllm-project/vllm#25311",
        "vllm/distributed/eplb/eplb_state.py: validate_ep_configuration",
    ],
)
def expert_balancing(
    target: Target, draft: Draft, serving: Serving, method: str, engine: Engine, draft_classes: DraftClasses
) -> Iterator[Finding]:
    """Experts are to be balanced, and the draft's are of another number, or are not known to the balancer."""
    if serving.flag(FLAG) is not True:
        raise NotApplicable("no balancing of experts")
    keys = known(engine.traits.expert_keys, f"how {engine} counts experts")
    of_target, of_draft = target.config.find(*keys), draft.config.find(*keys)
    if not of_target or not of_draft or not of_target[1] or not of_draft[1]:
        raise NotApplicable("not both sides have experts")
    if known(engine.parallel.one_balanced, f"how many models {engine} balances"):
        if method != "mtp":
            raise NotApplicable("seen of built-in drafts alone")
        why = (
            f"{engine} balances the experts of one model: the draft's {of_draft[1]} are not known to the balancer, and "
            "its first pass dies of an assertion"
        )
    elif not known(engine.parallel.same_experts, f"what {engine} asks of a draft's experts"):
        return
    elif method not in ("mtp", "dspark") or not set(draft_classes.built) & set(engine.parallel.balanced):
        return  # others have experts in their config at most, or no way to balance them
    elif isinstance(of_target[1], list) or isinstance(of_draft[1], list):
        raise MissingFact("the number of experts")
    elif of_target[1] == of_draft[1]:
        return
    else:
        why = (
            f"the target has {of_target[1]} experts and the draft {of_draft[1]}; {engine} balances both by one "
            "table, and "
            "refuses to load the draft"
        )
    yield Finding(
        f"enable_eplb is on: {why}.",
        serving.at(FLAG),
        "load",
        related=(draft.config.at(of_draft[0]),),
        repair=Repair("unsafe", "without --enable-eplb", ("engine_args",), (("engine_args", "enable-eplb", None),)),
    )
