"""The arguments of a server as one release reads them: its flags, abbreviations, negations, dotted keys, config file.

Source: FlexibleArgumentParser (vllm/utils/argparse_utils.py, or utils/__init__.py).
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from specfix.deployment import Location, Misfit
from specfix.deployment.json_text import DEPTH_LIMIT, depth_exceeds, repeated, show
from specfix.engines import Engine
from specfix.engines.facts.serving import ServeFacts
from specfix.errors import CannotCheck
from specfix.launch.parser import TOO_DEEP, UNKNOWN, Refused, appends, json_object, parser_of, size, spelling
from specfix.launch.words import Word, literal
from specfix.record import record

CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<choices>.*)\)")
QUOTED = re.compile(r"[\w./-]+")
LEVELS = ("0", "1", "2", "3")  # after -O
SPECULATIVE = ("speculative_config", "spec_method", "spec_model", "spec_tokens")
CONFIG = "--config"
SERVED_NAME = re.compile(r"--served[-_]model[-_]name(?:=.+)?", re.DOTALL)  # as the engine looks for it
MODEL_FIRST = "the model as the first argument, before all options"
WORDS_LIMIT = 2_000  # arguments of a server; each may be a finding
END = "--"  # all words after it are arguments of no option
FIRST_MARK, MARKS_LIMIT = 0xE000, 1000
MARKS = re.compile("[\ue000-\ue3ff]")  # stand for unknown parts while an object is read
STRING_OR_MARK = re.compile(r'"(?:\\.|[^"\\])*"|[\ue000-\ue3ff]', re.DOTALL)


@record(frozen=True)
class Given:
    """One option that is given: its value as the release reads it, and the word that names it. ``unknown`` is what its
    value is written as where that is known only where it runs; of an object ``parts`` are the keys of which that is so,
    and ``value`` is without them."""

    value: Any
    word: Word
    unknown: str | None = None
    parts: Mapping[str, str] = field(default_factory=dict)


@record(frozen=True)
class Arguments:
    """``model``: what is served. ``options``: by the field that they set (``max_model_len``). ``open``: words that
    stand for any number of arguments (``"$@"``). ``strangers``: flags that the release does not have, by name, with the
    word after them. ``assumed``: what asks for speculation where the script takes one way, and is taken for given."""

    model: Given | None
    options: Mapping[str, Given]
    strangers: Mapping[str, Given]
    misfits: tuple[Misfit, ...] = ()
    open: tuple[Word, ...] = ()
    assumed: tuple[Word, ...] = ()


@dataclass(slots=True)
class _Reading:
    model: Given | None = None
    options: dict[str, Given] = field(default_factory=dict)
    strangers: dict[str, Given] = field(default_factory=dict)
    misfits: list[Misfit] = field(default_factory=list)
    open: list[Word] = field(default_factory=list)
    assumed: list[Word] = field(default_factory=list)
    takes_model: bool = False  # the next word that no option takes is the model


def read_arguments(
    words: Sequence[Word], engine: Engine, program: str = "vllm serve", texts: Mapping[str, str] | None = None
) -> Arguments:
    """The arguments of ``vllm serve`` (or of ``api_server``) in the order in which they count. ``texts`` are those of
    files that were read, by name.

    Raises CannotCheck where the flags of the release are not known, and for arguments without end.
    """
    facts = engine.serve
    if not facts.flags:
        raise CannotCheck(f"the flags of {engine} are not known, so its launch command cannot be read")
    parser = parser_of(facts)
    reading = _Reading()
    given = words
    words = with_config_file(words, facts, reading, engine, texts or {})
    if len(words) > WORDS_LIMIT:
        raise CannotCheck(
            f"{words[-1].place.file} gives the server more than the {WORDS_LIMIT:,} arguments that are read"
        )
    dotted: dict[str, tuple[Word, dict[str, Any], list[str]]] = {}
    reading.takes_model = bool(facts.positional) and program == "vllm serve"
    end = next((at for at, word in enumerate(words) if word.text == END), len(words))
    for group in grouped(words[:end], parser):
        if not group:
            continue
        if group[0].many:  # what follows may be the value of what it holds
            reading.open.append(group[0])
        elif not group[0].text.startswith("-"):
            for word in group:
                stray(word, reading, engine)
        elif facts.dotted and "." in group[0].text.partition("=")[0]:
            read_dotted(group, facts, dotted, reading, engine)
        else:
            read_group(group, parser, facts, reading, engine)
    for word in words[end + 1 :]:
        stray(word, reading, engine)
    for flag, (word, value, unknown) in dotted.items():  # the release puts them behind all others
        merged = Word(json.dumps(value), word.place, maybe=word.maybe).knowing(unknown)
        read_group([Word(flag, word.place), merged], parser, facts, reading, engine)
    by_flag = [word for word in given if spelling(word.text, facts).partition("=")[0] == "--model"]
    if by_flag and reading.model is not None and program == "vllm serve":
        message = f"{engine} takes the model as the first argument or by --model, not both"
        reading.misfits.append(Misfit(message, spot(by_flag[0])))
    named = reading.options.pop("model", None)
    if named is not None and (program != "vllm serve" or facts.model_flag) and reading.model is None:
        reading.model = named
    elif program == "vllm serve" and facts.positional and not by_flag:
        model_behind(words, given, facts, reading, engine)
    left = (tuple(reading.misfits), tuple(reading.open), tuple(reading.assumed))
    return Arguments(reading.model, reading.options, reading.strangers, *left)


def with_config_file(
    words: Sequence[Word], facts: ServeFacts, reading: _Reading, engine: Engine, texts: Mapping[str, str]
) -> list[Word]:
    """The words with those of a ``--config`` file before the other options, so that the command's own win."""
    words = list(words)
    plain = [word.text for word in words]
    if CONFIG not in plain:
        for word in words:
            if word.text.startswith(f"{CONFIG}="):
                message = f"{engine} reads no config file here: it looks for --config and the file as two words"
                reading.misfits.append(
                    Misfit(message, spot(word), f"{CONFIG} {word.text[len(CONFIG) + 1 :]}", ignored=True)
                )
        return words
    at = plain.index(CONFIG)
    if plain.count(CONFIG) > 1 or at + 1 == len(words):
        reading.misfits.append(Misfit(f"{engine} takes one --config, and a file after it", spot(words[at])))
        return words[:at]
    named = words[at + 1]
    rest = [*words[:at], *words[at + 2 :]]
    if named.unknown or named.maybe or words[at].maybe:
        reading.open.append(named)
        return rest
    if named.text.rpartition(".")[2] not in {"yaml", "yml"}:
        reading.misfits.append(Misfit(f"{engine} takes a --config file whose name ends in .yaml or .yml", spot(named)))
        return rest
    model = 1 if rest and not rest[0].text.startswith("-") else 0
    return [*rest[:model], *config_words(named, facts, reading, engine, texts), *rest[model:]]


