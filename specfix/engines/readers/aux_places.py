"""Where a runner looks for the draft's aux layer ids: its ``get_eagle3_aux_layers_from_config``, followed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from specfix.engines.source.tree import literal, walk


@dataclass
class Places:
    """Keys of the draft's config in the order in which one is taken, each with what is added to every id.

    ``hidden_by``: a place that is not read where the config has this (non-empty) key too: a later assignment
    wins, even with nothing. ``unshifted``: values of the draft's model_type for which nothing is added.
    """

    order: tuple[tuple[str, int], ...] = ()
    hidden_by: dict[str, str] = field(default_factory=dict)
    unshifted: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Unreadable(Exception):
    """The function has a form that is not known here; guessing would be worse than saying so."""


# What an expression is worth: a config key ("" is the config itself), or ids of the first place that has
# some.
Value = str | list[tuple[str, int]]


def read_places(function: ast.FunctionDef) -> Places:
    """Follow ``function`` to the ids that it returns."""
    reader = Reader()
    reader.block(function.body, {})
    if reader.returned is None:
        raise Unreadable("it returns no ids that are read of the config")
    return Places(tuple(reader.returned), reader.hidden_by, reader.unshifted)


class Reader:
    def __init__(self) -> None:
        self.hidden_by: dict[str, str] = {}
        self.unshifted: dict[str, tuple[str, ...]] = {}
        self.returned: list[tuple[str, int]] | None = None

    def block(self, body: list[ast.stmt], env: dict[str, Value]) -> dict[str, Value]:
        for statement in body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                value = self.value(statement.value, env)
                if value is None:
                    raise Unreadable(f"line {statement.lineno}: {ast.unparse(statement.value)}")
                env = {**env, statement.targets[0].id: value}
            elif isinstance(statement, ast.If):
                env = self.branch(statement, env)
            elif isinstance(statement, ast.For):
                env = self.loop(statement, env)
            elif isinstance(statement, ast.Return):
                found = self.value(statement.value, env) if statement.value else None
                if isinstance(found, list) and found:
                    self.returned = found
        return env

    def branch(self, node: ast.If, env: dict[str, Value]) -> dict[str, Value]:
        missing = self.only_without(node.test, env)
        inner = env if missing is None else {**env, missing: []}  # in there it is known to be empty
        then, other = self.block(node.body, inner), self.block(node.orelse, env)
        merged = dict(env)
        for name in {**then, **other}:
            before, new, alternative = env.get(name), then.get(name), other.get(name)
            if name == missing:
                merged[name] = [*_ids(before), *_ids(new)]
                continue
            if new == before and alternative == before:
                continue
            if before not in (new, alternative):  # both branches set it
                merged[name] = self.by_model_type(node.test, new, alternative)
            elif not isinstance(new, list) and not isinstance(before, list):
                merged[name] = new if new is not None else alternative or ""
            else:  # a later assignment wins wherever its own container is there
                for container in self.containers(node.test, env):
                    self.hidden_by.update({key: container for key, _ in _ids(before)})
                merged[name] = [*_ids(new), *_ids(before)]
        return merged

    def loop(self, node: ast.For, env: dict[str, Value]) -> dict[str, Value]:
        """``for name in ("a_config", "b_config")``: once for each; the first that has ids ends it."""
        names = literal(node.iter)
        if not (isinstance(names, tuple | list) and isinstance(node.target, ast.Name)):
            raise Unreadable(f"line {node.lineno}: a loop over {ast.unparse(node.iter)}")
        ends_at_first = any(True for _ in walk(node, ast.Break))
        before = dict(env)
        for name in names:
            after = self.block(node.body, {**before, node.target.id: f"={name}"})
            for key, value in after.items():
                if isinstance(value, list) and value != before.get(key):
                    old = _ids(env.get(key))
                    fresh = [place for place in value if place not in old]
                    env = {**env, key: [*old, *fresh] if ends_at_first else [*fresh, *old]}
        return env

    def value(self, node: ast.expr, env: dict[str, Value]) -> Value | None:
        if isinstance(node, ast.Name):
            return env.get(node.id)
        if isinstance(node, ast.Constant) and node.value is None:
            return []
        if isinstance(node, ast.Attribute):
            if node.attr in {"hf_config", "config"}:  # the draft's, as a runner and as a draft model call it
                return ""
            owner = self.value(node.value, env)
            return _key(owner, node.attr) if isinstance(owner, str) else None
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            values = [self.value(part, env) for part in node.values if literal(part) not in ([], {}, ())]
            return values[0] if len(values) == 1 else [place for value in values for place in _ids(value)]
        if isinstance(node, ast.ListComp):
            return self.shifted(node, env)
        return self.called(node, env) if isinstance(node, ast.Call) else None

    def called(self, node: ast.Call, env: dict[str, Value]) -> Value | None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in {"list", "tuple"} and len(node.args) == 1:
            return _ids(self.value(node.args[0], env)) or None
        if isinstance(function, ast.Name) and function.id == "getattr" and len(node.args) >= 2:
            owner, name = self.value(node.args[0], env), node.args[1]
        elif isinstance(function, ast.Attribute) and function.attr == "get" and node.args:
            owner, name = self.value(function.value, env), node.args[0]
        else:
            return None
        key = literal(name)
        if isinstance(name, ast.Name):
            key = str(env.get(name.id, "")).removeprefix("=") or None
        return _key(owner, key) if isinstance(owner, str) and isinstance(key, str) else None

    def shifted(self, node: ast.ListComp, env: dict[str, Value]) -> Value | None:
        """``[i + 1 for i in ids]``."""
        ids = _ids(self.value(node.generators[0].iter, env))
        shift = 0
        if isinstance(node.elt, ast.BinOp) and isinstance(node.elt.op, ast.Add | ast.Sub):
            amount = literal(node.elt.right)
            if not isinstance(amount, int):
                return None
            shift = amount if isinstance(node.elt.op, ast.Add) else -amount
        elif not isinstance(node.elt, ast.Name):
            return None
        return [(key, already + shift) for key, already in ids] or None

    def by_model_type(self, test: ast.expr, new: Value | None, other: Value | None) -> Value:
        """Both branches read one place, and ``getattr(config, "model_type") == "x"`` decides on the shift."""
        names = [literal(node) for node in walk(test, ast.Constant)]
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and "model_type" in names:
            kinds = tuple(str(name) for name in names if name not in ("model_type", None))
            special, usual = _ids(new), _ids(other)
            if len(special) == len(usual) == 1 and special[0][0] == usual[0][0] and special[0][1] == 0:
                self.unshifted[usual[0][0]] = kinds
                return usual
        raise Unreadable(f"line {test.lineno}: two ways that hang on {ast.unparse(test)}")

    @staticmethod
    def only_without(test: ast.expr, env: dict[str, Value]) -> str | None:
        """The name in ``if not ids``: an assignment in there fills in and overrides nothing."""
        name = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
        return name.id if isinstance(name, ast.Name) and name.id in env else None

    @staticmethod
    def containers(test: ast.expr, env: dict[str, Value]) -> set[str]:
        found = (env.get(node.id) for node in walk(test, ast.Name))
        return {value for value in found if isinstance(value, str) and value and not value.startswith("=")}


def _key(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _ids(value: Value | None) -> list[tuple[str, int]]:
    """A config key taken as ids, as it stands."""
    if isinstance(value, str):
        return [(value, 0)] if value else []
    return list(value or [])
