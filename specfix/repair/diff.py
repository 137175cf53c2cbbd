"""What would change, as unified diffs: the configs, and the command that starts the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import unified_diff
from io import StringIO

from specfix.checker.report import Report
from specfix.repair.edit.launch_file import LaunchFile
from specfix.repair.files.folder import moved, script
from specfix.repair.launch import Launch, launch
from specfix.repair.plan import Plan
from specfix.report.secrets import hidden_in_launch, known, masked
from specfix.report.terminal import printable


def render(
    report: Report, plan: Plan, after: Launch, out: str, files: tuple[LaunchFile, LaunchFile] | None = None
) -> str:
    """Diffs from what was asked for to what would be written to ``out``; nothing where nothing would change. They go to
    logs, so secrets are masked. ``files``: the launch file that was given, and what is made of it."""
    before, result = report.deployment, plan.after.deployment
    parts = [
        lines(old.config.text, new.config.text, old.config.file, f"{out}/{name}/config.json")
        for name, (_, old, new) in moved(before, result, after).items()
    ]
    if files is not None:
        given, made = (hidden_in_launch(file.text, known(before.serving)) for file in files)
        parts.append(lines(given, made, str(files[0].path), f"{out}/{files[0].path.name}"))
        return "".join(line for part in parts for line in part)
    asked = launch(before, before, {}, report.engine)
    old, new = (
        script(
            before,
            final,
            replace(start, env=masked(start.env), engine_args=masked(start.engine_args)),
            report.engine,
        )
        for final, start in ((before, asked), (result, after))
    )
    parts.append(lines(old, new, "the command as asked for", f"{out}/launch.sh"))
    return "".join(line for part in parts for line in part)


def lines(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    """A diff of two texts, in which control characters are shown as escapes: it goes to a terminal."""
    before, after = (list(StringIO(text, newline="\n")) for text in (old, new))
    for line in unified_diff(before, after, printable(old_name), printable(new_name)):
        end = "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""
        plain = "\t".join(map(printable, line.removesuffix(end).split("\t")))
        yield plain + (end or "\n\\ No newline at end of file\n")
