"""FTR005: answers in a grammar after drafted reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known


@rule(
    "FTR005",
    "grammar-after-reasoning",
    severity="note",
    evidence=[
        "vllm-project/vllm#36138",
        "vllm-project/vllm#44993",
        "vllm-project/vllm#44297",
        "vllm/v1/structured_output/__init__.py: grammar_bitmask",
    ],
)
def grammar_after_reasoning(serving: Serving, engine: Engine, method: str) -> Iterator[Finding]:
    """Where the reasoning ends among drafted tokens, the first tokens of the answer are not held to the grammar."""
    place = reasoning_parser(serving)
    if place is None:
        raise NotApplicable("no reasoning is set apart, so that a grammar holds from the first token on")
    if known(
        engine.speculative.requests.grammar_from_reasoning_end, f"where {engine} starts a grammar after the reasoning"
    ):
        return
    yield Finding(
        f"A reasoning parser is set. Where the reasoning ends among tokens that {method} drafted, {engine} does not "
        "hold the drafted tokens after it to the request's grammar: an answer in JSON or a tool call may begin with "
        "something else, or end in a grammar error. Requests without a grammar are served right.",
        serving.at(place),
        "silent",
        "likely",
        related=(serving.at("method"),),
        repair=Repair(
            "manual",
            "a release whose grammar starts at the end of the reasoning, or no draft for requests with a grammar",
            ("engine_args",),
        ),
    )


def reasoning_parser(serving: Serving) -> str | None:
    """The option that sets a reasoning parser, None where none does."""
    if serving.flag("reasoning_parser"):
        return "reasoning_parser"
    nested = serving.flag("structured_outputs_config")
    if nested is not None and not isinstance(nested, Mapping):
        raise MissingFact("what --structured-outputs-config holds")
    return "structured_outputs_config" if nested and nested.get("reasoning_parser") else None
