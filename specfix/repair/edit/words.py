"""Changes to a server's arguments where they are words: of a shell, or of a list in a YAML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from specfix.engines import Engine
from specfix.engines.facts.serving import Flag
from specfix.launch.arguments import _Reading, grouped, read_group
from specfix.launch.command import Launch
from specfix.launch.parser import parser_of
from specfix.launch.words import Word
from specfix.repair.edit import shell
from specfix.repair.edit.written import CannotEdit, put
from specfix.repair.edit.yaml_tree import Tree
from specfix.repair.patch_json import dropped, patch


@dataclass(frozen=True, slots=True)
class Group:
    """An option with the words that follow it. ``flag``: its name without dashes; ``keys``: of a dotted one."""

    words: tuple[Word, ...]
    flag: str
    keys: tuple[str, ...] = ()

    @property
    def head(self) -> Word:
        return self.words[0]

    @property
    def value(self) -> Word | None:
        """The word, or the part of one, that is the value."""
        _, equals, value = self.head.text.partition("=")
        return self.head.part(value) if equals else self.words[1] if len(self.words) > 1 else None


@dataclass(frozen=True, slots=True)
class WordsFile:
    """The arguments of one launch in ``text``."""

    text: str
    launch: Launch
    engine: Engine

    def groups(self) -> Iterator[Group]:
        """The options, in their order. Raises CannotEdit where a word may be any number of them."""
        facts = self.engine.serve
        parser = parser_of(facts)
        for group in grouped(self.launch.arguments, parser):
            if not group or not group[0].text.startswith("-"):
                continue
            name = group[0].text.partition("=")[0]
            keys: tuple[str, ...] = ()
            if facts.dotted and "." in name:
                name, *rest = name.split(".")
                keys = tuple(rest)
                found = [flag for flag, each in (facts.flags or {}).items() if spelled(name, flag, each)]
            else:
                reading = _Reading()
                read_group(group, parser, facts, reading, self.engine)
                found = [flag_of(dest, self.engine) for dest in reading.options]
            if found:
                yield Group(tuple(group), found[0], keys)

    def set_flag(self, name: str, value: Any) -> str:
        """The text with one flag at a value, or without it where that is None."""
        given = [group for group in self.groups() if group.flag == name and not group.keys]
        flag = (self.engine.serve.flags or {}).get(name, Flag())
        if value is None or (value is False and flag.kind == "switch" and not flag.negation):
            return self.removed(given[-1], flag) if given else self.text
        if flag.kind == "switch":
            word = f"--{name}" if value else f"--no-{name}"
            return put(self.text, given[-1].head, word) if given else self.inserted([word])
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not given:
            return self.inserted([f"--{name}", written])
        held = given[-1].value
        if held is None or flag.nargs is not None:
            raise CannotEdit(f"{given[-1].head} takes several values")
        refuse_unknown(held)
        return put(self.text, held, written)

    def set_key(self, name: str, pointer: str, value: Any) -> str:
        """The text with a key of a flag's JSON at a value, or without it where that is None."""
        key = pointer.removeprefix("/")
        dotted = [group for group in self.groups() if group.flag == name and group.keys]
        if dotted:
            if "/" in key:
                raise CannotEdit(f"--{name} is written as dotted keys")
            given = [group for group in dotted if same_key(".".join(group.keys), key)]
            if value is None:
                return self.removed(given[-1], Flag()) if given else self.text
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if not given:
                head = dotted[-1].head.text.partition("=")[0].partition(".")[0]
                return self.inserted([f"{head}.{key}", written], behind=dotted[-1])
            held = given[-1].value
            if held is None:
                raise CannotEdit(f"{given[-1].head} has no value")
            refuse_unknown(held)
            return put(self.text, held, written)
        whole = [group for group in self.groups() if group.flag == name]
        if not whole:
            return self.text if value is None else self.inserted([f"--{name}", patch("{}", pointer, value)])
        held = whole[-1].value
        if held is None:
            raise CannotEdit(f"{whole[-1].head} has no value")
        return put(self.text, held, with_key(held.text, pointer, value))

    def set_model(self, model: str) -> str:
        """The text that serves another model."""
        named = [group for group in self.groups() if group.flag == "model"]
        held = named[-1].value if named else model_word(self.launch, self.engine)
        if held is None:
            raise CannotEdit("the model is not named there")
        refuse_unknown(held)
        return put(self.text, held, model)

    def inserted(self, words: Sequence[str], behind: Group | None = None) -> str:
        """The text with one more option, behind those of the speculative config."""
        groups = list(self.groups())
        near = [group for group in groups if group.flag == "speculative-config"] or groups
        group = behind or (near[-1] if near else None)
        if group is None:
            raise CannotEdit("the command has no option to put it beside")
        old = [word for word in group.words if word.span is not None]
        if len(words) == 2 and "=" in group.head.text and group.head.text.startswith("--"):
            words = ["=".join(words)]
        if not old or old[0] is not group.head:
            raise CannotEdit(f"{group.head} does not stand there as it is")
        if shell.ground(group.head):
            home = group.head.span and shell.ground(group.head)
            old = [word for word in old if (span := shell.ground(word)) and home and span.home is home.home]
            return shell.insert_words(self.text, old, words)
        tree, items, first = self.item(group.head)
        last = max(index for _, _, index in map(self.item, old))
        return tree.insert_items(items, last, first, words)

    def removed(self, group: Group, flag: Flag) -> str:
        """The text without an option."""
        if flag.nargs is not None and len(group.words) > 2:
            raise CannotEdit(f"{group.head} takes several values")
        words = group.words[: 1 if "=" in group.head.text or flag.kind == "switch" else 2]
        if shell.ground(group.head):
            return shell.remove_words(self.text, words)
        found = [self.item(word) for word in words]
        tree, items, _ = found[0]
        return tree.remove_items(items, [index for _, _, index in found])

    def item(self, word: Word) -> tuple[Tree, yaml.SequenceNode, int]:
        """The list that holds a word, and its place in there."""
        tree = Tree(self.text)
        span = word.span
        while span is not None and span.home is not None:
            span = span.home.span
        if span is None:
            raise CannotEdit(f"{word} does not stand there as it is")
        *_, items, node = tree.path(span.start)
        if not isinstance(items, yaml.SequenceNode):
            raise CannotEdit(f"{word} stands in no list")
        return tree, items, next(index for index, each in enumerate(items.value) if each is node)


