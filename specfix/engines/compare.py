"""What differs between two releases for speculative decoding.

The facts are compared as they are, whatever their shape: what belongs to speculation stands in ``TOPICS``. A fact that
is not known of one of two releases is no difference; it is told apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Final, Literal

from specfix.engines.engine import Engine
from specfix.engines.facts.backends import Backend
from specfix.engines.facts.hardware import KernelSizes
from specfix.engines.fixes import FIXES, State, has_v2_runner

Kind = Literal["added", "removed", "changed", "unknown"]

# where a thing stands in the source says nothing about what it does
PLACES: Final = frozenset({"line", "path", "file"})
ABSENT: Final = object()
UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One difference in ``fact`` (a dotted path), at ``entry`` of it: names of entries and fields, outermost first.

    "added" and "removed" are entries or members; ``before`` or ``after`` holds what is gone or new. "unknown": the one
    whose value is None could not be read, so that nothing can be said.
    """

    fact: str
    entry: tuple[str, ...]
    kind: Kind
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True)
class Fact:
    """What is compared: the fact at ``path``, or what ``view`` makes of an engine. ``words``: what it is called under
    its heading, "" for what the heading itself names.

    ``entries``: of a mapping only names that it finds are shown, and the others counted. ``fields``: of each entry only
    these are compared (None: all). ``elsewhere``: entries and fields that another fact tells. ``ordered``: the order of
    a list counts.
    """

    path: str
    words: str = ""
    view: Callable[[Engine], Any] | None = None
    entries: re.Pattern[str] | None = None
    fields: frozenset[str] | None = None
    elsewhere: frozenset[tuple[str, ...]] = frozenset()
    ordered: bool = False

    def value(self, engine: Engine) -> Any:
        if self.view is not None:
            return self.view(engine)
        value: Any = engine
        for name in self.path.split("."):
            value = getattr(value, name)
        return _plain(value)


