"""What the interpreter of an engine's source hands out in place of things that it must not or cannot have."""

from __future__ import annotations

import argparse
import builtins
import collections
import dataclasses
import enum
import functools
import itertools
import json
import math
import re
import ssl
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

PYTHON = (3, 12)  # the version that a source which asks is told


class UndecidedError(Exception):
    """What cannot be told from the source was needed for a decision."""


class Unknown:
    """A value that the source does not tell, with the reason. Whoever would decide by it gets UndecidedError."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __call__(self, *_: Any, **__: Any) -> Unknown:
        return self

    def __deepcopy__(self, _: Any) -> Unknown:
        return self

    def _undecided(self, *_: Any) -> NoReturn:
        raise UndecidedError(self.reason)

    __bool__ = __iter__ = __len__ = __contains__ = __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = _undecided
    __str__ = __hash__ = __format__ = __add__ = __radd__ = __getitem__ = _undecided


def said(error: BaseException) -> str:
    """The kind of an error, and its text where the source tells it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the text is unknown, or the source's own __str__ gives none
        return type(error).__name__


class Outside(type):
    """A name of another package: ``torch.float16``. A class, so that it may stand in a type hint."""

    path: str

    def __call__(cls, *_: Any, **__: Any) -> Any:
        return Unknown(f"{cls.path}() is not in this source")


@functools.cache
def outside(path: str) -> Outside:
    """The stand-in for ``path``; always the same one, so that hints can be compared."""
    module, _, name = path.rpartition(".")
    return Outside(name, (), {"path": path, "__module__": module})


@dataclasses.dataclass(frozen=True, eq=False)
class Made:
    """An instance of a class of the source, which is never really made."""

    kind: Any
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]


