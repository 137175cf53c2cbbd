"""QNT012: a quantisation that the release has never heard of."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Model, Target
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.quantisation import method_name, stated


@rule("QNT012", "quantisation-unknown", severity="error", evidence=["vllm/config/model.py: _verify_quantization"])
def quantisation_unknown(target: Target, engine: Engine, draft: Draft | None = None) -> Iterator[Finding]:
    """The release knows no quantisation method of the name that a quantization_config gives."""
    names = known(engine.quantisation.names, f"the quantisation methods of {engine}")
    models: dict[str, tuple[str, Model]] = {target.config.file: ("target", target)}
    if draft is not None and not draft.speculators:  # whose quantization_config stands elsewhere
        models.setdefault(draft.config.file, ("draft", draft))
    for side, model in models.values():
        found = stated(model, engine)
        if found is None or not found[1].get("quant_method") or found[2] is not None:
            continue
        pointer, values, _ = found
        method = method_name(values)
        if method in names:
            continue
        others = known(engine.quantisation.overridden, f"what {engine} makes of an unknown quantisation method")
        if method in others:
            raise MissingFact(f"what {engine} makes of the quantisation method {method}")
        yield Finding(
            f"The {side}'s quantization_config says quant_method {show(values['quant_method'])}, and {engine} knows no "
            "such method: unless a plugin brings it, the server does not start.",
            model.config.at(f"{pointer}/quant_method"),
            "config",
            "likely",
            repair=Repair("manual", f"take a release that has {method}, or a checkpoint in another format"),
        )
