"""What a call does, and what it gives."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from typing import Any

from specfix.engines.source.classes import Class
from specfix.engines.source.symbolic.changes import own_method
from specfix.engines.source.symbolic.machine import (
    CHANGERS,
    CHECKS,
    CONVERTS,
    INNER,
    MAX_DEPTH,
    ROPE_METHODS,
    SELF,
    STANDARDIZES,
    TORCH,
    Function,
    State,
    Super,
    Type,
    digest,
)
from specfix.engines.source.symbolic.ropes import COMPLETED, Ropes
from specfix.engines.source.symbolic.values import (
    ABSENT_WORD,
    NONE,
    OBJECT,
    Keywords,
    Lit,
    Word,
    elements_of,
    is_unknown,
    unknown,
    word,
)
from specfix.engines.source.tree import dotted
from specfix.engines.transformers.expressions import TYPES

MAX_RECURSION = 2  # times that one function may be running


# of Transformers, called by classes of vLLM: they change nothing but, in newer ones, RoPE parameters
TRANSFORMERS_CHECKS = frozenset({"rope_config_validation", "layer_type_validation"})
HARMLESS = ("logger", "logging", "warnings", "log", "print")


FUNCTION_WORDS = frozenset(
    ["abs", "all", "any", "bool", "enumerate", "float", "int", "len", "max", "min", "range", "round", "str", "sum"]
)


MATH_WORDS = frozenset({"ceil", "floor", "log", "sqrt"})


METHOD_WORDS = frozenset({"get", "keys", "values", "lower", "startswith"})


class Calls(Ropes):
    """Follows calls into the source."""

    def _call_statement(self, call: ast.Call, state: State, file: str) -> None:
        head = dotted(call.func) or ""
        if head.partition(".")[0] in HARMLESS or head.startswith(CHECKS):
            return
        function = self._callee(call, state, file)
        if isinstance(function, Function) and self._only_looks(function):
            return
        self._call_value(call, state, file)

    def _callee(self, call: ast.Call, state: State, file: str) -> Any:
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if state.frames[-1].get(name) is SELF:
                found = self.members.get(attr)
                if found and isinstance(found[1], ast.FunctionDef) and attr not in state.attributes:
                    return Function(found[0].file, found[1], found[0], True)
            case ast.Name(id=name) if name not in state.frames[-1]:
                return self._global(file, name)
        return None

    def _only_looks(self, function: Function, depth: int = 0) -> bool:
        known = self.reader.looks.get(function.node)
        if known is None:
            known = self.reader.looks[function.node] = self._looks(function, depth)
        return known

    def _looks(self, function: Function, depth: int) -> bool:
        """Whether it changes nothing, which checks do not: no store but to names, no call that is not of that kind."""
        if depth > 3:
            return False
        for node in ast.walk(function.node):
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                return False
            if isinstance(node, ast.Call):
                head = dotted(node.func) or ""
                name = head.rpartition(".")[2]
                holder = head.rpartition(".")[0]
                if (name in CHANGERS and not holder.endswith("_keys")) or head in {"setattr", "delattr"}:
                    return False
                if head.startswith("self.") and head.count(".") == 1:
                    found = self.members.get(name)
                    if not (found and isinstance(found[1], ast.FunctionDef)):
                        continue
                    inner = Function(found[0].file, found[1], found[0], True)
                    if not self._only_looks(inner, depth + 1):
                        return False
                elif any(dotted(part) in {"self", "config"} for part in node.args) and head not in {
                    "getattr",
                    "hasattr",
                    "isinstance",
                    "type",
                    "len",
                }:
                    called = self._global(function.file, head) if "." not in head else None
                    if isinstance(called, Function):
                        if not self._only_looks(called, depth + 1):
                            return False
                    elif name != "validation_fn" or not self._checks_only(function.file):
                        return False
        return True

    def _checks_only(self, file: str) -> bool:
        """Whether the functions of a module that check a config by RoPE type change nothing."""
        module = self.reader.tree.module(file)
        checks = [
            node
            for node in (module.body if module else ())
            if isinstance(node, ast.FunctionDef) and node.name.startswith(("_validate", "_check"))
        ]
        return bool(checks) and all(self._only_looks(Function(file, node), 1) for node in checks)

    def _call_value(self, call: ast.Call, state: State, file: str) -> Any:
        head = dotted(call.func) or ""
        if head.partition(".")[0] in HARMLESS:
            return NONE
        if isinstance(call.func, ast.Attribute):
            special = self._method_call(call, call.func, state, file)
            if special is not None:
                return special
        if isinstance(call.func, ast.Name) and call.func.id not in state.frames[-1]:
            special = self._builtin(call, call.func.id, state, file)
            if special is not None:
                return special
        function = self._value(call.func, state, file)
        arguments, keywords, star = self._arguments(call, state, file)
        if (
            isinstance(function, Function)
            and arguments is not None
            and self.depth < MAX_DEPTH
            and self.stack.count(function.node) < MAX_RECURSION
        ):
            return self._call(function, arguments, keywords, star, state)
        return self._unfollowed_call(call, head, arguments, keywords, state)

    def _unfollowed_call(
        self, call: ast.Call, head: str, arguments: list[Any] | None, keywords: Mapping[str, Any], state: State
    ) -> Any:
        name = head.rpartition(".")[2]
        if name in {"OrderedDict", "deepcopy", "copy"} and arguments and len(arguments) == 1 and not keywords:
            return arguments[0] if isinstance(arguments[0], Lit | Word) else OBJECT
        if name in TRANSFORMERS_CHECKS and self.base is not None:
            if name == "rope_config_validation":
                state.attributes["rope_parameters"] = unknown(COMPLETED)
            return NONE
        held = [*(arguments or ()), *keywords.values()]
        lost = unknown(f"a call of {name or 'something'}")
        if any(each is SELF for each in held) or own_method(head) or arguments is None:
            self._taint(state, f"a call of {name or 'something'}")
        for each in held:
            self._changed(each, lost, state)
        return OBJECT if name[:1].isupper() else lost

    def _arguments(self, call: ast.Call, state: State, file: str) -> tuple[list[Any] | None, dict[str, Any], Any]:
        arguments: list[Any] | None = []
        for part in call.args:
            if isinstance(part, ast.Starred):
                inner = elements_of(self._value(part.value, state, file))
                arguments = None if inner is None or arguments is None else [*arguments, *inner]
            elif arguments is not None:
                arguments.append(self._value(part, state, file))
        keywords: dict[str, Any] = {}
        star: Any = None
        for option in call.keywords:
            found = self._value(option.value, state, file)
            if option.arg is not None:
                keywords[option.arg] = found
            elif isinstance(found, Keywords) and star is None:
                star = found
            elif isinstance(found, Lit) and isinstance(found.value, dict):
                keywords.update({str(key): Lit(value) for key, value in found.value.items()})
            else:
                star = OBJECT
        return arguments, keywords, star

    def _method_call(self, call: ast.Call, func: ast.Attribute, state: State, file: str) -> Any:
        """Calls of methods that are known by name; None for any other."""
        if isinstance(func.value, ast.Call) and dotted(func.value.func) == "super":
            return self._super_call(call, func, state, file)
        if dotted(func.value) == "math" and func.attr in MATH_WORDS:
            return word(func.attr, *(self._value(part, state, file) for part in call.args))
        whole = self._value(func.value, state, file)
        if whole is SELF and func.attr in ROPE_METHODS and (method := self._shared_rope(func.attr)):
            if func.attr == STANDARDIZES:
                return self._standard_rope(state)
            _, keywords, star = self._arguments(call, state, file)
            handed = star if isinstance(star, Keywords) else Keywords({}, rest=False)
            for name, value in keywords.items():
                handed = handed.with_(name, value)
            return self._rope(handed, method, state)
        if isinstance(whole, Keywords):
            return self._keywords_call(call, func, whole, state, file)
        if not isinstance(whole, Lit | Word):
            return None
        arguments, keywords, _ = self._arguments(call, state, file)
        plain = arguments is not None and not keywords
        if is_unknown(whole) and func.attr not in CHANGERS:
            for each in (*(arguments or ()), *keywords.values()):
                self._changed(each, unknown(f"a call of {func.attr}"), state)
                if each is SELF:
                    self._taint(state, f"a call of {func.attr}")
            return whole
        if plain and func.attr in METHOD_WORDS and arguments is not None:
            return word(func.attr, whole, *arguments)
        if plain and func.attr == "copy":
            return word("list of", whole) if isinstance(whole, Lit) and isinstance(whole.value, list) else whole
        if plain and func.attr == "items" and isinstance(whole, Lit) and isinstance(whole.value, dict):
            return Lit([list(pair) for pair in whole.value.items()])
        if plain and func.attr == "items" and isinstance(whole, Word) and whole.word == "dict":
            pairs = zip(whole.operands[::2], whole.operands[1::2], strict=True)
            return word("list", *(word("list", *pair) for pair in pairs))
        if func.attr in CHANGERS:
            after = unknown("changed in place")
            if func.attr == "setdefault" and arguments is not None and len(arguments) == 2:
                key, value = arguments
                kept = word("get", whole, key, value)
                after = word("if", word("in", key, whole), whole, word("with", whole, key, value))
                self._changed(whole, after, state)
                return kept
            self._changed(whole, after, state)
            if func.attr == "pop" and arguments:
                return word("get", whole, *arguments) if len(arguments) == 2 else word("item", whole, arguments[0])
            return OBJECT
        return unknown(f"a call of {func.attr}")

    def _keywords_call(self, call: ast.Call, func: ast.Attribute, whole: Keywords, state: State, file: str) -> Any:
        arguments, extra, _ = self._arguments(call, state, file)
        if func.attr in {"items", "keys", "values", "copy"}:
            return whole if func.attr == "copy" else unknown("all keys of the config")
        key = arguments[0].value if arguments and isinstance(arguments[0], Lit) else None
        holder = func.value.id if isinstance(func.value, ast.Name) else None
        if func.attr == "update" and holder and not extra and arguments and isinstance(arguments[0], Lit):
            for name, value in arguments[0].value.items():
                whole = whole.with_(name, Lit(value))
            state.frames[-1][holder] = whole
            return NONE
        if func.attr == "update" and holder and extra and not arguments:
            for name, value in extra.items():
                whole = whole.with_(name, value)
            state.frames[-1][holder] = whole
            return NONE
        if not isinstance(key, str) or holder is None or arguments is None:
            if holder:
                state.frames[-1][holder] = whole.doubted(added=func.attr != "pop")
            return unknown("keys that are computed")
        default = arguments[1] if arguments[1:] else NONE if func.attr == "get" else unknown("a missing key")
        found = word("else", whole.get(key), default)
        if func.attr == "pop":
            state.frames[-1][holder] = whole.with_(key, ABSENT_WORD)
        elif func.attr == "setdefault":
            state.frames[-1][holder] = whole.with_(key, found)
        elif func.attr != "get":
            state.frames[-1][holder] = whole.doubted(added=True)
        return found

    def _super_call(self, call: ast.Call, func: ast.Attribute, state: State, file: str) -> Any:
        owner = state.frames[-1].get("__class__")
        if not isinstance(owner, Class):
            return None
        arguments, keywords, star = self._arguments(call, state, file)
        if star is OBJECT or arguments is None:
            self._taint(state, "keys that are computed")
            return NONE
        handed = star if isinstance(star, Keywords) else Keywords({}, rest=False)
        for name, value in keywords.items():
            handed = handed.with_(name, value)
        if func.attr == "__setattr__" and len(arguments) == 2 and isinstance(arguments[0], Lit):
            method = self._super_member(Super(owner), "__setattr__")
            if not (isinstance(method, Function) and method.owner and method.owner.node in self.own):
                self._set_plainly(state, str(arguments[0].value), arguments[1])
                return NONE
        if func.attr == "__init__":
            if arguments:
                method = self._super_member(Super(owner), "__init__")
                if not isinstance(method, Function):
                    self._taint(state, "arguments by place")
                    return NONE
                self._call(method, arguments, {}, handed, state)
                return NONE
            self._construct(state, handed, owner)
            return NONE
        method = self._super_member(Super(owner), func.attr)
        if isinstance(method, Function):
            if func.attr == CONVERTS and digest(method.node) in ROPE_METHODS[CONVERTS]:
                return self._rope(handed, method.node, state)
            return self._call(method, arguments, {}, handed, state)
        if func.attr == "__post_init__":
            self._external(state, handed)
        return NONE if func.attr.startswith("__") else OBJECT

    def _builtin(self, call: ast.Call, name: str, state: State, file: str) -> Any:
        if name == "super":
            owner = state.frames[-1].get("__class__")
            return Super(owner) if isinstance(owner, Class) else None
        if name not in {
            "getattr",
            "hasattr",
            "setattr",
            "isinstance",
            "set",
            "frozenset",
            "list",
            "tuple",
            "dict",
            "type",
            "is_torch_available",
            *FUNCTION_WORDS,
        }:
            return None
        if self.reader.origin(file, name) and name != "is_torch_available":
            return None
        if name == "is_torch_available":
            return Lit(True)
        arguments, keywords, _ = self._arguments(call, state, file)
        if arguments is None:
            return OBJECT
        if name in {"getattr", "hasattr"}:
            return self._getattr(name, call, arguments, state)
        if name == "setattr":
            if arguments[0] is SELF and isinstance(arguments[1], Lit):
                self._set(state, str(arguments[1].value), arguments[2])
            elif arguments[0] is SELF:
                self._taint(state, "names that are computed")
            return NONE
        if name == "isinstance":
            return self._isinstance(call, arguments[0])
        if name == "type":
            return Type(self.cls) if arguments and arguments[0] is SELF else OBJECT
        if name in {"set", "frozenset", "list", "tuple", "dict"}:
            if not arguments:
                if keywords and name == "dict":
                    return word("dict", *(part for key, value in keywords.items() for part in (Lit(key), value)))
                return Lit({"list": [], "tuple": (), "dict": {}}.get(name, set()))
            if name == "dict":
                return arguments[0] if isinstance(arguments[0], Lit | Word) and not keywords else OBJECT
            if isinstance(arguments[0], Lit) and name != "list":
                kind = {"set": set, "frozenset": frozenset, "tuple": tuple}[name]
                try:
                    return Lit(kind(arguments[0].value))
                except TypeError:
                    return OBJECT
            if name in {"set", "frozenset"}:
                return unknown("a set that is computed")
            return word("list of", arguments[0]) if isinstance(arguments[0], Lit | Word) else OBJECT
        if keywords or not all(isinstance(each, Lit | Word) for each in arguments):
            return unknown(f"a call of {name}")
        return word(name, *arguments)

    def _getattr(self, name: str, call: ast.Call, arguments: list[Any], state: State) -> Any:
        holder, attribute = arguments[0], arguments[1]
        if is_unknown(holder) and (dotted(call.args[0]) or "").endswith("config"):
            return unknown(INNER)
        if holder is TORCH or (is_unknown(holder) and holder == TORCH):
            return attribute  # a dtype, which JSON has by its name
        if holder is not SELF or not isinstance(attribute, Lit):
            return unknown(f"a call of {name}")
        found = self._get(state, str(attribute.value))
        if name == "hasattr":
            return word("not", word("is absent", found))
        return word("else", found, arguments[2] if arguments[2:] else unknown("a missing attribute"))

    def _isinstance(self, call: ast.Call, value: Any) -> Any:
        kinds = call.args[1].elts if isinstance(call.args[1], ast.Tuple) else [call.args[1]]
        if isinstance(call.args[1], ast.BinOp):
            kinds = [node for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)]
        names = [(dotted(kind) or "").rpartition(".")[2] for kind in kinds]
        if is_unknown(value) or not isinstance(value, Lit | Word):
            return unknown("a test of an object")
        builtin = [name for name in names if name in TYPES]
        if any(name not in TYPES and not name.endswith("Config") for name in names):
            return unknown("a test of an object")
        return word("isinstance", value, *(Lit(name) for name in builtin)) if builtin else Lit(False)

    def _call(
        self,
        function: Function,
        arguments: list[Any],
        keywords: Mapping[str, Any],
        star: Any,
        state: State,
    ) -> Any:
        """Run a function of the source on these arguments."""
        if self.depth >= MAX_DEPTH:
            self._taint(state, "calls within calls")
            return unknown("calls within calls")
        spec = function.node.args
        marks = {dotted(mark) for mark in function.node.decorator_list}
        frame: dict[str, Any] = {}
        places = [*spec.posonlyargs, *spec.args]
        values = list(arguments)
        if function.owner is not None and "staticmethod" not in marks and (function.bound or "classmethod" in marks):
            values = [SELF if function.bound else Type(function.owner), *values]
        defaults: dict[str, ast.expr] = {
            arg.arg: default
            for arg, default in zip(places[len(places) - len(spec.defaults) :], spec.defaults, strict=True)
        }
        defaults |= {arg.arg: d for arg, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        rest = star if isinstance(star, Keywords) else Keywords({}, rest=False)
        for name, value in keywords.items():
            rest = rest.with_(name, value)
        for at, parameter in enumerate([*places, *spec.kwonlyargs]):
            name = parameter.arg
            if at < len(values) and at < len(places):
                frame[name] = values[at]
                continue
            default = self._constant(function.file, defaults[name]) if name in defaults else unknown("an argument")
            frame[name] = word("else", rest.get(name), default)
            rest = rest.with_(name, ABSENT_WORD)
        if spec.vararg:
            frame[spec.vararg.arg] = Lit(())
        if spec.kwarg:
            frame[spec.kwarg.arg] = rest
        if function.owner is not None:
            frame["__class__"] = function.owner
        result, ended = state.result, state.ended
        state.frames.append(frame)
        state.result, state.ended = NONE, False
        self.depth += 1
        self.stack.append(function.node)
        try:
            if yields(function.node):
                return OBJECT
            self._run(function.node.body, state, function.file)
        finally:
            self.depth -= 1
            self.stack.pop()
            state.frames.pop()
        found = state.result
        state.result, state.ended = result, ended
        return found


@cache
def yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))
