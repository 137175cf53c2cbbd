"""What a plan changes, made in the launch file itself, and read again: it says just that, and nothing else."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from specfix.deployment.shim import KEPT, PATH
from specfix.engines import Engine
from specfix.errors import CannotCheck
from specfix.launch.arguments import CONFIG, Arguments
from specfix.launch.command import Launch
from specfix.launch.manifests import Found, is_script, launches_in
from specfix.launch.words import Word
from specfix.repair.edit import shell
from specfix.repair.edit.serve_yaml import ServeYaml
from specfix.repair.edit.words import WordsFile
from specfix.repair.edit.written import CannotEdit, put, yaml_text
from specfix.repair.edit.yaml_tree import Tree, item_text


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag's value; None takes it away."""

    name: str
    value: Any

    @property
    def said(self) -> str:
        return f"no --{self.name}" if self.value is None else f"--{self.name} {self.value}"


@dataclass(frozen=True, slots=True)
class Key:
    """A key (an RFC 6901 pointer) of a flag whose value is JSON; None takes it away."""

    name: str
    pointer: str
    value: Any

    @property
    def said(self) -> str:
        key = json.dumps(self.pointer[1:])
        return f"{f'no {key}' if self.value is None else f'{key}: {json.dumps(self.value)}'} in --{self.name}"


@dataclass(frozen=True, slots=True)
class Model:
    """Another target."""

    value: str

    @property
    def said(self) -> str:
        return f"the model {self.value}"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable's value; None unsets it."""

    name: str
    value: str | None

    @property
    def said(self) -> str:
        return f"no {self.name}" if self.value is None else f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True)
class PathEntry:
    """A folder that is to stand first on PYTHONPATH."""

    value: str

    @property
    def said(self) -> str:
        return f"{PATH}={self.value}{KEPT}"


Edit = Flag | Key | Model | Variable | PathEntry


Read = Callable[[Found, Engine], tuple[Arguments, Any]]


