"""What `specfix fix` writes, served: as released the pair fails, from the folder every draft token is accepted.

    pytest -m engine tests/engine/test_fix.py        with -k 0.26.0 one release of them

The draft has 64 positions where sequences go beyond 500 tokens. Real servers are started, one at a time, the way a
reader of the README starts them, and asked over HTTP; what was drafted and accepted is read from their /metrics.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .chosen import releases
from .engines import BASES, Engine, engine
from .pairs import Folders, Pair, write_pair
from .run_pairs import METRICS, successor

pytestmark = pytest.mark.engine

README = Path(__file__).parents[2] / "README.md"
LENGTHS = (20, 100, 200, 500)
GREEDY = {"temperature": 0.0}
SAMPLED = {"temperature": 0.8, "top_k": 20, "top_p": 0.9}
PROMPTS, NEW_TOKENS = 2, 24
START_S, STOP_S, ANSWER_S = 300, 20, 120
SERVING = ("--dtype", "bfloat16", "--max-model-len", "1024")
SPECULATIVE = {"method": "eagle3", "num_speculative_tokens": 3}

# What the test needs of a server, and not what is served.
OPTIONS = "SERVE_OPTIONS"
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}  # the sampler is compiled even where the models are not: 20 s a start
# The command: the interpreter need not be the only one that has it, and an overlay has none. $SERVE_OPTIONS reaches
# what the caller cannot: the launcher takes no options.
COMMAND = f"""\
#!{{python}}
import os
import sys
from vllm.entrypoints.cli.main import main
if __name__ == "__main__":
    sys.argv += os.environ["{OPTIONS}"].split()
    sys.exit(main())
"""

# As released: the start that is refused, or a server that accepts nothing and dies of the first sampled request.
ARITY = "too many values to unpack (expected 2)"
REFUSED = {"0.20.2": ARITY, "0.21.0": ARITY, "0.24.0": "unexpected keyword argument 'USE_FP64_GUMBEL'"}
GARBAGE = "is out of bounds for dimension"
MENDED = {
    "0.20.2": ["HWR002", "HWR003", "HWR005", "POS001"],
    "0.21.0": ["HWR003", "HWR005", "POS001"],
    "0.22.1": ["HWR005", "POS001"],
    "0.24.0": ["HWR002", "HWR005", "POS001"],
    "0.26.0": ["HWR005", "POS001"],
    "0.32.0": ["HWR005", "POS001"],
}
MOVES = "0.26.0"  # where launch.sh is started once more, from a place that the folder was moved to
MOVED = 'it\'s "elsewhere"'


@dataclass(frozen=True)
class Counts:
    """Of one length: draft tokens, and generated tokens that are not the target's own."""

    drafted: int
    accepted: int
    wrong: int

    def __str__(self) -> str:
        return f"{self.accepted}/{self.drafted}" + (f" ({self.wrong} wrong)" if self.wrong else "")


@dataclass(frozen=True)
class Server:
    """A server that is up."""

    port: int
    model: str
    log: Path

    def measure(self, sampling: Mapping[str, float], lengths: Sequence[int] = LENGTHS) -> dict[int, Counts]:
        """Generate at each length, and say what came of it. Raises AssertionError for an answer that is none."""
        found = {}
        for length in lengths:
            before = self.tokens()
            wrong = self.generate(sampling, length)
            after = before
            patience = time.monotonic() + 5
            while after["drafted"] == before["drafted"] and time.monotonic() < patience:  # counted after the answer
                after = self.tokens()
            found[length] = Counts(**{name: after[name] - before[name] for name in METRICS}, wrong=wrong)
        return found

    def generate(self, sampling: Mapping[str, float], length: int) -> int:
        """Send prompts of a length that share no beginning with those of others; return how many tokens are wrong."""
        start = 11 * length + (5 if sampling == GREEDY else 0)
        prompts = [[(start + 7 * prompt + i) % 500 + 3 for i in range(length)] for prompt in range(PROMPTS)]
        request = {
            **{"model": self.model, "prompt": prompts, "max_tokens": NEW_TOKENS, "ignore_eos": True},
            **{"detokenize": False, "return_token_ids": True, **sampling},
        }
        status, body = self.ask("POST", "/v1/completions", json.dumps(request))
        assert status == 200, f"{status} {body}"
        choices = sorted(json.loads(body)["choices"], key=lambda choice: int(choice["index"]))
        answers = [choice["token_ids"] for choice in choices]
        assert [len(tokens) for tokens in answers] == [NEW_TOKENS] * PROMPTS
        return sum(
            after != successor(before)
            for prompt, tokens in zip(prompts, answers, strict=True)
            for before, after in itertools.pairwise([prompt[-1], *tokens])
        )

    def tokens(self) -> dict[str, int]:
        """How many so far, by METRICS."""
        status, body = self.ask("GET", "/metrics")
        assert status == 200, f"{status} {body}"
        return {
            name: int(sum(map(float, re.findall(rf"^{metric}_total{{.*}} (\S+)$", body, re.M))))
            for name, metric in METRICS.items()
        }

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """Status and text of an answer. No proxy of the user's comes between."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


class NotServed(Exception):
    """The server ended before it was up; with all that it printed."""


@contextmanager
def served(command: Sequence[str | Path], env: Mapping[str, str], model: str, log: Path) -> Iterator[Server]:
    """Start a server by a command, wait until it is up, and end it with all its processes whatever happens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--host 127.0.0.1 --port {port} --skip-tokenizer-init"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command,
            env={**env, OPTIONS: options},
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(port, model, log)
    try:
        until = time.monotonic() + START_S
        while not is_up(server):
            if process.poll() is not None or time.monotonic() > until:
                raise NotServed(f"exit status {process.poll()}\n{log.read_text(errors='replace')}")
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_up(server: Server) -> bool:
    try:
        return server.ask("GET", "/health")[0] == 200
    except OSError:
        return False


