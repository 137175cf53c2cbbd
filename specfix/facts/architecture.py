"""Which of the classes that a config names the engine takes, and what it makes of a draft's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from specfix.deployment import Draft, Model, Serving, Target
from specfix.deployment.kinds import ARCHITECTURES
from specfix.deployment.model import MTP_KEYS
from specfix.engines import Engine
from specfix.engines.conditions import choose
from specfix.engines.drafts import Refused, Unknown, converted, overridden
from specfix.engines.transformers import has_model_class
from specfix.errors import MissingFact, known
from specfix.record import record

# methods whose drafts the config stage takes as they are: it overrides model_type alone
UNCHANGED = frozenset({"medusa"})
PLUGINS = "VLLM_PLUGINS"
WRAPPER = "eagle"  # model_type of vLLM's own EAGLE format, whose ``model`` is the head's config


def architecture_of(target: Target, engine: Engine) -> str:
    """The class that serves the target."""
    return known(first_known(target.architectures, engine), f"architectures in {target.config.file}")


def first_known(names: Sequence[str], engine: Engine) -> str | None:
    """The first of ``names`` that the release's registry holds, as its ``resolve_model_cls`` chooses; where it holds
    none, the first, which Transformers may have. None where nothing is named."""
    registry = engine.methods.architectures
    for name in names:
        if name in registry:
            return name
    return names[0] if names else None


def has_no_class(names: Sequence[str], model: Model, engine: Engine) -> bool:
    """Whether nothing can serve a model of the classes ``names``: the registry has none of them, not under another
    ending either, and Transformers, to which the release turns next, hands out none. MissingFact where a class is there
    that may do: what of Transformers' runs, and code that the model brings along, is not read."""
    registry = engine.methods.architectures
    if not names or any(name in registry for name in names):
        return False
    suffixes = known(engine.methods.suffixes, f"under which other names {engine} looks for a class")
    for name in names:
        for suffix in suffixes:
            if name.endswith(suffix) and any(name.replace(suffix, other) in registry for other in suffixes):
                return False
    asked = known(engine.requirements.transformers, f"the Transformers that {engine} asks for")
    for name in names:
        if has_model_class(name, asked):
            raise MissingFact(f"whether {engine} can run Transformers' class {name}")
    code = model.config.values.get("auto_map")
    if isinstance(code, Mapping) and any(str(name).startswith("AutoModel") for name in code):
        raise MissingFact(f"what the code that {model.config.file} brings along is")
    return True


def brought_along(serving: Serving) -> None:
    """Raise MissingFact where plugins are named, for these may register classes of their own."""
    if serving.env.get(PLUGINS):
        raise MissingFact(f"the classes that the plugins in {PLUGINS} bring")


def language_class(target: Target, engine: Engine) -> str:
    """The class of the decoder inside a target that takes it from its ``text_config``."""
    text = target.config.values.get("text_config")
    stated = text.get("architectures") if isinstance(text, Mapping) else None
    if isinstance(stated, list) and stated:
        return str(stated[0])
    model_type = str(text.get("model_type", "")) if isinstance(text, Mapping) else ""
    name = "".join(part.capitalize() for part in model_type.split("_")) + "ForCausalLM"
    return known(
        name if name in engine.methods.architectures else None,
        f"architectures in the text_config of {target.config.file}",
    )


@record(frozen=True)
class DraftClasses:
    """The draft's classes as the release looks them up: ``read``, those of its config once the overrides are through,
    and ``built``, those of which the draft is made.

    ``model_type`` and ``n_predict`` are the config's after the overrides; ``stated_type`` is that of before.
    ``count_known``: whether ``n_predict`` is. ``refused`` says why the overrides already end the start, None where they
    do not.
    """

    read: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    model_type: str | None = None
    stated_type: str | None = None
    n_predict: int | None = None
    refused: str | None = None
    count_known: bool = True

    def lacking(self, engine: Engine) -> tuple[str, ...]:
        """The names of the first look-up that finds none of them in the registry; empty where both find one."""
        for names in (self.read, self.built):
            if names and not any(name in engine.methods.architectures for name in names):
                return names
        return ()


