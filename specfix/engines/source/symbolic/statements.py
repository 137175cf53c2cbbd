"""What statements do."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from specfix.engines.source.symbolic.calls import Calls
from specfix.engines.source.symbolic.expressions import OPERATORS, changes
from specfix.engines.source.symbolic.machine import TORCH, State
from specfix.engines.source.symbolic.values import (
    NONE,
    Keywords,
    Word,
    choose,
    elements_of,
    inner_of,
    is_list,
    join,
    truth,
    unknown,
    word,
)
from specfix.engines.source.tree import dotted

MAX_TURNS = 256  # of a loop over what the source states


class Statements(Calls):
    """Runs the bodies of functions."""

    def _run(self, body: list[ast.stmt], state: State, file: str) -> None:
        for at, statement in enumerate(body):
            if state.dead or state.ended:
                return
            if isinstance(statement, ast.If):
                condition = state.known(self._value(statement.test, state, file))
                decided = truth(condition)
                rest = body[at + 1 :]
                if decided is not None:
                    self._run([*(statement.body if decided else statement.orelse), *rest], state, file)
                    return
                if leaves(statement):
                    self._branch(condition, [*statement.body, *rest], [*statement.orelse, *rest], state, file)
                    return
                self._branch(condition, statement.body, statement.orelse, state, file)
            else:
                self._statement(statement, state, file)

    def _branch(self, condition: Any, body: list[ast.stmt], other: list[ast.stmt], state: State, file: str) -> None:
        one, two = state.copy(), state.copy()
        one.assume(condition, True)
        two.assume(condition, False)
        self._run(body, one, file)
        self._run(other, two, file)
        state.become(self._joined(condition, one, two))

    def _joined(self, condition: Any, one: State, two: State) -> State:
        if one.dead or two.dead:
            return two if one.dead else one
        result = one.copy()
        result.facts = {fact: holds for fact, holds in one.facts.items() if two.facts.get(fact) is holds}
        for side, other in ((one, two), (two, one)):  # what only one branch set is what the other finds without it
            for name in [name for name in other.attributes if name not in side.attributes]:
                side.attributes[name] = self._unset(side, name)
        result.attributes = join(condition, one.attributes, two.attributes)
        result.frames = [join(condition, a, b) for a, b in zip(one.frames, two.frames, strict=True)]
        result.opened = choose(condition, one.opened, two.opened)
        result.passed = choose(condition, one.passed, two.passed)
        result.result = choose(condition, one.result, two.result)
        result.ended = one.ended or two.ended
        return result

    def _statement(self, statement: ast.stmt, state: State, file: str) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                found = self._value(value, state, file)
                for target in targets:
                    self._assign(target, found, state, file)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._value(value, state, file), state, file)
            case ast.AugAssign(target=target, op=op, value=value):
                load = ast.parse(ast.unparse(target), mode="eval").body
                before = self._value(load, state, file)
                right = self._value(value, state, file)
                after = word(OPERATORS[type(op)], before, right) if type(op) in OPERATORS else unknown("an operator")
                if is_list(right):  # a list grows in place
                    self._changed(before, unknown("changed in place"), state)
                self._assign(target, after, state, file)
            case ast.Expr(value=ast.Call() as call):
                self._call_statement(call, state, file)
            case ast.Expr(value=value):
                self._value(value, state, file)
            case ast.Return(value=value):
                state.result = NONE if value is None else self._value(value, state, file)
                state.ended = True
            case ast.Raise():
                state.dead = True
            case ast.For():
                self._for(statement, state, file)
            case ast.While(body=body):
                self._lose(body, state, "a loop")
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                tried = state.copy()
                self._run([*body, *orelse], tried, file)
                for handler in handlers:
                    if not any(isinstance(each, ast.Raise) for each in handler.body):
                        failed = state.copy()
                        self._lose(body, failed, "what is tried")
                        self._run(handler.body, failed, file)
                        tried = self._joined(unknown("whether it fails"), tried, failed)
                state.become(tried)
                self._run(final, state, file)
            case ast.With(body=body):
                self._run(body, state, file)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target, state, file)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                state.frames[-1][name] = unknown(name)
            case ast.Import() | ast.ImportFrom():
                self._import(statement, state, file)
            case ast.Pass() | ast.Assert() | ast.Global() | ast.Nonlocal() | ast.AnnAssign():
                pass
            case _:
                self._lose([statement], state, type(statement).__name__.lower())

    def _import(self, statement: ast.Import | ast.ImportFrom, state: State, file: str) -> None:
        origin = self.reader.module_file(file, statement) if isinstance(statement, ast.ImportFrom) else None
        for alias in statement.names:
            name = alias.asname or alias.name.partition(".")[0]
            found = TORCH if name == "torch" else unknown(name)
            state.frames[-1][name] = self._global(origin, alias.name) if origin else found

    def _for(self, loop: ast.For, state: State, file: str) -> None:
        if self._opens(loop, state, file) or self._makes_parts(loop, state, file):
            return
        over = self._value(loop.iter, state, file)
        self._loop(loop, over, state, file)

    def _loop(self, loop: ast.For, over: Any, state: State, file: str) -> None:
        if isinstance(over, Word) and over.word == "or":
            one, two = state.copy(), state.copy()
            self._loop(loop, over.operands[0], one, file)
            self._loop(loop, over.operands[1], two, file)
            state.become(self._joined(over.operands[0], one, two))
            return
        turns = elements_of(over)
        if turns is None or len(turns) > MAX_TURNS or jumps(loop):
            self._lose([loop], state, "a loop")
            if changes(loop):
                for part in inner_of(over):
                    self._changed(part, unknown("a loop"), state)
            return
        for turn in turns:
            self._assign(loop.target, turn, state, file)
            self._run(loop.body, state, file)

    def _opens(self, loop: ast.For, state: State, file: str) -> bool:
        """``for key, value in kwargs.items(): setattr(self, key, value)``"""
        if not (
            isinstance(loop.iter, ast.Call)
            and isinstance(loop.iter.func, ast.Attribute)
            and loop.iter.func.attr == "items"
            and isinstance(loop.target, ast.Tuple)
        ):
            return False
        source = self._value(loop.iter.func.value, state, file)
        if not isinstance(source, Keywords):
            return False
        names = [dotted(part) for part in loop.target.elts]
        for node in ast.walk(loop):
            if not isinstance(node, ast.Call) or dotted(node.func) != "setattr":
                continue
            if [dotted(part) for part in node.args] == ["self", *names]:
                self._open(state, source)
                return True
        return False

    def _makes_parts(self, loop: ast.For, state: State, file: str) -> bool:
        """``for key, specs in self.sub_configs_defaults.items()``: inner configs, made by their own classes."""
        if (
            dotted(loop.iter.func if isinstance(loop.iter, ast.Call) else loop.iter)
            != "self.sub_configs_defaults.items"
        ):
            return False
        for key in self._parts()[0]:
            state.attributes[key] = unknown("a config of its own")
        return True


@cache
def jumps(loop: ast.For) -> bool:
    jumps = ast.Break | ast.Continue | ast.Return
    return any(isinstance(node, jumps) for each in loop.body for node in ast.walk(each))


@cache
def leaves(statement: ast.If) -> bool:
    """Whether a branch may end the function."""
    return any(isinstance(node, ast.Return) for part in (*statement.body, *statement.orelse) for node in ast.walk(part))
