"""MTH015: a target without a model_type."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.engines.transformers import named_in
from specfix.errors import MissingFact, NotApplicable, known

KEY = "model_type"


@rule(
    "MTH015",
    "model-type-missing",
    severity="error",
    evidence=["vllm/transformers_utils/config.py: HFConfigParser.parse", "transformers: AutoConfig.from_pretrained"],
)
def model_type_missing(target: Target, serving: Serving, engine: Engine) -> Iterator[Finding]:
    """The target's config has no model_type, and nothing that stands in for it."""
    values = target.config.values
    if values.get(KEY) is not None:
        return
    auto_map = values.get("auto_map")
    if (isinstance(auto_map, dict) and "AutoConfig" in auto_map) or target.config.is_speculators:
        raise NotApplicable("the release reads this config by its format, or by its own class")
    if serving.flag("config_format") not in {None, "auto", "hf"} or isinstance(serving.flag("hf_overrides"), str):
        raise MissingFact("the config that the release reads")
    if target.folder is not None and (target.folder / "params.json").exists():
        raise MissingFact("which of the two configs the release reads")
    typed = known(engine.configs.typed, f"the architectures for which {engine} knows a {KEY}")
    if set(target.architectures) & set(typed):
        return
    if named_in(target.served):
        raise MissingFact(f"whether Transformers takes the {KEY} from the path")
    yield Finding(
        f"The target's config has no {KEY}, by which {engine} finds the class to read it with: it does not start.",
        target.config.at(f"/{KEY}"),
        "config",
        repair=Repair("manual", f"write the {KEY} of the model that it is", ("target_config",)),
    )
