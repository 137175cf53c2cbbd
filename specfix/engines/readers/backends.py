"""Attention backends: what the classes of the release's registry answer when the engine asks them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from specfix.engines.compiled import Condition
from specfix.engines.facts.backends import Backend, BackendFacts
from specfix.engines.facts.decisions import Step
from specfix.engines.readers.answers.ask import Answers
from specfix.engines.readers.answers.scope import Backing
from specfix.engines.readers.draft_attention import read_draft_attention
from specfix.engines.readers.folding import NONE, RAISES, has_unread, if_, steps, why_unread
from specfix.engines.readers.old_backends import V1, old_backends
from specfix.engines.source.classes import Classes
from specfix.engines.source.joining import FALSE, TRUE
from specfix.engines.source.tree import SourceTree, config_homes, literal

REGISTRIES: Final = ("v1/attention/backends/registry.py", "attention/backends/registry.py")
CACHE_CONFIGS: Final = config_homes("cache")
ATTENTION_TYPES: Final = ("v1/attention/backend.py", "attention/backends/abstract.py", "attention/__init__.py")
DTYPES: Final = ("float16", "bfloat16", "float32")  # of a model; torch names more, and no backend takes them

# field of Backend to the methods that the engine asks for it, the newest first
METHODS: Final[Mapping[str, Sequence[str]]] = {
    "dtypes": ("supports_dtype", "get_supported_dtypes"),
    "kv_cache_dtypes": ("supports_kv_cache_dtype",),
    "attention_types": ("supports_attn_type",),
    "head_sizes": ("supports_head_size", "validate_head_size"),
    "capability": ("supports_compute_capability",),
    "layouts": ("supported_kv_cache_layouts", "get_required_kv_cache_layout"),
    "mla": ("is_mla",),
    "sparse": ("is_sparse",),
    "non_causal": ("supports_non_causal",),
    "sinks": ("supports_sink",),
    "mm_prefix": ("supports_mm_prefix",),
    "sliding_window": ("supports_sliding_window",),
}
WORDS: Final[Mapping[str, Condition]] = {"head_sizes": ["name", "head_size"], "capability": ["name", "capability"]}


def read_backends(tree: SourceTree, unknown: dict[str, str]) -> BackendFacts:
    answers = Answers(tree, Classes(tree))
    paths = class_paths(tree)
    if not paths:
        unknown["backends.backends"] = "no registry of attention backends by name and class"
    found = {name: answers.backing(path) if path else None for name, path in paths.items()}
    reader = _Reader(answers, _values(tree))
    backends: dict[str, Backend] = {}
    for name, path in paths.items():
        backing = found[name]
        if backing is not None:
            backends[name], reasons = reader.read(backing, path)
            unknown |= {f"backends.backends.{name}.{field}": why for field, why in reasons.items()}
            continue
        backends[name] = Backend(path, present=path is None or _is_there(tree, path))
        if path and backends[name].present:
            unknown[f"backends.backends.{name}"] = "its class is made in a way that cannot be read"
    return BackendFacts(backends, read_draft_attention(tree))


def class_paths(tree: SourceTree) -> dict[str, str | None]:
    """The class of each attention backend, by its name; None where the name has none of its own."""
    return dict(_registered(tree)) or old_backends(Answers(tree, Classes(tree), known=V1))


def _registered(tree: SourceTree) -> Iterator[tuple[str, str | None]]:
    """``NAME = "package.module.Class"`` in the enumeration of attention backends; None where it names no class."""
    for file in REGISTRIES:
        node = tree.class_(file, "AttentionBackendEnum")
        for statement in node.body if node else ():
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                path = literal(statement.value)
                yield ast.unparse(statement.targets[0]), path if isinstance(path, str) and "." in path else None


def kv_cache_dtypes(tree: SourceTree) -> tuple[str, ...]:
    """Values of --kv-cache-dtype: the literal type CacheDType of the cache's config."""
    for file in CACHE_CONFIGS:
        module = tree.module(file)
        for statement in module.body if module else ():
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "CacheDType":
                return _texts(ast.walk(statement.value))
    return ()


