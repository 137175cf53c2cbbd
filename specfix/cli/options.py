"""The options that commands share: what is to be served, where, and what is reported of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from specfix.errors import CannotCheck


class Format(str, Enum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"
    junit = "junit"
    markdown = "markdown"


class FailOn(str, Enum):
    error = "error"
    warning = "warning"
    note = "note"
    never = "never"


# options that say how it is served, and are handed on as they are
SERVED = (
    *("method", "num_speculative_tokens", "max_model_len", "max_num_seqs", "dtype", "block_size", "enforce_eager"),
    *("tensor_parallel_size", "pipeline_parallel_size", "attention_backend", "kv_cache_dtype"),
)

SERVING = "What will be served (names and defaults as in vllm serve)"
WHERE = "Where it will be served"
REPORT = "What is reported"

Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="Folder, config.json, or org/name or org/name@revision on the Hub."),
]
Draft = Annotated[
    str | None,
    typer.Argument(metavar="[DRAFT]", help="The same, for the draft. MTP needs none: the target holds it."),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Speculative method; else what the draft's files say.",
        rich_help_panel=SERVING,
    ),
]
Launch = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="The launch as it stands in a serve YAML, compose file, Kubernetes manifest or shell script, or a folder "
        "of them (repeatable). A command line follows after --.",
        rich_help_panel=SERVING,
    ),
]
NumSpeculativeTokens = Annotated[
    int | None, typer.Option(metavar="K", help="Tokens drafted a step.", rich_help_panel=SERVING)
]
MaxModelLen = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Longest sequence, prompt and answer, in tokens; -1: what the memory has room for.",
        rich_help_panel=SERVING,
    ),
]
MaxNumSeqs = Annotated[
    int | None, typer.Option(metavar="N", help="Most sequences in a batch.", rich_help_panel=SERVING)
]
TensorParallelSize = Annotated[
    int, typer.Option(metavar="N", help="Devices that share each layer.", rich_help_panel=SERVING)
]
PipelineParallelSize = Annotated[
    int,
    typer.Option(metavar="N", help="Groups of devices that share the layers.", rich_help_panel=SERVING),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="DTYPE",
        help="Of weights and activations: bfloat16, float16, ...",
        rich_help_panel=SERVING,
    ),
]
BlockSize = Annotated[int | None, typer.Option(metavar="N", help="KV cache block, in tokens.", rich_help_panel=SERVING)]
AttentionBackend = Annotated[
    str | None, typer.Option(metavar="NAME", help="FLASH_ATTN, FLASHINFER, ...", rich_help_panel=SERVING)
]
KvCacheDtype = Annotated[str | None, typer.Option(metavar="DTYPE", help="auto, fp8, ...", rich_help_panel=SERVING)]
EnforceEager = Annotated[
    bool,
    typer.Option("--enforce-eager", help="Nothing is compiled or captured.", rich_help_panel=SERVING),
]
Greedy = Annotated[bool, typer.Option("--greedy", help="Every request has temperature 0.", rich_help_panel=SERVING)]
Flag = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Any other flag of the engine, its value as text or JSON: enable-prefix-caching=false (repeatable).",
        rich_help_panel=SERVING,
    ),
]
SpeculativeConfig = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help="Keys of the speculative config, as vllm serve takes them.", rich_help_panel=SERVING
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Variable that the server will see (repeatable).",
        rich_help_panel=SERVING,
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="vllm==X | IMAGE | PATH",
        help="Release, image with a release's tag, or source tree, wheel or environment. "
        "Else what is installed, else the newest.",
        rich_help_panel=WHERE,
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="vllm==X | IMAGE | PATH",
        help="Release, image with a release's tag, or source tree, wheel or environment. Else what is installed, else "
        "the newest. Given again: what that one would change.",
        rich_help_panel=WHERE,
    ),
]
EnginePython = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Run this interpreter to ask which vLLM it would import; PYTHONPATH counts.",
        rich_help_panel=WHERE,
    ),
]
Hardware = Annotated[
    str | None,
    typer.Option(
        metavar="NAME | FILE",
        help="cpu, h200, ..., or a file of `specfix hardware --save`. Else what is found here.",
        rich_help_panel=WHERE,
    ),
]
Form = Annotated[Format, typer.Option("--format", help="Form of the report.", rich_help_panel=REPORT)]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", help="Only these: POS001,HWR (codes or prefixes).", rich_help_panel=REPORT),
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="CODES", help="Not these.", rich_help_panel=REPORT)]
Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Findings in this file are let pass.", rich_help_panel=REPORT),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write what is found to this file, for --baseline.", rich_help_panel=REPORT),
]
FailsOnOrSettings = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on", help="Least severity that makes the exit status 1 (default: error).", rich_help_panel=REPORT
    ),
]
StrictOrSettings = Annotated[
    bool | None,
    typer.Option("--strict/--no-strict", help="Exit status 1 also where a rule was skipped.", rich_help_panel=REPORT),
]
FailsOn = Annotated[FailOn, typer.Option(help="Least severity that makes the exit status 1.", rich_help_panel=REPORT)]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit status 1 also where a rule was skipped.", rich_help_panel=REPORT),
]


def variables(given: Iterable[str], option: str = "--env") -> dict[str, str]:
    """NAME=VALUE each; of a repeated name the last one counts, as in a shell."""
    found = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not name or not equals:
            raise CannotCheck(f"{option} takes NAME=VALUE, not {assignment!r}")
        found[name] = value
    return found


def flags(given: Iterable[str]) -> dict[str, Any]:
    """NAME=VALUE each; a value that is no JSON is a text."""
    return {name: value_of(text, f"--flag {name}") for name, text in variables(given, "--flag").items()}


def value_of(text: str, option: str) -> Any:
    refuse_repeated(option, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def json_object(option: str, text: str | None) -> dict[str, Any] | None:
    """The object that an option's JSON text holds."""
    from specfix.deployment.json_text import parse_object

    if text is None:
        return None
    refuse_repeated(option, text)
    return parse_object(text, option)


def refuse_repeated(option: str, text: str) -> None:
    """Raise CannotCheck for JSON in which a key has two values, of which one may be a secret."""
    from specfix.deployment.json_text import repeated, show

    if (key := repeated(text)) is not None:
        raise CannotCheck(f"{option} has {show(key)} twice, with two values")


def served(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a command's options, which are its ``locals()``, say of the server: in the terms of ``specfix.check``."""
    return {
        **{name: given[name] for name in SERVED},
        "flags": flags(given["flag"] or ()),
        "speculative_config": json_object("--speculative-config", given["speculative_config"]),
        "env": variables(given["env"] or ()),
    }


def refuse_options(given: Mapping[str, Any]) -> None:
    """Raise CannotCheck for an option that the launch itself states, or leaves to the engine."""
    for name, value in given.items():
        if value not in (None, False, {}) and not (name.endswith("parallel_size") and value == 1):
            option = {"flags": "flag"}.get(name, name).replace("_", "-")
            raise CannotCheck(f"--{option} and a launch are given: the launch says how it serves")
