"""What `vllm serve` takes: its flags, what its YAML reader can do, which words in a draft's path name a method."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.facts.serving import ServeFacts
from specfix.engines.source.tree import SourceTree, literal, walk

ARGUMENTS = "engine/arg_utils.py"
READERS = ("utils/argparse_utils.py", "utils/__init__.py")  # the newer home first
READER = "load_config_file"
SPECULATIVE = "config/speculative.py"
ENVS = "envs.py"
BACKEND_VARIABLE = "VLLM_ATTENTION_BACKEND"


def read_serve(tree: SourceTree, unknown: dict[str, str]) -> ServeFacts:
    reader = next((found for file in READERS if (found := tree.function(file, READER))), None)
    if reader is None:
        unknown["serve.yaml_nested"] = unknown["serve.yaml_false"] = f"no {READER} in {' or '.join(READERS)}"
    flags = tuple(sorted(set(_flags(tree.module(ARGUMENTS)))))
    if not flags:
        unknown["serve.flags"] = f"no flags in {ARGUMENTS}"
    kept, words = _path_guess(tree.module(SPECULATIVE))
    if words is None:
        unknown["serve.method_words"] = f"no method is taken from the draft's path in {SPECULATIVE}"
    return ServeFacts(
        yaml_nested=None if reader is None else any(_dumps(branch) for branch in _branches(reader, "dict")),
        yaml_false=None if reader is None else any(_turns_to_no(branch) for branch in _branches(reader, "bool")),
        flags=flags or None,
        backend_variable=f'"{BACKEND_VARIABLE}"' in (tree.text(ENVS) or ""),
        method_words=words,
        method_kept=kept,
    )


def _branches(reader: ast.FunctionDef, kind: str) -> Iterator[ast.If]:
    """The branches for values of one type: ``if isinstance(value, dict)``."""
    for branch in walk(reader, ast.If):
        call = branch.test
        if isinstance(call, ast.Call) and ast.unparse(call) == f"isinstance(value, {kind})":
            yield branch


def _dumps(branch: ast.If) -> bool:
    """A mapping becomes the JSON text that the flag takes."""
    return any("json.dumps" in ast.unparse(statement) for statement in branch.body)


def _turns_to_no(branch: ast.If) -> bool:
    """``key: false`` becomes ``--no-key``, and is not dropped."""
    return any("--no-" in ast.unparse(statement) for statement in branch.body)


def _flags(module: ast.Module | None) -> Iterator[str]:
    """Long flags of the engine's arguments, without their dashes."""
    for call in walk(module, ast.Call) if module else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            for argument in call.args:
                flag = literal(argument)
                if isinstance(flag, str) and flag.startswith("--"):
                    yield flag[2:]


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
