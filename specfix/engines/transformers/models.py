"""The names of Transformers' model classes: an engine whose own registry lacks a class may run that of Transformers.

The data has a first line that names the minors that were read, and a line for each history of a name: the minors since
which there is such a class and, in turn, is none, a tab, and the names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from specfix.engines.transformers.lookup import minors
from specfix.errors import CannotCheck

DATA = Path(__file__).parent / "models.txt"
SCHEMA = "specfix/transformers-models-v1"


def has_model_class(name: str, required: str | None = None) -> bool:
    """Whether a known Transformers in the range ``required`` has a model class ``name``. MissingFact where none known
    is in the range, and where the range cannot be read."""
    text, wanted = _text(), set(minors(required))
    found = re.search(rf"^([\d. ]*)\t(?:.* )?{re.escape(name)}(?: .*)?$", text, re.MULTILINE)
    if found is None:
        return False
    changes = found[1].split()
    known: Iterable[str] = json.loads(text.partition("\n")[0])["minors"]
    present = False
    for minor in known:
        present ^= minor in changes
        if present and minor in wanted:
            return True
    return False


def as_text(releases: Mapping[str, str], names: Mapping[str, set[str]]) -> str:
    """The data file of the ``names`` of each minor, oldest first."""
    histories: dict[str, list[str]] = {}
    for name in sorted(set().union(*names.values())):
        changes, before = [], False
        for minor, present in names.items():
            if (name in present) != before:
                changes.append(minor)
                before = not before
        histories.setdefault(" ".join(changes), []).append(name)
    head = json.dumps({"schema": SCHEMA, "minors": releases})
    return "\n".join([head, *(f"{history}\t{' '.join(each)}" for history, each in histories.items())]) + "\n"


def known_names(text: str) -> dict[str, set[str]]:
    """What each minor has, of a data file's text."""
    head, *lines = text.splitlines()
    names: dict[str, set[str]] = {minor: set() for minor in json.loads(head)["minors"]}
    for line in lines:
        changes, _, each = line.partition("\t")
        present = False
        for minor in names:
            present ^= minor in changes.split()
            if present:
                names[minor] |= set(each.split())
    return names


@cache
def _text() -> str:
    try:
        return DATA.read_text("utf-8")
    except OSError as error:
        raise CannotCheck(f"{DATA} cannot be read ({error}): this installation of specfix is broken") from error
