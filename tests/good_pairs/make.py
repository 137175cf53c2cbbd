"""Write pairs.tsv: each pair, what vLLM's config stage says of it, what specfix says, and why that is true.

    python -m tests.good_pairs.make            judges the pairs that are carried
    python -m tests.good_pairs.make CORPUS     takes the pairs from a corpus first, and carries them

`reference.jsonl` is made by reference.py, which asks a real engine; `reasons.yaml` is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from .corpus import Pair, carry, pairs
from .judge import Said, judge

HERE = Path(__file__).parent
LIST = HERE / "pairs.tsv"
COLUMNS = ("target", "draft", "method", "length", "meant", "reference", "says", "because")


@dataclass(frozen=True)
class Judged:
    """A pair and all that is known of it."""

    pair: Pair
    verdict: str
    why: str
    said: tuple[Said, ...]
    skipped: tuple[str, ...]

    def codes(self, *severities: str) -> list[str]:
        return sorted({one.code for one in self.said if one.severity in severities})

    @cached_property
    def reasons(self) -> dict[str, str]:
        """By code, the fact that makes an error or a warning on an accepted pair true."""
        found = {}
        for code in self.codes("error", "warning"):
            for reason in REASONS.get(code, ()):
                if all(getattr(self.pair, side) in reason[side] for side in ("target", "draft") if side in reason):
                    found[code] = " ".join(reason["fact"].split())
        return found

    def row(self) -> tuple[str, ...]:
        says = "; ".join(sorted({f"{one.code} {one.severity}" for one in self.said})) or "nothing"
        reference = f"{self.verdict}: {self.why}" if self.why else self.verdict
        because = "; ".join(f"{code}: {fact}" for code, fact in self.reasons.items())
        pair = self.pair
        return pair.target, pair.draft, pair.method, str(pair.length), pair.kind, reference, says, because


REASONS: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "reasons.yaml").read_text("utf-8"))


def judged(found: list[Pair]) -> Iterator[Judged]:
    said = {(one["target"], one["draft"], one["method"]): one for one in reference()}
    for pair in found:
        findings, skipped = judge(pair)
        one = said[pair.name]
        yield Judged(pair, one["verdict"], one.get("why", ""), tuple(findings), tuple(skipped))


def reference() -> list[dict[str, Any]]:
    lines = (HERE / "reference.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table(found: list[Judged]) -> str:
    rows = [COLUMNS, *(one.row() for one in found)]
    return "".join("\t".join(row) + "\n" for row in rows)


def main() -> None:
    if len(sys.argv) > 1:
        carry(pairs(Path(sys.argv[1])))
    LIST.write_text(table(list(judged(pairs()))), "utf-8")


if __name__ == "__main__":
    main()
