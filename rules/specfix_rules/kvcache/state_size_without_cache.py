"""KVC012: a block size for recurrent states without the prefix caching that it is for."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known

SIZE, CACHING = "mamba_block_size", "enable_prefix_caching"


@rule(
    "KVC012",
    "state-size-without-cache",
    severity="error",
    evidence=["vllm/config/vllm.py: validate_mamba_block_size"],
)
def state_size_without_cache(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """--mamba-block-size is given and prefix caching is off."""
    if serving.flag(SIZE) is None or serving.flag(CACHING) is not False:
        raise NotApplicable("no block size for states, or prefix caching is not turned off")
    if serving.flag(SIZE) == serving.max_model_len:
        return
    if known(engine.blocks.recurrent.size_needs_cache, f"whether {engine} takes it"):
        yield Finding(
            f"--mamba-block-size is {serving.flag(SIZE)} and prefix caching is off: {engine} refuses the two, "
            "whatever the model.",
            serving.at(SIZE),
            "config",
            related=(serving.at(CACHING),),
            repair=Repair(
                "safe",
                "leave --mamba-block-size out: without prefix caching it has no use",
                ("engine_args",),
                (("engine_args", SIZE, None),),
            ),
        )