@dataclass(frozen=True, slots=True)
class Topic:
    """Facts under one heading."""

    title: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs under a heading. ``others``: how many entries differ that have nothing to do with speculation."""

    title: str
    changes: tuple[Change, ...]
    others: int = 0


def differences(before: Engine, after: Engine) -> list[Difference]:
    """Of each topic in which something differs."""
    found = []
    for topic in TOPICS:
        changes: list[Change] = []
        others = 0
        for fact in topic.facts:
            for change in _changes(fact, before, after):
                if fact.entries is None or not change.entry or fact.entries.search(change.entry[0]):
                    changes.append(change)
                elif change.kind != "unknown":
                    others += 1
        if changes or others:
            found.append(Difference(topic.title, tuple(changes), others))
    return found


def fixes_between(before: Engine, after: Engine) -> dict[str, tuple[State, State]]:
    """Fixes whose state is not the same, by name."""
    states = {fix.name: (fix.state(before), fix.state(after)) for fix in FIXES}
    return {name: pair for name, pair in states.items() if pair[0] != pair[1]}


def runner_words(engine: Engine) -> str | None:
    """Which model runner the release has; None where that is not known."""
    has_v2 = has_v2_runner(engine)
    if not has_v2:
        return None if has_v2 is None else "V1"
    outcomes = [step.then for step in engine.runner.steps]
    return "V1, or V2 if asked" if outcomes == ["V2", "V1"] else "V1 or V2"


def eagle3_targets(engine: Engine) -> dict[str, bool | None]:
    """Architectures that EAGLE3 works with; None: it could not be told."""
    return {name: holds for name, holds in engine.eagle.support.items() if holds is not False}


def backends(engine: Engine) -> dict[str, dict[str, Any]]:
    """Attention backends that can be chosen, and what the release asks them for: a value, or "in some cases"."""
    found = {name: backend for name, backend in engine.backends.backends.items() if backend.present}
    asked = [
        field
        for field in BACKEND_FIELDS
        if any(getattr(backend, field) is not None or field in backend.conditions for backend in found.values())
    ]
    return {name: {field: _answer(backend, field) for field in asked} for name, backend in found.items()}


def _answer(backend: Backend, field: str) -> Any:
    if field in backend.conditions:
        return "in some cases"
    value = _plain(getattr(backend, field))
    start = f"{field}."
    some = [f"{name.removeprefix(start)} in some cases" for name in backend.conditions if name.startswith(start)]
    return [*(value or ()), *some] if some else value


def _kernel_sizes(engine: Engine) -> dict[str, Any]:
    return {name: _sizes(sizes) or UNKNOWN for name, sizes in engine.blocks.backends.items()}


def _sizes(sizes: KernelSizes) -> list[str]:
    usual = [*map(str, sizes.sizes or ()), *(f"multiples of {base}" for base in sizes.multiples or ())]
    special = [f"in some cases {', '.join(_sizes(case)) or 'others'}" for case in sizes.special]
    return [*usual, *special]


def _methods(engine: Engine) -> list[str]:
    return _no_aliases(engine.methods.methods)


def _raised_methods(engine: Engine) -> list[str] | None:
    raised = engine.lengths.raised_methods
    return None if raised is None else _no_aliases(raised)


def _no_aliases(methods: Iterable[str]) -> list[str]:
    """Without the many older names of mtp."""
    return [method for method in methods if not method.endswith("_mtp")]


def _method_words(engine: Engine) -> list[str] | None:
    words = engine.serve.method_words
    return None if words is None else [f"{word} means {method}" for word, method in words]


def _aux_places(engine: Engine) -> dict[str, list[str]] | None:
    places = engine.eagle.aux_places
    if places is None:
        return None
    return {runner: [f"{key} +{shift}" if shift else key for key, shift in keys] for runner, keys in places.items()}


def _changes(fact: Fact, before: Engine, after: Engine) -> Iterator[Change]:
    values = [UNKNOWN if fact.path in side.unknown else fact.value(side) for side in (before, after)]
    yield from _compare(fact, (), values[0], values[1], before, after)


def _told(value: Any) -> Any:
    """``value``, with None for what is not known of it."""
    if isinstance(value, Mapping):
        return {name: _told(part) for name, part in value.items()}
    return None if value is UNKNOWN or value is ABSENT else value


def _compare(fact: Fact, entry: tuple[str, ...], old: Any, new: Any, before: Engine, after: Engine) -> Iterator[Change]:
    if entry in fact.elsewhere or (len(entry) > 1 and entry[-1] in PLACES):
        return
    if len(entry) == 2 and fact.fields is not None and entry[1] not in fact.fields:
        return
    path = ".".join((fact.path, *entry))
    old = UNKNOWN if path in before.unknown else old
    new = UNKNOWN if path in after.unknown else new
    if old is UNKNOWN or new is UNKNOWN:
        if old is not new:
            yield Change(fact.path, entry, "unknown", _told(old), _told(new))
    elif old is ABSENT:
        yield Change(fact.path, entry, "added", None, new)
    elif new is ABSENT:
        yield Change(fact.path, entry, "removed", old, None)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _compare(fact, (*entry, str(name)), old.get(name, ABSENT), new.get(name, ABSENT), before, after)
    elif _is_list(old) and _is_list(new):
        yield from _members(fact, entry, old, new)
    elif old != new:
        yield Change(fact.path, entry, "changed", old, new)


def _members(fact: Fact, entry: tuple[str, ...], old: Sequence[Any], new: Sequence[Any]) -> Iterator[Change]:
    """Members that one list has and the other has not; steps and the like count by what they come to."""
    left, right = list(map(_member, old)), list(map(_member, new))
    gone, come = [m for m in left if m not in right], [m for m in right if m not in left]
    yield from (Change(fact.path, (*entry, member), "removed", member) for member in dict.fromkeys(gone))
    yield from (Change(fact.path, (*entry, member), "added", None, member) for member in dict.fromkeys(come))
    if fact.ordered and not gone and not come and left != right:
        yield Change(fact.path, entry, "changed", left, right)


def _member(value: Any) -> str:
    outcome = value.get("then") if isinstance(value, Mapping) else value
    return outcome if isinstance(outcome, str) else json.dumps(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _plain(value: Any) -> Any:
    """Dataclasses as mappings, inside containers too."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if _is_list(value) else value


SPECULATION: Final = r"spec(ulat|_|-|$)|draft|eagle|mtp|medusa|(?<!e)ngram|dflash|dspark|suffix_dec|verif"
# what decides with it how a pair is served: lengths, cache blocks, attention, the runner, parallelism
RELATED: Final = re.compile(
    SPECULATION
    + r"|^(model|dtype|config|hf-overrides|enforce-eager|additional-config|block-size|attention-backend)$"
    + r"|max-model-len|max-num-|kv-cache-dtype|parallel-size$|model.runner|attention_backend|allow_long_max_model_len",
    re.IGNORECASE,
)
BACKEND_FIELDS: Final = ("dtypes", "kv_cache_dtypes", "head_sizes", "mla", "sparse", "non_causal", "sinks")
KEY_FIELDS: Final = frozenset({"type", "default", "required", "choices", "at_least", "above", "at_most", "below"})
OPTION_FIELDS: Final = frozenset({"kind", "default", "choices", "negation", "config", "deprecated"})
# the methods and the attention backends once more
ELSEWHERE: Final = frozenset(
    (name, "choices") for name in ("method", "spec-method", "attention_backend", "attention-backend")
)

