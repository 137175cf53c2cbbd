"""CFG010: a flag's number outside of what the release takes."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.facts.ranges import in_words, within

OF_OTHER_RULES = frozenset({"max_num_batched_tokens", "max_num_seqs", "max_model_len", "block_size"})


@rule("CFG010", "value-out-of-range", severity="error", evidence=["vllm/config: Field(ge=…, gt=…, le=…, lt=…)"])
def value_out_of_range(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """A flag has a number that its config class refuses."""
    for name, value in serving.flags.items():
        bounds = engine.serve.bounds.get(name.replace("_", "-"))
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if bounds is None or not number or name in OF_OTHER_RULES or within(bounds, value):
            continue
        yield Finding(
            f"--{name.replace('_', '-')} is {show(value)}, and {engine} takes one {in_words(bounds)}: it does not "
            "start.",
            serving.at(name),
            "config",
            repair=Repair("manual", f"a number {in_words(bounds)}", ("engine_args",)),
        )
