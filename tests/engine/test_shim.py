"""The shim alone, on real engines: as released a pair fails, with the shim every draft token is accepted.

    pytest -m engine tests/engine/test_shim.py        with -k 0.26.0 one release of them

The draft is served from its own folder, and its table has 64 rows where sequences go beyond 900 tokens.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specfix.shim import SCHEMA, shim_files

from . import engines
from .chosen import releases
from .engines import BASES, Engine, engine
from .pairs import Folders, Pair, write_pair

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
LENGTHS = (20, 100, 900)
GREEDY = {"temperature": 0.0}
SAMPLED = {"temperature": 0.8, "top_k": 20, "top_p": 0.9}
MIXED = [GREEDY, SAMPLED, {"temperature": 0.3}, {"temperature": 0.9, "top_p": 0.95, "seed": 7}]
"""In one batch: a greedy request, and others with top_k, top_p, both, or neither."""
NOT_NAMED = {"VLLM_PLUGINS": "another"}

# As released: outcome and message, greedy and sampled. No word of the silent one.
ARITY = ("refused", "too many values to unpack (expected 2)")
SILENT = ("ran", "")
GARBAGE = ("died", "")  # by an index out of bounds, as a rule: what is read is uninitialised memory
RELEASED = {
    "0.20.2": (ARITY, ARITY),
    "0.21.0": (ARITY, ARITY),
    "0.22.1": (SILENT, GARBAGE),
    "0.24.0": (("refused", "unexpected keyword argument 'USE_FP64_GUMBEL'"),) * 2,
    "0.26.0": (SILENT, GARBAGE),
    "0.32.0": (SILENT, GARBAGE),
}
EXPANDS = "cpu_sampling: done in PyTorch: expand_batch_to_tokens"
SETS_AUX = "cpu_aux_setup: auxiliary layers (2, 4, 5) set on LlamaForCausalLM"
HAS_AUX = "cpu_aux_setup: did nothing: the CPU runner sets the layers itself"
STAND_INS_FIT = "cpu_stand_ins: did nothing: every stand-in takes what it is called with"
SORTS = "sorted_draft_layers: in sorted order: SpecDecodeBaseProposer._draft_attn_layer_names"
SORTED = "sorted_draft_layers: did nothing: the proposer iterates no set of layer names, or sorts it"
COUNTS = "slot_block_size: did nothing: the proposer already counts in the unit of its block table"
MANAGER = "slot_block_size: did nothing: the block table holds the cache manager's blocks"
GREEDY_KERNEL = "cpu_stand_ins: done in PyTorch: rejection_greedy_sample_kernel (takes "
RECOVERED_KERNEL = "cpu_stand_ins: done in PyTorch: sample_recovered_tokens_kernel (takes USE_FP64_GUMBEL)"
SAID = {
    "0.20.2": (EXPANDS, SETS_AUX, GREEDY_KERNEL, SORTS, COUNTS),
    "0.21.0": (EXPANDS, SETS_AUX, STAND_INS_FIT, SORTS, COUNTS),
    "0.22.1": (EXPANDS, HAS_AUX, STAND_INS_FIT, SORTS, COUNTS),
    "0.24.0": (EXPANDS, HAS_AUX, RECOVERED_KERNEL, SORTS, COUNTS),
    "0.26.0": (EXPANDS, HAS_AUX, STAND_INS_FIT, SORTS, COUNTS),
    "0.32.0": (EXPANDS, HAS_AUX, STAND_INS_FIT, SORTED, MANAGER),
}
RAISED = "draft_positions: max_position_embeddings of {} raised from 64 to 1024 (its length is 1024)"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Folders]:
    """Draft positions -> a pair."""
    root = tmp_path_factory.mktemp("pairs")
    return {n: write_pair(Pair(draft_positions=n), root / str(n), root / "weights") for n in (64, 1024)}


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory, pairs: dict[int, Folders]) -> Path:
    """The shim for the draft of 64 positions."""
    return write_shim(tmp_path_factory.mktemp("shim"), pairs[64].draft)


def write_shim(folder: Path, draft: Path) -> Path:
    """A shim with every patch."""
    positions = {"draft": str(draft), "max_position_embeddings": 1024}
    others = ("cpu_sampling", "cpu_aux_setup", "cpu_stand_ins", "sorted_draft_layers", "slot_block_size")
    patches: dict[str, Any] = {**{patch: {} for patch in others}, "draft_positions": positions}
    for name, content in shim_files({"schema": SCHEMA, "patches": patches}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def with_path(release: Engine, *first: Path, **variables: str) -> dict[str, str]:
    """The engine's environment with more in front of its path."""
    path = [*map(str, first), *filter(None, [release.env.get("PYTHONPATH")])]
    return {**release.env, "PYTHONPATH": ":".join(path), **variables}


