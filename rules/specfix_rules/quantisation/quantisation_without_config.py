"""QNT013: a quantisation is asked for that needs a config, and there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Model, Serving, Target
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.quantisation import stated

FLAG = "quantization"
KEY = f"speculative.{FLAG}"
GIVEN = ("quantization_config_file", "quantization_config_dict_json")  # of --hf-overrides


@rule(
    "QNT013",
    "quantisation-without-config",
    severity="error",
    evidence=["vllm/model_executor/model_loader/weight_utils.py: get_quant_config"],
)
def quantisation_without_config(
    target: Target,
    serving: Serving,
    engine: Engine,
    method: str,
    draft: Draft | None = None,
    quant_origin: str | None = None,
) -> Iterator[Finding]:
    """--quantization names a method for checkpoints that say how they are quantised, and this one does not."""
    asked: list[tuple[str, Model, str]] = []
    if isinstance(name := serving.flag(FLAG), str):
        asked.append((FLAG, target, name))
    reads = method == "draft_model" or quant_origin == "draft"
    if isinstance(name := serving.speculative.get(FLAG), str) and draft is not None and reads:
        asked.append((KEY, draft, name))
    if not asked:
        raise NotApplicable("no quantisation is asked for by name")
    files = known(engine.quantisation.config_files, f"the files that {engine} takes a quantisation's config from")
    overrides = serving.flag("hf_overrides")
    for option, model, name in asked:
        if name not in files or stated(model, engine) is not None:
            continue
        if isinstance(overrides, str) or (isinstance(overrides, dict) and set(GIVEN) & set(overrides)):
            raise MissingFact("the quantisation's config that --hf-overrides brings")
        if model.folder is None:
            raise MissingFact(f"the files of {model.reference}")
        if any(file.name.endswith(files[name]) for file in Path(model.folder).glob("*.json")):
            continue
        side = "target" if option == FLAG else "draft"
        flag = "--quantization" if option == FLAG else "the speculative config's quantization"
        yield Finding(
            f"{flag} is {name}, and nothing says how the {side} is quantised: its config.json has no "
            f"quantization_config, and there is no {' or '.join(files[name])} beside it. {engine} ends the start.",
            serving.at(option),
            "load" if option == KEY else "config",
            related=(model.at("quantization_config"),),
            repair=Repair(
                "manual", "leave it out for weights that are not quantised, or take the quantised checkpoint"
            ),
        )
