"""AUX007: auxiliary states for a draft that says that it reads none."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.engines.runner import ENVIRONMENT
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.aux import BLOCK, FLAG, plan_of, says_no_states


@rule(
    "AUX007",
    "aux-states-unasked",
    severity="error",
    evidence=["vllm/v1/worker/gpu/model_runner.py", "vllm/model_executor/models: combine_hidden_states"],
)
def aux_states_unasked(
    target: Target, draft: Draft, engine: Engine, method: str, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The V2 runner hands the draft auxiliary states, whatever the draft says, and the draft has no place for them."""
    if method != "eagle3" or not says_no_states(draft):
        raise NotApplicable("the draft does not say that it reads no auxiliary states")
    if "V2" not in runners:
        return
    if known(engine.eagle.use_aux_flag.get("V2"), f"whether the V2 runner of {engine} asks the draft for {FLAG}"):
        return
    if len(runners) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    if len(plan_of("V2", target, draft, engine).ids) == 1:
        return
    yield Finding(
        f"The draft's {BLOCK} has {FLAG} false, so its class joins no states. The V2 runner of {engine} hands it those "
        "of several layers side by side all the same, which is too wide: the server dies in warm-up (`The size of "
        "tensor a must match the size of tensor b`).",
        draft.at(BLOCK),
        "warmup",
        repair=Repair(
            "unsafe",
            f"{ENVIRONMENT}=0: the V1 runner asks the draft",
            ("env",),
            (("env", ENVIRONMENT, "0"),),
        ),
    )
