"""specfix.testing: what is no whole example is refused, and not left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfix.testing import cases

CASE = "```yaml case\nengine: vllm 0.26.0\n```\n"
FINDINGS = "```text findings\nPOS001 error draft:/x\n```\n"


def test_whole_examples(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# X\n\n{CASE}{FINDINGS}\nprose\n\n{CASE}\n{FINDINGS}\n```yaml\na: b\n```\n")
    assert [(case.line, case.expected) for case in cases(page)] == [
        (3, ("POS001 error draft:/x",)),
        (12, ("POS001 error draft:/x",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"{CASE}{FINDINGS}\n{CASE}",  # the last one has no findings
        f"{CASE}\n{CASE}{FINDINGS}",
        f"{CASE}prose\n{FINDINGS}",
        f"{CASE}{FINDINGS}\n{FINDINGS}",
        f"{CASE}```text  findings\n```\n",
        f"{CASE}{FINDINGS}\n ```yaml case\n```\n",
        f"{CASE}{FINDINGS}\n```yaml case \n```\n{FINDINGS}",
        CASE,
        FINDINGS,
        CASE[:-4] + FINDINGS,  # not closed
    ],
)
def test_half_an_example_is_refused(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# X\n\n{text}")
    with pytest.raises(ValueError, match="has no partner"):
        cases(page)
