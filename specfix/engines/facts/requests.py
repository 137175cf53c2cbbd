"""What a release does with what requests ask for, where it speculates."""

from __future__ import annotations

from dataclasses import field

from specfix.record import record


@record(frozen=True)
class Range:
    """What a number may be."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None


@record(frozen=True)
class RequestFacts:
    """Requests under speculation.

    ``refused``: sampling parameters with which a request is refused. ``async_refused``: those with which it is refused
    where scheduling is asynchronous. ``undrafted``: parameters with which nothing is drafted for a request, by the
    methods in ``undrafted_methods``, without a word. ``drops_processors``: the built-in logits processors (min_p,
    logit_bias, min_tokens) are not made. ``refuses_processors``: --logits-processors ends the start.
    ``defaults``: keys of a generation_config.json that become the defaults of requests.
    ``greedy_resets``: parameters that a request with temperature 0 loses before any of that is asked.
    ``grammar_from_reasoning_end``: a grammar that waits for the end of the reasoning holds from that token on, also
    where it lies among drafted tokens (else from the next step on).
    ``ranges``: what those of ``defaults`` may be that are numbers; outside of it a request is refused, whether it
    speculates or not.
    """

    refused: tuple[str, ...] | None = None
    async_refused: tuple[str, ...] = ()
    undrafted: tuple[str, ...] = ()
    undrafted_methods: tuple[str, ...] = ()
    drops_processors: bool | None = None
    refuses_processors: bool | None = None
    defaults: tuple[str, ...] | None = None
    grammar_from_reasoning_end: bool | None = None
    greedy_resets: tuple[str, ...] = ()
    ranges: dict[str, Range] = field(default_factory=dict)
