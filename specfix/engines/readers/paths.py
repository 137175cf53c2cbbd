"""The statements of a function with the tests under which each is reached, lifted to conditions.

That no statement before raised is not among the tests: where one did, nothing comes after.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from specfix.engines.compiled import Condition
from specfix.engines.readers.annotations import Unreadable, allowed
from specfix.engines.source.joining import ends, every, negated
from specfix.engines.source.lift import Lifter
from specfix.engines.source.tree import dotted

Locals = dict[str, Condition]


@dataclass(frozen=True, slots=True)
class Reached:
    """One statement that is no test, with the values that local variables have there."""

    node: ast.stmt
    when: Condition
    local: Locals


@dataclass(frozen=True)
class Paths:
    """Walks functions of the class that ``lifter`` lifts; its methods that are called bare are walked where they are
    called."""

    lifter: Lifter
    seen: tuple[str, ...] = ()
    conditions: dict[str, Condition] = field(default_factory=dict)

    def of(self, function: ast.FunctionDef) -> Iterator[Reached]:
        yield from self._block(function.body, [], {})

    def lift(self, node: ast.expr, local: Locals) -> Condition:
        """The expression as a condition, in which more forms are understood than :class:`Lifter` does alone."""
        return self.lifter.lift(readable(self.lifter, node), local)

    def _block(self, body: Sequence[ast.stmt], path: list[Condition], local: Locals) -> Iterator[Reached]:
        path = list(path)
        for node in body:
            match node:
                case ast.If():
                    yield from self._if(node, path, local)
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    local[name] = self.lift(value, local)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    local[name] = self.lift(value, local)
                case ast.Expr(value=ast.Call(func=func, args=[], keywords=[])):
                    yield from self._called(func, path)
                case ast.For() | ast.While() | ast.Try() | ast.With() | ast.Match():
                    reason: Condition = ["?", f"in a {type(node).__name__.lower()} statement"]
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.stmt) and inner is not node:
                            yield Reached(inner, every(*path, reason), dict(local))
                        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                            local[inner.id] = reason
                    continue
            yield Reached(node, every(*path), dict(local))

    def _if(self, node: ast.If, path: list[Condition], local: Locals) -> Iterator[Reached]:
        test = self.lift(node.test, local)
        then, otherwise = dict(local), dict(local)
        yield Reached(node, every(*path), dict(local))
        yield from self._block(node.body, [*path, test], then)
        yield from self._block(node.orelse, [*path, negated(test)], otherwise)
        if ends(node.body):
            path += [negated(test)] if returns(node.body) else []
            then = otherwise
        elif ends(node.orelse):
            path += [test] if returns(node.orelse) else []
            otherwise = then
        local.update(joined(test, then, otherwise))

    def _called(self, func: ast.expr, path: list[Condition]) -> Iterator[Reached]:
        name = (dotted(func) or "").removeprefix("self.")
        owner = self.lifter.tree.class_(self.lifter.file, self.lifter.owner)
        for method in owner.body if owner and name not in self.seen else ():
            if isinstance(method, ast.FunctionDef) and method.name == name:
                yield from Paths(self.lifter, (*self.seen, name))._block(method.body, path, {})


def readable(lifter: Lifter, node: ast.expr) -> ast.expr:
    """``node`` in the words that :class:`Lifter` lifts."""
    new = _Rewrite(lifter).visit(ast.parse(ast.unparse(node), mode="eval").body)
    assert isinstance(new, ast.expr)
    return new


class _Rewrite(ast.NodeTransformer):
    def __init__(self, lifter: Lifter) -> None:
        self._lifter = lifter

    def visit_Call(self, node: ast.Call) -> ast.expr:
        new = self.generic_visit(node)
        match new:
            case ast.Call(func=ast.Name(id="hasattr"), args=[owner, key]):
                read = ast.Call(ast.Name("getattr"), [owner, key, ast.Constant(None)], [])
                return ast.Compare(read, [ast.IsNot()], [ast.Constant(None)])
            case ast.Call(func=ast.Name(id="get_args"), args=[alias]):
                return self._choices(alias)
            case ast.Call(func=ast.Attribute(value=owner, attr="get"), args=[ast.Constant() as key, *default]):
                return ast.Call(ast.Name("getattr"), [owner, key, *default], [])
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value="text_config"), same]):
                if ast.unparse(owner) == ast.unparse(same):
                    return ast.Attribute(owner, "text_config?")
            case ast.Call(func=ast.Name(id="get_hf_text_config"), args=[owner]):
                return ast.Attribute(owner, "get_text_config()")
            case ast.Call(func=ast.Attribute(value=owner, attr="get_text_config"), args=[]):
                return ast.Attribute(owner, "get_text_config()")
            case ast.Call(func=ast.Attribute(attr="startswith") as method, args=[ast.Tuple(elts=starts)], keywords=[]):
                return ast.Call(method, starts, [])  # all constants: a name of its own
            case ast.Call(func=ast.Attribute(value=ast.Name(id="copy")), args=[one]):
                return one
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method), args=[*args], keywords=[]):
                # a static method of the class, of fields alone: a fact of its own, for whoever knows the fields
                if args and owner == self._lifter.owner and all(dotted(arg) for arg in args):
                    return ast.Name(f"{method}({', '.join(ast.unparse(arg).removeprefix('self.') for arg in args)})")
        assert isinstance(new, ast.expr)
        return new

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        new = self.generic_visit(node)
        match new:  # what is empty instead of absent
            case ast.BoolOp(op=ast.Or(), values=[one, ast.Dict(keys=[]) | ast.List(elts=[])]):
                return one
        assert isinstance(new, ast.expr)
        return new

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        new = self.generic_visit(node)
        match new:
            case ast.Subscript(value=ast.Attribute() as of, slice=ast.Constant(value=int(index))):
                return ast.Attribute(of.value, f"{of.attr}.{index}")
        assert isinstance(new, ast.expr)
        return new

    def _choices(self, alias: ast.expr) -> ast.expr:
        try:
            only = allowed(self._lifter.tree, self._lifter.file, alias).only
        except Unreadable:
            only = None
        if only is None:
            return ast.Call(ast.Name("get_args"), [alias], [])
        return ast.Tuple([ast.Constant(str(choice)) for choice in only])


# Conditions


def joined(test: Condition, then: Locals, otherwise: Locals) -> Locals:
    """What local variables are after a test, of which each branch left its own."""
    return {
        name: then[name] if then[name] == otherwise[name] else ["if", test, then[name], otherwise[name]]
        for name in then.keys() & otherwise.keys()
    }


def renamed(condition: Condition, old: str, new: str) -> Condition:
    """``condition`` with ``new`` for the head ``old`` of the names in it."""
    if condition[:1] == ["name"]:
        name = condition[1]
        return ["name", new + name.removeprefix(old)] if name.startswith(old) else condition
    if condition[:1] in (["const"], ["?"]):
        return condition
    return [renamed(part, old, new) if isinstance(part, list) else part for part in condition]


def returns(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return) for statement in body for node in ast.walk(statement))
