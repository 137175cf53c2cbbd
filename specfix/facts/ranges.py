"""What a number may be, asked of a value and told in words."""

from __future__ import annotations

from specfix.engines.facts.requests import Range


def within(bounds: Range, value: float) -> bool:
    return (
        (bounds.at_least is None or value >= bounds.at_least)
        and (bounds.above is None or value > bounds.above)
        and (bounds.at_most is None or value <= bounds.at_most)
        and (bounds.below is None or value < bounds.below)
    )


def in_words(bounds: Range) -> str:
    parts = (
        ("of at least", bounds.at_least),
        ("above", bounds.above),
        ("of at most", bounds.at_most),
        ("below", bounds.below),
    )
    return " and ".join(f"{words} {bound:g}" for words, bound in parts if bound is not None)