def config_words(
    named: Word, facts: ServeFacts, reading: _Reading, engine: Engine, texts: Mapping[str, str]
) -> Iterator[Word]:
    """A config file's keys as the words that the release makes of them."""
    from specfix.launch.yaml_file import read_yaml, read_yaml_file

    text = texts.get(named.text)
    documents = read_yaml_file(named.text) if text is None else read_yaml(text, named.text)
    if len(documents) != 1 or not documents[0].pairs:
        raise CannotCheck(f"{named.text} is no mapping of flags to values")
    if (twice := documents[0].repeated) is not None:
        flag = Word(f"--{twice}", documents[0].pairs[twice].place)
        reading.misfits.append(last_counts(twice, named.text, flag, engine))
    for key, item in documents[0].pairs.items():
        flag = Word(f"--{key}", item.place)
        reading.misfits += [last_counts(each, flag.text, flag, engine) for each in islice(item.repeats(), 1)]
        if isinstance(item.value, bool):
            if item.value:
                yield flag
            elif facts.yaml_false is not False:
                yield Word(f"--no-{key}", item.place)
            else:
                message = f"{engine} drops {key}: false of a config file without a word"
                reading.misfits.append(Misfit(message, spot(flag), f"no-{key}: true", ignored=True))
        elif isinstance(item.value, list):
            if item.value:
                yield from (flag, *(Word(str(each.plain()), each.place, each.unknown()) for each in item.items))
        elif isinstance(item.value, dict):
            value = item.plain()
            yield flag
            text = json.dumps(value, default=str) if facts.yaml_nested else str(value)
            yield Word(text, item.place).knowing(item.unknowns())
        else:
            yield from (flag, replace(item.word(), text=item.text if item.unknown() else str(item.value)))


