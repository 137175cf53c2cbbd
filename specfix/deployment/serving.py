"""How the pair is to be served: the options of the command line, in the engine's own names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from specfix.deployment.location import Location


@dataclass(frozen=True, slots=True)
class Serving:
    """Serving options; None means not given, so that the engine's default holds.

    ``max_model_len`` counts tokens of prompt and answer together; ``block_size`` counts tokens of a KV cache
    block; ``greedy`` says that every request has temperature 0; ``env`` holds the variables that the server
    will see. ``flags`` holds the engine's other flags that are given, by name with underscores
    (``enable_prefix_caching``: False), and ``speculative`` the other keys of the speculative config, but for the
    draft's place.
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

    def flag(self, name: str) -> Any:
        """What is given for a flag, by its name with underscores; None where it is not given."""
        return getattr(self, name) if name in COMMON else self.flags.get(name)

    def at(self, option: str) -> Location:
        """Location of a flag (``max_model_len``), of a key of the speculative config (``speculative.method``), or of a
        variable (``CUDA_VISIBLE_DEVICES``)."""
        if option.isupper():
            return Location("environment", option)
        block, _, key = option.rpartition(".")
        if block:
            return Location("command line", f"--speculative-config.{key}")
        return Location("command line", "--" + option.replace("_", "-"))


# options with a field of their own
COMMON = frozenset(one.name for one in fields(Serving)) - {"env", "flags", "speculative"}
