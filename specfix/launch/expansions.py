"""How a shell writes what it expands: where an expansion ends, and which variable or array it names."""

from __future__ import annotations

import re

PAIRS = {"{": "}", "(": ")"}
BRACKETS = {"{": re.compile(r"[{}]"), "(": re.compile(r"[()]")}
MARKS = re.compile(r"""\\.|'[^']*'|["()]""", re.DOTALL)  # of a command in an expansion
DEPTH_LIMIT = 30  # of brackets and quotes in it
QUOTED_MARKS = re.compile(r"""\\.|"|\$\(""", re.DOTALL)
NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|[\d@*#?$!-])", re.ASCII)
DEFAULTED = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*):?[-=?].*\}", re.ASCII | re.DOTALL)
ARRAY = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)\[[@*]\]\}", re.ASCII)
QUOTED_ARRAY = re.compile(r'"\$\{(?P<name>[A-Za-z_]\w*)\[@\]\}"', re.ASCII)
GUARDED_ARRAY = re.compile(r'\$\{(?P<name>[A-Za-z_]\w*)\[@\]:?\+"\$\{(?P=name)\[@\]\}"\}', re.ASCII)  # for set -u


def written_expansion(text: str, start: int) -> str:
    """The whole of an expansion: ``$NAME``, ``$1``, ``${…}``, ``$(…)``, a command in backquotes; a dollar alone."""
    if text[start] == "`":
        end = text.find("`", start + 1)
        return text[start : end + 1] if end > 0 else text[start:]
    opening = text[start + 1 : start + 2]
    if opening in PAIRS:
        if opening == "(" and (closed := end_of_command(text, start + 1)):
            return text[start:closed]
        depth = 0
        for match in BRACKETS[opening].finditer(text, start + 1):
            depth += 1 if match[0] == opening else -1
            if not depth:
                return text[start : match.end()]
        return text[start:]
    named = EXPANSION.match(text, start)
    return named[0] if named else "$"


def end_of_command(text: str, start: int) -> int | None:
    """Where the command that begins with a bracket ends: brackets in quotes are none of it."""
    open_marks: list[str] = []
    while len(open_marks) < DEPTH_LIMIT and (
        match := (QUOTED_MARKS if open_marks[-1:] == ['"'] else MARKS).search(text, start)
    ):
        start, mark = match.end(), match[0]
        if mark == ")" or (mark == '"' and open_marks[-1] == mark):
            open_marks.pop()
            if not open_marks:
                return start
        elif mark in ('"', "(", "$("):
            open_marks.append(mark[-1])
    return None


def variable_name(written: str) -> str | None:
    """The variable that ``$NAME`` or ``${NAME}`` stands for."""
    name = written.removeprefix("${").removesuffix("}") if written.startswith("${") else written[1:]
    return name if NAME.fullmatch(name) else None