def grouped(words: Sequence[Word], parser: argparse.ArgumentParser) -> Iterator[list[Word]]:
    """Each option with the words that follow it; first what stands before all of them."""
    group: list[Word] = []
    for word in words:
        option = word.text.startswith("-") and len(word.text) > 1
        if word.many or (option and not parser._negative_number_matcher.match(word.text)):
            yield group
            group = []
        group.append(word)
    yield group


def read_group(
    group: Sequence[Word], parser: argparse.ArgumentParser, facts: ServeFacts, reading: _Reading, engine: Engine
) -> None:
    """One option and its words."""
    head, *rest = group
    if any(each in head.text.partition("=")[0] for each in head.unknowns):
        reading.open.append(head)
        return
    if any(word.maybe for word in group):
        read_maybe(group, parser, facts, reading, engine)
        return
    spelt = spelling(head.text, facts)
    if head.text == "-O" and facts.level_flag and rest and rest[0].text in LEVELS:
        spelt = f"--{facts.level_flag}"
    unknown = next((word.unknown for word in group if word.unknown), None)
    # whether an unknown word is one value or several cannot be told: one is by far the more common
    texts = [known_text(spelt, head), *(UNKNOWN if word.unknown else word.text for word in rest)]
    try:
        found, left = parser.parse_known_args(texts, argparse.Namespace())
    except (Refused, argparse.ArgumentError) as refused:
        reading.misfits.append(refusal(group, str(refused), engine))
        return
    values = vars(found)
    if not values:
        reading.misfits.append(not_taken(head, facts, engine))
        name, equals, value = spelt.partition("=")
        said = head.part(value) if equals else rest[0] if rest else Word("", head.place)
        reading.strangers[name.removeprefix("--").replace("-", "_")] = Given(said.text, head, said.unknown)
        return
    for word in group[len(group) - len(left) :] if left else ():
        stray(word, reading, engine)
    if any(isinstance(value, dict) or value == UNKNOWN for value in values.values()):
        tell_repeated(head, rest or [head.part(head.text.partition("=")[2])], reading, engine)
    for dest, value in values.items():
        if UNKNOWN in (value if isinstance(value, list) else [value]):
            whole = rest[0] if rest else head.part(head.text.partition("=")[2])
            reading.options[dest] = (dest == "speculative_config" and partly(whole, head, facts)) or Given(
                None, head, unknown
            )
        elif isinstance(value, list) and dest in reading.options and appends(facts, dest):
            before = reading.options[dest].value or []
            reading.options[dest] = Given([*before, *value], head)
        else:
            reading.options[dest] = Given(value, head)


def read_maybe(
    group: Sequence[Word], parser: argparse.ArgumentParser, facts: ServeFacts, reading: _Reading, engine: Engine
) -> None:
    """An option that the script gives where it takes one way: whether it does is not known, and so it is refused by
    nobody. Speculation is what is to be checked: it is taken for given."""
    sure = [replace(word, maybe=False) for word in group]
    apart = _Reading()
    read_group(sure, parser, facts, apart, engine)
    written = " ".join(word.text for word in group)
    for dest, given in apart.options.items():
        if dest in SPECULATIVE:
            reading.options[dest] = given
            reading.assumed.append(group[0])
        else:
            reading.options[dest] = Given(None, group[0], f"{written}, where the script adds it,")
    reading.open += apart.open


