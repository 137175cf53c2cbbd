"""``specfix check``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import Enum
from typing import Annotated

import typer

from specfix.cli.outcome import Outcome
from specfix.errors import CannotCheck


class Format(str, Enum):
    text = "text"
    json = "json"
    github = "github"


class FailOn(str, Enum):
    error = "error"
    warning = "warning"
    note = "note"
    never = "never"


SERVING = "What will be served (names and defaults as in vllm serve)"
WHERE = "Where it will be served"
REPORT = "What is reported"


def check(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="Folder, config.json, or org/name or org/name@revision on the Hub."),
    ],
    draft: Annotated[
        str | None,
        typer.Argument(metavar="[DRAFT]", help="The same, for the draft. MTP needs none: the target holds it."),
    ] = None,
    *,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Speculative method; else what the draft's files say.",
            rich_help_panel=SERVING,
        ),
    ] = None,
    num_speculative_tokens: Annotated[
        int | None, typer.Option(metavar="K", help="Tokens drafted a step.", rich_help_panel=SERVING)
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option(metavar="N", help="Longest sequence, prompt and answer, in tokens.", rich_help_panel=SERVING),
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(metavar="N", help="Most sequences in a batch.", rich_help_panel=SERVING)
    ] = None,
    tensor_parallel_size: Annotated[
        int, typer.Option(metavar="N", help="Devices that share each layer.", rich_help_panel=SERVING)
    ] = 1,
    pipeline_parallel_size: Annotated[
        int,
        typer.Option(metavar="N", help="Groups of devices that share the layers.", rich_help_panel=SERVING),
    ] = 1,
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="DTYPE",
            help="Of weights and activations: bfloat16, float16, ...",
            rich_help_panel=SERVING,
        ),
    ] = None,
    block_size: Annotated[
        int | None, typer.Option(metavar="N", help="KV cache block, in tokens.", rich_help_panel=SERVING)
    ] = None,
    attention_backend: Annotated[
        str | None, typer.Option(metavar="NAME", help="FLASH_ATTN, FLASHINFER, ...", rich_help_panel=SERVING)
    ] = None,
    kv_cache_dtype: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="auto, fp8, ...", rich_help_panel=SERVING)
    ] = None,
    enforce_eager: Annotated[
        bool,
        typer.Option("--enforce-eager", help="Nothing is compiled or captured.", rich_help_panel=SERVING),
    ] = False,
    greedy: Annotated[
        bool, typer.Option("--greedy", help="Every request has temperature 0.", rich_help_panel=SERVING)
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Variable that the server will see (repeatable).",
            rich_help_panel=SERVING,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="vllm==X | PATH",
            help="Release, or folder or interpreter that holds one. Else what is installed, else the newest.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option(
            metavar="NAME | FILE",
            help="cpu, h200, ..., or a file of `specfix hardware --save`. Else what is found here.",
            rich_help_panel=WHERE,
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the report.", rich_help_panel=REPORT)] = Format.text,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="CODES", help="Only these: POS001,HWR (codes or prefixes).", rich_help_panel=REPORT),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="CODES", help="Not these.", rich_help_panel=REPORT)
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Least severity that makes the exit status 1.", rich_help_panel=REPORT)
    ] = FailOn.error,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit status 1 also where a rule was skipped.", rich_help_panel=REPORT),
    ] = False,
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
        env=variables(env or ()),
        engine=engine,
        hardware=hardware,
        select=select or (),
        ignore=ignore or (),
    )
    failed = fail_on is not FailOn.never and report.reaches(fail_on.value)
    undecided = strict and bool(report.skipped)
    return Outcome(render(report, form.value, Terminal.of(sys.stdout)), int(failed or undecided))


def variables(given: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE each; of a repeated name the last one counts, as in a shell."""
    found = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise CannotCheck(f"--env takes NAME=VALUE, not {assignment!r}")
        found[name] = value
    return found
