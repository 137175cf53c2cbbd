"""How much of what is asked of a release could be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from specfix.engines.engine import SECTIONS, Engine

Coverage = dict[str, tuple[int, int]]


def coverage(engine: Engine) -> Coverage:
    """(not known, all) of each kind of fact.

    A kind is a fact (``lengths.keys``: one of one), the entries of a fact that is a mapping or a list of objects
    (``blocks.backends.*``: one each), or a field of these entries (``blocks.backends.*.sizes``: one for each entry that
    is known). A mapping that is not known at all counts as one entry.
    """
    found: Coverage = {}
    for name in SECTIONS:
        section = getattr(engine, name)
        for field in fields(section):
            path = f"{name}.{field.name}"
            below = {key.removeprefix(f"{path}."): key for key in engine.unknown if key.startswith(f"{path}.")}
            value = getattr(section, field.name)
            many = str(field.type).startswith(("dict[", "Mapping[")) or _is_list_of_objects(value)
            if path in engine.unknown or not (many or below):
                found[f"{path}.*" if many else path] = (int(path in engine.unknown), 1)
            else:
                found.update(_of_entries(path, value, set(below)))
    return found


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, tuple) and any(map(is_dataclass, value))


def _of_entries(path: str, value: Any, unknown: set[str]) -> Coverage:
    """``unknown``: names of entries, or of fields of them (``ENTRY.field``); an entry's name may hold dots."""
    entries = dict(value) if isinstance(value, Mapping) else dict(enumerate(value or ()))
    names = {str(name) for name in entries}
    of_fields: dict[str, set[str]] = {}
    lost = set()
    for text in unknown:
        entry = max((name for name in names if text.startswith(f"{name}.")), key=len, default="")
        if text in names or not entry:
            lost.add(text)
        else:
            of_fields.setdefault(text.removeprefix(f"{entry}.").partition(".")[0], set()).add(entry)
    total = len(names | lost) if isinstance(value, Mapping) else max(len(names), len(lost), 1)
    found = {f"{path}.*": (len(lost), total)}
    objects = {str(name): entry for name, entry in entries.items() if is_dataclass(entry) and str(name) not in lost}
    for name in sorted({field.name for entry in objects.values() for field in fields(entry)} | set(of_fields)):
        among = objects or names
        found[f"{path}.*.{name}"] = (len(of_fields.get(name, set()) & set(among)), len(among))
    return found
