"""Which attributes of a value the interpreter hands to a source that it runs.

Only those that are named here, by the type of the value: by a frame, a ``__globals__`` or a ``__reduce_ex__`` a hostile
source would get at everything that this process can do.
"""

from __future__ import annotations

import argparse
import enum
import itertools
import re
from collections import OrderedDict, defaultdict
from typing import Any, Final

from specfix.engines.source.interpreter.standins import Field, FieldInfo, HomePath, Parser, TypeAdapter


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEXT = _names(
    "capitalize casefold count encode endswith find index isalnum isalpha isascii isdecimal isdigit "
    "isidentifier islower isnumeric isspace isupper join lower lstrip partition removeprefix removesuffix "
    "replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip title upper zfill"
)
_DICT = _names("clear copy fromkeys get items keys move_to_end pop popitem setdefault update values")
_SET = _names("add clear copy difference discard intersection isdisjoint issubset issuperset pop remove union update")
NAMES: Final[dict[type, frozenset[str]]] = {
    str: _TEXT,
    HomePath: _TEXT,
    bytes: frozenset({"decode"}),
    bool: frozenset(),
    int: frozenset({"bit_length"}),
    float: frozenset({"is_integer"}),
    type(None): frozenset(),
    list: _names("append clear copy count extend index insert pop remove reverse sort"),
    tuple: frozenset({"count", "index"}),
    dict: _DICT,
    defaultdict: _DICT,
    OrderedDict: _DICT,
    set: _SET,
    frozenset: _SET,
    re.Pattern: _names("findall finditer fullmatch match pattern search split sub"),
    re.Match: _names("end group groupdict groups span start"),
    Field: frozenset(Field.__dataclass_fields__),
    FieldInfo: frozenset({"default", "default_factory"}),
    TypeAdapter: frozenset({"validate_json"}),
    itertools.chain: frozenset({"from_iterable"}),
}
# of argparse's classes and of those that extend them
_ACTION = _names("choices const container default dest help metavar nargs option_strings required type")
_CONTAINER = _names(
    "add_argument add_argument_group add_mutually_exclusive_group add_subparsers description epilog error "
    "formatter_class get_default parse_args parse_known_args print_help prog register set_defaults title usage "
    "_action_groups _actions _group_actions _option_string_actions"
)
_OF_BASES: Final[dict[type, frozenset[str]]] = {
    argparse._SubParsersAction: _ACTION | {"add_parser", "_name_parser_map"},
    argparse.Action: _ACTION,
    argparse._ActionsContainer: _CONTAINER,
    argparse.HelpFormatter: frozenset(),
    BaseException: frozenset({"args", "message", "argument_name"}),
}
_LABELS = frozenset({"__name__", "__doc__", "__module__"})
_PRIVATE = frozenset(name for name in vars(Parser()) if name.startswith("_"))


def is_open(value: Any, name: str) -> bool:
    """Whether the source may have ``value.name`` of a value of Python's own, or of a type of it."""
    if name in _LABELS:
        return True
    if isinstance(value, enum.EnumMeta):
        return name == "__members__" or name in value.__members__
    if isinstance(value, enum.Enum):
        return name in {"name", "value"} or name in type(value).__members__
    if isinstance(value, argparse.Namespace):
        return not name.startswith("__") and name in vars(value)
    if isinstance(value, type):
        return name in NAMES.get(value, ()) or of_base(value, name)
    return name in NAMES.get(type(value), ()) or of_base(type(value), name)


def of_base(cls: type, name: str) -> bool:
    """Whether the source may have ``name`` of argparse's and the exceptions' classes that ``cls`` is made of."""
    return any(issubclass(cls, base) and (name in names or name == "__init__") for base, names in _OF_BASES.items())


def of_instance(value: Any, name: str) -> bool:
    """Whether ``name`` is set on ``value`` itself, and is not what argparse keeps for its own use."""
    return name in vars(value) and (of_base(type(value), name) or not (name.startswith("__") or name in _PRIVATE))


def may_be_asked_for(kind: type) -> bool:
    """Whether ``type(value)`` may be handed out; others could be called."""
    return kind in NAMES or issubclass(kind, enum.Enum | BaseException)