TOPICS: Final[tuple[Topic, ...]] = (
    Topic(
        "methods",
        (
            Fact("methods.methods", view=_methods),
            Fact("serve.method_words", "in a draft's path", view=_method_words, ordered=True),
        ),
    ),
    Topic(
        "--speculative-config",
        (
            Fact(
                "speculative.keys",
                fields=KEY_FIELDS,
                elsewhere=ELSEWHERE,
            ),
            Fact("speculative.refuses_others", "keys that it does not know are refused"),
            Fact("speculative.refusals", "refused"),
        ),
    ),
    Topic(
        "EAGLE3 targets",
        (
            Fact("eagle.support", view=eagle3_targets),
            Fact("eagle.config_stage", "only model types with"),
        ),
    ),
    Topic(
        "model runner",
        (
            Fact("runner.steps", view=runner_words),
            Fact("runner.cpu", "on a CPU"),
            Fact("runner.unsupported", "not with V2"),
            Fact("runner.v1_unsupported", "not with V1"),
            Fact("runner.forced_is_validated", "where V2 is asked for, what it lacks is refused"),
            Fact("runner.v2_needs_triton", "V2 needs Triton"),
        ),
    ),
    Topic(
        "lengths",
        (
            Fact("lengths.raised_methods", "positions of the draft are raised for", view=_raised_methods),
            Fact("lengths.raised_rope_types", "and only with rope types"),
            Fact("lengths.raise_also_lifts_length", "and its length with them"),
            Fact("lengths.v1_guard", "the V1 runner stops drafting at the draft's length"),
            Fact("lengths.guard_extra", "tokens that the V1 runner counts on top"),
            Fact("lengths.limits_target", "the V2 runner serves no more than the draft's length"),
            Fact("lengths.keys", "keys that state a length"),
            Fact("lengths.overriding_key", "the key that wins"),
            Fact("lengths.unscaled_rope_types", "rope types that are not scaled"),
            Fact("lengths.unscaled_model_types", "model types that are not scaled"),
            Fact("lengths.yarn_from_original", "yarn starts from the original length"),
            Fact("lengths.longrope_from_original", "longrope takes the original length"),
            Fact("rope.rows", "rows of the rotary table"),
        ),
    ),
    Topic(
        "auxiliary states",
        (
            Fact("eagle.aux_places", "layer ids are read from", view=_aux_places, ordered=True),
            Fact("eagle.aux_hidden_by", "not read beside another key"),
            Fact("eagle.aux_unshifted", "not shifted for"),
            Fact("eagle.use_aux_flag", "use_aux_hidden_state is heeded"),
            Fact("eagle.aux_deduplicates", "a layer named twice gives one state"),
            Fact("eagle.fc_states", "fc takes as many states as say", ordered=True),
        ),
    ),
    Topic("MTP model types", (Fact("mtp.model_types"),)),
    Topic(
        "speculators format",
        (
            Fact("speculators.algorithms"),
            Fact("speculators.required", "required keys"),
            Fact("speculators.user_config", "a --speculative-config beside it is"),
        ),
    ),
    Topic(
        "attention backends",
        (
            Fact("backends.backends", view=backends),
            Fact("blocks.backends", "kernel block sizes", view=_kernel_sizes),
        ),
    ),
    Topic(
        "KV cache blocks",
        (
            Fact("blocks.proposer", "the proposer counts in blocks of the"),
            Fact("blocks.table", "the block table holds blocks of the"),
            Fact("blocks.common_size", "blocks are split for kernels"),
            Fact("blocks.default", "--block-size by default"),
        ),
    ),
    Topic("order of draft layers", (Fact("layers.iteration"),)),
    Topic(
        "on a CPU",
        (
            Fact("cpu.refuses", "speculation is refused"),
            Fact("cpu.spared_by_triton", "a usable Triton is used"),
            Fact("cpu.aux_setup", "auxiliary states are set up"),
            Fact("cpu.sampling_expands_copy", "sampling parameters go into a copy"),
            Fact("triton.cpu_backend", "a Triton counts that has a CPU backend"),
        ),
    ),
    Topic(
        "vllm serve",
        (
            Fact("serve.flags", entries=RELATED, fields=OPTION_FIELDS, elsewhere=ELSEWHERE),
            Fact("serve.yaml_nested", "mappings in a --config YAML"),
            Fact("serve.yaml_false", "`key: false` in it becomes --no-key"),
            Fact("serve.backend_variable", "VLLM_ATTENTION_BACKEND is heeded"),
        ),
    ),
    Topic("environment variables", (Fact("variables.variables", entries=RELATED, fields=OPTION_FIELDS),)),
    Topic(
        "requirements",
        tuple(Fact(f"requirements.{name}", name) for name in ("python", "torch", "transformers")),
    ),
)
