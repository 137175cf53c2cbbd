"""The ways in which an answer can be out of reach."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class CannotCheck(Exception):
    """The check cannot be made at all: bad usage, unreadable input, unknown engine. Exit status 2.

    The message is one sentence for the user that names the file (or option) and the value at fault.
    """


class MissingFact(Exception):
    """One fact is not to be had, so the rules that need it are skipped. The message names the fact."""


def known(value: T | None, fact: str) -> T:
    """Return ``value``, or raise :class:`MissingFact` naming ``fact`` where it is ``None``."""
    if value is None:
        raise MissingFact(fact)
    return value


class NotApplicable(Exception):
    """The deployment has nothing that this rule speaks of (no draft model, no GPU): neither found nor skipped."""
