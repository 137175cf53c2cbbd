"""How the pair is to be served: the options of the command line, in the engine's own names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specfix.deployment.location import Location


@dataclass(frozen=True, slots=True)
class Serving:
    """Serving options; None means not given, so that the engine's default holds.

    ``max_model_len`` counts tokens of prompt and answer together; ``block_size`` counts tokens of a KV cache
    block; ``greedy`` says that every request has temperature 0; ``env`` holds the variables that the server
    will see.
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

    def at(self, option: str) -> Location:
        """Location of an option (``max_model_len``) or of a variable (``CUDA_VISIBLE_DEVICES``)."""
        if option.isupper():
            return Location("environment", option)
        return Location("command line", "--" + option.replace("_", "-"))
