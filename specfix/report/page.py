"""A rule's page: rich Markdown on a terminal, the text itself elsewhere."""

from __future__ import annotations

from specfix.report.terminal import READABLE_WIDTH, Terminal


def render(markdown: str, terminal: Terminal) -> str:
    if not terminal.color:
        return markdown
    import io

    from rich.console import Console
    from rich.markdown import Markdown

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=min(terminal.width, READABLE_WIDTH))
    console.print(Markdown(markdown, code_theme="ansi_dark"))
    return out.getvalue()
