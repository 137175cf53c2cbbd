"""Draw docs/report.svg: what ``specfix check`` says of the pair in examples/.

    python docs/picture.py            writes it
    python docs/picture.py --check    ends with 1 where the picture says something else

The report is the real one. Engine and hardware are named, so that the picture is the same on every machine.
"""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from specfix import check
from specfix.report import render
from specfix.report.terminal import Terminal

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
TARGET, DRAFT = "examples/llama-3.1-8b-instruct", "examples/eagle3-llama-3.1-8b"
COMMAND = f"""\
$ specfix check {TARGET} {DRAFT} \\
    --method eagle3 --num-speculative-tokens 5 --max-model-len 8192 \\
    --engine vllm==0.26.0 --hardware h200
"""


def picture() -> str:
    """The SVG of a terminal that shows the command and its report."""
    report = check(
        TARGET,
        DRAFT,
        method="eagle3",
        num_speculative_tokens=5,
        max_model_len=8192,
        engine="vllm==0.26.0",
        hardware="h200",
    )
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(COMMAND, style="bold"))
    console.print(Text.from_ansi(render(report, "text", Terminal(WIDTH - 4, color=True))))
    svg = console.export_svg(title="specfix", unique_id="specfix")
    # rich's template fetches a font from a CDN, which a page that shows the picture may not
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")


def words(svg: str) -> list[str]:
    """What a picture says, however the release of rich at hand draws it."""
    return re.sub(r"<style>.*?</style>|<[^>]*>", " ", svg, flags=re.DOTALL).replace("&#160;", " ").split()


def main() -> int:
    os.chdir(ROOT)  # file names in the report are relative
    file = ROOT / "docs" / "report.svg"
    if sys.argv[1:] == ["--check"]:
        return int(words(file.read_text("utf-8")) != words(picture()))
    file.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
