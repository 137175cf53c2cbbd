"""Launch files of each form, all with the same launch in them, and what edits make of them."""

from __future__ import annotations

from pathlib import Path

from specfix.engines.find import find_engine
from specfix.launching import stated
from specfix.repair.edit.launch_file import Edit, Key, LaunchFile

SPEC = '{"method": "eagle3", "model": "/d", "num_speculative_tokens": 5}'
DRAFT = Key("speculative-config", "/model", "/o/draft")
TOKENS = Key("speculative-config", "/num_speculative_tokens", 3)
SERVE = f"""\
# how we serve
model: "/m"   # the target

max-model-len: 8192 # tokens
speculative-config: {SPEC}
# the end
enforce-eager: true
"""
SCRIPT = f"""\
#!/bin/bash
set -eu
export  HF_TOKEN=abc   # secret
VLLM_USE_V1=0 exec   vllm serve /m \\
    --max-model-len 8192 \\
    --enforce-eager \\
    --speculative-config '{SPEC}' \\
    --port 8000 > log 2>&1  # done
"""
COMPOSE_TEXT = f"""\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: >-
      --model /m
      --max-model-len 8192   --enforce-eager
      --speculative-config '{SPEC}'
    environment:
      # ours
      - HF_TOKEN=abc
      - "VLLM_USE_V1=0"
    ports: ["8000:8000"]
"""
COMPOSE_LIST = f"""\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: [ "--model", "/m", "--max-model-len", "8192", "--enforce-eager",
               "--speculative-config", '{SPEC}' ]  # all of it
    environment: {{HF_TOKEN: abc, VLLM_USE_V1: "0"}}
"""
POD = f"""\
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: llm}}
spec:
  template:
    spec:
      containers:
      - name: vllm   # the server
        image: vllm/vllm-openai:v0.26.0
        args:
        - --model
        - /m
        - --max-model-len=8192   # tokens
        - --enforce-eager
        - --speculative-config
        - '{SPEC}'

        # variables
        env:
        - name: HF_TOKEN
          valueFrom: {{secretKeyRef: {{name: hf, key: t}}}}
        - {{name: VLLM_USE_V1, value: "0"}}
        ports:
        - containerPort: 8000
...
"""
POD_SCRIPT = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: llm}}
spec:
  containers:
    - image: vllm/vllm-openai:v0.26.0
      name: vllm
      command: ["/bin/bash", "-c"]
      args:
        - |-
          set -e
          # now
          vllm serve /m \\
            --max-model-len 8192 --enforce-eager \\
            --speculative-config '{SPEC}' \\
            --port 8000
      env:
        - name: VLLM_USE_V1
          value: "0"
"""
FILES = {
    "serve.yaml": SERVE,
    "run.sh": SCRIPT,
    "text.yaml": COMPOSE_TEXT,
    "list.yaml": COMPOSE_LIST,
    "pod.yaml": POD,
    "script.yaml": POD_SCRIPT,
}


def launch_file(text: str, name: str = "run.sh", engine: str = "vllm==0.26.0") -> LaunchFile:
    return LaunchFile(Path(name), text, 0, find_engine(engine), stated)


def edited(text: str, name: str, *edits: Edit, engine: str = "vllm==0.26.0") -> str:
    return launch_file(text, name, engine).edited(edits).text


def changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came; all others stand in their order."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    first = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    return [line.strip() for line in old[first : len(old) - last]], [
        line.strip() for line in new[first : len(new) - last]
    ]
