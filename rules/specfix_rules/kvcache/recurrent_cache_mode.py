"""KVC005: a way of caching recurrent states that does not go with speculation."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Location, Serving
from specfix.engines import Engine

CACHING = "enable_prefix_caching"
MODE = "mamba_cache_mode"


@rule(
    "KVC005",
    "recurrent-cache-mode",
    severity="error",
    evidence=["vllm-project/vllm#39809", "vllm-project/vllm#41233", "vllm/model_executor/models/config.py"],
    requires=["KVC004"],
)
def recurrent_cache_mode(serving: Serving, engine: Engine, method: str, recurrent_mode: str) -> Iterator[Finding]:
    """States of recurrent layers are cached in a mode with which this release cannot speculate."""
    facts = engine.blocks.recurrent
    if recurrent_mode == "align" and facts.align_refuses:
        yield Finding(
            f"Prefixes are cached, which for this target means mamba_cache_mode align, and {engine} refuses that mode "
            f"together with speculation ({method}).",
            place(serving),
            "config",
            repair=Repair(
                "unsafe",
                "--no-enable-prefix-caching: prompts that share a beginning are computed again",
                ("engine_args",),
                (("engine_args", CACHING, False), ("engine_args", MODE, None)),
            ),
        )
    if recurrent_mode == "all" and facts.all_drafts is False:
        yield Finding(
            f"Prefixes are cached with mamba_cache_mode all, and the runner of {engine} was not made to follow drafts "
            f"in that mode: its tables have no room for their states, and {method} dies in the warm-up.",
            place(serving),
            "warmup",
            "likely",
            repair=Repair("unsafe", "--mamba-cache-mode align", ("engine_args",), (("engine_args", MODE, "align"),)),
        )


def place(serving: Serving) -> Location:
    """The option that chose the mode."""
    return serving.at(MODE if serving.flag(MODE) not in {None, "none"} else CACHING)
