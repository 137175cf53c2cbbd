"""Changes to a server's arguments where they are the keys of a file for ``vllm serve --config``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import yaml

from specfix.engines import Engine
from specfix.engines.facts.serving import Flag
from specfix.launch.words import Span, Word
from specfix.repair.edit.words import same_key, spelled, with_key
from specfix.repair.edit.written import CannotEdit, put
from specfix.repair.edit.yaml_tree import Tree, item_text, style_of

Pair = tuple[int, str, yaml.Node, yaml.Node]  # its place among others, the key's name, the nodes


@dataclass(frozen=True, slots=True)
class ServeYaml:
    """The arguments of a launch that is a serve YAML."""

    text: str
    line: int
    engine: Engine

    def root(self) -> tuple[Tree, yaml.MappingNode]:
        tree = Tree(self.text)
        for node in tree.documents:
            if isinstance(node, yaml.MappingNode) and node.start_mark.line + 1 == self.line:
                return tree, node
        raise CannotEdit("the file's keys are not found")

    def pairs(self, root: yaml.MappingNode, name: str) -> list[Pair]:
        """The keys that set a flag, ``no-`` forms and dotted ones included."""
        flag = (self.engine.serve.flags or {}).get(name, Flag())
        found = []
        for index, (key, value) in enumerate(root.value):
            said = str(key.value)
            plain = said.partition(".")[0].replace("_", "-").removeprefix("no-" if flag.kind == "switch" else "--")
            if spelled(f"--{plain}", name, flag):
                found.append((index, said, key, value))
        return found

    def set_flag(self, name: str, value: Any) -> str:
        """The text with one flag at a value, or without it where that is None."""
        tree, root = self.root()
        given = [pair for pair in self.pairs(root, name) if "." not in pair[1]]
        flag = (self.engine.serve.flags or {}).get(name, Flag())
        if value is None or (value is False and flag.kind == "switch" and not flag.negation):
            return tree.remove_items(root, [given[-1][0]]) if given else self.text
        key = name
        if flag.kind == "switch" and value is False and not self.engine.serve.yaml_false:
            key, value = f"no-{name}", True
        if not given:
            return self.inserted(tree, root, key, value)
        _, said, key_node, node = given[-1]
        text = self.with_value(tree, node, value)
        if same_key(said, key):
            return text
        return put(text, word_of(key_node), key)  # it stands before its value, so where it was

    def set_key(self, name: str, pointer: str, value: Any) -> str:
        """The text with a key of a flag's value at a value, or without it where that is None."""
        tree, root = self.root()
        given = self.pairs(root, name)
        dotted = [pair for pair in given if "." in pair[1]]
        if dotted:
            key = pointer.removeprefix("/")
            held = [pair for pair in dotted if same_key(pair[1].partition(".")[2], key)]
            if value is None:
                return tree.remove_items(root, [held[-1][0]]) if held else self.text
            if held:
                return self.with_value(tree, held[-1][3], value)
            prefix = dotted[-1][1].partition(".")[0]
            return tree.insert_pair(root, f"{prefix}.{key}", yaml_value(value, None), dotted[-1][0])
        if not given:
            return self.text if value is None else self.inserted(tree, root, name, nested(pointer, value))
        node = given[-1][3]
        if isinstance(node, yaml.ScalarNode):
            tree.path(node.start_mark.index)
            return put(self.text, word_of(node), with_key(str(node.value), pointer, value))
        return self.set_in(tree, node, pointer.split("/")[1:], value)

    def set_in(self, tree: Tree, node: yaml.Node, keys: list[str], value: Any) -> str:
        """The text with a key of a mapping, or of one within, at a value."""
        if not isinstance(node, yaml.MappingNode):
            raise CannotEdit(f"line {node.start_mark.line + 1} holds no mapping")
        tree.refuse_shared(tree.paths[id(node)])
        key, *rest = keys
        found = [(index, each) for index, (each, _) in enumerate(node.value) if same_key(str(each.value), key)]
        if not found:
            if value is None:
                return self.text
            for name in reversed(rest):
                value = {name: value}
            styles = style_of(node.value[-1][0]) if node.value else '"'
            return tree.insert_pair(node, item_text(key, styles), yaml_value(value, styles))
        index = found[-1][0]
        if rest:
            return self.set_in(tree, node.value[index][1], rest, value)
        if value is None:
            return tree.remove_items(node, [index])
        return self.with_value(tree, node.value[index][1], value)

    def set_model(self, model: str) -> str:
        """The text that serves another model."""
        tree, root = self.root()
        given = [pair for pair in self.pairs(root, "model") if "." not in pair[1]]
        if not given:
            raise CannotEdit("the model is not named there")
        return self.with_value(tree, given[-1][3], model)

    def inserted(self, tree: Tree, root: yaml.MappingNode, key: str, value: Any) -> str:
        """The text with one more key, behind those of the speculative config."""
        near = self.pairs(root, "speculative-config")
        if isinstance(value, dict) and not self.engine.serve.yaml_nested:
            value = json.dumps(value, ensure_ascii=False)
        return tree.insert_pair(root, key, yaml_value(value, None), near[-1][0] if near else -1)

    def with_value(self, tree: Tree, node: yaml.Node, value: Any) -> str:
        """The text with another scalar."""
        if not isinstance(node, yaml.ScalarNode) or isinstance(value, dict | list):
            raise CannotEdit("one value would have to become several")
        tree.refuse_shared(tree.paths[id(node)])
        if node.style is None and not isinstance(value, str):
            start, end = node.start_mark.index, tree.end(node)
            return self.text[:start] + json.dumps(value) + self.text[end:]
        return put(self.text, word_of(node), value if isinstance(value, str) else json.dumps(value))


def word_of(node: yaml.Node) -> Word:
    span = Span(node.start_mark.index, node.end_mark.index, getattr(node, "style", None) or "plain")
    return Word(str(node.value), span=span)


def nested(pointer: str, value: Any) -> dict[str, Any]:
    for key in reversed(pointer.split("/")[1:]):
        value = {key: value}
    return dict(value)


def yaml_value(value: Any, style: str | None) -> str:
    """A value as it is written behind a key."""
    return item_text(value, style) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
