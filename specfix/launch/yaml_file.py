"""YAML with the line of every value, read as vLLM reads its own (PyYAML, safe), and bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from specfix.deployment import Location
from specfix.deployment.json_text import DIGITS_LIMIT, differ, open_file
from specfix.errors import CannotCheck
from specfix.launch.words import Span, Word
from specfix.record import record

LIMIT = 2_000_000  # bytes of a file
NODES_LIMIT = 100_000  # values, each counted where it is used: anchors may repeat one without end
TEMPLATE = re.compile(r"\{\{.*?\}\}|\$\{\{.*?\}\}", re.DOTALL)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MISSED_LIMIT = 20  # lines of a scalar that are looked for in vain
SCALARS = ("str", "int", "float", "bool", "null", "timestamp", "binary")


class Unreadable(CannotCheck):
    """A file that the system does not let us read, whatever it holds."""


@record(frozen=True)
class Item:
    """A value: a scalar, a list of items, or a mapping of keys to items. ``text`` is how a scalar is written;
    ``foreign`` a tag that only some other program knows, so that the value is not known; ``span`` where a scalar is
    written, ``lines`` of one whose lines are folded: (offset, line). ``repeated``: a key of a mapping that has two
    values, of which the last is kept."""

    value: Any
    place: Location
    text: str = ""
    foreign: str | None = None
    span: Span | None = None
    lines: tuple[tuple[int, int], ...] = ()
    repeated: str | None = None

    def get(self, key: str) -> Item | None:
        """The value of a key; None where there is none, or this is no mapping."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def at(self, path: str) -> Item | None:
        """The value at a path of keys with dots between."""
        found: Item | None = self
        for key in path.split("."):
            found = found.get(key) if found else None
        return found

    @property
    def items(self) -> list[Item]:
        """The items of a list; of anything else none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def pairs(self) -> dict[str, Item]:
        """The items of a mapping; of anything else none."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Any:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        return [item.plain() for item in self.value] if isinstance(self.value, list) else self.value

    def repeats(self) -> Iterator[str]:
        """Keys in it that have two values."""
        if self.repeated is not None:
            yield self.repeated
        for each in (*self.pairs.values(), *self.items):
            yield from each.repeats()

    def unknown(self) -> str | None:
        """What of it is known only where it is rendered."""
        return next(iter(self.unknowns()), None)

    def unknowns(self) -> list[str]:
        """All of it that is known only where it is rendered, with what it holds."""
        if self.foreign:
            return [f"{self.foreign} {self.text}".strip()]
        if isinstance(self.value, (dict, list)):
            inside = self.value.values() if isinstance(self.value, dict) else self.value
            return [each for item in inside for each in item.unknowns()]
        return TEMPLATE.findall(self.text)

    def word(self) -> Word:
        """A scalar as a word of a command."""
        text = self.text if isinstance(self.value, str) or self.foreign else scalar(self.value, self.text)
        return Word(text, self.place, None, self.span, lines=self.lines).knowing(self.unknowns())


def scalar(value: Any, text: str) -> str:
    return {True: "true", False: "false"}.get(value, text) if isinstance(value, bool) else text


