"""What the code that makes a model asks of its config without a way out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from specfix.engines.readers.constructed import Function, constructed
from specfix.engines.source.classes import Class, Classes
from specfix.engines.source.tree import SourceTree, dotted, walk

# keys that every decoder layer is made by, and that a config made of nothing does not have
KEYS = ("num_hidden_layers", "vocab_size", "hidden_size", "intermediate_size", "num_attention_heads", "rms_norm_eps")


def demands(tree: SourceTree, classes: Classes, path: str) -> tuple[bool, bool, tuple[str, ...]] | None:
    """(refuses any activation but silu, reads the window that a layer type means, keys that it reads) of the class at
    ``path``; None where it could not be followed."""
    found = classes.at(path)
    if len(found) != 1 or found[0] is None:
        return None
    functions = list(constructed(classes, tree, found[0]).functions)
    made: set[int] = set()
    while fresh := [layer for layer in _layers(classes, functions) if id(layer.node) not in made]:
        made |= {id(layer.node) for layer in fresh}
        functions += [function for layer in fresh for function in constructed(classes, tree, layer).functions]
    tests = [test for function in functions for test in walk(function.node, ast.If)]
    silu = any(_silu_only(test) for test in tests)
    window = any(
        "is_sliding" in ast.unparse(test.test) and "config.sliding_window" in map(dotted, walk(test, ast.Attribute))
        for test in tests
    )
    return silu, window, tuple(key for key in KEYS if key in set(_attributes(functions)))


def _layers(classes: Classes, functions: Sequence[Function]) -> Iterator[Class]:
    """Classes that stand as default for a parameter ``…layer_type``."""
    for function in functions:
        arguments, defaults = function.node.args, function.node.args.defaults
        pairs = zip(arguments.args[len(arguments.args) - len(defaults) :], defaults, strict=True)
        for argument, default in (*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
            if argument.arg.endswith("layer_type") and default is not None:
                yield from (cls for cls in classes.of_expression(function.file, default) if cls is not None)


def _silu_only(test: ast.If) -> bool:
    """``if hidden_act != "silu": raise …``"""
    compare = test.test
    return (
        isinstance(compare, ast.Compare)
        and isinstance(compare.ops[0], ast.NotEq)
        and (dotted(compare.left) or "").endswith("hidden_act")
        and ast.unparse(compare.comparators[0]) == "'silu'"
        and any(isinstance(statement, ast.Raise) for statement in test.body)
    )


def _attributes(functions: Sequence[Function]) -> Iterator[str]:
    """Of ``config`` and ``self.config``, which stand for the draft's or the model's own."""
    for function in functions:
        for node in walk(function.node, ast.Attribute):
            if dotted(node.value) in {"config", "self.config"} and isinstance(node.ctx, ast.Load):
                yield node.attr
