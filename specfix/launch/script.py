"""The commands of a shell's script, and what its variables hold when each of them runs.

A value counts where the script sets it to plain text on the way there, whatever the environment holds. What hangs on
the way that the script takes (a branch, a loop, a function, a file that is sourced) is unknown.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from specfix.launch.splitter import EXPORTS, LEADING, Found, Splitter
from specfix.launch.words import ASSIGNMENT, Word
from specfix.record import record

SET = re.compile(r"(?:^|(?<=[\s;&|({]))(?P<name>[A-Za-z_]\w*)\+?=", re.ASCII | re.MULTILINE)
LOOP = re.compile(r"\b(?:for|select)\s+(?P<name>[A-Za-z_]\w*)\b", re.ASCII)
READ = re.compile(r"\b(?:read|mapfile|readarray|getopts)\b(?P<names>[^\n;&|<]*)", re.ASCII)
# of what is sourced, these set nothing that a script of ours asks for
HARMLESS = r"(?![^\n;&|]*(?:/activate|/conda\.sh|/setvars\.sh)\b)"
SOURCED = re.compile(rf"(?:^|[\n;&|])[ \t]*(?:source|\.)[ \t]+{HARMLESS}\S", re.ASCII)
SOURCES = frozenset({"source", "."})
OPENERS = {"if": "if", "case": "if", "while": "loop", "until": "loop", "for": "loop", "select": "loop", "{": "body"}
CLOSERS = frozenset({"fi", "esac", "done", "}"})
BRANCHES = frozenset({"else", "elif"})
PIPES = frozenset({"|", "|&"})
ARRAY_LIMIT, TEXT_LIMIT = 2_000, 100_000  # words of an array, characters of a text: what is added to is copied
# the folder of the script itself, as scripts ask for it; the last is how the launch.sh of `specfix fix` does
_SELF = r'"?(?:\$0|\$\{?BASH_SOURCE(?:\[0\])?\}?)"?'
_REAL = rf'(?:{_SELF}|"?\$\((?:readlink -f|realpath)(?: --)? {_SELF}\)"?)'
FOLDER = re.compile(
    rf'\$\(\s*cd (?:-P )?(?:-- )?"?\$\(dirname (?:-- )?{_REAL}\)"?'
    r"(?: (?:&?>|1>) ?/dev/null(?: 2>&1)?)? && pwd(?: -P)?\s*\)"
    rf"|\$\(dirname (?:-- )?{_REAL}\)|\$\(_specfix_folder {_SELF}\)"
)
REPLACED = re.compile(r'\$\{(?P<name>[A-Za-z_]\w*)//"(?P<old>[^"\\`]*)"/(?P<new>"[^"\\`]*"|[\w./-]*)\}', re.ASCII)
# a text that stands in the script itself, as `cat` gives it
HERE = re.compile(
    r"\$\(\s*cat[ \t]+<<(?P<tabs>-)?[ \t]*(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)[ \t]*\n"
    r"(?P<text>(?:[^\n]*\n)*?)(?(tabs)\t*)(?P=mark)\n\s*\)",
    re.ASCII,
)
EXPANDED = re.compile(r"[$`\\]")
PLAIN = re.compile(r"\$(?P<open>\{)?(?P<name>[A-Za-z_]\w*)(?(open)\})", re.ASCII)


@record(frozen=True)
class Command:
    """A command of a script: the variables set before it, its words. ``lost``: the words of the next lines, which look
    like arguments of this command and are none, since it ended before them."""

    words: tuple[Word, ...]
    env: Mapping[str, Word]
    lost: tuple[Word, ...] = ()


def commands(
    text: str,
    file: str,
    first_line: int = 1,
    known: Mapping[str, str] | None = None,
    home: Word | None = None,
    own: bool = False,
) -> Iterator[Command]:
    """The commands of a script, whatever would make them run or not. ``known`` are variables that are set before;
    ``home`` is the word whose text the script is, None where it is a file; ``own``: it is that of ``file`` itself.

    Raises CannotCheck for a quote that is not closed, and for a script of unlikely length.
    """
    before: Command | None = None
    lost: list[Word] = []
    for each in _Script(text, file, first_line, known or {}, home, own).commands():
        first = each.words[0]
        if before is not None and first.text.startswith("-") and first.unknown is None:  # no program is called so
            lost += each.words
            continue
        if before is not None:
            yield replace(before, lost=tuple(lost))
        before, lost = each, []
    if before is not None:
        yield replace(before, lost=tuple(lost))


@dataclass(slots=True)
class _Block:
    """What is open: an ``if``, a ``loop``, a function's ``body``, a subshell (``sub``), a ``chain`` of ``&&``; and the
    names that are set in it, which hold their values no further."""

    kind: str
    names: set[str] = field(default_factory=set)


class _Script:
    def __init__(
        self, text: str, file: str, first_line: int, known: Mapping[str, str], home: Word | None, own: bool
    ) -> None:
        self.folder = str(Path(os.path.realpath(file)).parent) if own else None
        self.variables: dict[str, Word | tuple[Word, ...] | None] = {}
        self.exported: dict[str, Word] = {}
        self.blocks: list[_Block] = []
        self.after = "\n"  # the separator before
        self.sets = Counter(match["name"] for match in SET.finditer(text))
        self.fickle: frozenset[str] = frozenset()
        sourced = len(SOURCED.findall(text))
        if sourced or any(count > 1 for count in self.sets.values()):
            first = Splitter(text, file, first_line, lambda name: None, home)
            self.fickle = self.look(first, sourced)
        by_others = {name for match in READ.finditer(text) for name in match["names"].split()}
        by_others |= {match["name"] for match in LOOP.finditer(text)}
        if by_others and not isinstance(self.fickle, _Everything):
            self.fickle |= by_others
        self.variables |= {name: Word(value) for name, value in known.items() if name not in self.fickle}
        self.splitter = Splitter(text, file, first_line, self.value, home, self.constant)

    def look(self, splitter: Splitter, sourced: int) -> frozenset[str]:
        """Variables of which several values are possible at one place."""
        plain: Counter[str] = Counter()  # how often each is set where that is sure to count, or may be followed
        for found in splitter.commands():
            words = self.opened(found.words)
            _, given, rest = parted(words)
            sourced -= bool(rest) and rest[0].text in SOURCES and self.sure(found)
            for word in () if rest else given:
                match = ASSIGNMENT.fullmatch(word.text)
                if match and (self.sure(found) or (word.array is not None and match["added"] and self.optional(found))):
                    plain[match["name"]] += 1
            self.closed(found)
        self.blocks.clear()
        self.after = "\n"
        if sourced > 0:
            return _Everything()
        return frozenset(name for name, count in self.sets.items() if count > 1 and count != plain[name])

    def commands(self) -> Iterator[Command]:
        for found in self.splitter.commands():
            words = self.opened(found.words)
            exports, given, rest = parted(words)
            if rest:
                env = {name: word.part(value) for word in given for name, _, value in [named(word)]}
                yield Command(tuple(rest), {**self.exported, **env})
                self.changed_by(rest, found)
            else:
                for word in given:
                    self.set(word, found, exports)
            self.closed(found)

    def opened(self, words: list[Word]) -> list[Word]:
        """The words of the command, and what begins or ends with the others."""
        at = 0
        while at < len(words):
            text = words[at].text
            if text in OPENERS:
                self.blocks.append(_Block(OPENERS[text]))
            elif text in CLOSERS and self.blocks:
                self.forget(self.blocks.pop())
            elif text in BRANCHES and self.blocks:
                self.forget(self.blocks[-1])
            if text not in LEADING:
                break
            at += 1
        if words and words[0].text == "function" and words[-1].text == "{":
            self.blocks.append(_Block("body"))
        return words[at:]

    def closed(self, found: Found) -> None:
        """What the separator begins or ends."""
        end = found.end
        if not found.words and end == "\n":
            return
        if end == "&&":
            if not (self.blocks and self.blocks[-1].kind == "chain"):
                self.blocks.append(_Block("chain"))
        elif end == "(":
            self.blocks.append(_Block("sub"))
        else:
            if self.blocks and self.blocks[-1].kind == "chain":
                self.forget(self.blocks.pop())
            if end == ")" and self.blocks and self.blocks[-1].kind == "sub":
                self.forget(self.blocks.pop())
            elif end == ";;" and self.blocks:
                self.forget(self.blocks[-1])
        self.after = end

    def forget(self, block: _Block) -> None:
        for name in block.names:
            self.unsure(name)
        block.names.clear()

    def unsure(self, name: str) -> None:
        self.variables[name] = None
        if name in self.exported:
            self.exported[name] = replace(self.exported[name], text=f"${name}", span=None).knowing([f"${name}"])

    def sure(self, found: Found) -> bool:
        """Whether a command is run once, in its turn, by the script's own shell."""
        return not self.blocks and not self.apart(found)

    def apart(self, found: Found) -> bool:
        """Whether what a command sets may not be set for the next: it runs beside, or after ``||``."""
        return self.after in PIPES or self.after == "||" or found.end in PIPES or found.end == "&"

    def optional(self, found: Found) -> bool:
        """Whether a command is run once in its turn, or not at all."""
        beside = self.after in PIPES or found.end in PIPES or found.end == "&"
        return not beside and all(block.kind in ("if", "chain") for block in self.blocks)

    def set(self, word: Word, found: Found, exports: bool) -> None:
        """A variable is set, or exported."""
        name, added, text = named(word)
        if added is None:  # export NAME
            held = self.variables.get(word.text)
            unknown = Word(f"${word.text}", word.place, f"${word.text}")
            if exports and word.text in self.variables:
                self.exported[word.text] = replace(held, place=word.place) if isinstance(held, Word) else unknown
            return
        before = self.variables.get(name)
        value: Word | tuple[Word, ...] | None
        optional = word.array is not None and bool(added) and not self.sure(found)
        if name in self.fickle:
            value = None
        elif word.array is not None:
            new = tuple(replace(each, maybe=True) for each in word.array) if optional else word.array
            value = new if not added else (*before, *new) if isinstance(before, tuple) else None
            value = value if value is not None and len(value) <= ARRAY_LIMIT else None
        elif added:
            short = isinstance(before, Word) and len(before.text) <= TEXT_LIMIT
            value = joined(before, word.part(text)) if isinstance(before, Word) and short else None
        else:
            value = word.part(text)
        if optional:
            value = value if self.optional(found) else None
        elif self.apart(found):
            value = None
        elif self.blocks:
            self.blocks[-1].names.add(name)
        self.variables[name] = value
        if exports or name in self.exported:
            self.exported[name] = value if isinstance(value, Word) else Word(text, word.place)
            if not isinstance(value, Word):
                self.unsure(name)

    def changed_by(self, words: list[Word], found: Found) -> None:
        """Variables that a command makes others."""
        names: list[str] = []
        if words[0].text in SOURCES and len(words) > 1 and SOURCED.match(f". {words[1].text}"):
            self.variables.clear()
            names = list(self.exported)
        elif words[0].text == "unset":
            names = [word.text for word in words[1:]]
            if self.sure(found):
                self.exported = {name: word for name, word in self.exported.items() if name not in names}
        for name in names:
            self.unsure(name)

    def value(self, name: str) -> Word | tuple[Word, ...] | None:
        """What a variable holds here; a function may run when it holds something else."""
        if self.sets[name] > 1 and any(block.kind == "body" for block in self.blocks):
            return None
        return self.variables.get(name)

    def constant(self, written: str) -> str | None:
        """What other expansions are where that can be told."""
        if self.folder is not None and FOLDER.fullmatch(written):
            return self.folder
        if here := HERE.fullmatch(written):
            return self.here(here)
        match = REPLACED.fullmatch(written)
        held = self.value(match["name"]) if match else None
        if match is None or not isinstance(held, Word) or held.unknown is not None:
            return None
        old, new = self.plain(match["old"]), self.plain(match["new"].strip('"'))
        return held.text.replace(old, new) if old and new is not None else None

    def here(self, found: re.Match[str]) -> str | None:
        """The text without the line breaks at its end, as the shell takes it; None where it is not known."""
        text = found["text"]
        if found["mark"] in text.split("\n"):  # it ends there, and the rest is another command
            return None
        if found["tabs"]:
            text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
        filled = text if found["quote"] else self.plain(text)
        return None if filled is None else filled.rstrip("\n")

    def plain(self, text: str) -> str | None:
        """Text with its variables put in; None where one is not known, or more than that is done to it."""
        if EXPANDED.search(PLAIN.sub("", text)):
            return None
        names = {match["name"] for match in PLAIN.finditer(text)}
        held = {name: self.value(name) for name in names}
        if any(not isinstance(word, Word) or word.unknown is not None for word in held.values()):
            return None
        return PLAIN.sub(lambda match: str(held[match["name"]]), text)


class _Everything(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


def parted(words: list[Word]) -> tuple[bool, list[Word], list[Word]]:
    """(whether it exports, the variables that a command sets or exports, the command that they are set for)."""
    if words and words[0].text in EXPORTS:
        options = [word for word in words[1:] if word.text.startswith("-")]
        exports = words[0].text == "export" or any("x" in word.text for word in options)
        return exports, [word for word in words[1:] if not word.text.startswith("-")], []
    at = next((index for index, word in enumerate(words) if named(word)[1] is None), len(words))
    return False, words[:at], words[at:]


def named(word: Word) -> tuple[str, str | None, str]:
    """(NAME, ``+`` or nothing, value) of an assignment; without the second where it is none."""
    match = ASSIGNMENT.fullmatch(word.text)
    return (match["name"], match["added"], match["value"]) if match else (word.text, None, "")


def joined(before: Word, after: Word) -> Word:
    """Two texts as one."""
    whole = replace(after, text=before.text + after.text, span=None)
    return whole.knowing([*before.unknowns, *after.unknowns])
