"""Arguments as one release's own parser takes them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.launch.arguments import Arguments, Given, read_arguments
from specfix.launch.script import commands
from specfix.launch.words import Word

NEW, OLD = find_engine("0.32.0"), find_engine("0.10.0")
SWALLOWS = find_engine("0.16.0")
DEEP = "[" * 500 + "]" * 500


def read(text: str, engine: Any = NEW, program: str = "vllm serve") -> Arguments:
    return read_arguments([Word(word) for word in shlex.split(text)], engine, program)


def values(text: str, engine: Any = NEW) -> dict[str, Any]:
    arguments = read(text, engine)
    assert not arguments.misfits, arguments.misfits
    return {name: option.value for name, option in arguments.options.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m --max-model-len 8k --max_num_seqs=4", {"max_model_len": 8000, "max_num_seqs": 4}),
        ("m --max-model-len 1.5k", {"max_model_len": 1500}),
        ("m --max-model-len 8K", {"max_model_len": 8192}),
        ("m --max-model-len auto", {"max_model_len": -1}),
        ("m -tp 2 -pp=3", {"tensor_parallel_size": 2, "pipeline_parallel_size": 3}),
        ("m --enforce-e", {"enforce_eager": True}),
        ("m --no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("m -O3", {"optimization_level": "3"}),
        ("m -O 2", {"optimization_level": "2"}),
        ("m --served-model-name a b", {"served_model_name": ["a", "b"]}),
        ("m --cudagraph-capture-sizes 1 2 4", {"cudagraph_capture_sizes": [1, 2, 4]}),
        ("m --middleware a --middleware b", {"middleware": ["a", "b"]}),
        ('m -sc \'{"method": "mtp"}\'', {"speculative_config": {"method": "mtp"}}),
        (
            "m --speculative-config.method mtp --speculative_config.num_speculative_tokens=2",
            {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
        ),
        (
            "m --compilation-config.cudagraph_capture_sizes+ 1,2",
            {"compilation_config": {"cudagraph_capture_sizes": ["1", "2"]}},
        ),
        ("m --hf-overrides '{\"a\": 1}'", {"hf_overrides": {"a": 1}}),
        # dotted keys are put into each other, and the last one counts
        ("m -sc.a 2 -sc.a.b 1", {"speculative_config": {"a": {"b": 1}}}),
        ("m -sc.a.b 2 -sc.a '{\"c\": [1]}' -sc.a.c [2]", {"speculative_config": {"a": {"b": 2, "c": [1, 2]}}}),
        ("m -sc.a.b 2 -sc.a 1", {"speculative_config": {"a": 1}}),
        ("--max-num-seqs 2 -- m", {"max_num_seqs": 2}),
        ("m --max-num-seqs 2 --", {"max_num_seqs": 2}),
        ("m --max-model-len ' 2k '", {"max_model_len": 2000}),
        ("m --hf-token", {"hf_token": True}),
        ("m --max-num-seqs 1 --max-num-seqs 2", {"max_num_seqs": 2}),
        ("m --gpu-memory-utilization 0.5 --seed -1", {"gpu_memory_utilization": 0.5, "seed": -1}),
    ],
)
def test_values(text: str, expected: dict[str, Any]) -> None:
    assert values(text) == expected
    model = read(text).model
    assert model is not None and model.value == "m"


@pytest.mark.parametrize(
    ("text", "message", "nearest"),
    [
        ("m --max-modl-len 1", "vllm 0.32.0 has no --max-modl-len", "--max-model-len"),
        ("m --nothing-like-it-at-all", "vllm 0.32.0 has no --nothing-like-it-at-all", None),
        ("m --max-num-seqs many", "vllm 0.32.0 refuses \"--max-num-seqs many\": invalid int value: 'many'", None),
        ("m --max-num-seqs", 'vllm 0.32.0 refuses "--max-num-seqs": expected one argument', None),
        ("m --speculative-config '{'", "is not valid JSON", None),
        ("m --compilation-config '[]'", "where a JSON object is expected", None),
        ("m --dtype bfloat17", "invalid choice: 'bfloat17'", "bfloat16"),
        ("m stray", 'vllm 0.32.0 does not take "stray": no option before it wants it', None),
        ("m --enforce-eager true", 'vllm 0.32.0 does not take "true"', None),
        ("m --max", "could match", None),
        ("m --a.b", "--a.b needs a value", None),
        ("m --config", "takes one --config, and a file after it", None),
        ("m -- n", 'vllm 0.32.0 does not take "n"', None),
        ("m --max-model-len '2 k'", "invalid size value: '2 k'", None),
        (f"m --additional-config{'.a' * 5000} 1", "it is nested more than 100 levels deep", None),
        (f"m --additional-config.a '{DEEP}'", "it is nested more than 100 levels deep", None),
        (f"m --additional-config '{{\"a\": {DEEP}}}'", "nested more than 100 levels deep", None),
        (f"m --hf-overrides '{{\"a\": {DEEP}}}'", "nested more than 100 levels deep", None),
        ('m --hf-overrides \'{"a": "\\ud800"}\'', "half of a surrogate pair", None),
        ("m --config x.json", "ends in .yaml or .yml", None),
    ],
)
def test_what_is_refused(text: str, message: str, nearest: str | None) -> None:
    (misfit,) = read(text).misfits
    assert message in misfit.message and not misfit.ignored
    assert misfit.nearest == nearest


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("--served-model-name a m", "m"),
        ("--enforce-eager --served_model_name=a m", "m"),
        ("--enforce-eager m --served-model-name a", "m"),
        ("--served-model-name a", None),
    ],
)
def test_the_model_stands_first_beside_its_served_name(text: str, model: str | None) -> None:
    arguments = read(text)
    (misfit,) = arguments.misfits
    assert "wants the model as the first argument" in misfit.message and misfit.then is None
    assert arguments.options["served_model_name"].value == ["a"]
    assert arguments.model == (model and Given(model, Word(model)))


@pytest.mark.parametrize("text", ["m --served-model-name a", "--served-model-name a --model m", "--port 1 m"])
def test_a_model_that_is_found(text: str) -> None:
    for engine in (NEW, SWALLOWS):
        arguments = read(text, engine)
        assert not arguments.misfits and arguments.model is not None and arguments.model.value == "m"


def test_a_model_that_an_option_swallows() -> None:
    for text, engine in (("--served-model-name a b m", SWALLOWS), ("--served-model a b m", NEW)):
        arguments = read(text, engine)
        (misfit,) = arguments.misfits
        assert 'takes "m" for one more value of --served-model' in misfit.message
        assert misfit.then == "It serves its default, Qwen/Qwen3-0.6B."
        assert arguments.options["served_model_name"].value == ["a", "b"]
        assert arguments.model is not None and arguments.model.value == "m"
    arguments = read("--enforce-eager m --served-model-name=a", SWALLOWS)
    assert not arguments.misfits and arguments.model is not None
    assert read("--served-model-name m", SWALLOWS).model is None  # a name alone is a name


def test_releases_differ() -> None:
    assert values("m --max-model-len 8k", OLD) == {"max_model_len": 8000}
    assert [misfit.nearest for misfit in read("m --attention-backend X", OLD).misfits] == [None]
    assert read("m -O3", OLD).misfits or values("m -O3", OLD)


def test_the_api_server_has_no_positional() -> None:
    arguments = read("--model m --seed 1", program="api_server")
    assert arguments.model is not None and arguments.model.value == "m"
    assert [misfit.message for misfit in read("m", program="api_server").misfits]


def test_what_is_known_only_where_it_runs() -> None:
    (command,) = commands('serve m --max-model-len $LEN --seed=$SEED --served-model-name a $B "$@"', "run.sh")
    arguments = read_arguments(command.words[1:], NEW)
    assert not arguments.misfits
    told = {name: (option.value, option.unknown) for name, option in arguments.options.items()}
    assert told == {"max_model_len": (None, "$LEN"), "seed": (None, "$SEED"), "served_model_name": (None, "$B")}


def test_a_word_for_any_number_of_arguments() -> None:
    (command,) = commands('serve m --enforce-eager "$@"', "run.sh")
    arguments = read_arguments(command.words[1:], NEW)
    assert [word.text for word in arguments.open] == ["$@"] and "enforce_eager" in arguments.options


CONFIG = """\
model: m
max-model-len: 8k
max-num-seqs: 3
enforce-eager: true
enable-prefix-caching: false
served-model-name: [a, b]
speculative-config:
  method: mtp
