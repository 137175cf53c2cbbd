"""Items put into the lists and mappings of a YAML text, and taken out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import yaml

from specfix.launch.yaml_file import LOADER
from specfix.repair.edit.written import CannotEdit, scalar, yaml_text

STR = "tag:yaml.org,2002:str"


class Tree:
    """The nodes of a text, by where they are written."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.eol = "\r\n" if "\r\n" in text else "\n"
        self.documents: list[yaml.Node] = [node for node in yaml.compose_all(text, Loader=LOADER) if node is not None]
        self.uses: Counter[int] = Counter()
        self.paths: dict[int, list[yaml.Node]] = {}
        for document in self.documents:
            self.visit(document, [])

    def visit(self, node: yaml.Node, above: list[yaml.Node], use: int = 1) -> None:
        path = [*above, node]
        self.uses[id(node)] += use
        self.paths.setdefault(id(node), path)
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.visit(item, path, use)
        elif isinstance(node, yaml.MappingNode):
            # at the top of a compose file, what is called x-… is there for aliases alone
            for key, value in sorted(node.value, key=lambda pair: not above and is_extension(pair[0])):
                inside = 0 if not above and is_extension(key) else use
                self.visit(key, path, inside)
                self.visit(value, path, inside)

    def path(self, start: int) -> list[yaml.Node]:
        """From a document to the scalar that begins at ``start``. Raises CannotEdit where it has several places."""
        for path in self.paths.values():
            if isinstance(path[-1], yaml.ScalarNode) and path[-1].start_mark.index == start:
                self.refuse_shared(path)
                return path
        raise CannotEdit("what is to be changed is not found in the file")

    def refuse_shared(self, path: Sequence[yaml.Node]) -> None:
        shared = next((node for node in path if self.uses[id(node)] > 1), None)
        if shared is not None:
            line = shared.start_mark.line + 1
            raise CannotEdit(f"what stands at line {line} is used in several places, by an alias or <<")

    # where things end

    def end(self, node: yaml.Node) -> int:
        """Behind the last character of a node: the mark of a block lies beyond blank lines and comments."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self.end(last[1] if isinstance(node, yaml.MappingNode) else last)
        start, end = int(node.start_mark.index), int(node.end_mark.index)
        return start + len(self.text[start:end].rstrip())

    def line_end(self, at: int) -> int:
        """The end of the line, before its line break."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if self.text[end - 1 : end] == "\r" and end > at else end

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    # changes: each gives the new text

    def insert_lines(self, behind: yaml.Node, lines: Sequence[str]) -> str:
        """The text with lines of its own behind the last line of a node."""
        at = self.line_end(self.end(behind))
        return self.text[:at] + "".join(self.eol + line for line in lines) + self.text[at:]

    def insert_items(self, items: yaml.SequenceNode, behind: int, group: int, texts: Sequence[str]) -> str:
        """The text with more scalars behind item number ``behind``; ``group`` is the first of those whose shape they
        take."""
        nodes = items.value
        raws = [item_text(text, style_of(nodes[at])) for text, at in zip(texts, (group, behind), strict=False)]
        if not items.flow_style:
            column = " " * items.start_mark.column
            return self.insert_lines(nodes[behind], [f"{column}- {raw}" for raw in raws])
        gaps = [self.gap(nodes, group), *([self.gap(nodes, group + 1) if group < behind else ", "] * len(raws))]
        at = nodes[behind].end_mark.index
        return self.text[:at] + "".join(gap + raw for gap, raw in zip(gaps, raws, strict=False)) + self.text[at:]

    def gap(self, nodes: Sequence[yaml.Node], index: int) -> str:
        """What stands between an item of a flow list and the one before it."""
        gap = self.text[nodes[index - 1].end_mark.index : nodes[index].start_mark.index] if index else ", "
        return gap if gap.strip() == "," else ", "

    def remove_items(self, items: yaml.CollectionNode, indices: Sequence[int]) -> str:
        """The text without some neighbours of a list, or pairs of a mapping."""
        pairs = isinstance(items, yaml.MappingNode)
        spans = [(each[0], each[1]) if pairs else (each, each) for each in items.value]
        first, last = min(indices), max(indices)
        if len(indices) == len(spans):
            raise CannotEdit(f"nothing else stands in the list or mapping of line {items.start_mark.line + 1}")
        if items.flow_style:
            if first:
                start, end = self.end(spans[first - 1][1]), self.end(spans[last][1])
            else:
                start, end = spans[0][0].start_mark.index, spans[last + 1][0].start_mark.index
            return self.text[:start] + self.text[end:]
        start, end = self.line_start(spans[first][0].start_mark.index), self.line_end(self.end(spans[last][1]))
        if self.text[start : spans[first][0].start_mark.index].strip(" ") not in ("", "-") or (
            pairs and "-" in self.text[start : spans[first][0].start_mark.index]
        ):
            raise CannotEdit("it shares its line with others")
        if self.text.startswith("\r\n", end):
            end += 2
        elif self.text.startswith("\n", end):
            end += 1
        elif start:  # the last line has no line break: the one before it gives its own
            start -= 2 if self.text[start - 2 : start] == "\r\n" else 1
        return self.text[:start] + self.text[end:]

    def insert_pair(self, mapping: yaml.MappingNode, key: str, value: str, behind: int = -1) -> str:
        """The text with one more key in a mapping, its value as it is to be written."""
        nodes = mapping.value
        if mapping.flow_style:
            at = self.end(nodes[behind][1]) if nodes else mapping.start_mark.index + 1
            return f"{self.text[:at]}{', ' if nodes else ''}{key}: {value}{self.text[at:]}"
        column = " " * nodes[0][0].start_mark.column
        return self.insert_lines(nodes[behind][1], [f"{column}{key}: {value}"])


def is_extension(key: yaml.Node) -> bool:
    return str(key.value).startswith("x-")


def style_of(node: yaml.Node) -> str | None:
    """How a scalar is written; a list or mapping, which may stand anywhere, has no such style."""
    return node.style if isinstance(node, yaml.ScalarNode) else None


def item_text(text: str, style: str | None) -> str:
    """A string as an item, in the style of its neighbour where that can be."""
    if style not in ("'", '"'):
        found = scalar(text)
        if found is not None and found.value == text and found.tag == STR:
            return text
        style = '"'
    if style == '"' and '"' in text:
        style = "'"
    return yaml_text(text, style)