def _values(tree: SourceTree) -> dict[str, tuple[str, ...]]:
    """All values of what is asked for value by value."""
    nodes = [tree.class_(file, "AttentionType") for file in ATTENTION_TYPES]
    types = next((_texts(s.value for s in node.body if isinstance(s, ast.Assign)) for node in nodes if node), ())
    return {"dtypes": DTYPES, "kv_cache_dtypes": kv_cache_dtypes(tree), "attention_types": types}


def _texts(nodes: Iterable[ast.AST]) -> tuple[str, ...]:
    return tuple(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _is_there(tree: SourceTree, path: str) -> bool:
    file = path.partition(".")[2].rpartition(".")[0].replace(".", "/")
    return any((tree.package / each).exists() for each in (f"{file}.py", file))


class _Reader:
    def __init__(self, answers: Answers, values: Mapping[str, Sequence[str]]) -> None:
        self._answers = answers
        self._values = values

    def read(self, backing: Backing, path: str | None) -> tuple[Backend, dict[str, str]]:
        """The backend, and by field why it could not be read."""
        facts: dict[str, Any] = {}
        conditions: dict[str, Condition] = {}
        unknown: dict[str, str] = {}
        for name, methods in METHODS.items():
            method = next((each for each in methods if backing.lineage.find(each)), None)
            if method is None:
                continue  # the release does not ask
            try:
                found = self._field(backing, name, method)
            except ValueError as error:
                unknown[name] = str(error)
                continue
            if isinstance(found, dict):  # an answer for each value
                facts[name] = tuple(value for value, answer in found.items() if answer == TRUE)
                conditions |= {f"{name}.{v}": answer for v, answer in found.items() if answer[0] != "const"}
            elif isinstance(found, list) and name != "capability":
                conditions[name] = found
            else:
                facts[name] = found
        return Backend(path, conditions=conditions, **facts), unknown

    def _field(self, backing: Backing, name: str, method: str) -> Any:
        """The field's plain value, or the condition that it hangs on, or that for each value. ValueError with the
        reason where it cannot be told."""
        if name in self._values:
            return self._each(backing, name, method)
        answer = self._ask(backing, method, *([WORDS[name]] if name in WORDS else []))
        if name == "head_sizes":
            return _head_sizes(_unless_raised(answer) if method == "validate_head_size" else answer)
        if name == "layouts":
            line = found[1].lineno if (found := backing.lineage.find(method)) else 0
            return _layouts(steps(answer, line))
        if name != "capability" and answer[0] == "const":
            return bool(answer[1])
        return answer

    def _each(self, backing: Backing, name: str, method: str) -> dict[str, Condition] | tuple[str, ...]:
        if method.startswith("get_"):
            answer = self._ask(backing, method)
            return tuple(answer[1])
        values = self._values[name]
        if not values:
            raise ValueError("no list of all its values")
        return {value: self._ask(backing, method, ["const", value]) for value in values}

    def _ask(self, backing: Backing, method: str, *arguments: Condition) -> Condition:
        answer = self._answers.method(backing, method, *arguments) or ["?", "no such method"]
        if has_unread(answer):
            raise ValueError(why_unread(answer))
        return answer


def _head_sizes(answer: Condition) -> tuple[int, ...] | Condition:
    match answer:
        case ["const", True]:
            return ()
        case ["in", ["name", "head_size"], ["const", list(sizes)]]:
            return tuple(sizes)
        case ["==", ["name", "head_size"], ["const", int(size)]]:
            return (size,)
    return answer


def _layouts(found: Sequence[Step]) -> tuple[Step, ...]:
    """Each step with a list of layouts, empty for any."""
    listed = [Step(s.when, [s.then] if isinstance(s.then, str) else s.then or [], s.line) for s in found]
    return tuple(listed) if any(step.then for step in listed) else ()


def _unless_raised(tree: Condition) -> Condition:
    """``validate_head_size`` of older releases raises for a size that is not taken, and answers nothing else."""
    if tree[0] == "if":
        return if_(tree[1], _unless_raised(tree[2]), _unless_raised(tree[3]))
    return FALSE if tree == RAISES else TRUE if tree == NONE else tree
