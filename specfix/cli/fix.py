"""``specfix fix``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from specfix.cli import options
from specfix.cli.options import FailOn, refuse_options, served
from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck

REPAIR = "What is written"


def fix(
    target: options.Target = None,
    draft: options.Draft = None,
    *,
    launch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The launch in a serve YAML, compose file, Kubernetes manifest or shell script: the file is repaired.",
            rich_help_panel=options.SERVING,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where the server of --launch will see DIR: the mount in its container. Else DIR as it is here.",
            rich_help_panel=REPAIR,
        ),
    ] = None,
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
    """Repair a pair, or a launch file: write what starts it right into a new folder. All that is given stays as it is.

    Exit status: 0 nothing at or above --fail-on is left, 1 something is, 2 it could not. With --diff: 1 where
    something would change, 0 where DIR holds it already.
    """
    from specfix.repair import summary
    from specfix.repairing import holds, prepare, prepare_launch, write
    from specfix.report.terminal import Terminal

    given = served(locals())
    where: dict[str, Any] = {
        "greedy": greedy,
        "engine": engine,
        "engine_python": engine_python,
        "hardware": hardware,
        "select": select or (),
        "ignore": ignore or (),
        "out": out or Path("OUT"),
        "unsafe": unsafe,
        "keep_draft": keep_draft,
    }
    if target is None and launch is None:
        raise CannotCheck("fix needs a TARGET and its DRAFT, or a launch: --launch FILE")
    if at is not None and launch is None:
        raise CannotCheck("--at says where the server of a launch sees DIR: give --launch FILE too")
    if out is None and not diff:
        raise CannotCheck("fix needs --out DIR, the folder to write, or --diff")
    if launch is not None:
        refuse_options(given)
        fixed = prepare_launch(launch, target, draft, at=at, **where)
    elif target is not None:
        fixed = prepare(target, draft, **given, **where)
    if diff:
        text = "" if out is not None and holds(fixed, copy=copy) else fixed.diff()
        return Outcome(text, int(bool(text)))
    fixed = write(fixed, copy=copy)
    after = fixed.plan.after
    failed = fail_on is not FailOn.never and after.reaches(fail_on.value)
    undecided = strict and bool(after.skipped)
    inside = None
    if fixed.inside and fixed.file:
        inside = list(fixed.inside.next_steps(fixed.file, fixed.launch, fixed.out, copy))
    terminal = Terminal.of(sys.stdout)
    text = summary.render(fixed.report, fixed.plan, fixed.out, fixed.written, fixed.note, terminal, inside)
    return Outcome(text, int(failed or undecided))
