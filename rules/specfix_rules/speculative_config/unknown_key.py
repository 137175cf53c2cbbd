"""CFG001: a key that this release's speculative config does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change, Safety
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known

NEAR = 3 / 4  # how alike two names must be for one to be meant by the other


@rule(
    "CFG001",
    "unknown-key",
    severity="error",
    evidence=["vllm/config/speculative.py: SpeculativeConfig", "vllm/engine/arg_utils.py: create_speculative_config"],
)
def unknown_key(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """The speculative config has a key that the release does not know: it is refused, or dropped without a word."""
    if not serving.speculative:
        raise NotApplicable("no other key of the speculative config is given")
    facts = engine.speculative
    keys = known(facts.keys, f"the keys of the speculative config of {engine}")
    # fields that the engine fills in itself are read, or written over, and not refused
    filled = {*(facts.made or ()), *(facts.passed or ())}
    for key, value in serving.speculative.items():
        name = key.replace("-", "_") if facts.dashes else key
        if name in filled:
            raise MissingFact(f"what {engine} makes of a {key} that is given, for it fills that in itself")
        if name in keys:
            continue
        refused = known(facts.refuses_others, f"what {engine} does with keys that it does not know")
        near = next(iter(difflib.get_close_matches(key.replace("-", "_"), keys, 1, NEAR)), None)
        taken: Change = ("speculative_config", key, None)
        what = f"say {near} instead of {key}" if near else f"leave {key} out"
        put: tuple[Change, ...] = (("speculative_config", near, value),) if near else ()
        # without the key what the user wanted of it is lost too, where the release would not have started
        safety: Safety = "unsafe" if near or refused else "safe"
        yield Finding(
            f"{engine} has no key {key} in the speculative config"
            + (f"; the nearest is {near}" if near else "")
            + (
                ". It does not start."
                if refused
                else ". It drops it without a word, and serves as if it were not there."
            ),
            serving.at(f"speculative.{key}"),
            "config" if refused else "silent",
            repair=Repair(safety, what, ("speculative_config",), (taken, *put)),
            severity="error" if refused else "warning",
        )