@dataclass(frozen=True, slots=True)
class LaunchFile:
    """A launch, number ``index`` of those in ``text``, as the file at ``path`` holds them. ``read`` gives a launch's
    arguments and options, as the release reads them."""

    path: Path
    text: str
    index: int
    engine: Engine
    read: Read

    def found(self) -> Found:
        return launches_in(self.text, self.path)[self.index]

    def others(self) -> list[Any]:
        """What the file's other launches say."""
        found = launches_in(self.text, self.path)
        return [
            ([word.text for word in each.launch.arguments], {name: word.text for name, word in each.launch.env.items()})
            for index, each in enumerate(found)
            if index != self.index
        ]

    def edited(self, edits: Sequence[Edit]) -> LaunchFile:
        """The file with the edits made. Raises CannotEdit, which says where, why, and what to write by hand."""
        file, wanted = self, self.says()
        for edit in edits:
            try:
                file = replace(file, text=file.made(edit))
                expect(wanted, edit, file)
            except CannotEdit as why:
                raise CannotEdit(f"{self.where(edit)}: {why}; write {edit.said} there by hand") from None
            except (yaml.YAMLError, CannotCheck, LookupError, RecursionError):
                raise CannotEdit(f"{self.where(edit)}: write {edit.said} there by hand") from None
        if edits:
            self.verify(file, wanted, edits)
        return file

    def verify(self, file: LaunchFile, wanted: dict[str, Any], edits: Sequence[Edit]) -> None:
        """Raise CannotEdit where the file as it is now says anything else than it is to say."""
        try:
            found = file.says()
            same = found.pop("misfits") <= wanted.pop("misfits") and found == wanted and file.others() == self.others()
        except (CannotCheck, LookupError):
            same = False
        if not same:
            raise CannotEdit(f"{self.where(edits[0])}: write {', '.join(edit.said for edit in edits)} there by hand")

    def says(self) -> dict[str, Any]:
        """All that the launch says, by name."""
        found = self.found()
        arguments, options = self.read(found, self.engine)
        said: dict[str, Any] = {"--" + name: value for name, value in {**options.values, **options.flags}.items()}
        for name in ("--method", "--num_speculative_tokens"):
            if name in said:
                said["speculative." + name[2:]] = said.pop(name)
        said |= {f"speculative.{name}": value for name, value in options.speculative.items()}
        said |= {f"unknown {name}": text for name, text in options.unknown.items() if name != PATH}
        said |= {f"env {name}": word.text for name, word in found.launch.env.items()}
        said["model"] = arguments.model.word.text if arguments.model else None
        if arguments.model and arguments.model.unknown is None:
            said["model"] = arguments.model.value
        said["misfits"] = {misfit.message for misfit in (*arguments.misfits, *options.misfits)}
        return said

    def where(self, edit: Edit) -> str:
        """File and line of what an edit concerns."""
        found = self.found()
        word: Word | None = None
        if isinstance(edit, Variable | PathEntry):
            word = found.launch.env.get(edit.name if isinstance(edit, Variable) else PATH)
        else:
            arguments, _ = self.read(found, self.engine)
            name = "speculative_config" if isinstance(edit, Model) else edit.name.replace("-", "_")
            given = arguments.model if isinstance(edit, Model) else arguments.options.get(name)
            word = given.word if given else None
        if word is None or word.place.line is None:
            words = found.launch.arguments
            word = words[0] if words else None
        line = word.place.line if word else None
        file = word.place.file if word else str(self.path)
        return file if line is None else f"{file}, line {line}"

    def made(self, edit: Edit) -> str:
        """The text with one edit made."""
        launch = self.found().launch
        where = self.arguments(launch)
        if isinstance(edit, Variable):
            text = self.variable(launch, edit.name, edit.value)
        elif isinstance(edit, PathEntry):
            text = self.path_entry(launch, edit.value)
        elif isinstance(edit, Flag):
            text = where.set_flag(edit.name, edit.value)
        elif isinstance(edit, Model):
            text = where.set_model(edit.value)
        else:
            own = OWN_FLAGS.get(edit.pointer, "") if edit.name == "speculative-config" else ""
            if own and own.replace("-", "_") in self.read(self.found(), self.engine)[0].options:
                text = where.set_flag(own, edit.value)
            else:
                text = where.set_key(edit.name, edit.pointer, edit.value)
        self.refuse_shared(text)
        return text

    def arguments(self, launch: Launch) -> WordsFile | ServeYaml:
        words = launch.arguments
        if words and words[0].text == CONFIG and words[0].span is None:
            return ServeYaml(self.text, words[0].place.line or 1, self.engine)
        return WordsFile(self.text, launch, self.engine)

    def refuse_shared(self, text: str) -> None:
        """Raise CannotEdit where what was changed stands in several places."""
        if is_script(self.path, self.text) or text == self.text:
            return
        limit = min(len(text), len(self.text))
        first = next((index for index in range(limit) if text[index] != self.text[index]), limit)
        tree = Tree(self.text)
        for path in tree.paths.values():
            if path[-1].start_mark.index <= first < tree.end(path[-1]):
                tree.refuse_shared(path)

    # variables

    def variable(self, launch: Launch, name: str, value: str | None) -> str:
        """The text with a variable at a value, or without it."""
        held = launch.env.get(name)
        self.refuse_env_file(name, held)
        if value is None:
            return self.text if held is None else self.without(held)
        if held is not None:
            return put(self.text, held, value)
        return self.added(launch, name, value)

    def path_entry(self, launch: Launch, folder: str) -> str:
        """The text with a folder put first on PYTHONPATH."""
        held = launch.env.get(PATH)
        self.refuse_env_file(PATH, held)
        if held is None:
            return self.added(launch, PATH, folder, kept=True)
        if folder in held.text.removesuffix(KEPT).split(":"):
            return self.text
        return put(self.text, held, f"{folder}:{held.text}" if held.text else folder)

    def refuse_env_file(self, name: str, held: Word | None) -> None:
        """Raise CannotEdit for a variable that another file sets."""
        place = self.read(self.found(), self.engine)[1].places.get(name)
        if held is None and place is not None:
            raise CannotEdit(f"{name} is set in {place.file}, line {place.line}")

    def without(self, held: Word) -> str:
        if shell.ground(held):
            return shell.remove_variable(self.text, held)
        tree, path = self.yaml_path(held)
        *_, above, node = path
        if isinstance(above, yaml.MappingNode) and len(path) > 2 and isinstance(path[-3], yaml.SequenceNode):
            items = path[-3]  # of {name, value}
            index = next(index for index, each in enumerate(items.value) if each is above)
        elif isinstance(above, yaml.SequenceNode):
            items, index = above, next(index for index, each in enumerate(above.value) if each is node)
        else:
            items = above
            index = next(index for index, (_, value) in enumerate(above.value) if value is node)
        if len(items.value) == 1:  # the whole section goes
            home = path[path.index(items) - 1]
            index = next(index for index, (_, value) in enumerate(home.value) if value is items)
            items = home
        return tree.remove_items(items, [index])

    def added(self, launch: Launch, name: str, value: str, kept: bool = False) -> str:
        """The text with one more variable; ``kept``: in front of what the environment has there."""
        words = [word for word in launch.arguments if word.span is not None]
        if isinstance(self.arguments(launch), ServeYaml):
            raise CannotEdit("such a file sets no variables: do it where the server is started")
        if not words:
            raise CannotEdit("no argument of the command stands there as it is")
        if root_kind(words[0]) == "sh":
            image = launch.image
            if image is not None and image.span is not None:
                return shell.container_variable(self.text, image, f"{name}={value}")
            if launch.mounts is not None:
                raise CannotEdit("the container is started elsewhere")
            written = shell_value(value, KEPT if kept else "")
            return shell.export(self.text, words[0], name, written)
        tree, path = self.yaml_path(words[0])
        at = max(index for index, node in enumerate(path[:-1]) if isinstance(node, yaml.MappingNode))
        container, section = path[at], path[at + 1]
        compose = any(str(key.value) == "services" for key, _ in path[0].value)
        name_there = "environment" if compose else "env"
        env = next((held for key, held in container.value if key.value == name_there), None)
        if env is not None:
            tree.refuse_shared(tree.paths[id(env)])
            return added_to(tree, env, name, value, compose)
        index = next(index for index, (_, each) in enumerate(container.value) if each is section)
        if container.flow_style:
            key, held = ("environment", f"{{{name}: {quoted(value)}}}") if compose else ("env", pod_item(name, value))
            return tree.insert_pair(container, key, held if compose else f"[{held}]", index)
        column = container.value[0][0].start_mark.column
        depth = section.start_mark.column - column if is_block(section) else 2
        margin, inner = " " * column, " " * (column + depth)
        if compose:
            lines = [f"{margin}environment:", f"{margin}{' ' * (depth or 2)}{name}: {quoted(value)}"]
        else:
            lines = [f"{margin}env:", f"{inner}- name: {name}", f"{inner}  value: {quoted(value)}"]
        return tree.insert_lines(section, lines)

    def yaml_path(self, word: Word) -> tuple[Tree, list[Any]]:
        span = word.span
        while span is not None and span.home is not None:
            span = span.home.span
        if span is None:
            raise CannotEdit("it does not stand there as it is")
        tree = Tree(self.text)
        return tree, tree.path(span.start)


