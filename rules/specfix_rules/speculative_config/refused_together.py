"""CFG003: keys that the release does not take together."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Deployment
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact
from specfix.facts.speculative_config import HAS, Refusals


@rule(
    "CFG003",
    "refused-together",
    severity="error",
    evidence=["vllm/config/speculative.py: SpeculativeConfig.__post_init__, _verify_args"],
    requires=["CFG001", "CFG002", "CFG005", "MTH001", "MTH002", "MTH003", "MTH006", "MTH007", "MTH010", "NUM001"],
)
def refused_together(deployment: Deployment, refusals: Refusals, engine: Engine) -> Iterator[Finding]:
    """The release refuses the method, or keys of the speculative config, in the way in which they are given."""
    stated = {name.replace("-", "_") for name in deployment.serving.speculative}
    for step in refusals.of_others:
        concerned = sorted(step.names & {*stated, "num_speculative_tokens"})
        told = [f"{name} {show(refusals.values.get(name))}" for name in ("method", *concerned)]
        told += [f"without {name[len(HAS) : -2]}" for name in sorted(step.names) if name.startswith(HAS)]
        place = next((name for name in concerned if name in stated), "method")
        yield Finding(
            f"{engine} refuses this speculative config ({', '.join(told)}), and does not start; its reason is at line "
            f"{step.line} of its speculative config's source.",
            deployment.serving.at(f"speculative.{place}"),
            "config",
            repair=Repair("manual", "leave out one of them, or take another method", ("speculative_config",)),
        )
    for name in refusals.of_host:
        raise MissingFact(f"what {name} says where {engine} is installed")
