"""``specfix fix``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from specfix.cli import options
from specfix.cli.options import FailOn, flags, json_object, variables
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

REPAIR = "What is written"


def fix(
    target: options.Target = None,
    draft: options.Draft = None,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="New folder for the result.", rich_help_panel=REPAIR)
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; print what would change.", rich_help_panel=REPAIR)
    ] = False,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe", help="Also repairs that change numerics or need a run to confirm.", rich_help_panel=REPAIR
        ),
    ] = False,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Copy the models' files; else they are linked.", rich_help_panel=REPAIR),
    ] = False,
    keep_draft: Annotated[
        bool,
        typer.Option(
            "--keep-draft",
            help="Serve the draft from where it is: the shim does what its config needs.",
            rich_help_panel=REPAIR,
        ),
    ] = False,
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
    select: options.Select = None,
    ignore: options.Ignore = None,
    fail_on: options.FailsOn = FailOn.error,
    strict: options.Strict = False,
) -> Outcome:
    """Repair a pair: write what starts it right into a new folder. The models stay as they are.

    Exit status: 0 nothing at or above --fail-on is left, 1 something is, 2 it could not. With --diff: 1 where
    something would change, 0 where DIR holds it already.
    """
    from specfix.repair import summary
    from specfix.repairing import holds, prepare, write
    from specfix.report.terminal import Terminal

    if target is None:
        raise CannotCheck("fix needs a TARGET and its DRAFT")
    if out is None and not diff:
        raise CannotCheck("fix needs --out DIR, the folder to write, or --diff")
    fixed = prepare(
        target,
        draft,
        out=out or Path("OUT"),
        unsafe=unsafe,
        keep_draft=keep_draft,
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
    if diff:
        text = "" if out is not None and holds(fixed, copy=copy) else fixed.diff()
        return Outcome(text, int(bool(text)))
    fixed = write(fixed, copy=copy)
    after = fixed.plan.after
    failed = fail_on is not FailOn.never and after.reaches(fail_on.value)
    undecided = strict and bool(after.skipped)
    text = summary.render(fixed.report, fixed.plan, fixed.out, fixed.written, fixed.note, Terminal.of(sys.stdout))
    return Outcome(text, int(failed or undecided))