class FieldInfo:
    """pydantic's ``Field(…)`` and ``dataclasses.field(…)``: where a field's default is written."""

    def __init__(
        self,
        default: Any = dataclasses.MISSING,
        *,
        default_factory: Any = None,
        init: Any = None,
        from_dataclasses: bool = False,
        **_: Any,
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.from_dataclasses = from_dataclasses


def dataclass_field(
    default: Any = dataclasses.MISSING, default_factory: Any = None, init: bool = True, **_: Any
) -> FieldInfo:
    return FieldInfo(default, default_factory=default_factory, init=init, from_dataclasses=True)


@dataclasses.dataclass(frozen=True)
class Field:
    """What ``dataclasses.fields`` tells of one field."""

    name: str
    type: Any
    default: Any
    default_factory: Any
    init: bool = True


class TypeAdapter:
    """pydantic's: JSON text becomes an instance, unchecked."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def validate_json(self, text: str, **_: Any) -> Any:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError(f"{text} is no object")
        return Made(self.kind, (), value)


class Names:
    """A module of Python's own, of which only these names may be had."""

    def __init__(self, path: str, names: dict[str, Any]) -> None:
        self.path = path
        self.names = names

    def get(self, name: str) -> Any:
        return self.names.get(name) if name in self.names else outside(f"{self.path}.{name}")


def _of(module: types.ModuleType, names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names.split() if hasattr(module, name)}


def _no_formatter(_: Any) -> Any:
    return types.SimpleNamespace(_format_args=lambda *_: "", _expand_help=lambda *_: "")


class Parser(argparse.ArgumentParser):
    """argparse's own, which looks at no help text, prints nothing, reads no file and does not end the process."""

    _get_formatter = _no_formatter

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise ValueError(f"it ends with {status}: {message}")

    def _print_message(self, message: str, file: Any = None) -> None:
        pass

    def _read_args_from_files(self, arg_strings: list[str]) -> list[str]:
        raise ValueError("arguments are read from a file")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # argparse sets whatever an argument says on the namespace
        if namespace is not None and type(namespace) is not argparse.Namespace:
            raise ValueError("arguments are set on something else than a namespace")
        return super().parse_known_args(args, namespace)


class HomePath(str):
    """A path whose leading ~, the home folder, is left as it is: that folder is not of the source."""


class _Annotating:
    """What a hint is wrapped in without being changed: pydantic's ``SkipValidation[int]``."""

    def __class_getitem__(cls, hint: Any) -> Any:
        return typing.Annotated[hint, cls]


_ENUM = "Enum IntEnum Flag IntFlag StrEnum auto unique"
_TYPING = (
    "Annotated Any Callable ClassVar Dict Final FrozenSet Generic Iterable List Literal Mapping NamedTuple Optional "
    "Protocol Sequence Set Tuple Type TypeVar TypedDict Union cast get_args get_origin is_typeddict overload Iterator"
)
_TYPES = {
    "TYPE_CHECKING": False,
    "Self": Any,
    "TypeAlias": Any,
    "TypeIs": _Annotating,
    "NotRequired": _Annotating,
}
_ABC = "Callable Iterable Iterator Mapping Sequence MutableMapping Set Generator Awaitable Collection AsyncIterator"


def modules(environment: dict[str, str]) -> dict[str, Names]:
    """Modules of Python's own as the source finds them, where ``environment`` is set and nothing else."""
    path = Names(
        "os.path",
        {"expanduser": HomePath, "join": _join, "pathsep": ":", "abspath": lambda text: text},
    )
    named: dict[str, dict[str, Any]] = {
        "os": {"environ": environment, "getenv": environment.get, "path": path, "pathsep": ":"},
        "os.path": dict(path.names),
        "sys": {"argv": ["vllm", "serve"], "version_info": PYTHON, "platform": "linux", "modules": {}},
        "typing": _of(typing, _TYPING) | _TYPES,
        "collections.abc": _of(collections.abc, _ABC),
        "collections": _of(collections, "defaultdict OrderedDict"),
        "enum": _of(enum, _ENUM),
        "json": {"loads": json.loads, "dumps": json.dumps, "JSONDecodeError": ValueError}
        | {"decoder": Names("json.decoder", {"JSONDecodeError": ValueError})},
        "re": _of(re, "compile match fullmatch sub split search Match DOTALL IGNORECASE Pattern"),
        "math": _of(math, "inf nan ceil floor"),
        "ssl": _of(ssl, "CERT_NONE CERT_OPTIONAL CERT_REQUIRED"),
        "copy": {"deepcopy": copied, "copy": copied},
        "itertools": {"chain": itertools.chain, "permutations": _permutations},
        "functools": {"lru_cache": _keep, "cache": _keep, "cached_property": property},
        "types": _of(types, "UnionType NoneType"),
        "argparse": _of(argparse, "Action BooleanOptionalAction Namespace SUPPRESS ArgumentTypeError _ArgumentGroup")
        | _of(argparse, "ArgumentDefaultsHelpFormatter RawDescriptionHelpFormatter HelpFormatter _SubParsersAction")
        | _of(argparse, "ArgumentError _StoreTrueAction")
        | {"ArgumentParser": Parser},
        "dataclasses": {"field": dataclass_field, "MISSING": dataclasses.MISSING, "Field": Field},
        "pydantic": {"Field": FieldInfo, "TypeAdapter": TypeAdapter, "ValidationError": ValueError}
        | {"SkipValidation": _Annotating},
        "pydantic.fields": {"FieldInfo": FieldInfo, "Field": FieldInfo},
        "textwrap": {},
    }
    named["typing_extensions"] = named["typing"]
    named["regex"] = named["re"]
    return {name: Names(name, names) for name, names in named.items()}


def _join(first: str, *rest: str) -> str:
    for part in rest:
        first = part if part.startswith("/") else f"{first.rstrip('/')}/{part}"
    return first


def copied(value: Any, made: dict[int, Any] | None = None) -> Any:
    """A copy of the containers in ``value``; anything else stays as it is, so that nothing is asked how to copy it."""
    made = {} if made is None else made
    if id(value) not in made:
        kind = type(value)
        if kind in {list, tuple, set, frozenset}:
            made[id(value)] = kind([copied(part, made) for part in value])
        elif kind is dict:
            made[id(value)] = {key: copied(part, made) for key, part in value.items()}
        else:
            return value
    return made[id(value)]


def _permutations(values: Iterable[Any], r: int) -> list[Any]:
    few = list(values)
    if len(few) > 8 or r > 2:
        raise UndecidedError("too large")
    return list(itertools.permutations(few, r))


def _keep(function: Any = None, **_: Any) -> Any:
    return function if function is not None else _keep


_BUILTINS = (
    "AssertionError AttributeError Exception ImportError IndexError KeyError ModuleNotFoundError NotImplementedError "
    "OSError RuntimeError StopIteration TypeError ValueError abs all any bool callable dict enumerate filter float "
    "frozenset int isinstance issubclass iter len list map max min next object property range repr reversed round set "
    "sorted str sum tuple zip classmethod staticmethod type"
)
BUILTINS = _of(builtins, _BUILTINS) | {"print": lambda *_, **__: None}
