"""A vLLM that lacks a name that a patch looks for, or has it in another shape, does what it would without the shim."""

from __future__ import annotations

import textwrap

import pytest

from specfix.shim.specfix_shim.core import WAITS_FOR

from .bench import MODULE, SETTINGS, Bench, misfits
from .fake_vllm import EXPECTED, EXPECTED_ALL
from .odd_vllm import HOSTILE, variants

# of a function of vLLM that a patch calls for another
ITS_OWN = "raised RuntimeError: its own; without the shim it raised"


def test_every_patch_acts_on_what_is_expected(bench: Bench) -> None:
    """So that whatever a patch needs is there to be made odd."""
    assert set(SETTINGS) == set(WAITS_FOR)
    bench.write(EXPECTED_ALL, *SETTINGS)
    whole = bench.odd([])["as it is"]
    assert all(whole["changed"].get(patch) for patch in SETTINGS), whole


@pytest.mark.parametrize("module", EXPECTED)
def test_an_odd_vllm(bench: Bench, module: str) -> None:
    bench.write(EXPECTED_ALL, *SETTINGS)
    (bench.folder / "hostile.py").write_text(textwrap.dedent(HOSTILE))
    odd = list(variants(module, EXPECTED_ALL[module]))
    told = bench.odd(odd)
    whole = told.pop("as it is")
    assert len(told) == len(odd) > 3
    for what, came in told.items():
        assert not isinstance(came, str), f"{what}: {came}"
        assert [line for line in misfits(came, whole) if ITS_OWN not in line] == [], what
        for patch in SETTINGS:
            inert = any(line.startswith(f"{patch}: did nothing") for line in came["lines"])
            changed = came["changed"].get(patch)
            assert not (inert and changed), f"{what}: {patch} says that it did nothing, and changed {changed}"
            if not changed and came["with"][f"get('{MODULE[patch]}')"][0] == "gave":
                not_followed = any(
                    line.startswith(f"an import is not followed: {MODULE[patch]} ") for line in came["lines"]
                )
                assert inert or not_followed, f"{what}: {patch} did nothing, and said nothing: {came}"
