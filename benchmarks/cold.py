"""How long a cold `specfix` takes, beside an empty Typer command with the options of `specfix check`.

    python benchmarks/cold.py [ROUNDS]

Commands are run one after the other, round after round, each in a process of its own, so that whatever else the machine
does meets all alike. Prints the median CPU and wall time of each, their ratios, and the most memory; then where a check
spends its time beside its command line: each step is a process that does one thing more than the one before.
"""

from __future__ import annotations

import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from specfix.cli import options
from specfix.cli.check import check

ROOT = Path(__file__).parents[1]
PAIR = [str(ROOT / "examples" / name) for name in ("llama-3.1-8b-instruct", "eagle3-llama-3.1-8b")]
HOW = [
    "--method=eagle3",
    "--num-speculative-tokens=5",
    "--max-model-len=8192",
    "--engine=vllm==0.26.0",
    "--hardware=h200",
]
SPECFIX = Path(sys.executable).with_name("specfix")
# ratio -> of which command to which
RATIOS = {
    "check": "empty",
    "explain": "empty",
    "--version": "pass",
}

# what a check does beside its command line, in order
STEPS = {
    "Python, Typer": "import gc, typer, pydantic, importlib.metadata; gc.set_threshold(100_000)",
    "import specfix": "import specfix.checking",
    "import rules": "from specfix.checker.registry import load_rules; load_rules()",
    "read models": "from specfix.checking import gather\n"
    f"case = gather({PAIR[0]!r}, {PAIR[1]!r}, method='eagle3', num_speculative_tokens=5, max_model_len=8192, "
    "engine='vllm==0.26.0', hardware='h200')",
    "all rules": "report = case.check(case.deployment)",
    "text": "from specfix.report.text import render; import gc; gc.freeze()",
}


def empty_command() -> str:
    """The source of a Typer application whose one command has the options of `check` and does nothing."""
    source = Path(inspect.getfile(options)).read_text(encoding="utf-8")
    source = source.replace("from specfix.errors import CannotCheck\n", "CannotCheck = ValueError\n")
    lines = ["", "def check(context: typer.Context,"]
    for name, parameter in list(inspect.signature(check).parameters.items())[1:]:
        value = parameter.default
        shown = f"{type(value).__name__}.{value.name}" if hasattr(value, "name") else repr(value)
        lines.append(f"    {name}: {str(parameter.annotation).removeprefix('options.')} = {shown},")
    lines += [") -> None:", "    '''Nothing.'''", "", "app = typer.Typer(pretty_exceptions_enable=False)"]
    lines += ["app.command()(check)", "app()", ""]
    return source + "\n".join(lines)


def measure(command: list[str], folder: str) -> tuple[float, float, float]:
    """Seconds of CPU, seconds by the clock, and the most memory in MB of one run in ``folder``, where no settings are
    read."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}  # compiled code is kept
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), command
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty_command.py"
        script.write_text(empty_command(), encoding="utf-8")
        (Path(folder) / "run.py").write_text("import empty_command\n", encoding="utf-8")  # so that it is compiled once
        commands = {
            "pass": [sys.executable, "-c", "pass"],
            "--version": [str(SPECFIX), "--version"],
            "empty": [sys.executable, str(script.with_name("run.py")), *PAIR, *HOW],
            "explain": [str(SPECFIX), "explain", "POS001"],
            "check": [str(SPECFIX), "check", *PAIR, *HOW],
        }
        code = ""
        for name, step in STEPS.items():
            code += f"{step}\n"
            commands[name] = [sys.executable, "-c", code + "gc.freeze()\n"]
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, command in commands.items():
                taken = measure(command, folder)
                if number:  # the first fills caches
                    runs[name].append(taken)
    cpu = {name: statistics.median(run[0] for run in taken) for name, taken in runs.items()}
    wall = {name: statistics.median(run[1] for run in taken) for name, taken in runs.items()}
    print(f"{'':<12}{'CPU ms':>9}{'wall ms':>9}{'MB':>7}")
    for name, each in runs.items():
        if name not in STEPS:
            print(f"{name:<12}{cpu[name] * 1e3:>9.0f}{wall[name] * 1e3:>9.0f}{max(run[2] for run in each):>7.0f}")
    for name, other in RATIOS.items():
        print(f"{name} / {other}: {cpu[name] / cpu[other]:.2f} (CPU), {wall[name] / wall[other]:.2f} (wall)")
    before = 0.0
    for name in STEPS:
        print(f"{name:<15}{(cpu[name] - before) * 1e3:>6.0f} ms (CPU)")
        before = cpu[name]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
