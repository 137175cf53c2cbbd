"""Files of variables (``docker run --env-file``, ``env_file`` of a compose file)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from specfix.deployment import Location
from specfix.errors import CannotCheck
from specfix.launch.words import Word

LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)(?:\s*=(?P<value>.*))?", re.ASCII)
QUOTED = re.compile(r"""(?P<quote>["'])(?P<inside>[^\n]*)(?P=quote)\s*(?:#.*)?""")
COMMENT = re.compile(r"\s#.*")
OURS = ("VLLM_", "CUDA_")  # the others, secrets among them, are nobody's business here


def read_env_file(path: str) -> dict[str, Word] | None:
    """The variables that matter to the engine, with their places; None where the file cannot be read here."""
    from specfix.launch.yaml_file import read_text

    try:
        text = read_text(Path(path).expanduser())
    except (CannotCheck, RuntimeError):
        return None
    return dict(variables(text, path))


def variables(text: str, path: str) -> Iterator[tuple[str, Word]]:
    """Each variable; one without a value comes from the environment of whoever starts it."""
    for number, line in enumerate(text.split("\n"), 1):
        match = LINE.fullmatch(line.rstrip("\r"))
        if match is None or not match["name"].startswith(OURS):
            continue
        name, value = match["name"], (match["value"] or "").strip()
        quoted = QUOTED.fullmatch(value)
        plain = quoted["inside"] if quoted else COMMENT.sub("", value)
        unknown = f"${name}" if match["value"] is None else plain if "$" in plain else None
        yield name, Word(unknown or plain, Location(path, "", number), unknown)
