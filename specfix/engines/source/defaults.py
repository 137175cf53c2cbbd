"""What a config class makes of a config, read by running its constructor on symbols instead of values.

Each field ends as an expression of the config's keys (``specfix.engines.transformers.expressions``). Where the source
does what is not followed here, the fields that it may have changed are unknown from there on, and no others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any, Final

from specfix.engines.facts.classes import ConfigClass
from specfix.engines.source.classes import Class
from specfix.engines.source.symbolic.machine import NO_FACTS, ROOTS, Function, Source, State, annotated
from specfix.engines.source.symbolic.ropes import PLAIN_ROPE
from specfix.engines.source.symbolic.statements import Statements
from specfix.engines.source.symbolic.values import (
    ABSENT_WORD,
    NONE,
    OBJECT,
    Keywords,
    Lit,
    Word,
    as_json,
    given,
    is_unknown,
    word,
)
from specfix.engines.source.tree import dotted

RENAMED: Final = frozenset({"layer_types", "mtp_layer_types"})  # by newer ones of Transformers' base class


class Defaults(Source):
    """Reads config classes of one source tree."""

    def read(self, cls: Class) -> ConfigClass:
        """The class as facts, those of Transformers' base class included where it is of this tree."""
        return _Run(self, cls).facts()


class _Run(Statements):
    """One class, made of a config that may have any keys."""

    def facts(self) -> ConfigClass:
        state = State()
        reason = self._unfollowed()
        if not reason:
            self._construct(state, Keywords(), None)
            if state.dead:
                reason = "its constructor raises"
        parts, named = self._parts()
        result = ConfigClass(
            self.cls.name,
            aliases=self.aliases,
            parts=parts,
            named_parts=tuple(sorted(named)),
            base=self.base,
            completes_rope=self._completes_rope(),
        )
        if reason:
            for name in self._names():
                result.unknown[name] = reason
            return result
        found = {**state.attributes, **self._computed(state)}
        for name, value in sorted(found.items()):
            if not name.startswith("_") and name not in parts and name not in NO_FACTS:
                self._place(result, name, value, state)
        self._refer(result)
        if self.base and isinstance(state.passed, Keywords):
            for name, value in sorted(state.passed.known.items()):
                if value != ABSENT_WORD or name not in result.defaults:
                    result.passed[name] = _json(value)
        return result

    def _computed(self, state: State) -> dict[str, Any]:
        """Properties, and RoPE's theta where it is no attribute of its own."""
        found = {
            name: self._property(state, name)
            for name, (owner, _) in self.properties.items()
            if not name.startswith("_") and owner.node in self.own
        }
        rope = state.attributes.get("rope_parameters")
        if (
            isinstance(rope, Word)
            and self._states("rope_parameters")
            and (self.base or "default_theta" in self.members)
        ):
            for name, place in (("rope_theta", 1), ("partial_rotary_factor", 2)):
                within = word("get", Word("var", ("it",)), Lit(name))
                value = Word("some", (Word("field", ("rope_parameters",)), within), 4)
                if rope.word == "rope" and rope.operands[0] == PLAIN_ROPE and rope.operands[1] != NONE:
                    value = rope.operands[place]
                stated = state.attributes.get(name, given(name))
                found[name] = word("else", stated, NONE if value == given(name) else value)
        return found

    def _place(self, result: ConfigClass, name: str, value: Any, state: State) -> None:
        """Put a field where it belongs: a plain default, an expression, or unknown."""
        others = [alias for alias, own in self.aliases.items() if own == name]
        if self.base is None:
            default = _default(value, name, others)
        elif value == word("base", name, value.operands[-1] if isinstance(value, Word) and value.operands else NONE):
            # set before the extended class's constructor, which may set it anew
            kept = isinstance(state.passed, Keywords) and state.passed.get(name) == ABSENT_WORD
            default = _default(value.operands[1], name, others) if kept else None
        else:
            default = None
        try:
            if default is not None:
                value = as_json(default)
                result.defaults[name] = value[1] if isinstance(value, list) else value
            elif is_unknown(value):
                result.unknown[name] = value.operands[0]
            elif value != given(name):
                result.derived[name] = as_json(value)
        except ValueError as error:
            result.unknown[name] = str(error)

    def _refer(self, result: ConfigClass) -> None:
        """Let expressions name the plain fields that they read, so that they say what they mean."""
        taken = set(self.aliases.values())
        for name, expression in result.derived.items():
            result.derived[name] = _referring(expression, result.defaults, taken)

    def _unfollowed(self) -> str | None:
        if not self.lineage.complete and self.base is None:
            return "its bases"
        for owner in self.lineage.classes:
            if owner.name in ROOTS:
                break
            strange = {"__new__", "__getattribute__", "__getattr__"} & set(owner.members())
            if strange:
                return f"its {sorted(strange)[0]}"
        return None

    def _construct(self, state: State, keywords: Keywords, after: Class | None) -> None:
        """Run the constructor that comes ``after`` a class (None: the class's own) on ``keywords``."""
        classes = self._rest(after)
        for at, owner in enumerate(classes):
            method = owner.members().get("__init__")
            if isinstance(method, ast.FunctionDef):
                self._call(Function(owner.file, method, owner, True), [], {}, keywords, state)
                return
            if any(map(annotated, classes[at:])) and self.dataclass:
                self._construct_fields(state, keywords, classes[at:])
                return
        self._external(state, keywords)

    def _construct_fields(self, state: State, keywords: Keywords, classes: list[Class]) -> None:
        fields: dict[str, tuple[Class, ast.expr | None]] = {}
        for owner in reversed(classes):
            for name, value in annotated(owner):
                fields[name] = (owner, value)
        for name, (owner, value) in fields.items():
            default = ABSENT_WORD if value is None else self._field_default(owner, value)
            self._set(state, name, word("else", keywords.get(name), default))
            keywords = keywords.with_(name, ABSENT_WORD)
        found = self.members.get("__post_init__")
        if found and isinstance(found[1], ast.FunctionDef):
            self._call(Function(found[0].file, found[1], found[0], True), [], {}, keywords, state)
        elif self.base is not None:
            self._external(state, keywords)

    def _field_default(self, owner: Class, value: ast.expr) -> Any:
        if isinstance(value, ast.Call):
            for option in value.keywords:
                if option.arg == "default":
                    value = option.value
                    break
                if option.arg == "default_factory":
                    if isinstance(option.value, ast.Lambda):
                        value = option.value.body
                        break
                    name = dotted(option.value)
                    return Lit({"list": [], "dict": {}}[name]) if name in {"list", "dict"} else OBJECT
        state = State()
        return self._value(value, state, owner.file)

    def _external(self, state: State, keywords: Keywords) -> None:
        """The constructor of a class outside of this tree: it may set any attribute."""
        if self.base is None:
            self._open(state, keywords)
            return
        for name in RENAMED & set(state.attributes):  # as if handed on: it may rename the kinds of layers
            keywords = keywords.with_(name, state.attributes.pop(name))
        ropes = self._completed(state, keywords)
        for name, value in state.attributes.items():
            state.attributes[name] = word("base", name, value)
        state.attributes |= ropes
        state.passed = keywords
        if not keywords.rest:
            self._taint(state, "keys that are not handed on")


def _default(value: Any, name: str, others: Iterable[str]) -> Lit | None:
    """The literal that a field has where neither its key nor another name of it is given; None where it is no such
    field."""
    keys = {name, *others}
    while isinstance(value, Word) and value.word == "else" and value.operands[0] in [given(key) for key in keys]:
        keys.discard(value.operands[0].operands[0])
        value = value.operands[1]
    return value if isinstance(value, Lit) and not keys else None


def _json(value: Any) -> Any:
    try:
        return as_json(value)
    except ValueError as error:
        return ["unknown", str(error)]


def _referring(expression: Any, defaults: Mapping[str, Any], aliased: set[str]) -> Any:
    if not isinstance(expression, list) or expression[:1] == ["lit"]:
        return expression
    if expression[:1] == ["given"] and len(expression) == 3 and expression[1] in defaults:
        name, default = expression[1], expression[2]
        default = default[1] if isinstance(default, list) and default[:1] == ["lit"] else default
        if name not in aliased and default == defaults[name] and type(default) is type(defaults[name]):
            return ["field", name]
    return [expression[0], *(_referring(part, defaults, aliased) for part in expression[1:])]
