"""Environment variables, read of small tables."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.serving import Variable, VariableFacts
from specfix.engines.readers.variables import read_variables
from specfix.engines.source.tree import SourceTree

ENVS = """
    import json
    import os
    import tempfile

    def with_choices(name, default, choices):
        def read():
            value = os.getenv(name)
            if value is None:
                return default
            if value not in choices:
                raise ValueError(name)
            return value
        return read

    def port():
        if "PORT" not in os.environ:
            return None
        return int(os.environ["PORT"])

    def home():
        return os.getenv("XDG_CACHE_HOME", os.path.join(os.path.expanduser("~"), ".cache"))

    environment_variables = {
        "BITS": lambda: bool(int(os.getenv("BITS", "1"))),
        "WORD": lambda: os.environ.get("WORD", "False").lower() in ("true", "1"),
        "THREE": lambda: {"1": True, "0": False}.get(os.getenv("THREE", "")),
        "COUNT": lambda: int(os.getenv("COUNT", str(2 * 1024))),
        "SHARE": lambda: float(os.getenv("SHARE", ".5")),
        "NAME": lambda: os.getenv("NAME"),
        "PORT": port,
        "CACHE": lambda: os.path.expanduser(os.getenv("CACHE", os.path.join(home(), "vllm"))),
        "PLUGINS": lambda: None if "PLUGINS" not in os.environ else os.environ["PLUGINS"].split(","),
        "CONFIG": lambda: json.loads(os.environ["CONFIG"]) if "CONFIG" in os.environ else None,
        "METHOD": with_choices("METHOD", "fork", ["spawn", "fork"]),
        "SOCKETS": lambda: os.getenv("SOCKETS", tempfile.gettempdir()),
        "OTHER": lambda: "proxy" in os.getenv("NAME", ""),
    }
    """


def variables(tmp_path: Path, text: str) -> tuple[VariableFacts, dict[str, str]]:
    (tmp_path / "envs.py").write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_variables(SourceTree(tmp_path), unknown), unknown


def test_defaults_and_what_a_text_is_read_as(tmp_path: Path) -> None:
    facts, unknown = variables(tmp_path, ENVS)
    assert facts.variables == {
        "BITS": Variable("bool", True, on=("1",), off=("0",)),
        "WORD": Variable("bool", False, on=("1", "true"), off=("0", "false")),
        "THREE": Variable("bool", None, on=("1",), off=("0",)),
        "COUNT": Variable("int", 2048),
        "SHARE": Variable("float", 0.5),
        "NAME": Variable("str", None),
        "PORT": Variable("int", None),
        "CACHE": Variable("path", "~/.cache/vllm"),
        "PLUGINS": Variable("list", None),
        "CONFIG": Variable("json", None),
        "METHOD": Variable("str", "fork", choices=("spawn", "fork")),
        "SOCKETS": Variable("str", None),
        "OTHER": Variable(None, False),
    }
    assert unknown == {
        "variables.variables.SOCKETS.default": "tempfile.gettempdir() is not in this source",
        "variables.variables.OTHER.kind": "its text changes nothing",
    }


def test_variables_of_whoever_runs_this_count_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNT", "5")
    facts, _ = variables(tmp_path, ENVS)
    assert facts.variables is not None
    assert facts.variables["COUNT"].default == 2048


def test_a_table_that_is_added_to_or_absent_is_unknown(tmp_path: Path) -> None:
    facts, unknown = variables(tmp_path, ENVS + '\n    environment_variables["MORE"] = lambda: 1\n')
    assert facts.variables is None
    assert "is changed" in unknown["variables.variables"]
    facts, unknown = variables(tmp_path, "x = 1")
    assert facts.variables is None
    assert set(unknown) == {"variables.variables"}
