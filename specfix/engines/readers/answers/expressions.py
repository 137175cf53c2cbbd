"""What an expression of the engine is, as a condition or a value in one."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from specfix.engines.compiled import Condition
from specfix.engines.readers.answers.platform import WORDS
from specfix.engines.readers.answers.scope import MAX_DEPTH, Backing, Scope
from specfix.engines.readers.folding import A_TEXT, both, compared, either, if_, listed, negated
from specfix.engines.source.classes import Classes
from specfix.engines.source.lookup import enum_member, imported_from
from specfix.engines.source.tree import SourceTree, dotted, literal, plain
from specfix.engines.source.words import COMPARED_BY

TYPES: Final = ("float16", "bfloat16", "float32")  # of a model, as torch names them
BUNDLES: Final = ("attn_selector_config", "vllm_config", "self")  # of arguments, which newer releases hand over in one
# Enumerations whose members are known by their names; of others, such as AttentionType, the engine compares the values.
ENUMERATIONS: Final = (
    "AttentionBackendEnum",
    "_Backend",
    "UsageContext",
    "KVCacheLayout",
    "KVQuantMode",
    "CpuArchEnum",
    "CompilationMode",
    "CompilationLevel",
    "CUDAGraphMode",
)

_ARITHMETIC: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Mult: operator.mul,
    ast.Add: operator.add,
    ast.LShift: operator.lshift,
}


class Expressions:
    """``known``: what is given, by the words of the source. ``call`` tells what a call is."""

    def __init__(
        self,
        tree: SourceTree,
        classes: Classes,
        known: Mapping[str, object],
        call: Callable[[ast.Call, Scope], Condition],
    ) -> None:
        self._tree, self._classes, self._known, self._call = tree, classes, known, call
        self._homes: dict[tuple[str, str], str | None] = {}

    def home(self, file: str, name: str) -> str | None:
        """The file that ``file`` imports ``name`` from."""
        if (file, name) not in self._homes:
            self._homes[file, name] = imported_from(self._tree, file, name)
        return self._homes[file, name]

    def lift(self, node: ast.expr, scope: Scope) -> Condition:
        """The expression as it stands in ``scope``, to whose names it may add."""
        text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Call) else ""
        if text in self._known:
            return ["const", self._known[text]]
        constant = literal(node)
        if isinstance(constant, bytes):
            return ["?", "bytes"]
        if constant is not None or (isinstance(node, ast.Constant) and node.value is None):
            return ["const", plain(constant)]
        if text in WORDS and text not in scope.local:
            return ["name", WORDS[text]]
        match node:
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute(value=head, attr=attr):
                return self.attribute(head, attr, scope)
            case ast.BoolOp(op=op, values=parts):
                lifted = [self.lift(part, scope) for part in parts]
                if any(part[0] == "const" and not isinstance(part[1], bool) for part in lifted):
                    return ["?", "one of several values"]  # only truth values are folded
                return both(lifted) if isinstance(op, ast.And) else either(lifted)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self.lift(operand, scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return if_(self.lift(test, scope), self.lift(body, scope), self.lift(orelse, scope))
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                scope.local[name] = self.lift(value, scope)
                return scope.local[name]
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self.lift(part, scope) for part in (left, *others)]
                return both(
                    [compared(COMPARED_BY[type(op)], *pair) for op, *pair in zip(ops, values, values[1:], strict=False)]
                )
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return listed([self._element(part, scope) for part in parts])
            case ast.Dict(keys=keys, values=dict_values):
                return self._dict(keys, dict_values, scope)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return ["%", self.lift(left, scope), self.lift(right, scope)]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                one, other = self.lift(left, scope), self.lift(right, scope)
                if one[0] == other[0] == "const":
                    return ["const", _ARITHMETIC[type(op)](one[1], other[1])]
            case ast.JoinedStr(values=pieces):
                written = [self.lift(p.value if isinstance(p, ast.FormattedValue) else p, scope) for p in pieces]
                if all(piece[0] == "const" for piece in written):
                    return ["const", "".join(str(piece[1]) for piece in written)]
                return A_TEXT
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name not in scope.local:
                member = self.lift(index, scope)  # of an enumeration, by its name
                if member[0] == "const" and isinstance(member[1], str) and name[:1].isupper():
                    return member
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(number))):
                base = self.lift(call, scope)
                if base[0] == "name":
                    return ["name", f"{base[1]}[{number}]"]
            case ast.Call():
                return self._call(node, scope)
        return ["?", type(node).__name__]

    def _element(self, node: ast.expr, scope: Scope) -> tuple[bool, Condition]:
        """Whether an element of a list stands for several, and what it is."""
        starred = isinstance(node, ast.Starred)
        return starred, self.lift(node.value if isinstance(node, ast.Starred) else node, scope)

    def _dict(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr], scope: Scope) -> Condition:
        pairs = [(self.lift(k, scope), self.lift(v, scope)) for k, v in zip(keys, values, strict=True) if k]
        if all(part[0] == "const" for pair in pairs for part in pair):
            return ["const", {str(key[1]): value[1] for key, value in pairs}]
        return ["?", "a dictionary that is computed"]

    def _name(self, name: str, scope: Scope) -> Condition:
        if name in scope.local:
            return scope.local[name]
        home = scope.file
        for _ in range(MAX_DEPTH):
            value = self._tree.assigned(home, name)
            if value is not None:
                found = self.lift(value, Scope(home, {}, depth=scope.depth + 1))
                return found if found[0] == "const" else ["name", name]
            origin = self.home(home, name)
            if origin is None or origin == home:
                break
            home = origin
        if name[:1].isupper() or name[:1] == "_":
            candidates = self._classes.named(scope.file, name)
            if len(candidates) == 1 and candidates[0] is not None:
                return ["class", Backing(self._classes.lineage(candidates[0]))]
        return ["name", name]

    def attribute(self, head: ast.expr, attr: str, scope: Scope) -> Condition:
        """``head.attr``."""
        whole = dotted(ast.Attribute(head, attr))
        if whole in scope.local:
            return scope.local[whole]
        if isinstance(head, ast.Name) and head.id in {"cls", "self"} and scope.backing is not None:
            return self._class_attribute(scope.backing, attr, scope)
        if isinstance(head, ast.Name) and head.id == "torch" and attr in TYPES:
            return ["const", attr]
        if isinstance(head, ast.Name) and head.id not in scope.local and head.id[:1] in "_ABCDEFGHIJKLMNOPQRSTUVWXYZ":
            if attr.isupper() and head.id in ENUMERATIONS:
                return ["const", attr]
            member = enum_member(self._tree, scope.file, head.id, attr)
            if member is not None:
                return ["const", member]
        base = self.lift(head, scope)
        if base[0] == "class":
            return self._class_attribute(base[1], attr, scope)
        if base[0] != "name":
            return ["?", f"attribute {attr} of an expression"]
        return ["name", attr if base[1] in BUNDLES else f"{base[1]}.{attr}"]

    def _class_attribute(self, backing: Backing, attr: str, scope: Scope) -> Condition:
        found = backing.lineage.find(attr)
        value = getattr(found[1], "value", None) if found else None
        if found is None or not isinstance(value, ast.expr) or scope.depth > MAX_DEPTH:
            return ["name", f"cls.{attr}"]
        return self.lift(value, Scope(found[0].file, {}, depth=scope.depth + 1))
