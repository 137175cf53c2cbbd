"""The plugin in all sorts of processes: found and loaded as vLLM does it, quickly, once, and told."""

from __future__ import annotations

import ast
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from .bench import HERE, IMPORTS, MODULE, SETTINGS, Bench, write_shim
from .fake_vllm import EXPECTED

PATCHES = sorted(set(SETTINGS) - {"draft_positions"})  # that one speaks when the draft is read
SOURCES = sorted((HERE.parents[2] / "specfix" / "shim" / "specfix_shim").glob("*.py"))
LOAD = """
import logging
from importlib.metadata import entry_points
logging.basicConfig(level=logging.INFO, format="%(message)s")
for point in entry_points(group="vllm.general_plugins"):
    point.load()()
"""


def told(lines: list[str]) -> list[str]:
    """The patches that did something, and no other line."""
    assert not [line for line in lines if "nothing" in line], lines
    return sorted(line.removeprefix("specfix shim: ").partition(":")[0] for line in lines)


@pytest.mark.parametrize("late", [False, True])
def test_all_at_once_and_again(bench: Bench, late: bool) -> None:
    """Every patch acts once, whether vLLM was imported before activation or after, and however often it is called."""
    bench.write(EXPECTED, *SETTINGS)
    imports = "\n".join(f"import {module}" for module in dict.fromkeys(MODULE.values()))
    script = f"{imports if late else ''}\nspecfix_shim.activate()\n{imports}\nspecfix_shim.activate()"
    assert told(bench.run(script)) == PATCHES