def read_yaml(text: str, file: str) -> list[Item]:
    """The documents of a YAML file. Raises CannotCheck for what is no YAML, or of unlikely size."""
    counter = _Counter(file, text)
    try:
        if len(text) > NODES_LIMIT:  # each node takes a character at least
            refuse_many(text, file)
        nodes = list(yaml.compose_all(text, Loader=LOADER))
        return [counter.item(node) for node in nodes if node is not None]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        if template := TEMPLATE.search(text):
            at = text.count("\n", 0, template.start()) + 1
            raise CannotCheck(f"{file}, line {at}: {template[0]} is a template: render the file first") from None
        raise CannotCheck(f"{file}, line {line}: not valid YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise CannotCheck(f"{file} is not valid YAML ({str(error).splitlines()[0]})") from None
    except RecursionError:
        raise CannotCheck(f"{file} is nested too deep") from None


def refuse_many(text: str, file: str) -> None:
    """Raise CannotCheck where a file holds too many values to make nodes of them all."""
    values = (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionStartEvent)
    found = (event for event in yaml.parse(text, Loader=LOADER) if isinstance(event, values))
    if next(islice(found, 2 * NODES_LIMIT, None), None):  # of a mapping keys are nodes, too
        raise too_many(file)


def too_many(file: str) -> CannotCheck:
    return CannotCheck(f"{file} holds more than {NODES_LIMIT:,} values, its anchors counted where they are used")


def read_yaml_file(path: str | Path) -> list[Item]:
    """The documents of a file. Raises CannotCheck."""
    return read_yaml(read_text(Path(path)), str(path))


def read_text(path: Path) -> str:
    """A launch file's text. Raises CannotCheck where it is no text, or of unlikely size, Unreadable where it cannot be
    read."""
    return text_of(read_content(path), path)


def read_content(path: Path) -> bytes:
    """What a launch file holds, or the first LIMIT + 1 bytes of it. Raises Unreadable."""
    try:
        if path.exists() and not path.is_file():  # a pipe would block
            raise Unreadable(f"{path} cannot be read: it is not a regular file")
        with open_file(path) as opened:
            return opened.read(LIMIT + 1) or b""  # None: see open_file()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def text_of(content: bytes, path: Path) -> str:
    """The same as text. Raises CannotCheck."""
    if len(content) > LIMIT:
        raise CannotCheck(f"{path} holds more than the {LIMIT:,} bytes that are read of a launch file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CannotCheck(f"{path} is not UTF-8 text") from None


class _Counter:
    """Makes items of nodes, and stops where there are too many."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.count, self.loader = file, 0, yaml.SafeLoader("")
        self.written = text.split("\n")
        self.known: dict[int, tuple[tuple[int, int], ...]] = {}  # an anchor's scalar is looked at once

    def item(self, node: yaml.Node) -> Item:
        self.count += 1
        if self.count > NODES_LIMIT:
            raise too_many(self.file)
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")  # its text begins on the next line
        place = Location(self.file, "", node.start_mark.line + 1 + block)
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        foreign = None if node.tag.startswith("tag:yaml.org,2002:") else node.tag
        if isinstance(node, yaml.MappingNode):
            merged, own = ([(key, self.item(value)) for key, value in some] for some in self.pairs(node))
            values = dict([*merged, *own])
            twice = (key for key, item in own if item is not values[key] and differ(item.plain(), values[key].plain()))
            return Item(values, place, "", foreign, repeated=next(twice, None))
        if isinstance(node, yaml.SequenceNode):
            return Item([self.item(each) for each in node.value], place, "", foreign)
        text = str(node.value)
        if foreign or kind not in SCALARS:
            return Item(None, place, text, foreign or node.tag)
        span = Span(node.start_mark.index, node.end_mark.index, getattr(node, "style", None) or "plain")
        lines = self.folded(node, text) if isinstance(node, yaml.ScalarNode) else ()
        if kind == "int" and len(text) > DIGITS_LIMIT:  # PyYAML takes minutes for one of many sixtieths
            return Item(text, place, text, span=span)
        try:
            value = self.loader.construct_object(node, deep=True)
            return Item(value, place, text, span=span, lines=lines)
        except (yaml.YAMLError, ValueError, OverflowError, LookupError, AttributeError):  # !!bool x, !!timestamp x
            return Item(text, place, text, span=span)

    def folded(self, node: yaml.ScalarNode, text: str) -> tuple[tuple[int, int], ...]:
        """Where each line of a folded scalar begins in its text; of one that is kept as it is, nothing."""
        first, last = node.start_mark.line, node.end_mark.line
        if node.style == "|" or first == last:
            return ()
        if id(node) not in self.known:
            found = list(offsets(self.contents(node, first, last), text))
            start = (0, first + 1 + (node.style == ">"))
            self.known[id(node)] = (start, *(each for each in found if each[0]))
        return self.known[id(node)]

    def contents(self, node: yaml.ScalarNode, first: int, last: int) -> Iterator[tuple[int, str]]:
        """(line, what stands there) of a scalar, without its key, its mark and its quotes."""
        quotes = "'\"" if node.style != ">" else ""
        for line, written in enumerate(self.written[first : last + 1], first):
            if line > first:
                yield line + 1, written.strip().rstrip(quotes)
            elif node.style != ">":
                yield line + 1, written[node.start_mark.column :].strip().strip(quotes)

    def pairs(self, node: yaml.MappingNode) -> tuple[list[tuple[str, yaml.Node]], list[tuple[str, yaml.Node]]]:
        """Keys and values: what ``<<`` merges, and the mapping's own, which win."""
        merged: list[tuple[str, yaml.Node]] = []
        own: list[tuple[str, yaml.Node]] = []
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in reversed(parts):
                    for some in self.pairs(part) if isinstance(part, yaml.MappingNode) else ():
                        merged += some
            else:
                own.append((str(key.value), value))
            self.count += 1
        return merged, own


def offsets(contents: Iterable[tuple[int, str]], text: str) -> Iterator[tuple[int, int]]:
    """(offset, line) of each line that is found in the text as it stands; escapes may hide some."""
    at, missed = 0, 0
    for line, content in contents:
        here = text.find(content, at) if content else -1
        if here >= 0:
            yield here, line
            at = here + len(content)
        elif content:
            missed += 1
            if missed == MISSED_LIMIT:
                return
