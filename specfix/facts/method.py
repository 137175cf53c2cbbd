"""The speculative method, by the name that the engine uses inside, and the one with which its config stage ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from specfix.deployment import Deployment, Draft, Serving
from specfix.engines import Engine
from specfix.engines.facts.decisions import Step
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.record import record

MTP = "mtp"


def method(serving: Serving, engine: Engine) -> str:
    """``mtp`` for each name that the release has for a built-in draft (``deepseek_mtp`` …), else the method as given or
    as the draft says."""
    return inner_name(known(serving.method, "the speculative method"), engine)


def inner_name(given: str, engine: Engine) -> str:
    """``given``, or ``mtp`` for what the release calls so inside."""
    return MTP if given in engine.mtp.names else given


def knows(method: str, engine: Engine) -> bool:
    """Whether the release has the method, by whatever name."""
    return among(inner_name(method, engine), engine.methods.methods, engine)


def among(method: str, names: Collection[str], engine: Engine) -> bool:
    """Whether one of ``names`` means the method of this inner name."""
    return method in names or (method == MTP and not engine.mtp.names.isdisjoint(names))


@record(frozen=True)
class Settled:
    """The method with which the release's config stage ends. ``word`` is the part of the draft's path that decided it,
    None where no path did."""

    method: str
    word: str | None = None


def settled_method(deployment: Deployment, draft: Draft, draft_classes: DraftClasses, engine: Engine) -> Settled:
    """What ``SpeculativeConfig.__post_init__`` makes of the method that the user names, or of none. NotApplicable for a
    method that the release does not know."""
    steps = known(engine.speculative.methods, f"how {engine} settles the method")
    given = deployment.serving.method if deployment.method_given else None
    if given is not None and not knows(given, engine):
        raise NotApplicable(f"{engine} knows no method {given}")
    path = draft.served
    values: dict[str, object] = {
        "method": given,
        "model": path,
        "draft_model_config.model.lower()": path.lower(),
        "draft_model_config.architectures": list(draft_classes.read),
        "draft_model_config.hf_config.model_type": draft_classes.model_type,
    }
    if "/" in path:
        values["_is_custom_proposer_path(model)"] = False
    serving = deployment.serving
    if "num_speculative_tokens" not in serving.unknown and serving.num_speculative_tokens is not None:
        values["num_speculative_tokens"] = serving.num_speculative_tokens
    ended = engine.outcomes.recall(("method", values), lambda: settled(steps, values, engine))
    name = inner_name(ended, engine)
    words = [word for word, named in engine.serve.method_words or () if word in path.lower() and named == ended]
    return Settled(name, words[0] if words and ended != given else None)


def settled(steps: Iterable[Step], values: dict[str, object], engine: Engine) -> str:
    """The method once each of ``steps`` that holds has set it."""
    what = f"the method that {engine} settles on"
    values = dict(values)
    for step in steps:
        needs: set[str] = set()
        holds = step.holds(values, needs)
        if holds is None:
            raise MissingFact(f"{what}: it hangs on {', '.join(sorted(needs))}")
        if holds:
            values["method"] = step.then
    return str(known(values["method"], what))
