"""A shell's script in words, without running any of it."""

from __future__ import annotations

import time

import pytest

from specfix.errors import CannotCheck
from specfix.launch.words import commands


def texts(script: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands(script, "run.sh")]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a \\\n  b # not c\nd", [["a", "b"], ["d"]]),
        ("a;b&&c||d|e &", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("if a; then exec b; fi", [["a"], ["b"], ["fi"]]),
        ("(a) ; { b; }", [["a"], ["b"], ["}"]]),
        ("a > out 2>&1 < in --b 2>/dev/null", [["a", "--b"]]),
        ("cat <<EOF > f\nvllm serve x\nEOF\na", [["cat"], ["a"]]),
        ("cat <<-'END'\n\tx\n\tEND\na", [["cat"], ["a"]]),
        ("a --json='{\"b\": [1, 2]}'", [["a", '--json={"b": [1, 2]}']]),
        ("a#b '#c'", [["a#b", "#c"]]),
        ("a '' \"\"", [["a", "", ""]]),
        ("", []),
        ("# nothing\n\n", []),
    ],
)
def test_words_of_commands(script: str, words: list[list[str]]) -> None:
    assert texts(script) == words


def test_lines_are_those_of_the_file() -> None:
    (command,) = commands("\n\na \\\n  b 'c\nd' e", "run.sh")
    assert [word.place.line for word in command.words] == [3, 4, 4, 5]


def test_variables_of_the_script_are_put_in_and_others_are_unknown() -> None:
    script = 'MODEL=/m\nLEN=${1:-9}\nserve $MODEL "${MODEL}/x" \'$MODEL\' $LEN --a=$OTHER $(date) `date` \\$x "$@"'
    (command,) = commands(script, "run.sh")
    assert [(word.text, word.unknown) for word in command.words] == [
        ("serve", None),
        ("/m", None),
        ("/m/x", None),
        ("$MODEL", None),
        ("$LEN", "$LEN"),
        ("--a=$OTHER", "$OTHER"),
        ("$(date)", "$(date)"),
        ("`date`", "`date`"),
        ("$x", None),
        ("$@", "$@"),
    ]


def test_what_is_exported_or_stands_before_a_command_is_its_environment() -> None:
    script = "A=1\nexport B=2 C=$A\nexport A\nD=4 serve\nunset B"
    first, *_ = commands(script, "run.sh")
    assert {name: word.text for name, word in first.env.items()} == {"B": "2", "C": "1", "A": "1", "D": "4"}


@pytest.mark.parametrize("script", ["a 'b", 'a "b', 'a "$(b"'])
def test_a_quote_that_is_not_closed_is_said_with_its_line(script: str) -> None:
    with pytest.raises(CannotCheck, match=r"run\.sh, line 2: a quote is not closed"):
        texts(f"\n{script}")


def test_a_script_of_unlikely_length_is_refused() -> None:
    with pytest.raises(CannotCheck, match="more than the 1,000,000"):
        texts("a" * 1_000_001)


@pytest.mark.parametrize(
    "script",
    [
        "A=1\nA=2\nserve $A",
        "A=1\nif x; then A=2; fi\nserve $A",
        "A=1\nA+=2\nserve $A",
        "A=1\nfor A in 1 2; do\nserve $A\ndone",
        "A=1\nread -r A\nserve $A",
        "A=1\nsource settings.env\nserve $A",
        "A=1\n. ./settings.env\nserve $A",
        "A='1 2'\nserve $A",
    ],
)
def test_a_variable_that_may_change_is_unknown(script: str) -> None:
    found = next(command for command in commands(script, "run.sh") if command.words[0].text == "serve")
    assert [(word.text, word.unknown) for word in found.words[1:]] == [("$A", "$A")]


def test_a_long_script_takes_no_time() -> None:
    started = time.process_time()
    assert len(texts("echo $a $b\n# word\n" * 20_000)) == 20_000
    assert time.process_time() - started < 10
