"""What a command comes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """Text for standard output, and the exit status."""

    text: str
    status: int = 0