def tell_repeated(head: Word, values: Sequence[Word], reading: _Reading, engine: Engine) -> None:
    """Say of an option's values that are JSON where a key stands twice in one."""
    for word in values:
        key = repeated(marked(word)[0]) if "{" in word.text else None
        if key is not None:
            reading.misfits.append(last_counts(key, spot(head).pointer, head, engine))


def last_counts(key: str, where: str, word: Word, engine: Engine) -> Misfit:
    message = f"{engine} takes the last value of {show(key)} in {where}, and drops the one before"
    return Misfit(message, spot(word), ignored=True, repair=f"give {show(key)} one value")


def partly(word: Word, head: Word, facts: ServeFacts) -> Given | None:
    """The object in a word of which parts are unknown; None where it cannot be read without them."""
    text, marks = marked(word)
    if not marks:
        return None
    try:
        value = json_object(text, facts)
    except (argparse.ArgumentTypeError, ValueError):
        return None

    def restored(found: Any) -> str:
        shown = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return MARKS.sub(lambda match: marks[match[0]], shown)

    unknown = {key: restored(held) for key, held in value.items() if MARKS.search(json.dumps(held, ensure_ascii=False))}
    if any(MARKS.search(key) for key in value) or not unknown:
        return None
    known = {key: held for key, held in value.items() if key not in unknown}
    return Given(known, head, None, unknown)


def marked(word: Word) -> tuple[str, dict[str, str]]:
    """A word with a mark in the place of each unknown part, as a string of JSON; and what the marks stand for. As it is
    where that cannot be."""
    texts = sorted({literal(each) for each in word.unknowns}, key=len, reverse=True)
    if MARKS.search(word.text) or len(texts) > MARKS_LIMIT:
        return word.text, {}
    text = word.text
    marks = {chr(FIRST_MARK + index): written for index, written in enumerate(texts)}
    for mark, written in marks.items():
        text = text.replace(written, mark).replace(json.dumps(written)[1:-1], mark)
    return STRING_OR_MARK.sub(lambda match: match[0] if match[0][0] == '"' else f'"{match[0]}"', text), marks


def known_text(spelt: str, word: Word) -> str:
    """The head of a group as the parser takes it, with what is unknown of its value marked."""
    name, equals, _ = spelt.partition("=")
    return f"{name}={UNKNOWN}" if equals and word.unknown else spelt


def read_dotted(
    group: Sequence[Word],
    facts: ServeFacts,
    dotted: dict[str, tuple[Word, dict[str, Any], list[str]]],
    reading: _Reading,
    engine: Engine,
) -> None:
    """``--flag.a.b value`` is a part of the flag's JSON."""
    head, *rest = group
    name, equals, text = head.text.partition("=")
    unknown = head.unknowns
    if not equals:
        if not rest:
            reading.misfits.append(Misfit(f"{head} needs a value", spot(head)))
            return
        text, unknown, rest = rest[0].text, rest[0].unknowns, rest[1:]
    for word in rest:
        stray(word, reading, engine)
    adds = name.endswith("+") and bool(facts.dotted_lists)
    flag, *keys = name.removesuffix("+").split(".") if adds else name.split(".")
    flag = flag.replace("_", "-") if facts.underscores else flag
    value: Any = text.split(",") if adds else dotted_value(text, facts)
    tell_repeated(head, [replace(head, text=text).knowing(unknown)], reading, engine)
    word, whole, missing = dotted.get(flag, (head, {}, []))
    for key in reversed(keys):
        value = {key: value}
    if depth_exceeds(value, DEPTH_LIMIT):
        reading.misfits.append(Misfit(f"{engine} refuses {show(name)}: {TOO_DEEP}", spot(head)))
        return
    merge(whole, value)
    dotted[flag] = (word, whole, [*missing, *unknown])