def job(name: str, folders: Folders, *sampling: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "target": str(folders.target),
        "draft": str(folders.draft),
        "sampling": sampling,
        "lengths": LENGTHS,
        "env": {},
        "engine": {},
        **more,
    }


def run(release: Engine, env: dict[str, str], folder: Path, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What became of each job; its "log" is what the engine printed."""
    folder.mkdir(exist_ok=True)
    jobs = [{**each, "log": str(folder / f"{number}.log")} for number, each in enumerate(jobs)]
    results = release.run("run_shim.py", jobs, folder, env=env, facts=0)
    return [
        {**result, "log": Path(each["log"]).read_text(errors="replace")}
        for result, each in zip(results, jobs, strict=True)
    ]


def tell(result: dict[str, Any]) -> str:
    return f"{ {key: value for key, value in result.items() if key != 'log'} }\n{result['log'][-3000:]}"


def assert_all_accepted(result: dict[str, Any]) -> None:
    assert result["outcome"] == "ran", tell(result)
    assert list(result["lengths"]) == [str(length) for length in LENGTHS]
    for counts in result["lengths"].values():
        assert counts["accepted"] == counts["drafted"] > 0 and not counts["wrong"], tell(result)


def assert_stops_beyond_the_table(result: dict[str, Any]) -> None:
    assert result["outcome"] == "ran", tell(result)
    accepted = [counts["accepted"] for counts in result["lengths"].values()]
    assert accepted[0] == result["lengths"]["20"]["drafted"] > 0 and accepted[1:] == [0, 0], tell(result)


@pytest.mark.parametrize("version", releases(BASES, "0.20.2", "0.32.0"))
def test_a_pair_is_repaired_by_the_shim_alone(
    version: str, pairs: dict[int, Folders], shim: Path, tmp_path: Path
) -> None:
    release = engine(version)
    short, long = pairs[64], pairs[1024]
    jobs = [
        # VLLM_PLUGINS is set and does not name the shim: the engine as released
        job("greedy, released", short, GREEDY, GREEDY, env=NOT_NAMED),
        job("sampled, released", long, SAMPLED, SAMPLED, env=NOT_NAMED),
        job("greedy", short, GREEDY, GREEDY),
        job("sampled", short, *[SAMPLED] * 4),
        job("mixed", short, *MIXED, env={"VLLM_PLUGINS": "another,specfix_shim"}),
    ]
    greedy_before, sampled_before, *after = run(release, with_path(release, shim), tmp_path, jobs)
    for result, (outcome, message) in zip((greedy_before, sampled_before), RELEASED[version], strict=True):
        assert "specfix shim" not in result["log"]
        if (outcome, message) == GARBAGE and result["outcome"] == "ran":  # it can also be sampled with
            with pytest.raises(AssertionError):
                assert_all_accepted(result)
            continue
        assert result["outcome"] == outcome and message in result.get("message", ""), tell(result)
    if RELEASED[version][0] == SILENT:
        assert_stops_beyond_the_table(greedy_before)
    for result in after:
        assert_all_accepted(result)
        for line in (*SAID[version], RAISED.format(short.draft)):
            assert f"specfix shim: {line}" in result["log"], tell(result)


def test_an_installed_triton_without_a_driver(pairs: dict[int, Folders], shim: Path, tmp_path: Path) -> None:
    """An empty CUDA_VISIBLE_DEVICES makes 0.21.0 believe in Triton; from eight rows on its sampler calls a kernel."""
    release = engine("0.21.0")
    env = with_path(release, shim, CUDA_VISIBLE_DEVICES="")
    probe = "import sys; from vllm.triton_utils import HAS_TRITON; sys.exit(HAS_TRITON)"
    if not subprocess.run([release.python, "-c", probe], env=env, capture_output=True, check=False).returncode:
        pytest.skip("this environment has no Triton")
    jobs = [job(name, pairs[64], *[SAMPLED] * 4) for name in ("once", "again")]
    for result in run(release, env, tmp_path, jobs):
        assert_all_accepted(result)
        assert f"{EXPANDS}, apply_top_k_top_p" in result["log"]


def test_in_processes_that_are_spawned(pairs: dict[int, Folders], shim: Path, tmp_path: Path) -> None:
    """Engine core and worker are processes of their own, which import vLLM anew."""
    release = engine("0.21.0")
    spawn = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}
    (result,) = run(release, with_path(release, shim), tmp_path, [job("spawn", pairs[64], *MIXED, env=spawn)])
    assert_all_accepted(result)
    lines = [line for line in result["log"].splitlines() if "specfix shim: " in line]
    assert any("Worker" in line and SETS_AUX in line for line in lines), lines
    # each process says what it did itself: the positions are raised where the configs are made, and nowhere else
    assert sum(RAISED.format(pairs[64].draft) in line for line in lines) == 1, lines


@pytest.mark.parametrize("version", releases(["0.22.1", "0.32.0"], "0.32.0"))
def test_compiled_with_the_failing_runs_cache(version: str, tmp_path: Path) -> None:
    """The size of the table is built into compiled code, which must not be taken from the cache."""
    release = engine(version)
    shallow = Pair(draft_positions=64, target_layers=4, aux_ids=(1, 2, 3))  # a smaller graph to compile
    pair = write_pair(shallow, tmp_path / "pair", tmp_path / "weights")
    shim = write_shim(tmp_path / "shim", pair.draft)
    (tmp_path / "cache").mkdir()
    cache = {"VLLM_CACHE_ROOT": str(tmp_path / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    compiled = job("compiled", pair, *[GREEDY] * 2, engine={"enforce_eager": False})
    (before,) = run(release, with_path(release, **cache), tmp_path / "before", [compiled])
    assert_stops_beyond_the_table(before)
    assert any(path.is_file() for path in (tmp_path / "cache").rglob("*")), "nothing was cached"
    (after,) = run(release, with_path(release, shim, **cache), tmp_path / "after", [compiled])
    assert_all_accepted(after)


@pytest.mark.parametrize("version", ["0.21.0", "0.32.0"])
def test_kernels_agree_with_the_engines_own(version: str, shim: Path) -> None:
    release = engine(version)
    env = with_path(release, shim, VLLM_LOGGING_LEVEL="ERROR")
    ran = subprocess.run(
        [release.python, HERE / "shim_kernels.py"], env=env, capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip().endswith("done"), ran.stderr


# Release -> whose environment its Python files are imported in, whether the proposer's order and its unit are
# repaired there, and the unit that is right
CLASSES = {
    "0.12.0": ("0.21.0", True, True, 16),
    "0.17.0": ("0.21.0", True, True, 16),
    "0.26.0": ("0.21.0", True, False, 16),
    "0.31.0": ("0.32.0", False, False, 16),
    "0.32.0": ("0.32.0", False, False, 32),
}


@pytest.mark.parametrize("version", CLASSES)
def test_order_and_unit_on_the_releases_own_classes(version: str, shim: Path) -> None:
    """The patches act where the release is wrong. Where it is right the unit that they would set writes wrong slots."""
    base, orders, counts, unit = CLASSES[version]
    release = engine(version if version in BASES else base)
    sources = [] if version in BASES else [python_files(version, release)]
    env = with_path(release, shim, *sources, VLLM_LOGGING_LEVEL="ERROR", PYTHONHASHSEED="1")
    command = [release.python, HERE / "shim_classes.py"]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    before, after = told["released"]["EagleProposer"], told["repaired"]["EagleProposer"]
    assert before == {"unit": 32 if counts else unit, "right": not counts, "sorted": not orders}, told
    assert after == {"unit": unit, "right": True, "sorted": True}, told
    assert not told["other_unit_right"], "a patch that acted here would change nothing"
    # one proposer iterates the bare set to this day
    if "Gemma4Proposer" in told["released"]:
        assert not told["released"]["Gemma4Proposer"]["sorted"] and told["repaired"]["Gemma4Proposer"]["sorted"]
    said = {line.partition(":")[0]: "did nothing" not in line for line in reversed(told["lines"])}
    assert (said["sorted_draft_layers"], said["slot_block_size"]) == (orders, counts), told["lines"]


def python_files(version: str, release: Engine) -> Path:
    """A release's Python files alone, as a folder for PYTHONPATH, in the cache of engines."""
    folder = engines.cache_root() / f"python-{version}"
    with engines._lock(version):
        if not folder.exists():
            with engines._wheel(release.python, version) as wheel, zipfile.ZipFile(wheel) as archive:
                unfinished = folder.with_name(f".python-{version}-unfinished")
                archive.extractall(unfinished, [name for name in archive.namelist() if name.endswith(".py")])
            engines._mark_complete(unfinished, version)
            unfinished.rename(folder)
    return folder
