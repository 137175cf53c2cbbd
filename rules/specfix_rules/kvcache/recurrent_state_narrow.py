"""KVC006: pages of recurrent states that are planned without the room for drafts."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Serving, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import architecture_of


@rule(
    "KVC006",
    "recurrent-state-narrow",
    severity="error",
    evidence=["vllm-project/vllm#57721", "vllm-project/vllm#47635", "get_mamba_state_shape_from_config"],
    requires=["KVC004", "KVC005"],
)
def recurrent_state_narrow(
    target: Target, serving: Serving, engine: Engine, recurrent: bool, state_pages: tuple[int, int, int] | None = None
) -> Iterator[Finding]:
    """The class of the target plans the page of a state too small for this many drafted tokens."""
    if not recurrent:
        raise NotApplicable("the target has no recurrent layers")
    name = architecture_of(target, engine)
    if name not in known(engine.blocks.recurrent.narrow, f"how {engine} sizes the states of recurrent layers"):
        return
    drafted = known(serving.num_speculative_tokens, "num_speculative_tokens")
    page, state, column = known(state_pages, f"the sizes that {target.reference} gives a state and a token")
    if state + drafted * column <= page:
        return
    room = (page - state) // column
    fitting = f"num_speculative_tokens of {room} or less" if room > 0 else "serving without speculation"
    yield Finding(
        f"{name} of {engine} plans {page:,} bytes for a recurrent state, without room for drafts; with "
        f"{drafted} drafted tokens its layers ask for {state + drafted * column:,}, and the start ends with a bare "
        "AssertionError (page_size_padded >= page_size).",
        target.at("architectures"),
        "warmup",
        "likely",
        related=(serving.at("speculative.num_speculative_tokens"),),
        repair=repair(room, fitting),
    )


def repair(room: int, fitting: str) -> Repair:
    """Fewer drafted tokens, where any fit at all."""
    if room < 1:
        return Repair("manual", f"{fitting}, or a release that plans for drafts", ("speculative_config",))
    change: Change = ("speculative_config", "num_speculative_tokens", room)
    return Repair("unsafe", fitting, ("speculative_config",), (change,))
