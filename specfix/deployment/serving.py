"""How the pair is to be served: the options of the command line, in the engine's own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any, TypeVar

from specfix.deployment.location import Location
from specfix.errors import MissingFact
from specfix.record import record

V = TypeVar("V")


@record(frozen=True)
class Misfit:
    """An argument that the release refuses, or drops without a word (``ignored``): why, and the nearest right name, or
    else what is to be done. ``then``: what follows where it is not that the server does not start. ``option``: the name
    of the option, or of the key of the speculative config, that has no value for it."""

    message: str
    location: Location
    nearest: str | None = None
    ignored: bool = False
    repair: str | None = None
    then: str | None = None
    option: str | None = None


@record(frozen=True)
class Serving:
    """Serving options; None means not given, so that the engine's default holds.

    ``max_model_len`` counts tokens of prompt and answer together; ``block_size`` counts tokens of a KV cache
    block; ``greedy`` says that every request has temperature 0; ``env`` holds the variables that the server
    will see. ``flags`` holds the engine's other flags that are given, by name with underscores
    (``enable_prefix_caching``: False), and ``speculative`` the other keys of the speculative config, but for the
    draft's place. ``devices`` counts the GPUs that the server is handed, where a launch says so.

    Where the options were read from a launch command, ``places`` says where each stands; ``unknown`` holds those whose
    value is known only where it runs, with what is written there (``$MAX_LEN``); ``misfits`` what the release does not
    take of it. A key of the speculative config has the name ``speculative.KEY`` there.
    """

    method: str | None = None
    num_speculative_tokens: int | None = None
    max_model_len: int | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    dtype: str | None = None
    block_size: int | None = None
    attention_backend: str | None = None
    kv_cache_dtype: str | None = None
    max_num_seqs: int | None = None
    enforce_eager: bool = False
    greedy: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    speculative: Mapping[str, Any] = field(default_factory=dict)
    devices: int | None = None
    places: Mapping[str, Location] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    misfits: tuple[Misfit, ...] = ()

    def flag(self, name: str) -> Any:
        """What is given for a flag, by its name with underscores; None where it is not given."""
        return getattr(self, name) if name in COMMON else self.flags.get(name)

    def at(self, option: str) -> Location:
        """Location of a flag (``max_model_len``), of a key of the speculative config (``speculative.method``), or of a
        variable (``CUDA_VISIBLE_DEVICES``)."""
        if option in self.places:
            return self.places[option]
        if option.isupper():
            return Location("environment", option)
        block, _, key = option.rpartition(".")
        if block:
            whole = self.places.get("speculative_config", COMMAND)  # where a key of it could stand
            return replace(COMMAND if whole.file == COMMAND.file else whole, pointer=f"--speculative-config.{key}")
        return Location("command line", "--" + option.replace("_", "-"))

    def guarded(self) -> Serving:
        """The same, but that asking for what is unknown raises MissingFact."""
        if not self.unknown:
            return self
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        flags = {name: text for name, text in self.unknown.items() if name not in COMMON and "." not in name}
        keys = {name.partition(".")[2]: text for name, text in self.unknown.items() if "." in name}
        values["flags"] = _Guarded(self.flags, flags)
        values["env"] = _Guarded(self.env, flags)
        values["speculative"] = _Guarded(self.speculative, keys)
        return _GuardedServing(**values)


COMMAND = Location("command line")
AUTO_LENGTH = -1  # of max_model_len: what the memory has room for, which is known only where it runs
AUTO = "auto"
ANY_FLAG = "*"  # among what is unknown: flags that are not given may be, all the same
ANY_VARIABLE = "$*"  # variables that are not set may be

# options that count something
COUNTS = (
    "num_speculative_tokens",
    "max_model_len",
    "max_num_seqs",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "block_size",
)
# options with a field of their own
COMMON = frozenset(one.name for one in fields(Serving)) - {
    *("env", "flags", "speculative", "devices"),
    *("places", "unknown", "misfits"),
}


class _GuardedServing(Serving):
    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in COMMON:
            unknown = object.__getattribute__(self, "unknown")
            if name in unknown:
                raise not_known(name, unknown[name])
        return object.__getattribute__(self, name)


class _Guarded(Mapping[str, V]):
    """A mapping of which some keys have values that are not known."""

    def __init__(self, values: Mapping[str, V], unknown: Mapping[str, str]) -> None:
        self._values, self._unknown = values, unknown

    def __getitem__(self, name: str) -> V:
        if name in self._unknown:
            raise not_known(name, self._unknown[name])
        if name not in self._values and (any_one := any_of(name)) in self._unknown:
            raise not_known(name, self._unknown[any_one])
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._unknown or any_of(str(name)) in self._unknown

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def any_of(name: str) -> str:
    """What stands for all of a flag's kind, or a variable's."""
    return ANY_VARIABLE if name.isupper() else ANY_FLAG


def not_known(name: str, text: str) -> MissingFact:
    """What to raise for an option whose value is ``text``."""
    option = name if name.isupper() else "--" + name.replace("_", "-")
    return MissingFact(f"the value of {option}: {text} is known only where it runs")
