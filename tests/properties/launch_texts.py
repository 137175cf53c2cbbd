"""Launch files in the ways in which people write them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from .drawing import Choose, one

FORMS = ("serve.yaml", "run.sh", "compose.yaml", "pod.yaml")
IMAGE = "vllm/vllm-openai:latest"
COMMENTS = ("", "", "# ours", "# not --seed 1, as before")


def launch_text(
    choose: Choose, form: str, target: str, flags: Mapping[str, Any], spec: Mapping[str, Any], env: Mapping[str, str]
) -> str:
    """A file that serves ``target`` with these flags (by name with dashes), speculative config and variables."""
    if form == "serve.yaml":
        return serve_yaml(choose, target, flags, spec)
    words = [*(["--model"] if form != "run.sh" and choose(2) else []), target]
    groups = [words] + [flag_words(name, value) for name, value in flags.items()]
    groups.insert(1 + choose(len(groups)), ["--speculative-config", spelt_json(choose, spec)])
    if form == "run.sh":
        return script(choose, groups, env)
    return (compose if form == "compose.yaml" else pod)(choose, groups, env)


def spelt_json(choose: Choose, value: Any) -> str:
    return json.dumps(value, separators=one(choose, ((", ", ": "), (",", ":"))), ensure_ascii=bool(choose(2)))


def flag_words(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", *([str(each) for each in value] if isinstance(value, list) else [text_of(value)])]


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def serve_yaml(choose: Choose, target: str, flags: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    text = spelt_json(choose, spec)
    nested = "".join(f"\n  {key}: {json.dumps(value)}" for key, value in spec.items())
    blocks = (f" {text}", f" {yaml_quoted(text)}", nested, f" >-\n  {text}", f" |\n  {text}")
    lines = [f"model: {json.dumps(target)}", f"speculative-config:{one(choose, blocks)}"]
    for name, value in flags.items():
        written = json.dumps(text_of(value)) if isinstance(value, dict) else json.dumps(value)
        lines.insert(choose(len(lines) + 1), f"{name}: {written}")
    return "".join(f"{line}\n{end_of(choose)}" for line in lines)


def end_of(choose: Choose) -> str:
    """What may stand between two lines: nothing, a comment, an empty line."""
    comment = one(choose, COMMENTS)
    return f"{comment}\n" * bool(comment or not choose(5))


def yaml_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def shell_quoted(choose: Choose, word: str) -> str:
    if choose(3) or "\\" in word or "$" in word or "`" in word:
        return shlex.quote(word)
    return '"' + word.replace('"', '\\"') + '"'


def command_text(choose: Choose, groups: list[list[str]], margin: str = "") -> str:
    """The command on one line, or on several with backslashes."""
    between = one(choose, (f" \\\n{margin}  ", " ", "  "))
    return between.join(" ".join(shell_quoted(choose, word) for word in group) for group in groups)


def script(choose: Choose, groups: list[list[str]], env: Mapping[str, str]) -> str:
    lines = ["#!/bin/bash", one(choose, ("set -eu", "", "# starts it", 'echo "now: $(date)"'))]
    before = ""
    for name, value in env.items():
        if choose(2):
            lines.append(f"export {name}={shlex.quote(value)}{one(choose, ('', '  # set'))}")
        else:
            before += f"{name}={shlex.quote(value)} "
    start = one(choose, ("", "exec ", "nohup "))
    end = one(choose, ("", " | tee log", " > log 2>&1", "  # done"))
    lines.append(
        f"{before}{start if not before or start != 'exec ' else ''}vllm serve {command_text(choose, groups)}{end}"
    )
    return "\n".join(lines) + "\n" * choose(3)


def compose(choose: Choose, groups: list[list[str]], env: Mapping[str, str]) -> str:
    words = [word.replace("$", "$$") for group in groups for word in group]
    ways = (
        "[" + ", ".join(map(json.dumps, words)) + "]",
        "\n" + "\n".join(f"      - {yaml_quoted(word)}" for word in words),
        ">-\n      " + " ".join(map(shlex.quote, words)),
        "|\n      " + command_text(choose, groups, "      ").replace("$", "$$"),
    )
    pairs = {name: value.replace("$", "$$") for name, value in env.items()}
    inside = (
        "".join(f"\n      {name}: {json.dumps(value)}" for name, value in pairs.items()),
        "".join(f"\n      - {json.dumps(f'{name}={value}')}" for name, value in pairs.items()),
        " {" + ", ".join(f"{name}: {json.dumps(value)}" for name, value in pairs.items()) + "}",
    )
    sections = [f"    image: {IMAGE}", f"    command: {one(choose, ways)}", "    ports: ['8000:8000']"]
    if pairs:
        sections.insert(choose(3), f"    environment:{one(choose, inside)}")
    return "services:\n  llm:\n" + "\n".join(sections) + "\n" + end_of(choose)


def pod(choose: Choose, groups: list[list[str]], env: Mapping[str, str]) -> str:
    words = [word.replace("$", "$$") for group in groups for word in group]
    listed = "\n".join(f"    - {yaml_quoted(word)}" for word in words)
    script = command_text(choose, groups, "      ").replace("$(", "$$(")
    ways = (
        f"    args:\n{listed}",
        f'    command: ["sh", "-c"]\n    args:\n    - |\n      # now\n      vllm serve {script}',
    )
    lines = ["apiVersion: v1", "kind: Pod", "metadata: {name: llm}", "spec:", "  containers:", "  - name: vllm"]
    lines += [f"    image: {IMAGE}", one(choose, ways)]
    if env:
        lines.append("    env:")
        lines += [f"    - {{name: {name}, value: {json.dumps(value)}}}" for name, value in env.items()]
    return "\n".join([*lines, "    ports: []", ""]) + end_of(choose)
