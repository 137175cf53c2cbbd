"""What is known of a config class before it is run, and the state of a run."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from specfix.engines.source.classes import Class, Classes, Lineage, bound_names
from specfix.engines.source.imports import absolute, file_of
from specfix.engines.source.symbolic.values import OBJECT, Keywords, Lit, Word, has_unknown, unknown
from specfix.engines.source.tree import SourceTree, dotted

ROOTS = frozenset({"PreTrainedConfig", "PretrainedConfig"})


ROOT = "PreTrainedConfig"


MAX_DEPTH = 12  # calls within calls


# attributes that say how a config is made or loaded, or how a model is split; no fact of a config.json
NO_FACTS = frozenset(
    [
        "base_model_ep_plan",
        "base_model_fsdp_plan",
        "base_model_pp_plan",
        "base_model_tp_plan",
        "ignore_keys_at_rope_validation",
        "keys_to_ignore_at_inference",
        "default_theta",
        "transformers_version",
        "name_or_path",
        "attribute_map",
        "sub_configs",
    ]
)


CHECKS = ("self.validate", "self._validate")  # methods that raise or do nothing


CHANGERS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "pop",
        "popitem",
        "add",
        "discard",
        "__setitem__",
    ]
)


INNER: Final = "what an inner config says"


CONVERTS, STANDARDIZES = "convert_rope_params_to_dict", "standardize_rope_params"


# Transformers' own assembly of RoPE parameters, in the forms whose flat case ["rope", …] states: digests of the syntax
# trees of RotaryEmbeddingConfigMixin's two methods. Any other form is unknown until someone has looked at it.
ROPE_METHODS: Final[Mapping[str, frozenset[str]]] = {
    CONVERTS: frozenset(
        ["9ed0b84c46e1", "65d8001ee952", "c45bea8146df", "9791853406cb", "e25aaa869582", "6ce39113e9ae", "936cf7039f97"]
    ),
    STANDARDIZES: frozenset(["d209888247c7", "c9874b7c8292", "631fca3eacff", "087c9bfb20db", "74be6fa1bd6f"]),
}


class Self:
    """The config that is being made."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method of the source; ``owner``: the class that it stands in, ``bound``: called on the config."""

    file: str
    node: ast.FunctionDef
    owner: Class | None = None
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Super:
    after: Class


@dataclass(frozen=True, slots=True)
class Type:
    """A class of the source, as a value."""

    cls: Class


SELF: Final = Self()


TORCH: Final = unknown("torch")


@dataclass
class State:
    """Attributes and names at one point of the run. ``opened``: the keywords that became attributes, once they did."""

    attributes: dict[str, Any] = field(default_factory=dict)
    frames: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    opened: Any = None
    passed: Any = None
    result: Any = None
    ended: bool = False
    dead: bool = False
    facts: dict[Word, bool] = field(default_factory=dict)

    def copy(self) -> State:
        return State(
            dict(self.attributes),
            [dict(frame) for frame in self.frames],
            self.opened,
            self.passed,
            self.result,
            self.ended,
            self.dead,
            dict(self.facts),
        )

    def assume(self, condition: Any, holds: bool) -> None:
        """Remember that ``condition`` holds (or does not) on this branch. Expressions do not change, so it stays so."""
        if not isinstance(condition, Word) or has_unknown(condition):  # two unknown things are not one
            return
        if condition.word == "not":
            self.assume(condition.operands[0], not holds)
        elif condition.word == "is not":
            self.facts[Word("is", condition.operands)] = not holds
        elif condition.word == ("and" if holds else "or"):
            for part in condition.operands:
                self.assume(part, holds)
        else:
            self.facts[condition] = holds

    def known(self, condition: Any) -> Any:
        """``condition``, decided where this branch tells."""
        if isinstance(condition, Word) and self.facts:
            if condition.word == "is not":
                found = self.facts.get(Word("is", condition.operands))
                return condition if found is None else Lit(not found)
            found = self.facts.get(condition)
            return condition if found is None else Lit(found)
        return condition

    def become(self, other: State) -> None:
        self.__dict__.update(other.__dict__)


class Source:
    """One source tree, and how its names are looked up."""

    def __init__(self, tree: SourceTree, package: str) -> None:
        self.tree = tree
        self.package = package
        self.classes = Classes(tree, package)
        self.looks: dict[ast.FunctionDef, bool] = {}  # functions that change nothing
        self._origins: dict[tuple[str, str], tuple[str, ast.AST] | None] = {}

    def origin(self, file: str, name: str, hops: int = 0) -> tuple[str, ast.AST] | None:
        """File and statement that bind ``name`` as ``file`` sees it: a function, a class, or an assignment's value."""
        if (file, name) not in self._origins:
            self._origins[file, name] = None
            self._origins[file, name] = self._origin(file, name, hops)
        return self._origins[file, name]

    def _origin(self, file: str, name: str, hops: int) -> tuple[str, ast.AST] | None:
        module = self.tree.module(file)
        found: tuple[str, ast.AST] | None = None
        for statement in module.body if module and hops < MAX_DEPTH else ():
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name == name:
                found = (file, statement)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                    found = (file, statement.value)
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == name:
                        target_file = self.module_file(file, statement)
                        found = self.origin(target_file, alias.name, hops + 1) if target_file else None
        return found

    def module_file(self, file: str, node: ast.ImportFrom) -> str | None:
        """File of the module that a ``from … import`` names, where it is of this tree."""
        head, _, rest = absolute(self.package, file, node).partition(".")
        return file_of(self.tree, rest) if head == self.package else None


