"""Numbers that must fit together, and what a draft does on several devices."""

from __future__ import annotations

from typing import Literal

from specfix.record import record

Draws = Literal["0", "1", "k", "k-1"]


@record(frozen=True)
class Captures:
    """The sizes of batches, in tokens, for which CUDA graphs are captured where nobody lists them.

    The largest is max_num_seqs times ``per_seq`` ("2", or "2*(k+1)" where the draft tokens are counted), ``ceiling`` at
    most, or ``ceiling_100`` on devices of compute capability 10.x. Sizes are 1, 2, 4 and then multiples of 8, from 256
    on of 16 where ``wide``. ``rounded``: for a decode of 1+k tokens a request they are rounded up to multiples of 1+k,
    and those that pass the largest are dropped.
    """

    per_seq: Literal["2", "2*(k+1)"]
    ceiling: int
    ceiling_100: int
    wide: bool
    rounded: bool


@record(frozen=True)
class NumberFacts:
    """Numbers that a release compares, or should have compared.

    ``slots``: method, with "+parallel" where parallel_drafting is on, to how many tokens each request adds to a batch
    while it is drafted for; those that add none are left out. ``slots_held``: how that is taken from
    max_num_batched_tokens: times max_num_seqs, of which at least one token must be left ("each"), "once", or not at all
    ("none"). ``uncapped_rows``: method to the tokens that each request has in the V2 runner's draft pass ("k", "k+1"),
    for methods that warm it up with more requests than max_num_batched_tokens has room for.
    ``captures``: see :class:`Captures`.

    ``steps_numbered``: runners that tell a draft of several MTP layers which step it takes; under another one all steps
    go through the first layer. ``steps_by_type``: model types whose own proposer does so in the V1 runner.
    ``batch_below_requests``: a max_num_batched_tokens below max_num_seqs ends the start.
    ``verified_at_most``: drafted tokens of a request that the V1 runner's sampler takes; 0: any number.
    """

    slots: dict[str, Draws] | None = None
    slots_held: Literal["each", "once", "none"] | None = None
    uncapped_rows: dict[str, str] | None = None
    captures: Captures | None = None
    steps_numbered: tuple[str, ...] | None = None
    steps_by_type: tuple[str, ...] = ()
    batch_below_requests: bool | None = None
    verified_at_most: int | None = None


@record(frozen=True)
class ParallelFacts:
    """A draft on several devices.

    ``draft_pipelined``: where the target is cut into pipeline stages, the draft's class must support that too.
    ``one_token_broadcast``: under asynchronous scheduling the V1 runner's last stage may hand on one sampled token a
    request, and dies of more. ``unpipelined``: architectures whose class does not support
    pipeline parallelism.

    ``draft_tp_refused``: draft_tensor_parallel_size must be 1 or the target's. ``draft_tp_same``: methods that refuse 1
    in the V1 runner. ``draft_tp_heeded``: methods for which anything reads it, "" for all.

    ``interleave_checked``: with context parallelism and cp_kv_cache_interleave_size above 1 each attention class must
    say that it can verify drafts; ``interleaving``: those that do. ``connector_interleaves``: a KV connector raises
    that size to a block's. ``shards_drafts``: runners that split a draft's KV cache, too, among the ranks of decode
    context parallelism.

    ``ranks_wait``: in the V1 runner a data-parallel rank that stops drafting still takes part in the others' draft
    passes. ``dynamic_off``: num_speculative_tokens_per_batch_size is ignored under data parallelism.
    ``balanced``: drafts whose experts can be balanced. ``same_experts``: the balancer refuses a draft whose
    number of experts differs from the target's;
    ``one_balanced``: it knows one model, and the draft's expert layers die for want of it.
    ``experts_needed``: expert parallelism of a target without experts ends the start. ``ranks_counted``: more ranks
    than the node has GPUs end the start where no executor is named.
    """

    draft_pipelined: bool | None = None
    one_token_broadcast: bool | None = None
    unpipelined: tuple[str, ...] | None = None
    draft_tp_refused: bool | None = None
    draft_tp_same: tuple[str, ...] | None = None
    draft_tp_heeded: tuple[str, ...] | None = None
    interleave_checked: bool | None = None
    interleaving: tuple[str, ...] = ()
    connector_interleaves: bool | None = None
    shards_drafts: tuple[str, ...] | None = None
    ranks_wait: bool | None = None
    dynamic_off: bool | None = None
    balanced: tuple[str, ...] = ()
    same_experts: bool | None = None
    one_balanced: bool | None = None
    experts_needed: bool | None = None
    ranks_counted: bool | None = None
