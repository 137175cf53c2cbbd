"""The runtime shim: a vLLM general plugin that is written out beside the repaired configs and runs inside the engine.

What is copied is ``specfix_shim/`` beside this file, as it stands: it imports nothing of specfix. The folder that
``shim_files`` describes works from PYTHONPATH (the metadata in it is what vLLM finds plugins by) and with pip.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

SCHEMA = "specfix/shim-v1"
PLUGIN = "specfix_shim"
"""The name that a VLLM_PLUGINS that is set must hold."""

_SOURCE = Path(__file__).with_name(PLUGIN)
_ENTRY_POINT = f'[project.entry-points."vllm.general_plugins"]\n{PLUGIN} = "{PLUGIN}:activate"\n'
_METADATA = (
    "Metadata-Version: 2.1\nName: specfix-shim\nVersion: 1\nSummary: Repairs of a vLLM speculative-decoding pair\n"
)
_PYPROJECT = f"""\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "specfix-shim"
version = "1"
description = "Repairs of a vLLM speculative-decoding pair"
requires-python = ">=3.9"

{_ENTRY_POINT}
[tool.setuptools]
packages = ["{PLUGIN}"]

[tool.setuptools.package-data]
{PLUGIN} = ["manifest.*"]
"""


def shim_files(manifest: dict[str, Any]) -> dict[str, bytes]:
    """Path within the shim's folder -> content, for a manifest such as

    {"schema": "specfix/shim-v1",
     "patches": {"cpu_sampling": {}, "cpu_aux_setup": {}, "cpu_stand_ins": {}, "sorted_draft_layers": {},
                 "slot_block_size": {},
                 "draft_positions": {"draft": "path or id as served", "max_position_embeddings": N}}}

    The digests beside the manifest, of it and of the code, tie the two together: the shim does nothing with a manifest
    that is not its own.
    """
    if manifest.get("schema") != SCHEMA or not isinstance(manifest.get("patches"), dict):
        raise ValueError(f"not a manifest of schema {SCHEMA}")
    files = {path.name: path.read_bytes() for path in sorted(_SOURCE.glob("*.py"))}
    files["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    digests = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
    files["manifest.sha256"] = "".join(digests).encode()
    return {f"{PLUGIN}/{name}": content for name, content in files.items()} | {
        "specfix_shim-1.dist-info/METADATA": _METADATA.encode(),
        "specfix_shim-1.dist-info/entry_points.txt": (
            f"[vllm.general_plugins]\n{PLUGIN} = {PLUGIN}:activate\n".encode()
        ),
        "pyproject.toml": _PYPROJECT.encode(),
    }
