"""QNT005: a dtype or quantisation method that the release does not know."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.architecture import PLUGINS


@rule(
    "QNT005",
    "unknown-dtype-name",
    severity="error",
    evidence=["vllm/engine/arg_utils.py: add_cli_args", "vllm/config/model.py: _verify_quantization"],
)
def unknown_dtype_name(serving: Serving, engine: Engine, deployment: Deployment) -> Iterator[Finding]:
    """--dtype, --kv-cache-dtype or a quantization, the draft's too, names what the release does not have."""
    yield from of_draft(deployment, engine)
    said = {misfit.location for misfit in serving.misfits}
    for option in ("dtype", "kv_cache_dtype", "quantization"):
        given = serving.flag(option)
        if not isinstance(given, str) or serving.at(option) in said:
            continue
        names = known_names(option, engine)
        if names is None or given in names:
            continue
        if option == "quantization" and serving.env.get(PLUGINS):
            raise MissingFact(f"the quantisation methods that the plugins in {PLUGINS} bring")
        yield Finding(
            f"{engine} knows no {option.replace('_', '-')} {given!r}: it takes {', '.join(names)}.",
            serving.at(option),
            "config",
            "likely" if option == "quantization" else "certain",  # a plugin may bring methods of its own
            repair=Repair("manual", f"give one that {engine} takes, or leave --{option.replace('_', '-')} out"),
        )


def of_draft(deployment: Deployment, engine: Engine) -> Iterator[Finding]:
    """A quantization of the speculative config, which goes to the draft's own model config."""
    serving, names = deployment.serving, engine.quantisation.names
    given = serving.speculative.get("quantization")
    if deployment.draft is None or not isinstance(given, str) or names is None or given.lower() in names:
        return
    if "quantization" in (engine.speculative.keys or {}) and not serving.env.get(PLUGINS):
        yield Finding(
            f"{engine} knows no quantization {given!r}, which the speculative config names; it has {', '.join(names)}.",
            serving.at("speculative.quantization"),
            "config",
            "likely",
            repair=Repair("manual", f"give one that {engine} takes, or leave it out", ("speculative_config",)),
        )


def known_names(option: str, engine: Engine) -> tuple[str, ...] | None:
    """What the release takes there; None where it takes any text, or that is not known."""
    if option == "quantization":
        return engine.quantisation.names
    flag = (engine.serve.flags or {}).get(option.replace("_", "-"))
    return None if flag is None or flag.choices is None else tuple(str(name) for name in flag.choices if name)