"""


def test_a_config_file_comes_first_and_the_command_wins(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(CONFIG)
    arguments = read(f"--max-num-seqs 4 --config {file}")
    assert arguments.model is not None and arguments.model.value == "m"
    assert {name: option.value for name, option in arguments.options.items()} == {
        "max_model_len": 8000,
        "max_num_seqs": 4,
        "enforce_eager": True,
        "served_model_name": ["a", "b"],
        "speculative_config": {"method": "mtp"},
    }
    assert arguments.options["speculative_config"].word.place.line == 8
    (misfit,) = arguments.misfits
    assert misfit.ignored and misfit.location.line == 5 and misfit.nearest == "no-enable-prefix-caching: true"
    # this release makes text of a mapping, which is no JSON
    assert any("speculative-config" in misfit.message for misfit in read(f"--config {file}", OLD).misfits)


def test_a_config_file_in_one_word_is_not_read() -> None:
    (misfit,) = read("m --config=x.yaml").misfits
    assert misfit.ignored and misfit.nearest == "--config x.yaml"


@pytest.mark.parametrize(("content", "message"), [("- a", "no mapping"), ("a: [", "line"), ("", "no mapping")])
def test_a_config_file_that_is_none(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(content)
    with pytest.raises(CannotCheck, match=message):
        read(f"m --config {file}")


SAME = """'{"a": 1, "b": {"a": 2}, "a": 1}'"""
TWO = """'{"a": 1, "b": {"a": 2, "a": 3}}'"""


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"--speculative-config {TWO}", "--speculative-config"),
        (f"--speculative_config={TWO}", "--speculative_config"),
        (f"--hf-overrides {TWO}", "--hf-overrides"),
        (f"--compilation-config {TWO}", "--compilation-config"),
        (f"--hf-overrides.c {TWO}", "--hf-overrides.c"),
        (f"--hf-overrides.c={TWO}", "--hf-overrides.c"),
        (f"--hf-overrides {SAME}", None),
        (f"--hf-overrides.c {SAME}", None),
        (f"--served-model-name {TWO}", None),  # a text
        (f"--served-model-name x {TWO[:-2]}'", None),  # no JSON
    ],
)
@pytest.mark.parametrize("engine", [NEW, find_engine("0.15.0")], ids=str)
def test_of_a_key_with_two_values_the_last_counts_and_it_is_said(text: str, where: str | None, engine: Any) -> None:
    found = read(f"m {text}", engine)
    told = f'{engine} takes the last value of "a" in {where}, and drops the one before'
    assert [(each.message, each.ignored) for each in found.misfits] == ([(told, True)] if where else [])
    if where and "speculative" in where:
        assert found.options["speculative_config"].value == {"a": 1, "b": {"a": 3}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("""speculative-config: '{"model": "a", "model": "b"}'""", ['"model" in --speculative-config']),
        ("""speculative-config: {"model": "a", "model": "b"}""", ['"model" in --speculative-config']),
        ("speculative-config:\n  model: a\n  model: b\n", ['"model" in --speculative-config']),
        ("hf-overrides: {a: [{b: 1, b: 2}]}", ['"b" in --hf-overrides']),
        ("max-model-len: 1\nmax-model-len: 2", ['"max-model-len" in {file}']),
        ("max-model-len: 1\nmax-model-len: 1\nhf-overrides: {a: {b: 1}, a: {b: 1}}", []),
        ("hf-overrides: {<<: {a: 1}, a: 2}", []),
    ],
)
def test_a_key_of_a_config_file_with_two_values(tmp_path: Path, text: str, told: list[str]) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(f"seed: 1\n{text}\n")
    said = [f"{NEW} takes the last value of {each.format(file=file)}, and drops the one before" for each in told]
    assert [each.message for each in read(f"m --config {file}").misfits] == said


def test_a_key_with_two_values_beside_what_is_unknown() -> None:
    for value in ('"a": 1, "a": $N', '"a": $N, "a": "$M"', '"a": 1, "b": $N, "a": 2'):
        found = given(f"""serve m --speculative-config "{{{value.replace('"', chr(92) + '"')}}}" """)
        assert [each.ignored for each in found.misfits] == [True], value
    assert not given("""serve m --speculative-config '{"a": 1, "b": '$N', "a": 1}' """).misfits


def given(script: str) -> Arguments:
    *_, command = commands(script, "run.sh")
    return read_arguments(command.words[1:], NEW)


@pytest.mark.parametrize(
    ("config", "known", "unknown"),
    [
        (
            """'{"method":"eagle3","model":"'$DRAFT'","num_speculative_tokens":'$K'}'""",
            {"method": "eagle3"},
            {"model": "$DRAFT", "num_speculative_tokens": "$K"},
        ),
        (
            r'''"{\"method\": \"mtp\", \"model\": \"$A/${B:-x y}\"}"''',
            {"method": "mtp"},
            {"model": "$A/${B:-x y}"},
        ),
        (
            """'{"method": "mtp", "rest": {"a": ['"$A"', 1]}}'""",
            {"method": "mtp"},
            {"rest": '{"a": ["$A", 1]}'},
        ),
    ],
)
def test_an_object_is_read_around_what_is_unknown(config: str, known: dict[str, Any], unknown: dict[str, str]) -> None:
    for text in (f"serve m --speculative-config {config}", f"serve m -sc={config}"):
        option = given(text).options["speculative_config"]
        assert (option.value, option.unknown, option.parts) == (known, None, unknown)


@pytest.mark.parametrize("config", ["$A", """'{"method": "mtp", '$A'}'""", """'{"'$A'": 1}'""", """'{"a": '$A'0}'"""])
def test_an_object_whose_keys_are_unknown_is(config: str) -> None:
    option = given(f"serve m --speculative-config {config}").options["speculative_config"]
    assert (option.value, option.parts) == (None, {}) and option.unknown == "$A"


def test_dotted_parts_that_are_unknown() -> None:
    flag = "--speculative-config"
    option = given(f"serve m {flag}.method mtp {flag}.model $A {flag}.num_speculative_tokens=$B").options
    assert option["speculative_config"].value == {"method": "mtp"}
    assert option["speculative_config"].parts == {"model": "$A", "num_speculative_tokens": "$B"}


def test_what_a_script_may_add() -> None:
    arguments = given(
        'A=(--seed 1 --max-num-seqs 4)\nif x; then A+=(--seed 2 --no-such -sc \'{"method": "mtp"}\'); fi\n'
        'serve m "${A[@]}"'
    )
    assert not arguments.misfits and not arguments.strangers
    assert arguments.options["max_num_seqs"].value == 4
    assert arguments.options["seed"].unknown == "--seed 2, where the script adds it,"
    assert arguments.options["speculative_config"].value == {"method": "mtp"}  # what is to be checked
    assert [word.text for word in arguments.assumed] == ["-sc"]


@pytest.mark.parametrize(
    "text", ['"${A[@]}" --seed 1', '--seed 1 "${A[@]}"', '--served-model-name a "${A[@]}" x', "--$A"]
)
def test_an_unknown_array_may_be_any_arguments(text: str) -> None:
    arguments = given(f"serve m {text}")
    assert not arguments.misfits and len(arguments.open) == 1
