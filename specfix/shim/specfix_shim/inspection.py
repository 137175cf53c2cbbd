"""What an object of vLLM looks like: its source as a tree, its parameters, its bases."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from .log import Inert


def tree(thing: Any) -> ast.AST:
    """The source of a function or class."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError) as error:
        raise Inert(f"the source of {getattr(thing, '__qualname__', thing)} cannot be read: {error}") from None


def need(owner: Any, *names: str) -> Any:
    """The attribute, by the first of the names that is there."""
    for name in names:
        if hasattr(owner, name):
            return getattr(owner, name)
    raise Inert(f"{getattr(owner, '__name__', owner)} has no {' or '.join(names)}")


def text(node: ast.AST) -> str:
    return ast.unparse(node)


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(target, value) of each assignment in it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Assign):
            yield from ((target, each.value) for target in each.targets)
        elif isinstance(each, ast.AnnAssign) and each.value is not None:
            yield each.target, each.value


def parameters(function: Any) -> list[str]:
    """Parameter names of a function or a Triton kernel, without the suffix that kernels give to tensors."""
    names = getattr(function, "arg_names", None) or inspect.signature(function).parameters
    return [name[: -len("_ptr")] if name.endswith("_ptr") else name for name in names]


def own_classes(cls: type) -> list[type]:
    """The class and its bases, as far as vLLM defines them."""
    return [each for each in cls.__mro__ if each.__module__.startswith("vllm.")]
