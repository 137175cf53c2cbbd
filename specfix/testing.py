"""Run the examples of a rule's page, for this project's rules and for anybody's.

A page holds pairs of fenced blocks, a case and what the rule says of it::

    ```yaml case
    engine: vllm 0.26.0
    hardware: h200                       # a preset, or a mapping of Hardware's fields; left out: unknown
    serve: {method: eagle3, max_model_len: 8192, enable_prefix_caching: true, speculative: {quantization: fp8}}
    target: {base: llama-3.1-8b-instruct}
    draft: {base: eagle3-llama-3.1-8b, max_position_embeddings: 2048, absent: [dtype], tensors: {fc.weight: [8, 24]}}
    shim: {cpu_sampling: {}}             # patches of a shim on PYTHONPATH; left out: there is none
    command: vllm serve {target} …       # instead of serve: the launch itself, with the models' places put in
    report: owner/repo#12345             # the public report that this is; left out: none
    ```
    ```text findings
    POS001 error draft:/max_position_embeddings
    ```

``serve`` takes Serving's fields, and any other flag of the engine by its name with underscores. ``base`` names a folder
that holds a config.json; other keys replace the config's, ``absent`` drops keys, and ``tensors`` writes a safetensors
header, of BF16 unless one is given as ``{dtype: U8, shape: [8, 24]}``, whose data are nothing unless given as
``{dtype: I64, shape: [3], values: [0, 0, 7]}``, and ``files`` writes other JSON files:
``{generation_config.json: {min_p: 0.1}}``; ``folder`` is the name of the model's folder. With ``speculative`` in
``serve`` the speculative config counts as the user's own, served as it stands.

The second block lists the findings of the page's rule alone: code, severity, place; or ``skipped POS001``; or nothing,
where the rule stays quiet.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

from specfix.checker.report import Report
from specfix.checker.rule import Rule
from specfix.checker.run import Chosen, run
from specfix.deployment import Deployment, Hardware, Location, Serving
from specfix.deployment.load import load_deployment
from specfix.deployment.model import INTEGERS
from specfix.engines.find import find_engine
from specfix.facts import PROVIDERS
from specfix.facts.class_defaults import with_class_defaults
from specfix.launching import from_command, gather_launch
from specfix.shim import SCHEMA, shim_files

BLOCKS = re.compile(r"^```yaml case\n(.*?)^```\n+```text findings\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# looser than the blocks themselves, so that a misspelt one is seen
OPENINGS = {
    name: re.compile(rf"^ *`{{3,}} *{name.replace(' ', ' +')}\b", re.M | re.I)
    for name in ("yaml case", "text findings")
}
WIDTHS = {"I64": 8, "F32": 4, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1}  # bytes of one element; others have two
CASE_KEYS = {"engine", "hardware", "serve", "target", "draft", "shim", "command", "report"}


@dataclass(frozen=True, slots=True)
class Case:
    """One example of a page: the deployment as written, the findings expected, and the page's line."""

    page: Path
    line: int
    given: Mapping[str, Any]
    expected: tuple[str, ...]


def cases(page: Path) -> list[Case]:
    """The examples of ``page``, in order. Raises ValueError for a case with an unknown key, and for half an example."""
    text = page.read_text("utf-8")
    found = []
    pairs = len(BLOCKS.findall(text))
    for name, opening in OPENINGS.items():
        if len(opening.findall(text)) != pairs:
            raise ValueError(f"{page}: a block of {name} has no partner right after, or before, it")
    for match in BLOCKS.finditer(text):
        given = yaml.safe_load(match[1])
        if unknown := set(given) - CASE_KEYS:
            raise ValueError(f"{page}: unknown keys in a case: {', '.join(sorted(unknown))}")
        line = text.count("\n", 0, match.start()) + 1
        found.append(Case(page, line, given, tuple(match[2].splitlines())))
    return found


def run_case(case: Case, rules: Sequence[Rule], bases: Sequence[Path], folder: Path) -> tuple[str, ...]:
    """What the rule of the case's page says of it, in the form of the page's second block."""
    code = next(rule.code for rule in rules if rule.page == case.page)
    return said(report_on(case, rules, bases, folder), code)


