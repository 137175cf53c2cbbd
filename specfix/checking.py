"""check(): from what the user says to a report. The command line and the library come in by this door."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from specfix.checker.registry import load_rules
from specfix.checker.run import check_codes, run
from specfix.deployment import Serving
from specfix.deployment.load import load_deployment
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.facts import PROVIDERS

if TYPE_CHECKING:
    from specfix.checker.report import Report
    from specfix.deployment import Hardware
    from specfix.engines import Engine

COUNTS = (
    "num_speculative_tokens",
    "max_model_len",
    "max_num_seqs",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "block_size",
)


def check(
    target: str | os.PathLike[str],
    draft: str | os.PathLike[str] | None = None,
    *,
    method: str | None = None,
    num_speculative_tokens: int | None = None,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    tensor_parallel_size: int = 1,
    pipeline_parallel_size: int = 1,
    dtype: str | None = None,
    block_size: int | None = None,
    attention_backend: str | None = None,
    kv_cache_dtype: str | None = None,
    enforce_eager: bool = False,
    greedy: bool = False,
    env: Mapping[str, str] | None = None,
    engine: str | None = None,
    hardware: Hardware | str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Report:
    """Check a pair, as ``specfix check`` does; options are named as there.

    ``engine`` is ``vllm==0.26.0``, or a folder or interpreter that holds one; by default the installed one,
    else the newest known. ``hardware`` is a preset (``h200``) or a saved file; by default what is found here.
    ``select`` and ``ignore`` hold codes or prefixes. Raises CannotCheck for what cannot be checked at all.
    """
    serving = Serving(
        method=method,
        num_speculative_tokens=num_speculative_tokens,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        tensor_parallel_size=tensor_parallel_size,
        pipeline_parallel_size=pipeline_parallel_size,
        dtype=dtype,
        block_size=block_size,
        attention_backend=attention_backend,
        kv_cache_dtype=kv_cache_dtype,
        enforce_eager=enforce_eager,
        greedy=greedy,
        env=dict(env or {}),
    )
    check_counts(serving)
    selected, ignored = codes(select), codes(ignore)
    rules = load_rules()
    check_codes([*selected, *ignored], rules)
    release = find_engine(engine)
    if method is not None:
        check_method(method, release)  # before the loader, which would take an unknown one for one without a draft
    deployment = load_deployment(os.fspath(target), None if draft is None else os.fspath(draft), serving, hardware)
    if engine is None:
        why = "the newest known" if release.source == "shipped" else release.source
        assumptions = (f"engine {release}: {why}", *deployment.assumptions)
        deployment = replace(deployment, assumptions=assumptions)
    return run(deployment, release, rules, PROVIDERS, select=selected, ignore=ignored)


def check_counts(serving: Serving) -> None:
    """Raise CannotCheck for a number below one: every one of these counts something."""
    for name in COUNTS:
        value = getattr(serving, name)
        if value is not None and value < 1:
            raise CannotCheck(f"--{name.replace('_', '-')} must be at least 1, not {value}")


def check_method(method: str, engine: Engine) -> None:
    """Raise CannotCheck for a method that the release does not know."""
    known = engine.methods.methods
    if known and method not in known:
        raise CannotCheck(f"{engine} knows no method {method!r}; it knows {', '.join(sorted(known))}")


def codes(given: Iterable[str]) -> tuple[str, ...]:
    """Codes in capitals. One string may hold several with commas between, as on the command line."""
    parts = [given] if isinstance(given, str) else given
    return tuple(code.strip().upper() for part in parts for code in part.split(",") if code.strip())