def draft_classes(target: Target, draft: Draft, method: str, engine: Engine) -> DraftClasses:
    """What ``SpeculativeConfig.__post_init__`` makes of the draft's architectures: ``hf_config_override``, the names
    that EAGLE drafts get, and the classes that it sets itself."""
    values = draft.config.values
    stated_type = draft.model_type if draft.speculators else values.get("model_type")
    try:
        given = converted(engine.speculators, values) if draft.speculators else unwrapped(draft, engine)
        made = given if method in UNCHANGED else through_overrides(given, engine)
    except Refused as refused:
        return DraftClasses(stated_type=stated_type, refused=str(refused))
    except Unknown as unknown:
        raise MissingFact(f"what {engine} makes of {draft.config.file}: it hangs on {unknown}") from None
    read = tuple(made.get("architectures") or ())
    model_type = made.get("model_type")
    built = read
    renaming = (engine.methods.renamed or {}).get(method)
    if renaming is not None and not draft.speculators and stated_type != WRAPPER:
        built = tuple(map(renaming.of, read))
    built = rewritten(built, model_type, target, method, engine)
    count = made.get("n_predict")
    return DraftClasses(
        read, built, model_type, stated_type, count, count_known=count is not None or not unsure_count(draft)
    )


def through_overrides(config: Mapping[str, Any], engine: Engine) -> Mapping[str, Any]:
    """What the overrides look at and write of ``config``, as they leave it."""
    read = {key: config[key] for key in engine.mtp.reads if key in config}
    return engine.outcomes.recall(("overrides", read), lambda: overridden(engine.mtp, read))


def unsure_count(draft: Draft) -> bool:
    """Whether the config's class has a count of MTP layers that is not known."""
    try:
        return any(draft.config.find(key) is not None for key in MTP_KEYS)
    except MissingFact:
        return True


def unwrapped(draft: Draft, engine: Engine) -> Mapping[str, Any]:
    """The draft's config as the release's config class has it: vLLM's EAGLE format names its classes by the head's."""
    values = draft.config.values
    inner = values.get("model")
    if values.get("model_type") != WRAPPER or not isinstance(inner, Mapping):
        return with_mtp_defaults(draft)
    renaming = (engine.methods.renamed or {}).get(str(values.get("method", WRAPPER)))
    if renaming is None:
        raise Unknown("the method of its EAGLE format")
    names = inner.get("architectures")
    return {**inner, **values, "architectures": [renaming.of(str(name)) for name in names or ()]}


def with_mtp_defaults(draft: Draft) -> dict[str, Any]:
    """The config with the counts of MTP layers that its class states where the file does not."""
    values = dict(draft.config.values)
    if len(draft.config.levels) == 1:
        for key in MTP_KEYS:
            with suppress(MissingFact):  # the count is then not known, and nothing else hangs on it
                if values.get(key) is None and (given := draft.config.find(key)) is not None:
                    values[key] = given[1]
    return values


def rewritten(
    names: tuple[str, ...], model_type: str | None, target: Target, method: str, engine: Engine
) -> tuple[str, ...]:
    """``names``, or the class that the config stage puts in their place."""
    steps = known(engine.speculative.architectures, f"the classes that {engine} gives a {method} draft")
    if not steps:
        return names
    values = {
        "method": method,
        "model": "",
        "draft_model_config.architectures": list(names),
        "draft_model_config.hf_config.model_type": model_type,
        "target_model_config.hf_config.model_type": target.config.values.get("model_type"),
    }
    chosen = engine.outcomes.recall(("architectures", values), lambda: choose(steps, values))
    if chosen.needs and chosen.step is None:
        raise MissingFact(f"the class that {engine} gives a {method} draft: it hangs on {', '.join(chosen.needs)}")
    return names if chosen.step is None else (str(chosen.then),)


def of_a_head(name: str) -> bool:
    """Whether a class's name says that it drafts: Transformers has none of these."""
    return any(pattern.search(name) for pattern, _ in ARCHITECTURES)


def served_classes(
    target: Target, draft: Draft | None, draft_classes: DraftClasses | None, engine: Engine
) -> list[tuple[str, Model, str | None]]:
    """(side, model, class) of each config that is served; a draft that is a part of the target's checkpoint is no other
    one. Raises MissingFact where the draft's class is not known."""
    served: list[tuple[str, Model, str | None]] = [("target", target, first_known(target.architectures, engine))]
    if draft is None:
        return served
    if draft_classes is None:
        raise MissingFact(f"the class that {engine} makes of the draft")
    if not draft.is_part_of(target):
        served.append(("draft", draft, first_known(draft_classes.built, engine)))
    return served
