"""A shell's script in words, without running any of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from specfix.errors import CannotCheck
from specfix.launch.script import commands
from specfix.launch.splitter import split


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
        ("a $'b\\n\\'c\\'' $\"d\" \"$\"", [["a", "b\n'c'", "d", "$"]]),
        # where an expansion ends: brackets in quotes are none of it, and an apostrophe in a text is no quote
        ("a $(b ')' \"(\" \\( x) c\nd", [["a", "$(b ')' \"(\" \\( x)", "c"], ["d"]]),
        ('a "$(cd "$(b ")")" && c)" d', [["a", '$(cd "$(b ")")" && c)', "d"]]),
        ("a $(b \"don't $x\") c 'd'", [["a", '$(b "don\'t $x")', "c", "d"]]),
        ("a $(cat <<E $x\ndon't\nE\n) c", [["a", "$(cat <<E $x\ndon't\nE\n)", "c"]]),
        ("a $((1 + (2))) c", [["a", "$((1 + (2)))", "c"]]),
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
        ("${1:-9}", "${1:-9}"),
        ("--a=$OTHER", "$OTHER"),
        ("$(date)", "$(date)"),
        ("`date`", "`date`"),
        ("$x", None),
        ("$@", "$@"),
    ]


def test_escapes_that_are_not_known() -> None:
    (command,) = commands("a $'\\x41' $'b'", "run.sh")
    assert [(word.text, word.unknown, word.span) for word in command.words[1:]] == [
        ("$'\\x41'", "$'\\x41'", None),
        ("b", None, None),
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
    with pytest.raises(CannotCheck, match="more than the 200,000"):
        texts("a" * 1_000_001)


@pytest.mark.parametrize(
    "script",
    [
        "A=1\nif x; then A=2; fi\nserve $A",
        "if x; then A=2; fi\nserve $A",
        "x || A=2\nserve $A",
        "x && A=2\nserve $A",
        "(A=2)\nserve $A",
        "A=1\nx | A=2\nserve $A",
        "A=1\nif x; then A+=2; fi\nserve $A",
        "f() { A=1; }\nserve $A",
        "f() { serve $A; }\nA=1\nA=2",
        "A=1\nunset A\nserve $A",
        "case x in a) A=1 ;; *) serve $A ;; esac",
        "A=1\nfor A in 1 2; do\nserve $A\ndone",
        "A=1\nread -r A\nserve $A",
        "A=1\nsource settings.env\nserve $A",
        "A=1\n. ./settings.env\nserve $A",
        "A='1 *'\nserve $A",
        "A+=1\nserve $A",
    ],
)
def test_a_variable_that_may_change_is_unknown(script: str) -> None:
    found = next(command for command in commands(script, "run.sh") if command.words[0].text == "serve")
    assert [(word.text, word.unknown) for word in found.words[1:]] == [("$A", "$A")]


def test_a_long_script_takes_no_time() -> None:
    started = time.process_time()
    assert len(texts("echo $a $b\n# word\n" * 10_000)) == 10_000
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("A=1\nA=2\nserve $A", ["2"]),
        ("A=1\nA+=2\nserve $A", ["12"]),
        ("A=1\nsource .venv/bin/activate\nserve $A", ["1"]),
        ("A=1\nsource x.env\nA=2\nserve $A", ["2"]),
        ("if x; then A=1; serve $A; fi", ["1"]),
        ("cd x && A=1 && serve $A", ["1"]),
        ("A='--x 1  --y'\nserve $A end", ["--x", "1", "--y", "end"]),
        ("A='--x 1'\nserve \"$A\" a$A", ["--x 1", "a--x", "1"]),
        ('A=\nserve $A "$A"', [""]),
        ("A=1\nserve ${A:-2} ${A-3} ${A:=4} ${A:?no}", ["1"] * 4),
        ("A=x/y\nB='/' C='.'\nserve ${A//\"$B\"/\"$C$C\"}", ["x..y"]),
        ("A=(--x 1 # why\n  'c d')\nserve \"${A[@]}\"", ["--x", "1", "c d"]),
        ('A=(a)\nA+=(b)\nA=("${A[@]}" c)\nserve ${A[@]} x"${A[@]}"y', ["a", "b", "c", "xa", "b", "cy"]),
        ('A=()\nserve "${A[@]}" ${A[@]+"${A[@]}"} end', ["end"]),
        ('declare -a A=(a b)\nserve "${A[@]}"', ["a", "b"]),
        ("export A='1 2'\nserve \"$A\"", ["1 2"]),
    ],
)
def test_what_a_script_sets_on_its_way_is_put_in(script: str, words: list[str]) -> None:
    found = next(command for command in commands(script, "run.sh") if command.words[0].text == "serve")
    assert [(word.text, word.unknown) for word in found.words[1:]] == [(word, None) for word in words]


@pytest.mark.parametrize(
    "value",
    ["${A:-1}", "${A-1}", "${A:=1}", "${A:+1}", "${A%x}", "${#A}"],
)
def test_a_default_is_no_value(value: str) -> None:
    (found,) = commands(f"serve {value}", "run.sh")
    assert [(word.text, word.unknown) for word in found.words[1:]] == [(value, value)]
    *_, found = commands(f"A={value}\nserve $A", "run.sh")
    assert found.words[1].unknown == value


def test_all_parts_that_are_unknown_are_held() -> None:
    (found,) = commands('serve "{$A, ${B:-1}}"', "run.sh")
    assert found.words[1].unknowns == ("$A", "${B:-1}") and found.words[1].unknown == "$A"


@pytest.mark.parametrize(
    "adds", ["if x; then\n  A+=(b)\nfi", "[ x ] && A+=(b)", "[ x ] || A+=(b)", "case x in y) A+=(b) ;; esac"]
)
def test_what_may_be_added_to_an_array_is_marked(adds: str) -> None:
    *_, found = commands(f'A=(a)\n{adds}\nserve "${{A[@]}}"', "run.sh")
    assert [(word.text, word.maybe) for word in found.words[1:]] == [("a", False), ("b", True)]


@pytest.mark.parametrize(
    "sets", ["for x in 1 2; do A+=(b); done", "if x; then A=(b); fi", "f() { A+=(b); }", "(A+=(b))", "mapfile A"]
)
def test_an_array_that_may_be_any_is_unknown(sets: str) -> None:
    *_, found = commands(f'A=(a)\n{sets}\nserve "${{A[@]}}"', "run.sh")
    assert found.words[1].many


def test_words_of_an_array_stand_where_they_are_written() -> None:
    *_, found = commands('A=(\n  --x 1\n)\nserve "${A[@]}" y', "run.sh")
    assert [word.place.line for word in found.words] == [4, 2, 2, 4]


@pytest.mark.parametrize(
    "between",
    [" \\\n  # --quantization fp8 \\\n", "\n", " \\ \n", " \\\n\n"],
    ids=["comment", "none", "blank", "empty"],
)
def test_lines_after_the_end_of_a_command_are_lost(between: str) -> None:
    first, *_ = commands(f"serve m{between}  --x 1 \\\n  --y\necho", "run.sh")
    assert [word.text for word in first.lost] == ["--x", "1", "--y"] and "--x" not in [
        str(word) for word in first.words
    ]


@pytest.mark.parametrize(
    "asked",
    [
        '$(cd "$(dirname "$0")" && pwd)',
        '$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &> /dev/null && pwd -P)',
        '$(dirname "$(readlink -f "$0")")',
        '$(dirname "$BASH_SOURCE")',
    ],
)
def test_a_script_may_ask_for_its_own_folder(asked: str, tmp_path: Path) -> None:
    script = f'here={asked}\nserve "$here/target"'
    *_, found = commands(script, str(tmp_path / "run.sh"), own=True)
    assert [(word.text, word.unknown) for word in found.words[1:]] == [(f"{tmp_path.resolve()}/target", None)]
    *_, found = commands(script, "compose.yaml")  # a text in some other file
    assert found.words[1].unknown == asked


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ('$(cat <<\'EOF\'\n{"a": "$x"}\nEOF\n)', '{"a": "$x"}'),
        ('$(cat <<EOF\n{"a": "$KNOWN"}\n\nEOF\n)', '{"a": "b c"}'),
        ('"$(cat <<-"END"\n\tx\n\t\ty z\n\tEND\n)"', "x\ny z"),
        ("$(cat << E\ndon't (do) it\nE\n)", "don't (do) it"),
        ("$(cat <<E\n$OTHER\nE\n)", None),
        ("$(cat <<E\n$(date)\nE\n)", None),
        ("$(cat <<E\n\\$KNOWN\nE\n)", None),
        ("$(cat <<E\n${KNOWN:-x}\nE\n)", None),
        ("$(cat <<E\na\nE\necho b\nE\n)", None),
        ("$(cat file <<E\na\nE\n)", None),
        ("$(cat <<E | tr a b\na\nE\n)", None),
        ("$(jq . <<E\n{}\nE\n)", None),
    ],
)
def test_a_text_that_stands_in_the_script(given: str, value: str | None) -> None:
    (command,) = commands(f"KNOWN='b c'\nSPEC={given}\nvllm serve m -sc \"$SPEC\"\n", "run.sh")
    word = command.words[-1]
    assert (None if word.unknown else word.text) == value


def test_variables_of_unlikely_length_are_refused_or_unknown() -> None:
    with pytest.raises(CannotCheck, match="its variables stand for more than"):
        list(commands("A=aa\n" + "A=$A$A\n" * 40, "run.sh"))
    *_, found = commands("A=(a)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 40 + 'serve "${A[@]}"', "run.sh")
    assert found.words[1].many
    *_, found = commands("A=(a)\n" + "A+=(a)\n" * 3000 + 'serve "${A[@]}"', "run.sh")
    assert found.words[1].many


def test_text_that_no_shell_sees() -> None:
    assert [word.text for word in split("a $B \"$C d\" '$(e)' # f", "c.yaml")] == ["a", "$B", "$C d", "$(e)", "#", "f"]