class Machine:
    """A config class that is run on symbols, as far as its source says what it is."""

    def __init__(self, reader: Source, cls: Class) -> None:
        self.reader = reader
        self.cls = cls
        self.lineage: Lineage = reader.classes.lineage(cls)
        self.base = self._external_base()
        self.own = self._own()
        self.dataclass = self.base is not None or self._is_dataclass(list(self.lineage.classes))
        self.depth = 0
        self.stack: list[ast.FunctionDef] = []
        self.aliases = self._class_mapping("attribute_map")
        self.properties = self._properties()
        self.members = {
            name: (owner, statement)
            for owner in reversed(self.lineage.classes)
            for name, statement in owner.members().items()
        }

    def _own(self) -> set[ast.ClassDef]:
        """The classes below the root, which has its own facts."""
        names = [each.name for each in self.lineage.classes]
        at = next((at for at, name in enumerate(names) if name in ROOTS), len(names))
        return {each.node for each in self.lineage.classes[:at]}

    def _external_base(self) -> str | None:
        """Name of the class outside of this tree that comes after those in it; None where all are in it."""
        if self.lineage.classes[-1].name in ROOTS or any(each.name in ROOTS for each in self.lineage.classes):
            return None
        for owner in reversed(self.lineage.classes):
            for expression in owner.node.bases:
                name = (dotted(expression) or "").rpartition(".")[2]
                if name in ROOTS:
                    return ROOT
                if name.endswith("Config") and not self.reader.classes.of_expression(owner.file, expression):
                    return name
        return None

    def _class_mapping(self, name: str) -> dict[str, str]:
        found = self.lineage.find(name)
        value = getattr(found[1], "value", None) if found else None
        if isinstance(value, ast.Dict):
            try:
                return {str(k): str(v) for k, v in ast.literal_eval(value).items()}
            except ValueError:
                return {}
        return {}

    def _properties(self) -> dict[str, tuple[Class, ast.FunctionDef | None]]:
        """Properties by name with their getters; None where a class below binds the name anew or it has no getter."""
        found: dict[str, tuple[Class, ast.FunctionDef | None]] = {}
        for owner in reversed(self.lineage.classes):
            for statement in owner.node.body:
                if isinstance(statement, ast.FunctionDef):
                    marks = {dotted(mark) for mark in statement.decorator_list}
                    if marks & {"property", "cached_property", "functools.cached_property"}:
                        found[statement.name] = (owner, statement)
                        continue
                    if f"{statement.name}.setter" in marks:
                        continue
                for name in bound_names(statement):
                    found.pop(name, None)
        return found

    def _setter(self, name: str) -> Function | None:
        for owner in self.lineage.classes:
            for statement in owner.node.body:
                if isinstance(statement, ast.FunctionDef) and any(
                    dotted(mark) == f"{name}.setter" for mark in statement.decorator_list
                ):
                    return Function(owner.file, statement, owner, True)
        return None

    def _parts(self) -> tuple[dict[str, str], set[str]]:
        """Inner configs: key to class name (or, where any class may stand there, to the model type that it is by
        default), and the keys of the latter kind."""
        found: dict[str, str] = {}
        named: set[str] = set()
        for attribute in ("sub_configs_defaults", "sub_configs"):
            bound = self.lineage.find(attribute)
            value = getattr(bound[1], "value", None) if bound else None
            if bound is None or not isinstance(value, ast.Dict):
                continue
            for key, kind in zip(value.keys, value.values, strict=True):
                if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or key.value in found:
                    continue
                name, by_type = self._part(bound[0], key.value, kind)
                found[key.value] = name
                named |= {key.value} if by_type else set()
        return found, named

    def _part(self, owner: Class, key: str, kind: ast.expr) -> tuple[str, bool]:
        model_type = ""
        if isinstance(kind, ast.Call):  # a specification of the class and, for any class, of its model type
            words = {word_.arg: word_.value for word_ in kind.keywords}
            inner = kind.args[0] if kind.args else words.get("config_class")
            stated = kind.args[1] if kind.args[1:] else words.get("model_type")
            model_type = str(stated.value) if isinstance(stated, ast.Constant) else ""
            kind = inner if inner is not None else kind
        name = (dotted(kind) or "").rpartition(".")[2]
        if name != "AutoConfig":
            return name, False
        return model_type or self._mapped(key), True

    def _mapped(self, key: str) -> str:
        """The model type that a constructor takes for ``key`` where the config has none: CONFIG_MAPPING["…"]()."""
        found = self.lineage.method("__init__") or self.lineage.method("__post_init__")
        for node in ast.walk(found[1]) if found else ():
            if isinstance(node, ast.Assign) and any(
                (dotted(target) or "").rpartition(".")[2] == key for target in node.targets
            ):
                for call in ast.walk(node.value):
                    if (
                        isinstance(call, ast.Call)
                        and isinstance(call.func, ast.Subscript)
                        and dotted(call.func.value) == "CONFIG_MAPPING"
                        and isinstance(call.func.slice, ast.Constant)
                    ):
                        return str(call.func.slice.value)
        return ""

    def _rest(self, after: Class | None) -> list[Class]:
        classes = list(self.lineage.classes)
        if after is None:
            return classes
        at = next(at for at, each in enumerate(classes) if each.node is after.node)
        return classes[at + 1 :]

    def _names(self) -> list[str]:
        """Fields that the class names anywhere."""
        found = set()
        for owner in self.lineage.classes:
            for node in ast.walk(owner.node):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node.value) == "self":
                    found.add(node.attr)
            found |= {name for name, _ in annotated(owner)} if self.dataclass else set()
        return sorted(name for name in found if not name.startswith("_") and name not in NO_FACTS)

    def _states(self, name: str) -> bool:
        """Whether the class itself, or one between it and the root, has a field or sets an attribute of this name."""
        for owner in self.own:
            for node in ast.walk(owner):
                if isinstance(node, ast.AnnAssign) and dotted(node.target) == name:
                    return True
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == name:
                    return True
        return False

    def _is_dataclass(self, classes: list[Class]) -> bool:
        """Whether constructors are made of the annotated fields: the root class has none of its own."""
        return any(each.name in ROOTS and "__post_init__" in each.members() for each in classes)

    def _super_member(self, whole: Super, name: str) -> Any:
        for owner in self._rest(whole.after):
            statement = owner.members().get(name)
            if isinstance(statement, ast.FunctionDef):
                return Function(owner.file, statement, owner, True)
        return OBJECT

    def _shared_rope(self, name: str) -> ast.FunctionDef | None:
        """A method that puts RoPE parameters together, where it is Transformers' own in a form that is known."""
        found = self.members.get(name)
        node = found[1] if found else None
        return node if isinstance(node, ast.FunctionDef) and digest(node) in ROPE_METHODS[name] else None

    # what the classes below do, each in its module

    def _value(self, node: ast.expr | None, state: State, file: str) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def _constant(self, file: str, node: ast.expr) -> Any:
        """A value that stands in a module or a class; computed ones too."""
        raise NotImplementedError

    def _call_statement(self, call: ast.Call, state: State, file: str) -> None:
        """A call whose result is dropped."""
        raise NotImplementedError

    def _call_value(self, call: ast.Call, state: State, file: str) -> Any:
        """What a call gives."""
        raise NotImplementedError

    def _call(
        self, function: Function, arguments: list[Any], keywords: Mapping[str, Any], star: Any, state: State
    ) -> Any:
        """Run a function of the source on these arguments."""
        raise NotImplementedError

    def _joined(self, condition: Any, one: State, two: State) -> State:
        """The state after a branch, of those at its two ends."""
        raise NotImplementedError

    def _run(self, body: list[ast.stmt], state: State, file: str) -> None:
        """Run statements."""
        raise NotImplementedError

    def _construct(self, state: State, keywords: Keywords, after: Class | None) -> None:
        """Run the constructor that comes ``after`` a class (None: the class's own) on ``keywords``."""
        raise NotImplementedError

    def _external(self, state: State, keywords: Keywords) -> None:
        """The constructor of a class outside of this tree."""
        raise NotImplementedError


@cache
def digest(node: ast.FunctionDef) -> str:
    """Of a function's syntax tree, docstring left out; the same under each Python."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return hashlib.sha256("\n".join(map(shape, body)).encode()).hexdigest()[:12]


def shape(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(shape, value))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    parts = [(name, part) for name, part in ast.iter_fields(value) if part not in (None, []) or name == "value"]
    return f"{type(value).__name__}({','.join(f'{name}={shape(part)}' for name, part in parts)})"


def annotated(owner: Class) -> list[tuple[str, ast.expr | None]]:
    """Fields of a dataclass that this class states, with the expressions of their defaults."""
    return [
        (statement.target.id, statement.value)
        for statement in owner.node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and "ClassVar" not in ast.unparse(statement.annotation)
    ]
