"""What a statement changes: names, attributes, and what is held by them."""

from __future__ import annotations

import ast
from typing import Any

from specfix.engines.source.symbolic.machine import CHANGERS, CHECKS, SELF, Function, Machine, Self, State, Type
from specfix.engines.source.symbolic.values import (
    ABSENT_WORD,
    OBJECT,
    Keywords,
    Lit,
    Word,
    elements_of,
    given,
    holds,
    is_unknown,
    parts_of,
    unknown,
    word,
)
from specfix.engines.source.tree import dotted


class Changes(Machine):
    """Sets and forgets."""

    def _lose(self, body: list[ast.stmt], state: State, reason: str) -> None:
        """Whatever ``body`` may change is unknown from here on."""
        lost = unknown(reason)
        for node in (node for each in body for node in ast.walk(each)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                state.frames[-1][node.id] = lost
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                self._assign_unknown(node, state, lost)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                self._root_changed(node.value, state, lost)
            elif isinstance(node, ast.Call):
                head = dotted(node.func) or ""
                if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGERS:
                    self._root_changed(node.func.value, state, lost, takes=node.func.attr == "pop")
                passes_self = any(dotted(part) == "self" for part in node.args)
                if (
                    head == "setattr"
                    or (passes_self and head not in {"getattr", "hasattr", "isinstance"})
                    or (own_method(head) and not head.startswith(CHECKS))
                ):
                    self._taint(state, reason)

    def _assign_unknown(self, node: ast.Attribute, state: State, lost: Any) -> None:
        if isinstance(node.value, ast.Name) and state.frames[-1].get(node.value.id) is SELF:
            self._set(state, node.attr, lost)
        else:
            self._root_changed(node.value, state, lost)

    def _root_changed(self, node: ast.expr, state: State, lost: Any, takes: bool = False) -> None:
        """What hangs on a name or an attribute of the config may be changed in place."""
        while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
            if isinstance(node, ast.Attribute) and state.frames[-1].get(dotted(node.value) or "") is SELF:
                self._changed(state.attributes.get(self.aliases.get(node.attr, node.attr)), lost, state)
                self._set(state, node.attr, lost)
                return
            node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Name):
            before = state.frames[-1].get(node.id)
            if isinstance(before, Keywords):
                state.frames[-1][node.id] = before.doubted(added=not takes)
            elif before is not SELF:
                self._changed(before, lost, state)
                state.frames[-1][node.id] = lost

    def _taint(self, state: State, reason: str) -> None:
        for name in {*state.attributes, *self._names()}:
            state.attributes[name] = unknown(reason)

    def _changed(self, before: Any, after: Any, state: State) -> None:
        """``before`` is changed in place and is ``after`` now, wherever it is held."""
        if before is None or isinstance(before, Keywords | Self | Type | Function | tuple):
            return
        if not holds(before) or is_unknown(before):
            return
        if isinstance(before, Word) and before.word in {"item", "get", "slice", "values"}:  # a part of something
            self._changed(before.operands[0], unknown("changed in place"), state)
        own = [part for part in parts_of(before) if holds(part)]
        for held in (state.attributes, *state.frames):
            for name, value in held.items():
                if value == before:
                    held[name] = after
                elif holds(value) and any(part == other for part in parts_of(value) for other in own):
                    held[name] = unknown("changed in place")

    def _assign(self, target: ast.expr, value: Any, state: State, file: str) -> None:
        match target:
            case ast.Name(id=name):
                state.frames[-1][name] = value
            case ast.Attribute(value=holder, attr=name):
                if self._value(holder, state, file) is SELF:
                    self._set(state, name, value)
                else:
                    self._changed(self._value(holder, state, file), unknown("changed in place"), state)
            case ast.Subscript(value=holder, slice=index):
                whole, key = self._value(holder, state, file), self._value(index, state, file)
                if isinstance(whole, Keywords) and isinstance(holder, ast.Name):
                    known = isinstance(key, Lit) and isinstance(key.value, str)
                    state.frames[-1][holder.id] = whole.with_(key.value, value) if known else unknown("a key")
                else:
                    self._changed(whole, word("with", whole, key, value), state)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                elements = elements_of(value)
                if elements is None or len(elements) != len(parts):
                    elements = [
                        word("item", value, Lit(at)) if isinstance(value, Word) else OBJECT for at in range(len(parts))
                    ]
                for part, element in zip(parts, elements, strict=True):
                    self._assign(part, element, state, file)
            case ast.Starred(value=inner):
                self._assign(inner, unknown("a starred name"), state, file)

    def _set(self, state: State, name: str, value: Any) -> None:
        found = self.members.get("__setattr__")
        if found and found[0].node in self.own and isinstance(found[1], ast.FunctionDef):
            self._call(Function(found[0].file, found[1], found[0], True), [Lit(name), value], {}, None, state)
            return
        self._set_plainly(state, name, value)

    def _set_plainly(self, state: State, name: str, value: Any) -> None:
        """As ``object`` sets it, and Transformers' base class by its aliases."""
        name = self.aliases.get(name, name)
        if name in self.properties:
            setter = self._setter(name)
            if setter is not None:
                self._call(setter, [value], {}, None, state)
            return
        state.attributes[name] = value

    def _get(self, state: State, name: str) -> Any:
        """Attribute of the config; ABSENT_WORD where it has none."""
        name = self.aliases.get(name, name)
        if name in self.properties:
            return self._property(state, name)
        if name in state.attributes:
            return state.attributes[name]
        return self._unset(state, name)

    def _property(self, state: State, name: str) -> Any:
        owner, getter = self.properties[name]
        if getter is None:
            return OBJECT
        apart = state.copy()
        apart.dead = False
        found = self._call(Function(owner.file, getter, owner, True), [], {}, None, apart)
        return unknown("a property that raises") if apart.dead else found

    def _unset(self, state: State, name: str) -> Any:
        """What an attribute is that was not set: a method, a class's own value, or a key of the config."""
        found = self.members.get(name)
        if found is not None:
            owner, statement = found
            if isinstance(statement, ast.FunctionDef):
                return Function(owner.file, statement, owner, True)
            value = getattr(statement, "value", None)
            known = ABSENT_WORD if value is None else self._constant(owner.file, value)
        else:
            known = ABSENT_WORD
        if state.passed is not None:
            return word("base", name, known)
        if isinstance(state.opened, Keywords):
            return word("else", state.opened.get(name), known)
        return known if state.opened is None else unknown("keys that are computed")

    def _delete(self, target: ast.expr, state: State, file: str) -> None:
        if isinstance(target, ast.Attribute) and self._value(target.value, state, file) is SELF:
            state.attributes[target.attr] = ABSENT_WORD
        elif isinstance(target, ast.Subscript):
            holder = self._value(target.value, state, file)
            self._changed(holder, unknown("changed in place"), state)
        elif isinstance(target, ast.Name):
            state.frames[-1].pop(target.id, None)

    def _open(self, state: State, keywords: Keywords) -> None:
        """All keywords that are left become attributes."""
        own: dict[str, list[str]] = {}
        for alias, name in self.aliases.items():
            own.setdefault(name, []).append(alias)
        for name in {*state.attributes, *keywords.known, *own}:
            if name in self.aliases or name in self.properties:
                continue
            before = state.attributes[name] if name in state.attributes else self._unset(state, name)
            keys = [name, *own.get(name, ())]
            raw = [key for key in keys if keywords.get(key) == given(key)]
            for key in (key for key in keys if key not in raw):
                before = word("else", keywords.get(key), before)
            if len(raw) > 1:
                before = word("last", before, *(Lit(key) for key in raw))
            elif raw:
                before = word("else", given(raw[0]), before)
            if before != ABSENT_WORD and before != given(name) and not isinstance(before, Function):
                state.attributes[name] = before
        for name in self.properties:
            value = keywords.get(name)
            if value != ABSENT_WORD and self._setter(name) is not None:
                without = state.copy()
                self._set(state, name, value)
                state.become(self._joined(word("is absent", value), without, state))
        state.opened = keywords


def own_method(name: str) -> bool:
    """Whether a call of this name is one of the config's methods, or of its base's."""
    return (name.startswith("self.") and name.count(".") == 1) or name.startswith("super")