def merge(before: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Put one object into another: lists grow, and of all else the last one counts (recursive_dict_update)."""
    for key, value in more.items():
        held = before.get(key)
        if isinstance(value, dict) and isinstance(held, dict):
            merge(held, value)
        elif isinstance(value, list) and isinstance(held, list):
            before[key] = [*held, *value]
        else:
            before[key] = value


def dotted_value(text: str, facts: ServeFacts) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return size(text, facts) if facts.dotted_sizes else text
    except ValueError:
        return text


def stray(word: Word, reading: _Reading, engine: Engine) -> None:
    """A word that no option takes."""
    if word.many or word.maybe or (word.text == word.unknown and not reading.takes_model):
        reading.open.append(word)
    elif reading.takes_model:
        reading.takes_model, reading.model = False, Given(word.text, word, word.unknown)
    else:
        message = f"{engine} does not take {show(word.text)}: no option before it wants it"
        reading.misfits.append(Misfit(message, spot(word)))


def model_behind(
    words: Sequence[Word], given: Sequence[Word], facts: ServeFacts, reading: _Reading, engine: Engine
) -> None:
    """A model that stands behind an option: an option of several values takes it for one of them, and beside
    --served-model-name some releases refuse to look for it."""
    refused = facts.model_first and beside_its_name(given)
    found = swallowed(words, facts, reading) if reading.takes_model and not reading.open else None
    if found is not None:
        dest, word = found
        option = reading.options[dest]
        reading.options[dest] = replace(option, value=option.value[:-1])
        reading.takes_model, reading.model = False, Given(word.text, word, word.unknown)
        if not refused:
            flag, default = spot(option.word).pointer, (facts.flags or {}).get("model")
            message = f"{engine} takes {show(word.text)} for one more value of {flag}, and finds no model"
            then = f"It serves its default{f', {default.default}' if default else ''}."
            reading.misfits.append(Misfit(message, spot(option.word), repair=MODEL_FIRST, then=then))
    if refused:
        message = f"{engine} wants the model as the first argument where {refused.text.partition('=')[0]} is given"
        reading.misfits.append(Misfit(message, spot(refused), repair=MODEL_FIRST))


def beside_its_name(words: Sequence[Word]) -> Word | None:
    """--served-model-name of a command that begins with an option and has no config file."""
    texts = [word.text for word in words]
    if not texts or not texts[0].startswith("-") or any(text.partition("=")[0] == CONFIG for text in texts):
        return None
    return next((word for word in words if SERVED_NAME.fullmatch(word.text) and not word.maybe), None)


def swallowed(words: Sequence[Word], facts: ServeFacts, reading: _Reading) -> tuple[str, Word] | None:
    """The field of an option of several values of which the last may be meant for the model, and that word."""
    several = {flag.dest or name.replace("-", "_") for name, flag in (facts.flags or {}).items() if flag.nargs == "+"}
    for dest, given in reversed(reading.options.items()):
        at = next((index for index, word in enumerate(words) if word is given.word), None)
        count = len(given.value) if dest in several and isinstance(given.value, list) else 0
        if count > 1 and at is not None and words[at + count : at + count + 1]:
            word = words[at + count]
            if word.text == given.value[-1]:
                return dest, word
    return None


def refusal(group: Sequence[Word], message: str, engine: Engine) -> Misfit:
    """Argparse's message without the spellings that it begins with."""
    told = re.sub(r"^argument [^:]*: ", "", message)
    written = " ".join(word.text for word in group)
    match = CHOICE.search(told)
    near = (
        next(iter(difflib.get_close_matches(match["given"], QUOTED.findall(match["choices"]), 1)), None)
        if match
        else None
    )
    return Misfit(f"{engine} refuses {show(written)}: {told}", spot(group[0]), near)


def spot(word: Word) -> Location:
    """Where a word stands, and which it is: a command line has no lines."""
    return replace(word.place, pointer=word.text.partition("=")[0])


def not_taken(word: Word, facts: ServeFacts, engine: Engine) -> Misfit:
    """A flag that the release does not have."""
    name = spelling(word.text.partition("=")[0], facts)
    spellings = [f"--{flag}" for flag in facts.flags or {}]
    near = difflib.get_close_matches(name, spellings, 1, cutoff=0.7)
    return Misfit(f"{engine} has no {name}", spot(word), near[0] if near else None)
