"""WGT013: the norms of an EAGLE-3.1 head are switched on in its config, and the release does not see it."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts.weights import DraftHead

NORMS = {
    "norm_before_fc": "a norm of all states before fc",
    "fc_norm": "a norm of each state before fc",
    "norm_output": "the normed states as what the next step reads",
}


@rule(
    "WGT013",
    "norms-not-built",
    severity="error",
    evidence=["vllm-project/vllm#38111", "vllm-project/vllm#42764", "vllm-project/speculators#610"],
)
def norms_not_built(draft: Draft, engine: Engine, method: str, draft_head: DraftHead) -> Iterator[Finding]:
    """norm_before_fc, fc_norm or norm_output is on, and the draft's class does not get to know of it."""
    if method != "eagle3":
        raise NotApplicable(f"a {method} head has no such norms")
    on = [key for key in NORMS if stated(draft, key)]
    absent = [key for key in on if key not in draft_head.built.keys]
    lost = [key for key in on if key not in absent and not draft_head.flag(key)]
    if absent:
        yield Finding(
            f"The draft was trained with {said(absent)}, and the {draft_head.architecture} of {engine} has no such "
            "thing: it drafts without, and hardly anything is accepted, or its weights find no place.",
            draft.at(absent[0]),
            "silent",
            "likely",  # what is lost without it is in no config
            repair=Repair("manual", f"take a release whose {draft_head.architecture} has {', '.join(absent)}", ()),
        )
    if lost:
        changes: tuple[Change, ...] = tuple(("draft_config", f"/transformer_layer_config/{key}", True) for key in lost)
        yield Finding(
            f"The draft was trained with {said(lost)}, and {engine} loses that where it reads the speculators format: "
            "it drafts without, and hardly anything is accepted.",
            draft.at(lost[0]),
            "silent",
            "likely",
            repair=Repair(
                "unsafe",
                f"{', '.join(lost)} in transformer_layer_config too, whose keys all reach the draft's class",
                ("draft_config",),
                changes,
            ),
        )


def said(keys: list[str]) -> str:
    """What the keys switch on, in words."""
    return " and ".join(f"{NORMS[key]} ({key})" for key in keys)


def stated(draft: Draft, key: str) -> bool:
    """Whether the draft's file switches the norm on."""
    found = draft.config.stated(key)
    if found is None and (block := draft.config.stated("eagle_config")) is not None:
        return isinstance(block[1], dict) and block[1].get(key) is True
    return found is not None and found[1] is True
