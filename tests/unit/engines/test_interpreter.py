"""The interpreter of an engine's source."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from specfix.engines.source.interpreter.run import Interpreter
from specfix.engines.source.interpreter.standins import UndecidedError, Unknown
from specfix.engines.source.tree import SourceTree


def value(tmp_path: Path, name: str, **files: str) -> Any:
    """``vllm.main.NAME``, called where it is a function; UndecidedError where it is unknown."""
    for file, text in files.items():
        (tmp_path / f"{file}.py").write_text(dedent(text))
    found = Interpreter(SourceTree(tmp_path)).name("vllm.main", name)
    found = found() if callable(found) and not isinstance(found, type | Unknown) else found
    if isinstance(found, Unknown):
        raise UndecidedError(found.reason)
    return found


@pytest.mark.parametrize(
    "body",
    [
        "a, *b = range(4)\nreturn [a, b] == [0, [1, 2, 3]]",
        "d = {'a': 1}\nd['b'] = 2\nd |= {**d, 'c': 3}\ndel d['a']\nreturn d == {'b': 2, 'c': 3}",
        "def f(x, *rest, y=2, **more): return (x, rest, y, more)\nreturn f(1, 5, z=3) == (1, (5,), 2, {'z': 3})",
        "return [x * y for x in range(3) if x for y in (1, 2)] == [1, 2, 2, 4]",
        "try:\n    int('x')\nexcept ValueError as e:\n    return str(e) != ''",
        "n = 0\nfor i in range(9):\n    if i > 4: break\n    if i % 2: continue\n    n += i\nelse: n = 0\nreturn n > 5",
        "return f'{1 + 1}-{\"x\"!r}' == \"2-'x'\"",
        "return next((x for x in (1, 2) if x > 5), None) is None",
        "return (y := 3) < 4 < 5 and y == 3 and (lambda: y)() == 3",
        "while True:\n    return not []",
    ],
)
def test_it_does_as_python_does(tmp_path: Path, body: str) -> None:
    source = "def check():\n" + "".join(f"    {line}\n" for line in body.splitlines())
    names: dict[str, Any] = {}
    exec(source, names)
    assert names["check"]() is True
    assert value(tmp_path, "check", main=source) is True


def test_classes_enums_and_hints(tmp_path: Path) -> None:
    main = """
    from enum import Enum
    from typing import Literal, Optional, get_args
    from dataclasses import dataclass, field, fields
    import torch
    from .base import Base

    class Kind(str, Enum):
        A = "a"
        B = "b"

    @dataclass
    class Config(Base):
        shared = 3
        size: "int | None" = Base.size
        kind: Optional[Kind] = Kind.B
        dtype: torch.dtype | str = "x"
        names: list[str] = field(default_factory=lambda: ["n"])

    def told():
        found = [(f.name, f.default) for f in fields(Config) if f.name != "names"]
        hints = {f.name: get_args(f.type) for f in fields(Config)}
        return found, hints["size"] == (int, type(None)), hints["dtype"][0] is torch.dtype, [k.value for k in Kind]
    """
    base = """
    from dataclasses import dataclass
    @dataclass
    class Base:
        size: int = 7
        def method(self): pass
    """
    found, by_text, foreign, members = value(tmp_path, "told", main=main, base=base)
    assert [name for name, _ in found] == ["size", "kind", "dtype"]
    assert found[0][1] == 7 and found[1][1].value == "b"
    assert (by_text, foreign, members) == (True, True, ["a", "b"])


@pytest.mark.parametrize(
    "expression",
    [
        "torch.version.cuda == 'x'",
        "1 if torch.cuda.is_available() else 2",
        "torch.x is None",
        "not torch.x",
        "torch.x or 1",
        "torch.x + 1",
        "str(torch.x)",
        "f'{torch.x}'",
        "current_platform.is_cuda()",
        "registry",
        "later",
        "f'{current_platform.name}'",
        "[x for x in current_platform.names]",
        "{'a': 1}[current_platform.name]",
        "missing",
        "open('x')",
    ],
)
def test_what_the_source_does_not_tell_is_unknown(tmp_path: Path, expression: str) -> None:
    main = f"""
    import torch
    from vllm.platforms import current_platform
    registry = {{}}
    later = [1]
    later.append(2)
    def made():
        return {expression}
    """
    with pytest.raises(UndecidedError):
        value(tmp_path, "made", main=main)


def test_a_branch_that_is_undecided_is_not_taken(tmp_path: Path) -> None:
    main = """
    import torch
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        decided = 1
    else:
        decided = 2
    if torch.version.hip:
        undecided = 1
    else:
        undecided = 2
    """
    assert value(tmp_path, "decided", main=main) == 2
    with pytest.raises(UndecidedError):
        value(tmp_path, "undecided", main=main)


REFUSED = (UndecidedError, AttributeError, TypeError, ValueError)


@pytest.mark.parametrize(
    "expression",
    [
        "json.loads.__globals__",
        "().__class__.__mro__",
        "Own.__getattribute__(json.loads, '__globals__')",
        "getattr(json.loads, '__glo' + 'bals__')",
        "Own.__subclasses__()",
        "argparse.FileType('w')('x')",
        "argparse._os.system('x')",
        "(lambda: 0).scope",
        "'{0.__class__}'.format(1)",
        "__import__('os')",
        "eval('1')",
        "type('X', (), {})",
        "[0] * 10 ** 9",
        "'x' * (1 << 19) * (1 << 19)",
        "10 ** 10 ** 10",
        "list(range(10 ** 10))",
        "'x'.ljust(10 ** 10)",
        "[x for x in iter(int, 1)]",
        "forever()",
    ],
)
def test_a_hostile_source_gets_at_nothing(tmp_path: Path, expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specfix.engines.source.interpreter.limits.BUDGET", 5000)
    main = f"""
    import argparse
    import json
    class Own:
        pass
    def forever():
        return forever()
    def made():
        return {expression}
    """
    with pytest.raises(REFUSED):
        value(tmp_path, "made", main=main)


HOSTILE = {
    "the frame of a generator": "return (x for x in [1]).gi_frame.f_builtins['__import__']('os')",
    "a format by map": "return next(iter(map(str.format, ['{0.evaluate.__globals__}'], [Own])))",
    "what a class is made with": "return Own.interpreter.evaluate",
    "the same by getattr": "return getattr(Own, 'interpreter')",
    "its scope": "return Own.scope",
    "a class by map": "return list(map(type, ['Z'], [()], [{'__reduce_ex__': None}]))",
    "the class of a class": "return type(Own)('Z', (), {})",
    "the class of a function": "return type(lambda: 0)",
    "a builtin by its module": "import vllm.main\n        return vllm.main.map(type, ['Z'], [()], [{}])",
    "an error's object": "try:\n            int('')\n        except ValueError as e:\n            return e.__cause__",
    "a parser's file": "p = argparse.ArgumentParser(fromfile_prefix_chars='@')\n"
    "        p.add_argument('x', nargs='*')\n        return p.parse_args(['@/etc/hostname']).x",
    "a parser's end": "return argparse.ArgumentParser().exit(0)",
    "a parser's version": "p = argparse.ArgumentParser()\n        p.add_argument('-v', action='version', version='1')\n"
    "        return p.parse_args(['-v'])",
    "a parser's namespace": "p = argparse.ArgumentParser()\n        p.add_argument('--scope')\n"
    "        return p.parse_args(['--scope', 'x'], lambda: 0)",
    "a parser's own method": "return Parser().mine()",
    "a parser's registry": "return argparse.ArgumentParser()._registries",
    "a class's attribute set": "Own.interpreter = 1\n        return 1",
    "a width": "return '%9000000000d' % 1",
    "large numbers": "x = 9 ** 60\n        for _ in range(40):\n            x = x * x\n        return x",
    "a sum": "return sum(next(iter(map(range, [10 ** 13]))))",
    "an endless iterator": "return max(iter(int, 1))",
    "a conversion": "return int.to_bytes(1, 10 ** 9, 'big')",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_function_gets_at_nothing(tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specfix.engines.source.interpreter.limits.BUDGET", 5000)
    main = f"""
    import argparse
    class Own:
        pass
    class Parser(argparse.ArgumentParser):
        def _print_message(self, text):
            return text
        def mine(self):
            return super()._print_message("x", 1)
    def work():
        {body}
    made = work()
    """
    with pytest.raises(REFUSED):
        value(tmp_path, "made", main=main)


def test_nothing_ends_the_reading(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys\nimport argparse\nmade = argparse.ArgumentParser().exit(0)\n")
    found = Interpreter(SourceTree(tmp_path)).name("vllm.main", "made")
    assert isinstance(found, Unknown)


@pytest.mark.parametrize(
    "raised",
    ["raise AttributeError(f'no {torch.x}')", "raise Own(1)"],
)
def test_an_error_of_unknown_text_is_told_by_its_kind(tmp_path: Path, raised: str) -> None:
    (tmp_path / "main.py").write_text(
        "import torch\nclass Own(ValueError):\n    def __str__(self):\n        return torch.x\n"
        f"def __getattr__(name):\n    {raised}\n"
    )
    found = Interpreter(SourceTree(tmp_path)).name("vllm.main", "made")
    assert isinstance(found, Unknown) and found.reason in ("AttributeError", "Own")


def test_a_time_that_is_up_ends_all_that_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specfix.engines.source.interpreter.limits.SECONDS", 0)
    main = "made = sum([x for x in range(5000)])"
    with pytest.raises(UndecidedError, match="too long"):
        value(tmp_path, "made", main=main)