@dataclass(frozen=True)
class Bench:
    """A pair, a release to serve it, and a folder for what comes of it."""

    release: Engine
    folders: Folders
    root: Path
    eager: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        return (*SERVING, *(["--enforce-eager"] if self.eager else []))

    @property
    def env(self) -> dict[str, str]:
        """As of a user whose `vllm` is this release. Caches are of this bench alone."""
        command = self.root / "bin" / "vllm"
        if not command.exists():
            command.parent.mkdir()
            command.write_text(COMMAND.format(python=self.release.python))
            command.chmod(0o755)
        caches = {name: str(self.root / name) for name in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")}
        env = {**self.release.env, **ENVIRONMENT, **caches, **(UNCOMPILED if self.eager else {})}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # what Python leaves in the folder must not disturb `specfix fix`
        return {**env, "PATH": f"{command.parent}{os.pathsep}{env['PATH']}"}

    def fix(self, out: Path) -> str:
        """Run `specfix fix`; return what it prints."""
        command = [
            *(sys.executable, "-m", "specfix", "fix", str(self.folders.target), str(self.folders.draft)),
            *("--method", "eagle3", "--num-speculative-tokens", "3", *self.flags),
            *("--engine", f"vllm=={self.release.version}", "--hardware", "cpu", "--out", str(out)),
        ]
        env = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
        ran = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def serve(self, command: Sequence[str | Path], **variables: str) -> Any:
        """A server, by its command."""
        log = self.root / f"{len(list(self.root.glob('*.log')))}.log"
        return served(command, {**self.env, **variables}, str(self.folders.target), log)

    def as_released(self) -> Any:
        """A server of the pair as it is, by the same options."""
        speculative = json.dumps({**SPECULATIVE, "model": str(self.folders.draft)})
        return self.serve(["vllm", "serve", self.folders.target, *self.flags, "--speculative-config", speculative])

    def by_script(self, out: Path) -> Any:
        return self.serve(["bash", out / "launch.sh"])

    def by_yaml(self, out: Path) -> Any:
        """By serve.yaml, and the environment that its comments ask for."""
        shim = f"{out}/shim"
        asked = [line for line in (out / "serve.yaml").read_text().splitlines() if line.startswith("# environment")]
        assert len(asked) == 1 and f'"{shim}" first on PYTHONPATH' in asked[0]
        path = os.pathsep.join(filter(None, [shim, self.env.get("PYTHONPATH")]))
        return self.serve(["vllm", "serve", "--config", out / "serve.yaml"], PYTHONPATH=path)

    def by_overrides(self, out: Path) -> Any:
        """By the launcher in the README, letter for letter, with nothing of the folder's but overrides.json."""
        code = re.search(r"^```python launcher\n(.*?)^```$", README.read_text("utf-8"), re.S | re.M)
        assert code
        given = self.root / "fixed" / "overrides.json"
        given.parent.mkdir()
        shutil.copyfile(out / "overrides.json", given)
        return self.serve([sys.executable, "-c", code[1]])


def assert_all_accepted(counts: Mapping[int, Counts], server: Server) -> None:
    for count in counts.values():
        assert count.accepted == count.drafted > 0 == count.wrong, server.log.read_text(errors="replace")


def told(*columns: object, counts: Mapping[int, Counts] | None = None) -> str:
    """A row of the table."""
    cells = [f"{length}: {count}" for length, count in (counts or {}).items()]
    return " | ".join(f"{column!s:<16}" for column in columns) + " | " + "  ".join(cells)


@pytest.mark.parametrize("version", releases(BASES, "0.26.0", "0.32.0"))
def test_what_is_written_is_served(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = write_pair(Pair(draft_positions=64), tmp_path / "pair", tmp_path / "weights")
    bench = Bench(engine(version), folders, tmp_path)
    out = tmp_path / "out"

    def tell(*columns: object, counts: Mapping[int, Counts] | None = None) -> None:
        with capsys.disabled():
            print("\n" + told(version, *columns, counts=counts), end="", flush=True)

    fails(bench, tell)

    bench.fix(out)
    report = json.loads((out / "report.json").read_text())
    assert sorted({found["code"] for found in report["done"]}) == MENDED[version]
    # the head was trained with the layers that are taken by default, which no config can say
    assert [(left["code"], left["severity"]) for left in report["left"]] == [("AUX001", "note")]

    ways = {"launch.sh": bench.by_script, "serve.yaml": bench.by_yaml, "overrides.json": bench.by_overrides}
    for way, start in ways.items():
        serve(start(out), way, tell)
    assert "as it was: it held all this already" in " ".join(bench.fix(out).split())
    if version == MOVES:
        serve(bench.by_script(out.rename(tmp_path / MOVED)), "launch.sh, moved", tell)


def serve(running: Any, way: str, tell: Any) -> None:
    """Every length, greedy and sampled, on one server."""
    with running as server:
        for sampling in (GREEDY, SAMPLED):
            counts = server.measure(sampling)
            tell(way, "greedy" if sampling == GREEDY else "sampled", counts=counts)
            assert_all_accepted(counts, server)


def fails(bench: Bench, tell: Any) -> None:
    """The pair as it is: no start, or nothing accepted beyond the table, and no sampled request at all."""
    message = REFUSED.get(bench.release.version)
    if message is not None:
        with pytest.raises(NotServed) as refused, bench.as_released():
            pass
        assert message in str(refused.value)
        tell("as released", "refused", message)
        return
    with bench.as_released() as server:
        counts = server.measure(GREEDY, [100])
        tell("as released", "greedy", counts=counts)
        assert counts[100].accepted == 0 < counts[100].drafted, server.log.read_text(errors="replace")
        # the sampling parameters are uninitialised memory: as a rule the engine dies of them, else it samples with them
        with pytest.raises((AssertionError, OSError)):
            assert_all_accepted(server.measure(SAMPLED, [20]), server)
    died = GARBAGE in server.log.read_text(errors="replace")
    tell("as released", "sampled", f"died: {GARBAGE}" if died else "served from garbage")


def test_compiled_with_the_failing_runs_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The size of the table is built into compiled code, and this release's key of its cache leaves the draft out: what
    was compiled for the failing draft must not be met by the repaired one.

    The key differs by itself where both models have one table size, for they share the table then, and what is compiled
    counts the tables: so the target's is another here. Few layers make a smaller graph to compile.
    """
    version = "0.22.1"
    shallow = Pair(draft_positions=64, target_positions=2048, target_layers=4, aux_ids=(1, 2, 3))
    folders = write_pair(shallow, tmp_path / "pair", tmp_path / "weights")
    bench = Bench(engine(version), folders, tmp_path, eager=False)
    out = tmp_path / "out"
    bench.fix(out)
    cache = tmp_path / "VLLM_CACHE_ROOT" / "torch_compile_cache" / "torch_aot_compile"

    with bench.as_released() as server:
        before = server.measure(GREEDY)
    assert before[20].accepted == before[20].drafted > 0
    assert all(before[length].accepted == 0 < before[length].drafted for length in LENGTHS[1:])
    graphs = set(cache.iterdir())
    with bench.by_script(out) as server:
        after = {"greedy": server.measure(GREEDY), "sampled": server.measure(SAMPLED)}
    with capsys.disabled():
        print("\n" + told(version, "as released", "compiled", counts=before))
        print(*(told(version, "launch.sh", f"{name}, warm", counts=counts) for name, counts in after.items()), sep="\n")
    for counts in after.values():
        assert_all_accepted(counts, server)
    assert set(cache.iterdir()) > graphs != set(), "the repaired draft met what was compiled for the failing one"
