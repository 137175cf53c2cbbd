"""What a release does with recurrent layers (Mamba, gated delta nets, short convolutions) while it speculates."""

from __future__ import annotations

from specfix.record import record


@record(frozen=True)
class RecurrentFacts:
    """Speculation over a target of which some layers keep a state instead of a KV cache.

    ``refuses``: the start ends, but for targets whose model_type is in ``exempt``. ``narrow``: architectures whose
    class plans the page of a state without the columns that drafts add to it, although its layers then ask for them.

    ``cached``: where nobody says so, prefixes of such a target are cached. ``caching``: prefix caching is to be had for
    "none" of them, for "some" (those whose class says so: ``cacheable``), or for "all". ``cached_mode``: the
    mamba_cache_mode of those in ``cacheable`` where prefixes are cached; it is "align" for the others.
    ``align_refuses``: that mode and speculation together end the start. ``all_drafts``: the runner keeps accepted
    states where the mode is "all" (False: it was not made for that; None too where there is no such mode).

    ``stale_without_drafts``: a step in which no request has a draft reads the state of the last step that had none, and
    not that of the last token that was accepted. ``counts_raced``: in mode "align" the numbers of accepted tokens are
    copied to the host while the rows of the batch may move.

    ``size_needs_cache``: a mamba_block_size other than max_model_len, without prefix caching, ends the start of any
    model.
    """

    refuses: bool | None = None
    exempt: tuple[str, ...] = ()
    narrow: tuple[str, ...] | None = None
    cached: bool | None = None
    caching: str | None = None
    cacheable: tuple[str, ...] | None = None
    cached_mode: str | None = None
    align_refuses: bool | None = None
    all_drafts: bool | None = None
    stale_without_drafts: bool | None = None
    counts_raced: bool | None = None
    size_needs_cache: bool | None = None
