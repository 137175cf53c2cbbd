"""Lift what a function of the engine decides from its source to data: see ``conditions`` for the form.

Only decisions are lifted: names, literal values and how they are joined. Calls of the class's own methods and
of module functions without arguments are followed; so are properties of config classes that only read fields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from specfix.engines.compiled import Condition
from specfix.engines.conditions import ITEM, names
from specfix.engines.facts.decisions import Step
from specfix.engines.source.joining import FALSE, either_way, ends, every, is_lifted, negated
from specfix.engines.source.lookup import config_class, enum_member, fields_of, module_constant
from specfix.engines.source.tree import SourceTree, dotted, literal, plain
from specfix.engines.source.words import COMPARED_BY

RAISES = "raises"


_DEPTH = 12  # of calls followed; a recursive method must not hang the reader


@dataclass(frozen=True, slots=True)
class _Way:
    """One way out of a function, or one text that it adds to its list."""

    kind: str  # return, raise, text
    path: tuple[Condition, ...]  # the tests that it is nested in
    after: tuple[Condition, ...]  # ways out passed before it, negated
    value: Condition
    line: int


@dataclass
class Lifter:
    """Lifts functions of class ``owner`` (or of the module, where empty) in ``file``.

    ``lists`` maps methods that build a list of texts to the name by which the conditions call that list.
    ``prefix`` stands for ``self`` in the names ("" or "speculative_config.").
    """

    tree: SourceTree
    file: str
    owner: str = ""
    prefix: str = ""
    lists: Mapping[str, str] = field(default_factory=dict)
    depth: int = 0
    defaults: dict[str, object] = field(default_factory=dict)  # of getattr() with a default, by name

    def ways(self, name: str) -> list[Step]:
        """The ways out of the method, in order; ``then`` is True, False, None or ``RAISES``."""
        steps = []
        for way in self._run(name):
            when = every(*way.path)
            if way.kind == "raise":
                steps.append(Step(when, RAISES, way.line))
            elif way.kind == "return" and way.value[0] == "const":
                steps.append(Step(when, way.value[1], way.line))
            elif way.kind == "return":
                steps.append(Step(every(*way.path, way.value), True, way.line))
                steps.append(Step(when, False, way.line))
        return steps

    def texts(self, name: str) -> list[Step]:
        """The texts that the method puts into a list, each with its condition."""
        return [Step(every(*w.path, *w.after), w.value[1], w.line) for w in self._run(name) if w.kind == "text"]

    def condition(self, name: str) -> Condition:
        """What the method returns, as one condition."""
        result: Condition = ["const", None]
        for way in reversed(self._run(name)):
            if way.kind == "return":
                result = either_way(every(*way.path), way.value, result)
            elif way.kind == "raise":
                result = either_way(every(*way.path), ["?", f"{name} raises"], result)
        return result

    def reached(self, name: str, node: ast.AST) -> Condition:
        """Under which tests ``node`` in the method is reached (ways out before it are not counted)."""
        function = self._function(name)
        path = _path_to(function, node) if function else None
        if path is None:
            return ["?", f"{name} not found"]
        return every(*(self.lift(test, {}) if holds else negated(self.lift(test, {})) for test, holds in path))

    def lift(self, node: ast.AST, local: Mapping[str, Condition]) -> Condition:
        """One expression, with the values of local variables put in."""
        constant = literal(node)
        if constant is not None or (isinstance(node, ast.Constant) and node.value is None):
            return ["const", plain(constant)]
        match node:
            case ast.Name(id=name):
                return self._name(name, local)
            case ast.Attribute():
                return self._attribute(node, local)
            case ast.BoolOp():
                joined = "and" if isinstance(node.op, ast.And) else "or"
                return [joined, *(self.lift(part, local) for part in node.values)]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self.lift(operand, local))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return either_way(self.lift(test, local), self.lift(body, local), self.lift(orelse, local))
            case ast.Compare():
                return self._compare(node, local)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return ["list", *(self.lift(part, local) for part in parts)]
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                less, more = self.lift(left, local), self.lift(right, local)
                if less[0] == more[0] == "const" and isinstance(less[1], list) and isinstance(more[1], list):
                    return ["const", [item for item in less[1] if item not in more[1]]]
            case ast.JoinedStr(values=parts):
                return ["const", "".join(self._format(part, local) for part in parts)]
            case ast.Call():
                return self._call(node, local)
        return ["?", type(node).__name__]

    # Names

    @cached_property
    def _module(self) -> ast.Module:
        return self.tree.module(self.file) or ast.Module([], [])

    @cached_property
    def _class(self) -> ast.ClassDef | None:
        return self.tree.class_(self.file, self.owner) if self.owner else None

    def _function(self, name: str) -> ast.FunctionDef | None:
        scope = self._class.body if self._class else self._module.body
        return next((n for n in reversed(scope) if isinstance(n, ast.FunctionDef) and n.name == name), None)

    def _name(self, name: str, local: Mapping[str, Condition]) -> Condition:
        if name in local:
            return local[name]
        constant = module_constant(self.tree, self.file, name)
        return ["name", name] if constant is None else ["const", plain(constant)]

    def _attribute(self, node: ast.Attribute, local: Mapping[str, Condition], call: bool = False) -> Condition:
        head = node.value
        if isinstance(head, ast.Name) and head.id == "self":
            return self._own(node.attr, call)
        if isinstance(head, ast.Name) and head.id not in local and head.id[:1].isupper():
            member = enum_member(self.tree, self.file, head.id, node.attr)
            if member is not None:
                return ["const", member]
        base = self.lift(head, local)
        if base[0] != "name":
            return ["?", f"attribute {node.attr} of an expression"]
        return self._of_config(base[1], node.attr) or ["name", f"{base[1]}.{node.attr}{'()' if call else ''}"]

    def _own(self, attr: str, call: bool) -> Condition:
        """``self.attr`` or ``self.attr()``."""
        if attr in self.lists:
            return ["name", self.lists[attr]]
        function = self._function(attr)
        if function is not None and self.depth < _DEPTH and len(function.args.args) == 1:
            return replace(self, depth=self.depth + 1).condition(attr)
        return ["name", f"{self.prefix}{attr}{'()' if call else ''}"]

    def _of_config(self, base: str, attr: str) -> Condition | None:
        """``base.attr`` where it is a property or method of a config class that only reads its fields."""
        name = base.removeprefix(self.prefix)
        found = config_class(self.tree, self.file, self.owner, name) if self.owner else None
        if found is None or self.depth >= _DEPTH:
            return None
        inner = Lifter(self.tree, *found, f"{base}.", depth=self.depth + 1, defaults=self.defaults)
        function = inner._function(attr)
        if function is None or len(function.args.args) != 1:
            return None
        lifted = inner.condition(attr)
        fields = set(fields_of(inner._class)) if inner._class else set()
        plain = all(
            name.startswith(inner.prefix) and name.removeprefix(inner.prefix).split(".")[0] in fields
            for name in names(lifted)
        )
        return lifted if plain and is_lifted(lifted) else None

    # Calls and comparisons

    def _call(self, node: ast.Call, local: Mapping[str, Condition]) -> Condition:
        match node:
            case ast.Call(func=ast.Name(id="bool"), args=[one]):
                return self.lift(one, local)
            case ast.Call(func=ast.Name(id="len"), args=[one]):
                return ["len", self.lift(one, local)]
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(attr)), *default]):
                found = self._attribute(ast.Attribute(owner, attr), local)
                if found[0] == "name" and default:
                    self.defaults.setdefault(found[1], literal(default[0]))
                return found
            case ast.Call(
                func=ast.Name(id="any" | "all" | "sum" as kind),
                args=[ast.GeneratorExp(elt=each, generators=[one])],
            ):
                if (
                    isinstance(one.target, ast.Name)
                    and not one.ifs
                    and (kind != "sum" or isinstance(each, ast.Compare))
                ):
                    inner = self.lift(each, {**local, one.target.id: ["name", ITEM]})
                    return ["count" if kind == "sum" else kind, self.lift(one.iter, local), inner]
            case ast.Call(func=ast.Attribute(value=some, attr="intersection"), args=[others]):  # any in common
                return ["any", self.lift(others, local), ["in", ["name", ITEM], self.lift(some, local)]]
            case ast.Call(func=ast.Attribute() as method, args=[], keywords=[]):
                return self._attribute(method, local, call=True)
            case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
                module = replace(self, owner="", depth=self.depth + 1)
                if module._function(name) is not None and self.depth < _DEPTH:
                    return module.condition(name)
        func = dotted(node.func)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if func and all(isinstance(value, ast.Constant) for value in given):
            return ["name", ast.unparse(node).removeprefix("self.")]
        return ["?", f"call of {func or 'an expression'}"]

    def _compare(self, node: ast.Compare, local: Mapping[str, Condition]) -> Condition:
        parts = [self.lift(part, local) for part in (node.left, *node.comparators)]
        pairs = [
            [COMPARED_BY[type(op)], left, right] for op, left, right in zip(node.ops, parts, parts[1:], strict=False)
        ]
        return every(*pairs)

    def _format(self, part: ast.expr, local: Mapping[str, Condition]) -> str:
        if isinstance(part, ast.FormattedValue):
            value = self.lift(part.value, local)
            return f"{{{value[1]}}}" if value[0] == "name" else "{?}"
        return str(literal(part))

    # Statements

    def _run(self, name: str) -> list[_Way]:
        function = self._function(name)
        if function is None:
            return [_Way("raise", (["?", f"{name} is not in {self.file}"],), (), FALSE, 0)]
        return list(self._block(function.body, (), [], {}))

    def _block(
        self,
        body: Sequence[ast.stmt],
        path: tuple[Condition, ...],
        after: list[Condition],
        local: dict[str, Condition],
    ) -> Iterator[_Way]:
        for node in body:
            match node:
                case ast.Return(value=value):
                    yield from self._return(node, value, path, after, local)
                    return
                case ast.Raise():
                    yield _Way("raise", path, tuple(after), FALSE, node.lineno)
                    return
                case ast.If():
                    yield from self._if(node, path, after, local)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    local[name] = self.lift(value, local)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    local[name] = self.lift(value, local)
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[text])):
                    yield _Way("text", path, tuple(after), self._text(text, local), node.lineno)
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="extend"), args=[texts])):
                    yield from self._extend(texts, path, after, local)
                case ast.For() | ast.While() | ast.Try() | ast.With() | ast.Match():
                    yield from self._opaque(node, path, after, local)

    def _if(
        self, node: ast.If, path: tuple[Condition, ...], after: list[Condition], local: dict[str, Condition]
    ) -> Iterator[_Way]:
        test = self.lift(node.test, local)
        then, otherwise = dict(local), dict(local)
        inside = list(after)
        yield from self._block(node.body, (*path, test), inside, then)
        yield from self._block(node.orelse, (*path, negated(test)), list(after), otherwise)
        then_ends, else_ends = ends(node.body), ends(node.orelse)
        if then_ends:
            after.append(negated(test))
        if else_ends:
            after.append(test)
        for name in then.keys() | otherwise.keys():
            one, other = then.get(name, local.get(name)), otherwise.get(name, local.get(name))
            if then_ends or one is None:
                one = other
            if else_ends or other is None:
                other = one
            if one is not None and other is not None:
                local[name] = one if one == other else either_way(test, one, other)

    def _return(
        self,
        node: ast.Return,
        value: ast.expr | None,
        path: tuple[Condition, ...],
        after: list[Condition],
        local: dict[str, Condition],
    ) -> Iterator[_Way]:
        if isinstance(value, ast.List):  # a builder of a list that returns early
            for text in value.elts:
                yield _Way("text", path, tuple(after), self._text(text, local), node.lineno)
        lifted: Condition = ["const", None] if value is None else self.lift(value, local)
        yield _Way("return", path, tuple(after), lifted, node.lineno)

    def _extend(
        self,
        texts: ast.expr,
        path: tuple[Condition, ...],
        after: list[Condition],
        local: dict[str, Condition],
    ) -> Iterator[_Way]:
        if isinstance(texts, ast.List | ast.Tuple):
            for text in texts.elts:
                yield _Way("text", path, tuple(after), self._text(text, local), texts.lineno)
        elif (
            isinstance(texts, ast.Call) and isinstance(texts.func, ast.Attribute) and dotted(texts.func.value) == "self"
        ):
            inner = replace(self, depth=self.depth + 1)
            for way in inner._run(texts.func.attr) if self.depth < _DEPTH else ():
                if way.kind == "text":
                    yield replace(way, path=(*path, *way.path), after=(*after, *way.after))
        else:
            yield _Way(
                "text",
                (*path, ["?", "extended by an expression"]),
                tuple(after),
                ["const", "?"],
                texts.lineno,
            )

    def _opaque(
        self, node: ast.stmt, path: tuple[Condition, ...], after: list[Condition], local: dict[str, Condition]
    ) -> Iterator[_Way]:
        """Loops and the like are not followed: what they may do is there, on an unknown condition."""
        reason: Condition = ["?", f"in a {type(node).__name__.lower()} statement"]
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return):
                yield _Way("return", (*path, reason), tuple(after), reason, inner.lineno)
            elif isinstance(inner, ast.Raise):
                yield _Way("raise", (*path, reason), tuple(after), FALSE, inner.lineno)
            elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "append":
                text = self._text(inner.args[0], local) if inner.args else ["const", "?"]
                yield _Way("text", (*path, reason), tuple(after), text, inner.lineno)
            elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                local[inner.id] = reason

    def _text(self, node: ast.expr, local: Mapping[str, Condition]) -> Condition:
        lifted = self.lift(node, local)
        return lifted if lifted[0] == "const" else ["const", "?"]


def _path_to(scope: ast.AST, wanted: ast.AST) -> list[tuple[ast.expr, bool]] | None:
    if scope is wanted:
        return []
    for child in ast.iter_child_nodes(scope):
        path = _path_to(child, wanted)
        if path is not None:
            if isinstance(scope, ast.If) and child is not scope.test:
                path.insert(0, (scope.test, child in scope.body))
            return path
    return None
