"""WGT015: draft_load_config is not read."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.weights import HEADS

VARIABLE = "VLLM_USE_V2_MODEL_RUNNER"


@rule(
    "WGT015",
    "load-config-not-read",
    severity="warning",
    evidence=["vllm-project/vllm#55337", "vllm/v1/worker/gpu/spec_decode/eagle/utils.py"],
)
def load_config_not_read(
    draft: Draft, serving: Serving, engine: Engine, method: str, runners: tuple[str, ...]
) -> Iterator[Finding]:
    """The runner loads the draft as the target is loaded, whatever draft_load_config says."""
    if method not in HEADS or serving.speculative.get("draft_load_config") is None:
        raise NotApplicable("no draft_load_config for a drafting head")
    what = f"whether {engine} loads a draft by draft_load_config"
    read = {known(engine.eagle.load_config.get(runner), f"{what} with the {runner} runner") for runner in runners}
    if len(read) > 1:
        raise MissingFact(f"which model runner {engine} chooses")
    if read == {False}:
        yield Finding(
            f"The {runners[0]} runner of {engine} does not read draft_load_config: {draft.reference} is loaded as the "
            "target is.",
            serving.at("speculative.draft_load_config"),
            "load",
            repair=Repair("unsafe", f"the V1 runner ({VARIABLE}=0)", ("env",), (("env", VARIABLE, "0"),))
            if engine.eagle.load_config.get("V1")
            else Repair("manual", "a release that reads it", ()),
        )
