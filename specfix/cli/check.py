"""``specfix check``."""

from __future__ import annotations

import sys

from specfix.cli import options
from specfix.cli.options import FailOn, Format, flags, json_object, variables
from specfix.cli.outcome import Outcome


def check(
    target: options.Target,
    draft: options.Draft = None,
    *,
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
    engine: options.Engine = None,
    engine_python: options.EnginePython = None,
    hardware: options.Hardware = None,
    form: options.Form = Format.text,
    select: options.Select = None,
    ignore: options.Ignore = None,
    fail_on: options.FailsOn = FailOn.error,
    strict: options.Strict = False,
) -> Outcome:
    """Check a pair: will it start, stay correct, and accept tokens?

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 it could not check.
    """
    from specfix import check as check_pair
    from specfix.report import render
    from specfix.report.terminal import Terminal

    report = check_pair(
        target,
        draft,
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
        flags=flags(flag or ()),
        speculative_config=json_object("--speculative-config", speculative_config),
        env=variables(env or ()),
        engine=engine,
        engine_python=engine_python,
        hardware=hardware,
        select=select or (),
        ignore=ignore or (),
    )
    failed = fail_on is not FailOn.never and report.reaches(fail_on.value)
    undecided = strict and bool(report.skipped)
    return Outcome(render(report, form.value, Terminal.of(sys.stdout)), int(failed or undecided))