# flags that say what a key of the speculative config says
OWN_FLAGS = {"/method": "spec-method", "/model": "spec-model", "/num_speculative_tokens": "spec-tokens"}


def root_kind(word: Word) -> str:
    """How the outermost text that holds a word is written."""
    span = word.span
    while span is not None and span.home is not None:
        span = span.home.span
    return span.kind if span else ""


def added_to(tree: Tree, env: Any, name: str, value: str, compose: bool) -> str:
    """The text with a variable behind those of a section."""
    if isinstance(env, yaml.MappingNode) and compose:
        return tree.insert_pair(env, name, quoted(value))
    if not isinstance(env, yaml.SequenceNode) or not env.value:
        raise CannotEdit("it cannot be added there")
    last = env.value[-1]
    if compose:
        return tree.insert_items(env, len(env.value) - 1, len(env.value) - 1, [f"{name}={value}"])
    if env.flow_style:
        at = last.end_mark.index
        return f"{tree.text[:at]}, {pod_item(name, value)}{tree.text[at:]}"
    margin = " " * env.start_mark.column
    return tree.insert_lines(last, [f"{margin}- name: {name}", f"{margin}  value: {quoted(value)}"])


def is_block(node: Any) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def pod_item(name: str, value: str) -> str:
    return f"{{name: {name}, value: {quoted(value)}}}"


def quoted(value: str) -> str:
    """A variable's value in YAML: a string, which no reader takes for a number."""
    return item_text(value, None) if "/" in value else yaml_text(value, '"')


def shell_value(value: str, more: str) -> str:
    if not more:
        return shlex.quote(value)
    return '"' + re.sub(r'[\\"$`]', r"\\\g<0>", value) + more + '"'


def expect(said: dict[str, Any], edit: Edit, file: LaunchFile) -> None:
    """What the launch is to say when the edit is made."""
    if isinstance(edit, Model):
        said["model"] = edit.value
    elif isinstance(edit, Variable):
        settle(said, f"env {edit.name}", edit.value)
    elif isinstance(edit, PathEntry):
        held = file.found().launch.env[PATH]
        if not held.text.startswith(edit.value) or (held.unknown and held.unknown in edit.value):
            raise CannotEdit(f"{held.text} would be read there")
        said[f"env {PATH}"] = held.text  # what comes behind the folder is as it was
    elif isinstance(edit, Flag):
        flag = (file.engine.serve.flags or {}).get(edit.name)
        gone = edit.value is False and flag is not None and flag.kind == "switch" and not flag.negation
        several = flag is not None and flag.nargs is not None and isinstance(edit.value, str)
        value = [edit.value] if several else None if gone else edit.value
        settle(said, "--" + edit.name.replace("-", "_"), value)
    elif edit.name == "speculative-config":
        settle(said, "speculative." + edit.pointer[1:].replace("-", "_"), edit.value)
    else:
        name = "--" + edit.name.replace("-", "_")
        said[name] = with_key(said.get(name) or {}, edit.pointer.split("/")[1:], edit.value)


def with_key(held: dict[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    key, *rest = keys
    inner = with_key(held.get(key) or {}, rest, value) if rest else value
    return {**held, key: inner} if inner is not None else {name: each for name, each in held.items() if name != key}


def settle(said: dict[str, Any], name: str, value: Any) -> None:
    said.pop(name, None)
    if value is not None:
        said[name] = value
