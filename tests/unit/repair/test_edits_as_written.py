"""A new value is written as the old one is: in the quotes of a shell or of YAML, in a block, as words of an array."""

from __future__ import annotations

import pytest

from specfix.repair.edit.launch_file import Flag, Key, Model, PathEntry
from specfix.repair.edit.written import CannotEdit

from .launch_files import COMPOSE_LIST, DRAFT, FILES, SCRIPT, SERVE, SPEC, TOKENS, edited, launch_file


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (f"""'{SPEC}'""", f"""'{SPEC}'""".replace("/d", "/it'\\''s")),
        (
            '"{\\"method\\": \\"eagle3\\", \\"model\\": \\"/d\\"}"',
            '"{\\"method\\": \\"eagle3\\", \\"model\\": \\"/it\'s\\"}"',
        ),
        (
            """{\\"method\\":\\"eagle3\\",\\"model\\":\\"/d\\"}""",
            """{\\"method\\":\\"eagle3\\",\\"model\\":\\"/'it'"'"'s'\\"}""",
        ),
        ("""'{"method": "eagle3", "model": "'/d'"}'""", """'{"method": "eagle3", "model": "'/'it'"'"'s''"}'"""),
    ],
)
def test_quotes_of_a_shell_stay(given: str, wanted: str) -> None:
    text = f"vllm serve /m --speculative-config {given} # end\n"
    after = edited(text, "run.sh", Key("speculative-config", "/model", "/it's"))
    assert after.startswith("vllm serve /m --speculative-config ") and after.endswith(" # end\n")
    assert launch_file(after).says()["speculative.model"] == "/it's"
    if given.startswith(('\'{"method": "eagle3", "model": "/d", "num', '"')):
        assert after == text.replace(given, wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            'speculative-config: \'{"method": "eagle3", "model": "/d"}\'',
            '\'{"method": "eagle3", "model": "/o/draft"}\'',
        ),
        ('speculative-config: "{\\"method\\": \\"eagle3\\", \\"model\\": \\"\\/d\\"}"', '\\"\\/o/draft\\"}"'),
        (
            'speculative-config: |\n  {"method": "eagle3",\n   "model": "/d"}',
            '{"method": "eagle3",\n   "model": "/o/draft"}',
        ),
        (
            'speculative-config: >-\n  {"method": "eagle3",\n  "model": "/d"}',
            '{"method": "eagle3",\n  "model": "/o/draft"}',
        ),
        (
            "speculative-config:\n  method: eagle3 # m\n  model: /d # d\n  num_speculative_tokens: 5",
            "model: /o/draft # d\n",
        ),
        ("speculative-config.method: eagle3\nspeculative-config.model: /d", "speculative-config.model: /o/draft"),
        ("speculative_config: {method: eagle3, model: '/d'}", "{method: eagle3, model: '/o/draft'}"),
    ],
)
def test_a_speculative_config_in_a_serve_yaml(given: str, wanted: str) -> None:
    text = f"model: /m\n{given}\n# end\nseed: 1\n"
    after = edited(text, "serve.yaml", DRAFT)
    assert wanted in after and after.endswith("\n# end\nseed: 1\n")
    assert launch_file(after, "serve.yaml").says()["speculative.model"] == "/o/draft"


def test_dotted_keys_are_words() -> None:
    text = "vllm serve /m --speculative-config.method eagle3 --speculative_config.model=/d\n"
    assert edited(text, "run.sh", DRAFT) == text.replace("/d", "/o/draft")
    assert edited(text, "run.sh", TOKENS).rstrip("\n") == (
        text.rstrip("\n") + " --speculative_config.num_speculative_tokens=3"
    )
    assert edited(text, "run.sh", Key("speculative-config", "/method", None)) == text.replace(
        " --speculative-config.method eagle3", ""
    )


def test_a_key_that_is_no_word_of_the_config() -> None:
    text = f"vllm serve /m --hf-overrides '{{\"a\": {{\"b\": 1}}}}' --speculative-config '{SPEC}'\n"
    assert edited(text, "run.sh", Key("hf-overrides", "/a/c", 2)) == text.replace('"b": 1', '"b": 1,"c": 2')
    assert edited(SCRIPT, "run.sh", Key("hf-overrides", "/a/c", 2)) == SCRIPT.replace(
        f"'{SPEC}' \\\n", f"'{SPEC}' \\\n    --hf-overrides '{{\"a\": {{\"c\": 2}}}}' \\\n"
    )
    assert edited(SERVE, "serve.yaml", Key("hf-overrides", "/a/c", 2)) == SERVE.replace(
        f"{SPEC}\n", f'{SPEC}\nhf-overrides: {{"a": {{"c": 2}}}}\n'
    )


def test_words_of_an_array() -> None:
    array = f"ARGS=(\n  --max-model-len 8192  # tokens\n  --speculative-config '{SPEC}'\n)\n"
    text = array + 'vllm serve /m "${ARGS[@]}"\n'
    assert edited(text, "run.sh", Flag("max-model-len", 4096), DRAFT) == text.replace("8192", "4096").replace(
        '"/d"', '"/o/draft"'
    )
    assert "--seed 7" in edited(text, "run.sh", Flag("seed", 7))


def test_doubled_dollars() -> None:
    script = """services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command:
      - bash
      - -c
      - 'echo $$HOME; vllm serve /m --speculative-config "{\\"model\\": \\"/d\\"}" --seed 1'
"""
    assert edited(script, "c.yaml", DRAFT) == script.replace("/d", "/o/draft")
    assert edited(script, "c.yaml", Flag("seed", None)) == script.replace(" --seed 1", "")


@pytest.mark.parametrize("name", [*FILES])
@pytest.mark.parametrize(
    "path", ["/a b", "/it's", '/q"x', "/b`id`", "/back\\slash", "/é😀", "/x;y&z", "/{a,b}*", "/c: d #e"]
)
def test_a_path_of_any_kind_is_written_as_the_file_needs_it(name: str, path: str) -> None:
    for edit in (Key("speculative-config", "/model", path), Model(path), Flag("generation-config", path)):
        edited(FILES[name], name, edit)  # which reads it again
    if name != "serve.yaml":
        edited(FILES[name], name, PathEntry(path))


def test_a_dollar_that_compose_would_put_something_in_for_is_left() -> None:
    for edit in (Model("/d$HOME"), PathEntry("/d$HOME")):
        with pytest.raises(CannotEdit, match="by hand"):
            edited(COMPOSE_LIST, "list.yaml", edit)
    assert "'/d$HOME'" in edited(SCRIPT, "run.sh", Model("/d$HOME"))
    assert '"/d\\$HOME${PYTHONPATH' in edited(SCRIPT, "run.sh", PathEntry("/d$HOME"))
