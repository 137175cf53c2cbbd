"""What differs between releases for speculative decoding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from specfix.engines.compare import TOPICS, Change, Difference, differences, fixes_between
from specfix.engines.fixes import FIXES
from specfix.report.engine import NOT_KNOWN, SHOWN, heading, names
from specfix.report.terminal import Terminal
from specfix.report.words import count

if TYPE_CHECKING:
    from specfix.engines import Engine

SCHEMA = "specfix/engine-diff-v1"
MINUS = "\N{MINUS SIGN}"
MARKS = {"added": "+", "removed": MINUS, "changed": "~"}
STYLES = {"+": "good", MINUS: "error", "~": "warning", "?": "note"}
FACTS = {fact.path: fact for topic in TOPICS for fact in topic.facts}
EMPTY: tuple[object, ...] = (False, [], (), {}, "")
WIDE = 60  # of a value, in characters


def diff_json(engines: Sequence[Engine]) -> str:
    steps = [
        {
            "before": head(before),
            "after": head(after),
            "fixes": [
                {"name": name, "before": states[0], "after": states[1]}
                for name, states in fixes_between(before, after).items()
            ],
            "topics": [
                {
                    "title": found.title,
                    "changes": [plain(change) for change in found.changes],
                    "others": found.others,
                }
                for found in differences(before, after)
            ],
        }
        for before, after in pairwise(engines)
    ]
    return json.dumps({"schema": SCHEMA, "steps": steps}, indent=2) + "\n"


def head(engine: Engine) -> dict[str, str]:
    return {"name": engine.name, "version": engine.version, "source": engine.source}


def plain(change: Change) -> dict[str, Any]:
    return {
        "fact": change.fact,
        "entry": list(change.entry),
        "kind": change.kind,
        "before": change.before,
        "after": change.after,
    }


def diff_text(engines: Sequence[Engine], terminal: Terminal, *, everything: bool = False) -> str:
    """Each release against the one before it. ``everything``: no list is shortened."""
    limit = None if everything else SHOWN
    return "\n".join(step_text(before, after, terminal, limit) for before, after in pairwise(engines))


def step_text(before: Engine, after: Engine, terminal: Terminal, limit: int | None) -> str:
    title = f"{before} → {after if after.name != before.name else after.version}"
    parts = [terminal.paint("strong", title) + ", for speculative decoding\n"]
    found = differences(before, after)
    if fixes := fixes_text(before, after, terminal):
        parts.append(fixes)
    parts += [topic_text(each, terminal, limit) for each in found]
    same = [topic.title for topic in TOPICS if topic.title not in {each.title for each in found}]
    if same:
        parts.append("".join(f"{line}\n" for line in terminal.wrap(f"no difference: {', '.join(same)}")))
    return "\n".join(parts)


def fixes_text(before: Engine, after: Engine, terminal: Terminal) -> str:
    """Fixes that came, went, or are not needed or not known of one of the two."""
    mends = {fix.name: f"{fix.mends} ({fix.thread})" if fix.thread else fix.mends for fix in FIXES}
    lines = []
    for name, (old, new) in fixes_between(before, after).items():
        mark = {("not in", "in"): "+", ("in", "not in"): MINUS}.get((old, new), "?" if NOT_KNOWN in (old, new) else "~")
        told = "" if mark in {"+", MINUS} else f" [{old} → {new}]"
        lines += item(mark, f"{name}{told}: {mends[name]}", terminal)
    return heading("upstream fixes", terminal) + "".join(lines) if lines else ""


def topic_text(found: Difference, terminal: Terminal, limit: int | None) -> str:
    """One heading; facts in their order, what came or went in a row each."""
    lines: list[str] = []
    for path in dict.fromkeys(change.fact for change in found.changes):
        words = f"{FACTS[path].words}: " if FACTS[path].words else ""
        changes = [change for change in found.changes if change.fact == path]
        for kind, mark in (("added", "+"), ("removed", MINUS)):
            whole = [member(change) for change in changes if change.kind == kind and len(change.entry) == 1]
            if whole:
                lines += item(mark, words + names(whole, limit), terminal)
        told = inside(changes, limit)
        for entries, text in list(told.items())[:limit]:
            lines += item("~", f"{words}{entries}{text}", terminal)
        if limit is not None and len(told) > limit:
            lines += item("~", f"{words}{len(told) - limit} more", terminal)
        unread = [change for change in changes if change.kind == "unknown"]
        if unread:
            where = names([".".join(change.entry) for change in unread if change.entry], limit)
            lines += item("?", f"{words}not known of one of the two{'' if where == 'none' else f': {where}'}", terminal)
    if found.others:
        lines += item("~", f"not of speculation: {count(found.others, 'more difference')}", terminal)
    return heading(found.title, terminal) + "".join(lines)


def inside(changes: Sequence[Change], limit: int | None) -> dict[str, str]:
    """What changed within entries; entries of which the same is to be told stand together."""
    entries: dict[str, list[Change]] = {}
    for change in changes:
        if change.kind == "changed" or (change.kind != "unknown" and len(change.entry) > 1):
            entries.setdefault(change.entry[0] if change.entry else "", []).append(change)
    alike: dict[str, list[str]] = {}
    for entry, parts in entries.items():
        alike.setdefault("; ".join(within(parts, limit)), []).append(entry)
    return {"" if found == [""] else f"{names(found, limit)}: ": text for text, found in alike.items()}


def within(changes: Sequence[Change], limit: int | None) -> list[str]:
    """What changed within one entry, by field."""
    fields: dict[tuple[str, ...], list[Change]] = {}
    for change in changes:
        field = change.entry[1:] if change.kind == "changed" else change.entry[1:-1]
        fields.setdefault(field, []).append(change)
    told = []
    for field, parts in fields.items():
        signs = [f"{value(change.before)} → {value(change.after)}" for change in parts if change.kind == "changed"]
        for kind, mark in (("added", "+"), ("removed", MINUS)):
            members = [member(change) for change in parts if change.kind == kind]
            signs += [f"{mark} {names(members, limit)}"] if members else []
        told.append(" ".join([*([".".join(field)] if field else []), *signs]))
    return told


def member(change: Change) -> str:
    """An entry that came or went, with its value where that is short and says something."""
    name, kept = change.entry[-1] or '""', change.after if change.kind == "added" else change.before
    if isinstance(kept, Mapping):
        wanted = FACTS[change.fact].fields
        told = {key: part for key, part in kept.items() if wanted is None or key in wanted}
        details = ", ".join(detail(key, part) for key, part in told.items() if part is not None and part not in EMPTY)
        return f"{name} ({details})" if details and len(details) <= WIDE else name
    if kept is True or isinstance(kept, list | tuple) or str(kept) == name:
        return name
    return f"{name} = {value(kept)}"


def detail(key: str, part: object) -> str:
    """``bool``, ``default 8``, ``required``."""
    if key in {"type", "kind"}:
        return value(part)
    return key if part is True else f"{key} {value(part)}"


def value(fact: object) -> str:
    """A value in a line, cut where it is long."""
    if fact is None or fact == []:
        return "none"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, list | tuple):
        text = ", ".join(map(value, fact))
    else:
        text = fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False, default=str)
    return (text if len(text) <= WIDE else text[: WIDE - 1] + "…") or '""'


def item(mark: str, text: str, terminal: Terminal) -> list[str]:
    first, *more = terminal.wrap(text, "    ", f"  {mark} ")
    painted = first.replace(f"  {mark}", f"  {terminal.paint(STYLES[mark], mark)}", 1)
    return [f"{line}\n" for line in (painted, *more)]
