"""What `vllm serve` takes: its flags, what its YAML reader can do, which words in a draft's path name a method."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from specfix.engines.facts.serving import ServeFacts
from specfix.engines.readers import flags
from specfix.engines.readers.config_classes import read_config_classes
from specfix.engines.readers.flag_bounds import read_flag_bounds
from specfix.engines.source.interpreter.standins import UndecidedError
from specfix.engines.source.tree import SourceTree, literal, walk

COMMAND_FACTS = (
    *("flags", "yaml_nested", "yaml_false"),
    *("positional", "abbreviations", "underscores", "dotted", "dotted_lists", "dotted_sizes", "json_sizes"),
    *("level_flag", "model_flag", "model_first", "sizes", "size_fractions", "config_classes"),
)
ENVS = "envs.py"
BACKEND_VARIABLE = "VLLM_ATTENTION_BACKEND"


def read_serve(tree: SourceTree, unknown: dict[str, str]) -> ServeFacts:
    file = tree.config_file("SpeculativeConfig")
    kept, words = _path_guess(tree.module(file) if file else None)
    if words is None:
        unknown["serve.method_words"] = f"no method is taken from the draft's path in {file or 'SpeculativeConfig'}"
    return ServeFacts(
        backend_variable=f'"{BACKEND_VARIABLE}"' in (tree.text(ENVS) or ""),
        method_words=words,
        method_kept=kept,
        bounds=read_flag_bounds(tree),
        **_command(tree, unknown),
    )


def _command(tree: SourceTree, unknown: dict[str, str]) -> dict[str, Any]:
    """The flags, and how a command is read."""
    try:
        command = flags.command(tree)
    except UndecidedError as error:
        unknown |= {f"serve.{fact}": str(error) for fact in COMMAND_FACTS}
        return {}
    found = flags.flags(command.serve, unknown)
    return {
        "flags": found,
        "positional": flags.positional(command.serve),
        "config_classes": read_config_classes(tree, [f.config for f in found.values() if f.config], unknown),
        **flags.rules(command, found, unknown),
    }


def _path_guess(module: ast.Module | None) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...] | None]:
    """Methods that are kept whatever the path says, and (word, method) for each word that names one, in order.

    ``if self.method in (…): pass / elif "eagle3" in self.draft_model_config.model.lower(): self.method = "eagle3" …``
    """
    for branch in walk(module, ast.If) if module else ():
        words = tuple(_words(branch))
        if words and isinstance(branch.test, ast.Compare):
            named = literal(branch.test.comparators[0])
            kept = isinstance(branch.body[0], ast.Pass) and isinstance(named, tuple)
            return (tuple(map(str, named)) if kept and isinstance(named, tuple) else ()), words
    return (), None


def _words(branch: ast.If) -> Iterator[tuple[str, str]]:
    """(word, method) of each branch of one ``if … elif …`` chain."""
    chain: ast.stmt | None = branch
    while isinstance(chain, ast.If):
        methods = [
            literal(node.value)
            for node in chain.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self.method"
        ]
        for test in walk(chain.test, ast.Compare):
            word = literal(test.left)
            in_path = isinstance(test.ops[0], ast.In) and "model.lower()" in ast.unparse(test.comparators[0])
            if in_path and isinstance(word, str) and methods:
                yield word, str(methods[0])
        chain = chain.orelse[0] if len(chain.orelse) == 1 else None