def refuse_unknown(word: Word) -> None:
    if word.unknown is not None:
        raise CannotEdit(f"the value there is {word.unknown}, known only where it runs")


def flag_of(dest: str, engine: Engine) -> str:
    """A flag's own name."""
    flags = engine.serve.flags or {}
    return next((name for name, flag in flags.items() if (flag.dest or name.replace("-", "_")) == dest), dest)


def spelled(written: str, name: str, flag: Flag) -> bool:
    return written.replace("_", "-") == f"--{name}" or written in flag.aliases


def same_key(one: str, other: str) -> bool:
    return one.replace("-", "_") == other.replace("-", "_")


def with_key(text: str, pointer: str, value: Any) -> str:
    """JSON text with a key at a value, or without it."""
    try:
        held = json.loads(text)
        if isinstance(held, dict) and pointer.count("/") == 1:
            known = next((key for key in held if same_key(key, pointer[1:])), None)
            pointer = pointer if known is None else f"/{known}"
        return dropped(text, pointer) if value is None else patch(text, pointer, value)
    except (ValueError, RecursionError):
        raise CannotEdit("the value there is no JSON") from None


def model_word(launch: Launch, engine: Engine) -> Word | None:
    from specfix.launch.arguments import read_arguments

    found = read_arguments(launch.arguments, engine, launch.program).model
    return found.word if found else None
