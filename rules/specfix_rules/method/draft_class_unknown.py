"""MTH002: no class of the release's registry for the draft."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Draft, Serving
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact, known
from specfix.facts.architecture import DraftClasses, brought_along, has_no_class, of_a_head


@rule(
    "MTH002",
    "draft-class-unknown",
    severity="error",
    evidence=[
        "vllm-project/vllm#24967",
        "vllm/model_executor/models/registry.py: _raise_for_unsupported",
        "vllm/transformers_utils/configs/eagle.py: EAGLEConfig",
        "vllm/config/speculative.py: hf_config_override",
    ],
    requires=["MTH003", "MTH004", "MTH007"],
)
def draft_class_unknown(
    draft: Draft, serving: Serving, method: str, draft_classes: DraftClasses, engine: Engine
) -> Iterator[Finding]:
    """The release has no class of the name that it makes of the draft's architectures."""
    known(engine.methods.renamed, f"the names that {engine} gives a draft's classes")
    lacking = draft_classes.lacking(engine)
    if not lacking:
        return
    made = lacking != draft.architectures
    plain = lacking is draft_classes.read and lacking == draft_classes.built and not any(map(of_a_head, lacking))
    if plain and not has_no_class(lacking, draft, engine):
        return
    if serving.flag("trust_remote_code") and draft.config.values.get("auto_map"):
        raise MissingFact(f"what the code that {draft.config.file} brings along is")
    brought_along(serving)
    became = draft_classes.model_type != draft_classes.stated_type and draft_classes.model_type is not None
    why = f" (its model_type {draft_classes.stated_type} becomes {draft_classes.model_type} first)" if became else ""
    makes = f", of which {engine} makes {show(list(lacking))} for {method}{why}" if made else ""
    dropped = [release for name in lacking if (release := (engine.methods.dropped or {}).get(name))]
    until = f" It had it until {dropped[0]}." if dropped else ""
    yield Finding(
        f"The draft's architectures is {show(list(draft.architectures))}{makes}. {engine} has no class of that name, "
        f"and does not start.{until}",
        draft.at("architectures"),
        "config",
        related=(draft.at("model_type"),) if became else (serving.at("method"),),
        repair=renamed_type(draft, draft_classes, method, engine)
        or Repair(
            "manual",
            "take a release that has the draft's class (`specfix engine` lists them), or another draft",
            ("engine_args",),
        ),
    )


def renamed_type(draft: Draft, classes: DraftClasses, method: str, engine: Engine) -> Repair | None:
    """Another model_type, where the class that the draft states is there and only its model_type leads away from it: of
    the types with the same attention, the first that the release leaves alone."""
    renaming = (engine.methods.renamed or {}).get(method)
    stated = tuple(map(renaming.of, draft.architectures)) if renaming else ()
    if classes.model_type == classes.stated_type or not any(name in engine.methods.architectures for name in stated):
        return None
    diverted = {override.model_type for override in engine.mtp.overrides or ()}
    taken = {t for override in engine.mtp.overrides or () for t in texts(override.when)}
    for candidate in engine.methods.mla_types_of_heads or ():
        if (
            candidate not in taken | diverted
            and candidate.partition("_")[0] == str(classes.stated_type).partition("_")[0]
        ):
            changes: tuple[Change, ...] = (("draft_config", "/model_type", candidate),)
            return Repair(
                "unsafe",
                f"set the draft's model_type to {candidate}, which keeps its class; run it once to confirm",
                ("draft_config",),
                changes,
            )
    return None


def texts(condition: object) -> Iterator[str]:
    """All texts in a condition."""
    if isinstance(condition, str):
        yield condition
    elif isinstance(condition, list):
        for part in condition:
            yield from texts(part)
