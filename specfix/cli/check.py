"""``specfix check``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from specfix.cli import options
from specfix.cli.conclusion import Gate, chosen
from specfix.cli.options import Format, refuse_options, served
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Remark


def check(
    context: typer.Context,
    target: options.Target = None,
    draft: options.Draft = None,
    *,
    launch: options.Launch = None,
    method: options.Method = None,
    num_speculative_tokens: options.NumSpeculativeTokens = None,
    max_model_len: options.MaxModelLen = None,
    max_num_seqs: options.MaxNumSeqs = None,
    tensor_parallel_size: options.TensorParallelSize = 1,
    pipeline_parallel_size: options.PipelineParallelSize = 1,
    dtype: options.Dtype = None,
    block_size: options.BlockSize = None,
    attention_backend: options.AttentionBackend = None,
    kv_cache_dtype: options.KvCacheDtype = None,
    enforce_eager: options.EnforceEager = False,
    greedy: options.Greedy = False,
    flag: options.Flag = None,
    speculative_config: options.SpeculativeConfig = None,
    env: options.Env = None,
    engine: options.Engines = None,
    engine_python: options.EnginePython = None,
    hardware: options.Hardware = None,
    form: options.Form = Format.text,
    select: options.Select = None,
    ignore: options.Ignore = None,
    baseline: options.Baseline = None,
    write_baseline: options.WriteBaseline = None,
    fail_on: options.FailsOnOrSettings = None,
    strict: options.StrictOrSettings = None,
) -> Outcome:
    """Check a pair: will it start, stay correct, and accept tokens?

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 it could not check.
    """
    from specfix.gate.settings import find_settings

    settings = find_settings()
    given = served(locals())
    where: dict[str, Any] = {
        "engine_python": engine_python,
        "hardware": hardware or settings.hardware,
        "greedy": greedy,
        "select": chosen(settings, select),
        "ignore": ignore or (),
    }
    launches = (launch or (), context.obj or ())
    if any(launches):
        refuse_options(given)
    default = None if engine_python else settings.engine
    releases: list[str | None] = [*engine] if engine else [None]
    remarks: list[Remark] = []
    if any(launches):
        from specfix.cli.launches import check_launches

        by_release, remarks = check_launches(
            *launches, releases, target=target, draft=draft, default_engine=default, **where
        )
    else:
        options = {**given, **where}
        by_release = [
            [check_pair(target, draft, {**options, "engine": default if release is None else release})]
            for release in releases
        ]
    gate = Gate.of(settings, fail_on, strict, baseline)
    return gate.outcome(by_release, form.value, write_baseline, remarks)


def check_pair(target: str | None, draft: str | None, options: Mapping[str, Any]) -> Checked:
    import specfix
    from specfix.checker.report import Checked

    if target is None:
        raise CannotCheck("give a TARGET and its DRAFT, or a launch: --launch FILE, or -- vllm serve …")
    return Checked("", specfix.check(target, draft, **options))
