"""NUM001: a number of draft tokens that the release does not take of this draft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Draft, Serving
from specfix.deployment.json_text import show
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses
from specfix.facts.budget import TOKENS, config_values

WORDS = {"<": "no fewer than {}", "!=": "exactly {}", "not in": "exactly {}"}


@rule(
    "NUM001",
    "token-count-refused",
    severity="error",
    evidence=["vllm-project/vllm#50012", "vllm-project/vllm#5893", "vllm/config/speculative.py: __post_init__"],
)
def token_count_refused(
    draft: Draft, serving: Serving, method: str, engine: Engine, draft_classes: DraftClasses
) -> Iterator[Finding]:
    """The number of draft tokens is one that the release refuses for this draft."""
    count = serving.num_speculative_tokens
    if count is None:
        raise NotApplicable("the release takes the number from the draft")
    values = config_values(serving, method, engine, draft, draft_classes)
    key = no_divisor(values, engine)
    if key and key in draft.config.values:  # else the release counts layers, of which there are none
        yield Finding(
            f"{key} is {show(draft.config.values[key])}, and {engine} divides the number of draft tokens by it: it "
            "does not start.",
            draft.config.at(f"/{key}"),
            "config",
            repair=Repair("manual", f"take {key} out, or put in how many tokens the draft predicts", ("draft_config",)),
        )
        return
    wrong = refused(count, values, engine) or indivisible(count, values, engine)
    if wrong is None:
        return
    taken, key, nearest = wrong
    yield Finding(
        f"num_speculative_tokens is {count}, and of this draft {engine} takes {taken}: it refuses to start.",
        serving.at(f"speculative.{TOKENS}"),
        "config",
        related=(draft.at(key),) if key else (),
        repair=Repair(
            "safe",
            f"num_speculative_tokens {nearest}",
            ("speculative_config",),
            (("speculative_config", TOKENS, nearest),),
        ),
    )


def refused(count: int, values: dict[str, object], engine: Engine) -> tuple[str, str, int] | None:
    """What the release takes, the draft's key that says so ("" for none), and the nearest number, of the first refusal
    that compares the number itself."""
    known(engine.speculative.refusals, f"which numbers of draft tokens {engine} refuses")
    for bound in engine.speculative.bounds:
        word, _, other = bound.when
        if word not in WORDS or not bound.holds(values):
            continue
        holds = bound.then.holds(values)
        if holds is None:
            raise MissingFact(f"whether {engine} takes {count} draft tokens")
        limit = limit_of(other, values)
        if holds and limit is not None:
            key = other[1].rpartition(".")[2] if other[0] == "name" else ""
            return WORDS[word].format(f"{limit} ({key})" if key else limit), key, limit
    return None


def limit_of(limit: list[Any], values: dict[str, object]) -> int | None:
    """The number on the other side; of a list of them the one that is no null."""
    value = limit[1] if limit[0] == "const" else values.get(limit[1])
    if isinstance(value, list):
        value = next((number for number in value if number is not None), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def no_divisor(values: dict[str, object], engine: Engine) -> str | None:
    """The draft's key of what the number must be a multiple of, where that is 0 or no number."""
    for step in known(engine.speculative.multiples, f"which numbers of draft tokens {engine} refuses"):
        of = values.get(step.then)
        if of is not None and (of == 0 or not isinstance(of, int | float)) and step.holds(values):
            return str(step.then).rpartition(".")[2]
    return None


def indivisible(count: int, values: dict[str, object], engine: Engine) -> tuple[str, str, int] | None:
    """The same of a number that must be a multiple of what the draft predicts at once."""
    for step in known(engine.speculative.multiples, f"which numbers of draft tokens {engine} refuses"):
        of = values.get(step.then)
        if not isinstance(of, int) or isinstance(of, bool) or of < 1 or count <= of or count % of == 0:
            continue
        holds = step.holds(values)
        if holds is None:
            raise MissingFact(f"whether {engine} takes {count} draft tokens")
        if holds:
            return f"more than {of} only in multiples of {of}, which its layers predict", "", count // of * of
    return None
