"""Whatever is raised inside the shim stays there, and no patch is made by half."""

from __future__ import annotations

from typing import Any

import pytest

from .bench import IMPORTS, MODULE, SETTINGS, Bench, misfits
from .fake_vllm import EMPTY, EXPECTED, EXPECTED_ALL

PATCHES = [patch for patch in SETTINGS if patch != "draft_positions"]  # that one speaks when the draft is read


def stays_inside(told: Any, whole: dict[str, Any]) -> list[str]:
    """What is wrong with a run: a step that raises, a patch that is made by half, a line that is not true."""
    if isinstance(told, str):
        return [told]
    wrong = [line for line in misfits(told, whole) if " raised " in line]  # a half-repaired draft has a hash of its own
    for patch, changed in told["changed"].items():
        if changed and changed != whole["changed"][patch]:
            wrong.append(f"{patch} is made by half: {changed}")
        if changed and any(line.startswith(f"{patch}: did nothing") for line in told["lines"]):
            wrong.append(f"{patch} says that it did nothing, and changed {changed}")
    return wrong


@pytest.mark.parametrize("modules", [EXPECTED_ALL, EMPTY], ids=["expected", "empty"])
def test_a_fault_at_any_line(bench: Bench, modules: dict[str, str]) -> None:
    bench.write(modules, *SETTINGS)
    told = bench.told("run_faults.py", "lines", str(bench.folder))
    assert len(told["faults"]) > (250 if modules is EXPECTED_ALL else 80)
    for place, after in told["faults"]:
        assert stays_inside(after, told["whole"]) == [], place


def test_a_fault_at_any_change(bench: Bench) -> None:
    bench.write(EXPECTED_ALL, *SETTINGS)
    told = bench.told("run_faults.py", "changes", str(bench.folder))
    whole = told["whole"]
    assert set(whole["changed"]) == set(SETTINGS) and len(told["faults"]) > len(SETTINGS)
    for place, after in told["faults"]:
        assert stays_inside(after, whole) == [], place
        (line,) = (line for line in after["lines"] if line.endswith(": did nothing: Fault") or "left as it was" in line)
        patch = line.partition(":")[0]
        assert after["changed"][patch] == [] or "left as it was" in line, "all of it or nothing"
        assert {each: names for each, names in after["changed"].items() if each != patch} == {
            each: names for each, names in whole["changed"].items() if each != patch
        }, "the others are made all the same"


@pytest.mark.parametrize("patch", SETTINGS)
@pytest.mark.parametrize("error", ["ZeroDivisionError", "MemoryError", "RecursionError", "GeneratorExit", "Inert"])
def test_an_error_in_a_patch_is_a_line(bench: Bench, patch: str, error: str) -> None:
    bench.write(EXPECTED, patch)
    (line,) = bench.run(f"""
        import specfix_shim.{patch} as patch
        from specfix_shim.log import Inert
        def plan(module, settings):
            raise {error}("told")
        patch.plan = plan
        import {MODULE[patch]}
    """)
    assert line == f"{patch}: did nothing: " + ("told" if error == "Inert" else f"{error}: told")


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_a_signal_still_ends_the_process(bench: Bench, error: str) -> None:
    """An engine's own handlers raise these, and the shim happens to be what was interrupted."""
    bench.write(EXPECTED, "draft_positions")
    assert (
        bench.run(f"""
            import specfix_shim.changes as changes
            def setattr_(owner, name, value, calls=[]):
                calls.append(name)
                if len(calls) == 2:
                    raise {error}
                setattr(owner, name, value)
            changes.setattr = setattr_
            try:
                import vllm.config
            except {error}:
                import gc
                (model,) = [each for each in gc.get_objects() if getattr(each, "__name__", "") == "ModelConfig"]
                assert "specfix" not in model.__post_init__.__code__.co_filename, "undone"
            else:
                raise AssertionError
        """)
        == []
    )


def test_an_error_of_vllms_own_stays_its_own(bench: Bench) -> None:
    bench.write(EXPECTED | {"config/__init__": "raise OSError('own')"}, "draft_positions")
    assert (
        bench.run("""
            try:
                import vllm.config
            except OSError as error:
                assert str(error) == "own"
            else:
                raise AssertionError
        """)
        == []
    )


@pytest.mark.parametrize("handler", ["raise ValueError('closed')", "raise Wild"])
def test_logging_that_raises(bench: Bench, handler: str) -> None:
    bench.write(EXPECTED, *SETTINGS)
    bench.python(f"""
        import logging
        class Wild(BaseException):
            pass
        class Handler(logging.Handler):
            def handle(self, record):
                {handler}
        logging.getLogger().addHandler(Handler())
        logging.getLogger().setLevel(logging.INFO)
        import specfix_shim
        specfix_shim.activate()
        {IMPORTS}
        from specfix_shim import log
        assert len(log.said) == {len(PATCHES)}, log.said
    """)


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("spoil", ["sys.stderr.close()", "sys.stderr = None", "import os; os.close(2)"])
def test_no_standard_error(bench: Bench, spoil: str, buffered: str) -> None:
    """Without its manifest the shim warns, and logging that nobody set up writes warnings there."""
    bench.write(EXPECTED, *SETTINGS)
    (bench.shim / "manifest.json").unlink()
    bench.python(
        f"""
        import sys
        {spoil}
        import specfix_shim
        specfix_shim.activate()
        {IMPORTS}
    """,
        PYTHONUNBUFFERED=buffered,
    )


def test_a_shim_that_is_not_whole(bench: Bench) -> None:
    bench.write(EXPECTED, *SETTINGS)
    (bench.shim / "core.py").write_text("raise OSError('gone')")
    assert bench.run("import vllm.config") == ["not active: OSError('gone')"]
    (bench.shim / "core.py").write_text("class Word(BaseException): __repr__ = None\nraise Word")
    bench.python("import sys; sys.stderr.close(); import specfix_shim; specfix_shim.activate()")