def report_on(case: Case, rules: Sequence[Rule], bases: Sequence[Path], folder: Path) -> Report:
    """The report on one example.

    The models are written under ``folder`` and read as a user's would be; ``bases`` are the folders that hold bases.
    """
    given = case.given
    sides = {
        side: write_model(folder / given[side].get("folder", side), given[side], bases)
        for side in ("target", "draft")
        if given.get(side)
    }
    if "command" in given:
        command = given["command"]
        for side, path in sides.items():
            command = command.replace(f"{{{side}}}", str(path))
        made = gather_launch(
            from_command(command), engine=given["engine"], hardware=case_hardware(given.get("hardware"))
        )
        return run(with_class_defaults(made.deployment, made.engine), made.engine, Chosen(rules), PROVIDERS)
    serve = dict(given.get("serve", {}))
    if "shim" in given:
        serve["env"] = {**serve.get("env", {}), "PYTHONPATH": str(write_shim(folder / "shim", given["shim"]))}
    flags = {name: serve.pop(name) for name in set(serve) - {one.name for one in fields(Serving)}}
    serving = Serving(**serve, flags=flags)
    draft = str(sides["draft"]) if "draft" in sides else None
    deployment = load_deployment(str(sides["target"]), draft, serving, case_hardware(given.get("hardware")))
    deployment = replace(deployment, config_given="speculative" in given.get("serve", {}))
    engine = find_engine(given["engine"])
    return run(with_class_defaults(deployment, engine), engine, Chosen(rules), PROVIDERS)


def said(report: Report, code: str) -> tuple[str, ...]:
    """Findings and skips of one rule, a line each."""
    found = [
        f"{code} {one.severity} {place(one.finding.location, report.deployment)}"
        for one in report.findings
        if one.code == code
    ]
    return tuple(found + [f"skipped {code}" for skip in report.skipped if skip.code == code])


def place(location: Location, deployment: Deployment) -> str:
    """``draft:/pointer``, ``target:/pointer``, ``target:generation_config.json:/pointer``, an option, or
    ``environment:NAME``."""
    sides = {"target": deployment.target, "draft": deployment.draft}
    for side, model in sides.items():
        if model is not None and location.file == model.config.file:
            return f"{side}:{location.pointer}"
        if model is not None and model.generation_config and location.file == model.generation_config.file:
            return f"{side}:generation_config.json:{location.pointer}"
    return location.pointer if location.pointer.startswith("--") else f"{location.file}:{location.pointer}"


def case_hardware(given: Any) -> Hardware | str:
    """A preset's name, or a mapping of Hardware's fields; left out it is not known."""
    if isinstance(given, dict):
        return Hardware(**{"name": "case", **given})
    return given or "unknown"


def write_model(folder: Path, given: Mapping[str, Any], bases: Sequence[Path]) -> Path:
    """A model folder as ``given`` describes it."""
    changes = dict(given)
    base = next((b / changes["base"] for b in bases if (b / changes["base"]).is_dir()), None)
    if base is None:
        raise ValueError(f"no base {changes['base']!r} in {', '.join(str(b) for b in bases)}")
    config = json.loads((base / "config.json").read_text("utf-8"))
    del changes["base"]
    changes.pop("folder", None)
    for key in changes.pop("absent", ()):
        config.pop(key, None)
    tensors = changes.pop("tensors", None)
    files = changes.pop("files", {})
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config | changes, indent=2))
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2))
    if tensors is not None:
        write_header(folder / "model.safetensors", tensors)
    return folder


def write_shim(folder: Path, patches: Mapping[str, Any]) -> Path:
    """A shim's folder as ``specfix fix`` writes it."""
    for name, content in shim_files({"schema": SCHEMA, "patches": dict(patches)}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_header(file: Path, tensors: Mapping[str, Any]) -> None:
    """A safetensors file that declares these tensors, each as its shape, or with its type and ``values``; the data of
    others are a hole."""
    header, data, end = {}, [], 0
    for name, given in tensors.items():
        described: dict[str, Any] = dict(given) if isinstance(given, dict) else {"dtype": "BF16", "shape": list(given)}
        values = described.pop("values", None)
        size = WIDTHS.get(described["dtype"], 2) * math.prod(described["shape"])
        if values is not None:
            data.append((end, array(INTEGERS[described["dtype"]], values).tobytes()))
        header[name] = {**described, "data_offsets": [end, end + size]}
        end += size
    encoded = json.dumps(header).encode()
    with file.open("wb") as out:
        out.write(len(encoded).to_bytes(8, "little") + encoded)
        out.truncate(8 + len(encoded) + end)
        for begin, content in data:
            out.seek(8 + len(encoded) + begin)
            out.write(content)
