"""When Triton counts as there, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.hardware import TritonFacts
from specfix.engines.readers.triton import read_triton
from specfix.engines.source.tree import SourceTree

DRIVERS = """
    HAS_TRITON = find_spec("triton") is not None
    if HAS_TRITON:
        active = [b for b in backends.values() if b.driver.is_active()]
        shown = os.environ.get("CUDA_VISIBLE_DEVICES")
        hidden = shown is not None and len(shown.strip()) == 0
        {rule}
    """
LENIENT = """if hidden and len(active) == 0:
            log("expected")
        elif not hidden and len(active) != 1:
            HAS_TRITON = False"""
STRICT = """if hidden and len(active) == 0:
            HAS_TRITON = False"""
NONE = """if len(active) != 1:
            HAS_TRITON = False"""
CPU_RULE = """
        if "cpu" in version("vllm"):
            if "cpu" in backends:
                HAS_TRITON = True
            else:
                HAS_TRITON = False"""


def read(tmp_path: Path, rule: str, sampler: str = "return plain(logits)") -> TritonFacts:
    lines = "\n".join("    " + line for line in sampler.splitlines())
    files = {
        "triton_utils/importing.py": dedent(DRIVERS.format(rule=rule)),
        "v1/sample/ops/topk_topp_sampler.py": f"def apply_top_k_top_p(logits, k, p):\n{lines}\n",
    }
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_triton(SourceTree(tmp_path / "vllm"), {})


@pytest.mark.parametrize(
    ("rule", "forgives", "cpu_backend"),
    [
        (LENIENT, True, False),
        (STRICT, False, False),
        (NONE, False, False),
        (LENIENT + CPU_RULE, False, True),
        (CPU_RULE.lstrip() + "\n        " + LENIENT, False, True),
    ],
)
def test_importing(tmp_path: Path, rule: str, forgives: bool, cpu_backend: bool) -> None:
    read_facts = read(tmp_path, rule)
    assert (read_facts.empty_devices_forgives, read_facts.cpu_backend) == (forgives, cpu_backend)


KERNEL = "    return by_triton(logits)\nreturn plain(logits)"


@pytest.mark.parametrize(
    ("sampler", "rows", "checks"),
    [
        ("return plain(logits)", None, False),
        (f"if HAS_TRITON and logits.shape[0] >= 8:\n{KERNEL}", 8, False),
        (f"if HAS_TRITON and logits.shape[0] > 8:\n{KERNEL}", 9, False),
        (
            "if current_platform.is_cpu():\n    return plain(logits)\n"
            f"if HAS_TRITON and logits.shape[0] >= 8:\n{KERNEL}",
            None,
            True,
        ),
        (
            "if current_platform.is_cpu():\n    if HAS_TRITON:\n        return by_triton(logits)\n"
            "    return plain(logits)\nreturn by_triton(logits)",
            1,
            True,
        ),
        (f"if HAS_TRITON and not current_platform.is_cpu():\n{KERNEL}", None, True),
        (
            "if HAS_TRITON:\n    return by_triton(logits)\nreturn plain(logits, wait=current_platform.is_cpu())",
            1,
            False,
        ),
    ],
)
def test_sampler(tmp_path: Path, sampler: str, rows: int | None, checks: bool) -> None:
    read_facts = read(tmp_path, LENIENT, sampler)
    assert (read_facts.sampler_min_rows, read_facts.sampler_checks_platform) == (rows, checks)


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    assert read_triton(SourceTree(tmp_path), unknown) == TritonFacts(None, None, None, None)
    assert unknown.keys() == {
        "triton.empty_devices_forgives",
        "triton.cpu_backend",
        "triton.sampler_min_rows",
        "triton.sampler_checks_platform",
    }