def test_in_threads_at_once(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    lines = bench.python(f"""
        import logging, threading
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        import specfix_shim
        together = threading.Barrier(8)
        def act():
            together.wait()
            specfix_shim.activate()
            {IMPORTS}
        threads = [threading.Thread(target=act) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    """).stderr.splitlines()
    assert told(lines) == PATCHES


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_in_processes_that_are_started(bench: Bench, method: str) -> None:
    """A child has what its parent has, or loads the plugin itself; either way each patch is there once."""
    bench.write(EXPECTED, *SETTINGS)
    (bench.folder / "server.py").write_text(
        "import multiprocessing, specfix_shim\n"
        "def serve(queue):\n"
        "    specfix_shim.activate()\n"
        f"    {IMPORTS}\n"
        "    load = vllm.v1.worker.cpu_model_runner.CPUModelRunner.load_model\n"
        "    queue.put((load._specfix_shim, hasattr(load.__wrapped__, '_specfix_shim')))\n"
        "if __name__ == '__main__':\n"
        "    specfix_shim.activate()\n"
        "    import vllm.v1.worker.cpu_model_runner\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    queue = context.Queue()\n"
        "    child = context.Process(target=serve, args=(queue,))\n"
        "    child.start()\n"
        "    assert queue.get(timeout=60) == (True, False)\n"
        "    child.join()\n"
    )
    ran = bench.python("", str(bench.folder / "server.py"))
    assert ran.returncode == 0, ran.stderr


def test_lines_wait_for_the_engine_to_set_logging_up(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    ran = bench.python("""
        import logging, specfix_shim
        specfix_shim.activate()
        from vllm.v1.worker.cpu_model_runner import CPUModelRunner
        logging.basicConfig(level=logging.INFO, format="%(message)s")
        CPUModelRunner().load_model()
    """)
    assert [line.split(": ")[2] for line in ran.stderr.splitlines()] == [
        "the target's auxiliary layers are set after loading",
        "auxiliary layers (2, 4, 5) set on Target",
    ]


def test_what_activation_imports(bench: Bench) -> None:
    """`vllm serve --help` goes through it: nothing of vLLM, torch or specfix, and little of Python."""
    bench.write(EXPECTED, *SETTINGS)
    script = "import sys, specfix_shim; specfix_shim.activate(); print(*sorted(sys.modules))"
    ran = bench.python("", "-S", "-c", script)  # without what a virtual environment adds at start
    found = ran.stdout.split()
    ours = ("core", "hooks", "log", "manifest")
    assert {name for name in found if "specfix_" in name} == {
        "specfix_shim",
        *(f"specfix_shim.{name}" for name in ours),
    }
    assert not {"specfix", "vllm", "torch", "numpy"} & set(found)
    assert not {"ast", "inspect", "asyncio", "subprocess", "importlib.metadata"} & set(found)


@pytest.mark.parametrize("options", [(), ("-OO",), ("-X", "utf8=0")])
@pytest.mark.parametrize("name", ["plain", "with blanks", "Modelle für Zürich", "日本"])
def test_vllm_finds_the_plugin(bench: Bench, name: str, options: tuple[str, ...]) -> None:
    bench.write(EXPECTED)
    shutil.rmtree(bench.shim)
    shutil.rmtree(next(bench.folder.glob("*.dist-info")))
    write_shim(bench.folder / name, SETTINGS)
    stale = bench.folder / "stale" / "specfix_shim-0.dist-info"  # of a shim that is gone
    stale.mkdir(parents=True)
    (stale / "METADATA").write_text("Name: specfix-shim\nVersion: 0\n")
    (stale / "entry_points.txt").write_text("[vllm.general_plugins]\nspecfix_shim = gone:activate\n")
    path = f"{bench.folder / name}:{bench.folder}:{bench.folder / 'stale'}"
    ran = bench.python("", *options, "-c", f"{LOAD}\n{IMPORTS}", PYTHONPATH=path, LC_ALL="C")
    assert ran.returncode == 0, ran.stderr
    assert told(ran.stderr.splitlines()) == PATCHES


def test_of_two_shims_the_first_is_loaded_and_the_other_told(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    others = [bench.folder / "same", bench.folder / "other"]
    write_shim(others[0], {"cpu_aux_setup": {}})
    write_shim(others[1], {"cpu_sampling": {}})
    path = ":".join(map(str, (bench.folder, bench.folder, *others)))
    script = "import specfix_shim\nspecfix_shim.activate()\nimport vllm.v1.worker.cpu_model_runner"
    ran = bench.python("", "-c", script, PYTHONPATH=path)
    told = f"specfix shim: the one in {others[1]} is not loaded: {bench.folder} comes first"
    assert ran.stderr.splitlines()[0] == told and "cpu_sampling" not in ran.stderr
    assert told in bench.python("", "-m", "specfix_shim", "status", PYTHONPATH=path).stdout


def test_a_place_on_the_path_where_nobody_may_look(bench: Bench) -> None:
    """Python finds nothing there, and goes on. To root all is open, but for what has too long a name."""
    bench.write(EXPECTED, "cpu_aux_setup")
    script = "import specfix_shim\nspecfix_shim.activate()"
    ran = bench.python("", "-c", script, PYTHONPATH=f"{bench.folder}:{bench.folder / ('x' * 300)}")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_modules_that_are_called_like_ours(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    for file in SOURCES:
        if file.stem not in {"__init__", "__main__"}:
            (bench.folder / file.name).write_text("raise OSError('the wrong one')")
    assert told(bench.run(IMPORTS)) == PATCHES


def test_without_a_file_of_its_own(bench: Bench) -> None:
    """In an archive there is no manifest to be read; a loader may leave __file__ out."""
    bench.write(EXPECTED, *SETTINGS)
    (bench.folder / "zip").mkdir()
    shutil.move(bench.shim, bench.folder / "zip" / "specfix_shim")
    archive = shutil.make_archive(str(bench.folder / "shim"), "zip", bench.folder / "zip")
    script = f"import specfix_shim\nspecfix_shim.activate()\n{IMPORTS}"
    ran = bench.python("", "-c", script, PYTHONPATH=f"{archive}:{bench.folder}")
    assert ran.returncode == 0 and "does nothing: manifest cannot be read: " in ran.stderr, ran.stderr
    nameless = f"""
import sys, types
from importlib.machinery import ModuleSpec
source = open({str(bench.folder / "zip" / "specfix_shim" / "manifest.py")!r}).read()
class Loader:
    def create_module(self, spec): pass
    def exec_module(self, module): exec(source, vars(module))
class Finder:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, Loader()) if name == "specfix_shim.manifest" else None
sys.meta_path.insert(0, Finder())
"""
    path = f"{bench.folder / 'zip'}:{bench.folder}"
    ran = bench.python("", "-c", nameless + script, PYTHONPATH=path)
    assert ran.returncode == 0 and "not active: NameError" in ran.stderr, ran.stderr


FINDERS = {
    "one that asks all the others": """
        class Other:
            def find_spec(self, name, path=None, target=None):
                for finder in sys.meta_path:
                    if finder is not self and (spec := finder.find_spec(name, path, target)):
                        return spec
    """,
    "one of the old kind": """
        class Other:
            def find_module(self, name, path=None):
                return None
    """,
    "one that raises": """
        class Other:
            def find_spec(self, name, path=None, target=None):
                if name == "vllm.never":
                    raise ImportError("blocked")
    """,
    "one whose loaders are shared": """
        from importlib.machinery import PathFinder
        class Loader:
            def create_module(self, spec): return None
            def exec_module(self, module):
                PathFinder.find_spec(module.__name__, path_of(module)).loader.exec_module(module)
        shared = Loader()
        def path_of(module):
            return sys.modules[module.__name__.rpartition(".")[0]].__path__
        class Other:
            def find_spec(self, name, path=None, target=None):
                spec = PathFinder.find_spec(name, path) if name.startswith("vllm.") else None
                if spec is not None:
                    spec.loader = shared
                return spec
    """,
}


@pytest.mark.parametrize(
    ("finder", "first"),
    [(finder, first) for finder in FINDERS for first in (True, False) if first or "shared" not in finder],
)
def test_beside_other_finders(bench: Bench, finder: str, first: bool) -> None:
    inner = {"inner": "", "config/__init__": "\n    import vllm.inner" + EXPECTED["config/__init__"]}
    bench.write(EXPECTED | inner, *SETTINGS)  # a module that has one of its own imported while it is
    insert = "sys.meta_path.insert(0, Other())"
    if finder == "one of the old kind" and sys.version_info < (3, 12):
        insert = f"import warnings; warnings.simplefilter('ignore'); {insert}"  # Python warns of these itself
    bench.python(f"""
        import logging, sys
        {FINDERS[finder].strip()}
        {insert if first else ""}
        import specfix_shim
        specfix_shim.activate()
        {insert if not first else ""}
        {IMPORTS}
        from specfix_shim import log
        assert sorted(line.partition(":")[0] for line in log.said) == {PATCHES}, log.said
        assert len(sys.meta_path) < 10
    """)


BEFORE_US = {
    "one that finds it": """
        from importlib.machinery import PathFinder
        class Other:
            def find_spec(self, name, path=None, target=None):
                return PathFinder.find_spec(name, path) if name.startswith("vllm.") else None
    """,
    "one that loads it": """
        import importlib.util
        from importlib.machinery import ModuleSpec, PathFinder
        class Loader:
            def create_module(self, spec): return sys.modules[spec.name]
            def exec_module(self, module): pass
        class Other:
            def find_spec(self, name, path=None, target=None):
                spec = PathFinder.find_spec(name, path) if name.startswith("vllm.") else None
                if spec is None:
                    return None
                module = sys.modules[name] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return ModuleSpec(name, Loader(), is_package=bool(spec.submodule_search_locations))
    """,
}
MISSED = [
    f"specfix shim: {patch}: did nothing: {MODULE[patch]} was imported past the shim, by what stands before it"
    for patch in SETTINGS
]


@pytest.mark.parametrize("ending", ["", "import this", "import colorsys, sched", "specfix_shim.activate()", "1 / 0"])
@pytest.mark.parametrize("finder", BEFORE_US)
def test_what_another_finder_imports_past_us_is_told_once(bench: Bench, finder: str, ending: str) -> None:
    """At the next import, and where there is none at the end; the engine goes its way."""
    bench.write(EXPECTED, *SETTINGS)
    script = f"""
import sys
{textwrap.dedent(BEFORE_US[finder])}
import specfix_shim
specfix_shim.activate()
sys.meta_path.insert(0, Other())
{IMPORTS}
print("started", hasattr(vllm.v1.worker.cpu_model_runner.CPUModelRunner.load_model, "_specfix_shim"))
{ending}
"""
    ran = bench.python("", "-c", script)
    assert (ran.returncode == 0) == (ending != "1 / 0") and "started False" in ran.stdout
    assert sorted(line for line in ran.stderr.splitlines() if "specfix" in line) == sorted(MISSED)


def test_what_was_not_imported_is_not_told(bench: Bench) -> None:
    """The modules of another platform; or one that failed and that nobody has."""
    bench.write(EXPECTED | {"v1/spec_decode/eagle": "raise ImportError('no such device')"}, *SETTINGS)
    ran = bench.python("""
        import contextlib, specfix_shim
        specfix_shim.activate()
        with contextlib.suppress(ImportError):
            import vllm.v1.spec_decode.eagle
        import colorsys
    """)
    assert ran.stderr == ""


def test_status_tells_what_is_imported_past_the_shim(bench: Bench) -> None:
    bench.write(EXPECTED, "cpu_aux_setup")
    site = f"import sys\n{textwrap.dedent(BEFORE_US['one that finds it'])}\n"
    (bench.folder / "first.py").write_text(
        f"{site}\nimport specfix_shim.hooks\nimport specfix_shim.__main__ as status\n"
        "before = status.activate\n"
        "def activate():\n    before()\n    sys.meta_path.insert(0, Other())\n"
        "status.activate = activate\nsys.exit(status.main(['status', '--import']))\n"
    )
    told = bench.python("", str(bench.folder / "first.py"))
    assert "cpu_aux_setup: did nothing: vllm.v1.worker.cpu_model_runner was imported past the shim" in told.stdout


def test_loaded_anew(bench: Bench) -> None:
    """As a test of the operator's may do; each has a finder then."""
    bench.write(EXPECTED, *SETTINGS)
    bench.python(f"""
        import sys
        for _ in range(2):
            for name in [name for name in sys.modules if name.startswith("specfix_shim")]:
                del sys.modules[name]
            import specfix_shim
            specfix_shim.activate()
        {IMPORTS}
        assert not hasattr(vllm.v1.worker.cpu_model_runner.CPUModelRunner.load_model.__wrapped__, "_specfix_shim")
    """)


def test_status(bench: Bench) -> None:
    bench.write(EXPECTED, "draft_positions", "cpu_aux_setup")
    told = bench.python("", "-m", "specfix_shim", "status")
    assert told.returncode == 0
    assert "plugin found by its entry point" in told.stdout
    assert "draft_positions: waits for vllm.config" in told.stdout
    told = bench.python("", "-m", "specfix_shim", "status", VLLM_PLUGINS="other, specfix_shim")
    assert told.returncode == 1 and "VLLM_PLUGINS does not name specfix_shim" in told.stdout
    told = bench.python("", "-m", "specfix_shim", "status", "--import")
    assert told.returncode == 0, told.stderr
    assert "cpu_aux_setup: the target's auxiliary layers are set after loading" in told.stdout
    assert "draft_positions: nothing to tell yet" in told.stdout
    assert bench.python("", "-m", "specfix_shim").returncode == 2
    (bench.shim / "manifest.json").unlink()
    told = bench.python("", "-m", "specfix_shim", "status")
    assert told.returncode == 1 and told.stdout.startswith("does nothing: manifest cannot be read")


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_the_shim_stands_alone_and_runs_on_python_3_9(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"), feature_version=(3, 9))
    assert isinstance(tree.body[1], ast.ImportFrom) and tree.body[1].module == "__future__", "annotations are text"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            assert (node.module or "").partition(".")[0] in sys.stdlib_module_names
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "zip":
            assert not node.keywords, "strict= came with 3.10"
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in {"isinstance", "issubclass"}:
            assert not isinstance(node.args[1], ast.BinOp), "X | Y came with 3.10"
