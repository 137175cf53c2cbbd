"""What an expression of the source is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

from specfix.engines.source.classes import Class
from specfix.engines.source.symbolic.changes import Changes
from specfix.engines.source.symbolic.machine import (
    CHANGERS,
    INNER,
    MAX_DEPTH,
    SELF,
    TORCH,
    Function,
    State,
    Super,
    Type,
)
from specfix.engines.source.symbolic.values import (
    ABSENT_WORD,
    NONE,
    OBJECT,
    Keywords,
    Lit,
    Word,
    choose,
    each_of,
    elements_of,
    is_unknown,
    truth,
    unknown,
    word,
)
from specfix.engines.source.tree import dotted
from specfix.engines.source.words import COMPARED_BY

OPERATORS: Final[Mapping[type[ast.AST], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitXor: "^",
    **COMPARED_BY,
}


class Expressions(Changes):
    """Makes values of expressions."""

    def _value(self, node: ast.expr | None, state: State, file: str) -> Any:
        match node:
            case None:
                return NONE
            case ast.Constant(value=value):
                return Lit(value)
            case ast.Name(id=name):
                return state.frames[-1][name] if name in state.frames[-1] else self._global(file, name)
            case ast.NamedExpr(target=target, value=value):
                found = self._value(value, state, file)
                self._assign(target, found, state, file)
                return found
            case ast.Attribute(value=holder, attr=name):
                return self._attribute(node, holder, name, state, file)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self._value(test, state, file)
                return self._either(condition, body, orelse, state, file)
            case ast.BoolOp(op=op, values=values):
                return self._bool(isinstance(op, ast.And), values, state, file)
            case ast.UnaryOp(op=op, operand=operand):
                inner = self._value(operand, state, file)
                if isinstance(op, ast.Not):
                    return word("not", inner)
                return word("neg", inner) if isinstance(op, ast.USub) else unknown("an operator")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return word(OPERATORS[type(op)], self._value(left, state, file), self._value(right, state, file))
            case ast.Compare(left=left, ops=ops, comparators=others):
                return self._compare(left, ops, others, state, file)
            case ast.Subscript(value=holder, slice=index):
                return self._item(holder, index, state, file)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return self._display(node, elements, state, file)
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values, state, file)
            case (
                ast.ListComp(elt=element, generators=generators)
                | ast.GeneratorExp(elt=element, generators=generators)
                | ast.SetComp(elt=element, generators=generators)
            ):
                return self._comprehension(element, generators, state, file)
            case ast.Call():
                return self._call_value(node, state, file)
            case ast.JoinedStr(values=parts):
                return self._text(parts, state, file)
            case _:
                self._lose([ast.Expr(node)], state, "an expression that is not followed")
                return unknown(f"an expression ({type(node).__name__})")

    def _text(self, parts: list[ast.expr], state: State, file: str) -> Any:
        found = []
        for part in parts:
            if isinstance(part, ast.FormattedValue) and (part.format_spec is not None or part.conversion != -1):
                return unknown("a formatted text")
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            found.append(self._value(inner, state, file))
        return word("text", *found)

    def _either(self, condition: Any, body: ast.expr, orelse: ast.expr, state: State, file: str) -> Any:
        decided = truth(condition)
        if decided is not None:
            return self._value(body if decided else orelse, state, file)
        one, two = state.copy(), state.copy()
        one.assume(condition, True)
        two.assume(condition, False)
        found, other = self._value(body, one, file), self._value(orelse, two, file)
        state.become(self._joined(condition, one, two))
        return choose(condition, found, other)

    def _bool(self, conjunction: bool, values: list[ast.expr], state: State, file: str) -> Any:
        found = self._value(values[0], state, file)
        if len(values) == 1:
            return found
        decided = truth(found)
        if decided is not None:
            return found if decided != conjunction else self._bool(conjunction, values[1:], state, file)
        if is_unknown(found):
            return found
        longer = state.copy()
        longer.assume(found, conjunction)
        other = self._bool(conjunction, values[1:], longer, file)
        condition = found if conjunction else word("not", found)
        state.become(self._joined(condition, longer, state))
        return word("and" if conjunction else "or", found, other)

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr], state: State, file: str) -> Any:
        found: Any = Lit(True)
        one = self._value(left, state, file)
        for op, node in zip(ops, others, strict=True):
            other = self._value(node, state, file)
            name = OPERATORS[type(op)]
            if name in {"in", "not in"} and isinstance(other, Keywords):
                present = word("not", word("is absent", other.get(one.value))) if isinstance(one, Lit) else OBJECT
                test = present if name == "in" else word("not", present)
            else:
                test = state.known(word(name, one, other))
            found = word("and", found, test)
            one = other
        return found

    def _attribute(self, node: ast.Attribute, holder: ast.expr, name: str, state: State, file: str) -> Any:
        whole = self._value(holder, state, file)
        if whole is SELF:
            if name == "__class__":
                return Type(self.cls)
            found = self._get(state, name)
            return unknown(f"no attribute {name}") if found == ABSENT_WORD else found
        if isinstance(whole, Type):
            lineage = self.reader.classes.lineage(whole.cls)
            bound = lineage.find(name)
            if bound and isinstance(bound[1], ast.FunctionDef):
                return Function(bound[0].file, bound[1], bound[0], bound=False)
            value = getattr(bound[1], "value", None) if bound else None
            if name == "__name__":
                return Lit(whole.cls.name)
            return self._constant(bound[0].file, value) if bound and value is not None else OBJECT
        if isinstance(whole, Super):
            return self._super_member(whole, name)
        inner = (dotted(holder) or "").endswith("config")
        return unknown(INNER if inner else f"an attribute {name}")

    def _item(self, holder: ast.expr, index: ast.expr, state: State, file: str) -> Any:
        whole = self._value(holder, state, file)
        if isinstance(index, ast.Slice):
            bounds = [self._value(part, state, file) for part in (index.lower, index.upper, index.step)]
            return word("slice", whole, *bounds)
        key = self._value(index, state, file)
        if isinstance(whole, Keywords):
            return whole.get(key.value) if isinstance(key, Lit) and isinstance(key.value, str) else OBJECT
        return word("item", whole, key) if isinstance(whole, Lit | Word) and isinstance(key, Lit | Word) else OBJECT

    def _display(self, node: ast.expr, elements: list[ast.expr], state: State, file: str) -> Any:
        found: list[Any] = []
        for element in elements:
            if isinstance(element, ast.Starred):
                inner = elements_of(self._value(element.value, state, file))
                if inner is None:
                    return unknown("a starred element")
                found += inner
            else:
                found.append(self._value(element, state, file))
        if all(isinstance(each, Lit) for each in found):
            kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            try:
                return Lit(kind(each.value for each in found))
            except TypeError:
                return OBJECT
        return word("list", *found) if all(isinstance(each, Lit | Word) for each in found) else tuple(found)

    def _dict(self, keys: list[ast.expr | None], values: list[ast.expr], state: State, file: str) -> Any:
        pairs: list[Any] = []
        for key, value in zip(keys, values, strict=True):
            found = self._value(value, state, file)
            if key is None:
                if not isinstance(found, Lit) or not isinstance(found.value, dict):
                    return unknown("an object put together")
                pairs += [Lit(part) for pair in found.value.items() for part in pair]
            else:
                pairs += [self._value(key, state, file), found]
        if all(isinstance(each, Lit) for each in pairs):
            try:
                return Lit(dict(zip((k.value for k in pairs[::2]), (v.value for v in pairs[1::2]), strict=True)))
            except TypeError:
                return OBJECT
        return word("dict", *pairs)

    def _comprehension(self, element: ast.expr, generators: list[ast.comprehension], state: State, file: str) -> Any:
        inside = [element, *(test for each in generators for test in each.ifs), *(each.iter for each in generators[1:])]
        if any(map(changes, inside)):
            self._lose([ast.Expr(each) for each in inside], state, "a list that is computed")
        generator = generators[0]
        over = self._value(generator.iter, state, file)
        if not isinstance(over, Lit | Word):
            return OBJECT
        if isinstance(generator.target, ast.Name):
            names: list[str] = [generator.target.id]
        elif isinstance(generator.target, ast.Tuple) and all(isinstance(e, ast.Name) for e in generator.target.elts):
            names = [e.id for e in generator.target.elts if isinstance(e, ast.Name)]
        else:
            return unknown("a list that is computed")
        inner = state.copy()
        inner.frames[-1].update({name: Word("var", (name,)) for name in names})
        condition: Any = Lit(True)
        for test in generator.ifs:
            condition = word("and", condition, self._value(test, inner, file))
        if generators[1:]:
            return unknown("a list that is computed")
        body = self._value(element, inner, file)
        if is_unknown(condition):
            return condition
        if is_unknown(body):
            return body
        if not isinstance(body, Lit | Word) or not isinstance(condition, Lit | Word):
            return OBJECT
        variables = names[0] if isinstance(generator.target, ast.Name) else Lit(names)
        return each_of(over, variables, body, condition)

    def _global(self, file: str | None, name: str) -> Any:
        if name == "torch":
            return TORCH
        found = self.reader.origin(file, name) if file else None
        if found is None:
            return unknown(f"the name {name}")
        origin, node = found
        if isinstance(node, ast.FunctionDef):
            return Function(origin, node)
        if isinstance(node, ast.ClassDef):
            return Type(Class(origin, node))
        return self._constant(origin, node) if isinstance(node, ast.expr) else OBJECT

    def _constant(self, file: str, node: ast.expr) -> Any:
        """A value that stands in a module or a class; computed ones too."""
        if self.depth > MAX_DEPTH:
            return OBJECT
        self.depth += 1
        try:
            return self._value(node, State(), file)
        finally:
            self.depth -= 1


def changes(loop: ast.AST) -> bool:
    """Whether a turn of a loop may change something in place."""
    return any(
        (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del))
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGERS)
        for node in ast.walk(loop)
    )
