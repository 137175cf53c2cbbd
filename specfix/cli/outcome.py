"""What a command comes to."""

from __future__ import annotations

from specfix.record import record


@record(frozen=True)
class Outcome:
    """Text for standard output, and the exit status."""

    text: str
    status: int = 0
