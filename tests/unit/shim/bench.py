"""A folder that holds a shim and a vLLM, and processes that have it on their path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specfix.shim import SCHEMA, shim_files

from .fake_vllm import write_vllm
from .using_vllm import DRAFT

SETTINGS: dict[str, dict[str, Any]] = {
    "cpu_sampling": {},
    "cpu_aux_setup": {},
    "cpu_stand_ins": {},
    "sorted_draft_layers": {},
    "slot_block_size": {},
    "draft_positions": {"draft": DRAFT, "max_position_embeddings": 1024},
}
MODULE = {
    **dict.fromkeys(("cpu_sampling", "cpu_aux_setup", "cpu_stand_ins"), "vllm.v1.worker.cpu_model_runner"),
    **dict.fromkeys(("sorted_draft_layers", "slot_block_size"), "vllm.v1.spec_decode.eagle"),
    "draft_positions": "vllm.config",
}
IMPORTS = "import vllm.config, vllm.v1.spec_decode.eagle, vllm.v1.worker.cpu_model_runner"
PREFIX = "vllm.plugins.specfix_shim specfix shim: "
HERE = Path(__file__).parent


def misfits(came: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """Steps that came to something else than without the shim and than with a whole one on a vLLM as expected."""
    wrong = [f"activation raised {came['activated']}"] if came["activated"] else []
    for step, outcome in came["with"].items():
        without = came.get("without", whole["without"])[step]
        repaired = outcome == whole["with"][step] and (outcome[0] == "gave" or without[0] == "raised")
        if outcome != without and not repaired:
            wrong.append(f"{step} {' '.join(outcome)}; without the shim it {' '.join(without)}")
    return wrong


def write_shim(folder: Path, patches: dict[str, Any]) -> Path:
    """Write the shim's folder; give the one within it that is imported."""
    for name, content in shim_files({"schema": SCHEMA, "patches": patches}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "specfix_shim"


@dataclass(frozen=True)
class Bench:
    """``shim`` is the folder with the code and the manifest."""

    folder: Path

    @property
    def shim(self) -> Path:
        return self.folder / "specfix_shim"

    def write(self, modules: dict[str, str], *patches: str) -> None:
        write_vllm(self.folder, modules)
        write_shim(self.folder, {patch: SETTINGS.get(patch, {}) for patch in patches})

    def run(self, script: str = "") -> list[str]:
        """Run a script after activation; give the lines that the shim logged, in order."""
        lines = self.python(f"""
            import json, logging, sys
            logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
            import specfix_shim
            specfix_shim.activate()
            {textwrap.indent(textwrap.dedent(script), " " * 12).strip()}
        """).stderr.splitlines()
        assert all(line.startswith(PREFIX) for line in lines), lines
        return [line.removeprefix(PREFIX) for line in lines]

    def python(self, script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script, or what the arguments say, with the folder on the path. A script must end well."""
        command = [sys.executable, "-W", "error", *(arguments or ("-c", textwrap.dedent(script)))]
        # a folder of its own, since the current one is on the path as well; a fixed order of sets
        env = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "1"}
        env.pop("VLLM_PLUGINS", None)
        env |= variables
        ran = subprocess.run(
            command, capture_output=True, text=True, env=env, cwd=self.folder, check=False, timeout=300
        )
        assert ran.returncode == 0 or arguments, ran.stderr
        return ran

    def odd(self, variants: list[Any]) -> dict[str, Any]:
        """What came of each variant (run_odd.py), and under "as it is" of none."""
        path = self.folder / "variants.json"
        path.write_text(json.dumps(variants))
        told: dict[str, Any] = self.told("run_odd.py", str(path), str(self.folder))
        return told

    def told(self, script: str, *arguments: str) -> Any:
        """What a script beside this file prints as JSON."""
        ran = self.python("", str(HERE / script), *arguments)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)
