"""POS005: layers of the draft that were trained with a sliding window are run with full attention."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Target
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.architecture import DraftClasses, first_known

KEY, WINDOW = "layer_types", "sliding_window"
SLIDING = "sliding_attention"


@rule(
    "POS005",
    "draft-window-ignored",
    severity="warning",
    evidence=["vllm-project/speculators#684", "vllm-project/vllm#40898"],
)
def window_ignored(
    target: Target,
    draft: Draft,
    method: str,
    engine: Engine,
    served_length: int | None = None,
    draft_classes: DraftClasses | None = None,
) -> Iterator[Finding]:
    """The class that the release has for this draft asks its config for no window."""
    if method not in {"eagle3", "dflash"} or draft.is_part_of(target):
        raise NotApplicable(f"the layers of a {method} draft are not told apart")
    stated = draft.config.stated(KEY)
    window = draft.config.stated(WINDOW)
    kinds = stated[1][: draft.number("num_hidden_layers")] if stated else []
    if SLIDING not in kinds or window is None or draft.config.value("use_sliding_window") is False:
        return
    if served_length is not None and window[1] >= served_length:
        return
    built = first_known(known(draft_classes, f"the class that {engine} has for this draft").built, engine)
    heeded = known(engine.layers.windowed.get(built or ""), f"whether {engine}'s {built} gives its layers a window")
    if heeded:
        return
    yield Finding(
        f"{kinds.count(SLIDING)} of the draft's {len(kinds)} layers were trained with a window of {window[1]} tokens "
        f"({WINDOW}), and {engine}'s {built} gives its layers none: they attend to everything. The longer the context "
        "grows past the window, the less is accepted.",
        draft.at(KEY),
        "silent",
        related=(draft.at(WINDOW),),
        repair=Repair("manual", "take a release whose class heeds layer_types, or a draft without windows"),
    )
