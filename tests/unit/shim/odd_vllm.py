"""Of a package that the patches expect: each module and each name missing, and each name of another shape.

``fake_vllm.EXPECTED_ALL`` holds all that any patch needs to act (a test sees to it), so what is made of it here
covers a new patch as well.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator

EVERY = 3  # a name meets every third shape, and the next name the others: with 1 all of them, in three times the time
SHAPES = {
    "None": "None",
    "a number": "0",
    "a text": "'text'",
    "a class": "type('Other', (), {})",
    "a class that takes arguments": "type('Other', (), {'__init__': lambda self, one, two: None})",
    "a function of anything": "lambda *args, **kwargs: None",
    "a function of nothing": "lambda: None",
    "a function without source": "eval('lambda x=None, *rest: rest')",
    "a function of C": "getattr",
    "a function of C without signature": "max",
    "a property": "property(lambda self: 1 / 0)",
    "a static method": "staticmethod(lambda *args, **kwargs: None)",
    "a class method": "classmethod(lambda *args, **kwargs: None)",
    "a partial function": "__import__('functools').partial(dict, end='')",
    "an object that raises for everything": "__import__('hostile').Hostile()",
    "a descriptor that raises": "__import__('hostile').Descriptor()",
}
HOSTILE = """
    import sys
    import types


    class Hostile:
        def __getattribute__(self, name):
            raise RuntimeError(name)

        def fail(self, *args, **kwargs):
            raise RuntimeError("hostile")

        __call__ = __eq__ = __bool__ = __iter__ = __len__ = __getitem__ = __hash__ = fail


    class Descriptor:
        def __get__(self, instance, owner=None):
            raise MemoryError("descriptor")

        __set__ = __get__


    class FixedClass(type):
        def __setattr__(cls, name, value):
            if "specfix_shim" in sys._getframe(1).f_code.co_filename:
                raise TypeError("not to be changed")
            super().__setattr__(name, value)


    class FixedModule(types.ModuleType):
        def __setattr__(self, name, value):
            if "specfix_shim" in sys._getframe(1).f_code.co_filename:
                raise TypeError("not to be changed")
            super().__setattr__(name, value)
"""


def one_less(given: ast.arguments) -> None:
    if given.args:
        given.args.pop()
        del given.defaults[: max(0, len(given.defaults) - len(given.args))]


def one_more(given: ast.arguments) -> None:
    given.args.append(ast.arg("more"))
    given.defaults.append(ast.Constant(None))


def one_needed(given: ast.arguments) -> None:
    given.kwonlyargs.append(ast.arg("needed"))
    given.kw_defaults.append(None)


def other_names(given: ast.arguments) -> None:
    for each in given.args[1:]:
        each.arg += "_"


SIGNATURES: dict[str, Callable[[ast.arguments], None]] = {
    "one parameter less": one_less,
    "one parameter more": one_more,
    "one more that is needed": one_needed,
    "other names": other_names,
}


def variants(module: str, source: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    """What is odd, and by its path the module that is; None where it is missing."""
    for what, changed in odd_module(module, source):
        yield what, {f"vllm/{module}.py": changed}


def odd_module(module: str, source: str) -> Iterator[tuple[str, str | None]]:
    yield f"{module} is missing", None
    yield f"{module} raises", "raise RuntimeError('its own')"
    tree = ast.parse(textwrap.dedent(source))
    fixed = "import hostile, sys\nsys.modules[__name__].__class__ = hostile.FixedModule\n"
    yield f"{module} refuses to be changed", f"{ast.unparse(tree)}\n{fixed}"
    for number, path in enumerate(paths(tree)):
        name = ".".join([module, *(named(node) for node in nodes(tree, path))])
        for what, changed in odd(tree, path, number % EVERY):
            yield f"{name} {what}", ast.unparse(ast.fix_missing_locations(changed))


def paths(tree: ast.Module) -> Iterator[tuple[int, ...]]:
    """Where a name of the module or of a class in it is given its value, as indexes into bodies."""
    for index, node in enumerate(tree.body):
        if named(node):
            yield (index,)
        if isinstance(node, ast.ClassDef):
            yield from ((index, inner) for inner, each in enumerate(node.body) if named(each))


def nodes(tree: ast.Module, path: tuple[int, ...]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    body = tree.body
    for index in path:
        found.append(body[index])
        body = getattr(body[index], "body", [])
    return found


def named(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def odd(tree: ast.Module, path: tuple[int, ...], first: int) -> Iterator[tuple[str, ast.Module]]:
    node = nodes(tree, path)[-1]
    yield "is missing", replaced(tree, path, ast.parse("pass").body[0])
    for what, value in list(SHAPES.items())[first::EVERY]:
        yield f"is {what}", replaced(tree, path, ast.parse(f"{named(node)} = {value}").body[0])
    if isinstance(node, ast.FunctionDef):
        for what, change in SIGNATURES.items():
            other = copy.deepcopy(node)
            change(other.args)
            yield f"has {what}", replaced(tree, path, other)
        yield "is asynchronous", replaced(tree, path, ast.AsyncFunctionDef(**vars(copy.deepcopy(node))))
        other = copy.deepcopy(node)
        other.body.append(ast.parse("yield").body[0])
        yield "is a generator", replaced(tree, path, other)
        other = copy.deepcopy(node)
        other.body = ast.parse("raise RuntimeError('its own')").body
        yield "raises", replaced(tree, path, other)
    if isinstance(node, ast.ClassDef):
        names = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        for what, cls in odd_class(node, names):
            yield what, replaced(tree, path, cls)


def odd_class(node: ast.ClassDef, names: set[str]) -> Iterator[tuple[str, ast.ClassDef]]:
    """A class whose methods name these attributes."""
    other = copy.deepcopy(node)
    other.keywords.append(ast.keyword("metaclass", ast.parse("__import__('hostile').FixedClass", mode="eval").body))
    yield "refuses to be changed", other
    other = copy.deepcopy(node)
    other.body = [each for each in other.body if not isinstance(each, ast.Assign)]
    other.body[:0] = ast.parse(f"__slots__ = {sorted({'runner', *names})!r}").body
    yield "has slots", other
    other = copy.deepcopy(node)
    other.body[:0] = ast.parse("\n".join(f"{name} = None" for name in sorted(names) if name.endswith("names"))).body
    yield "has defaults", other


def replaced(tree: ast.Module, path: tuple[int, ...], node: ast.stmt) -> ast.Module:
    changed = copy.deepcopy(tree)
    body = changed.body
    for index in path[:-1]:
        body = getattr(body[index], "body")  # noqa: B009
    body[path[-1]] = node
    return changed
