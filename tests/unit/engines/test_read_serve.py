"""What `vllm serve` takes, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from specfix.engines.facts.serving import ServeFacts
from specfix.engines.readers.serve import read_serve
from specfix.engines.source.tree import SourceTree

READER = """
    class Parser:
        def load_config_file(self, file_path):
            for key, value in config.items():
                if isinstance(value, bool):
                    if value:
                        args.append("--" + key)
    {no}
                elif isinstance(value, list):
                    args += ["--" + key, *value]
    {nested}
                else:
                    args += ["--" + key, str(value)]
    """
NO = """
                    elif (no_key := f"--no-{key}") in self.actions:
                        args.append(no_key)
"""
NESTED = """
                elif isinstance(value, dict):
                    args += ["--" + key, json.dumps(value)]
"""
GUESS = """
    def __post_init__(self):
        if self.method in ("eagle", "eagle3"):
            pass
        elif "eagle-" in self.draft_model_config.model.lower():
            self.method = "eagle"
        elif "dspark" in self.draft_model_config.model.lower() or "X" in self.draft_model_config.architectures:
            self.method = "dspark"
        elif self.draft_model_config.hf_config.model_type == "medusa":
            self.method = "medusa"
    """


def serve(tmp_path: Path, files: dict[str, str]) -> tuple[ServeFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_serve(SourceTree(tmp_path), unknown), unknown


def reader(no: str = "", nested: str = "") -> str:
    return READER.replace("    {no}\n", no).replace("    {nested}\n", nested)


def test_what_the_yaml_reader_can_do(tmp_path: Path) -> None:
    for number, (no, nested) in enumerate([("", ""), ("", NESTED), (NO, ""), (NO, NESTED)]):
        facts, _ = serve(tmp_path / str(number), {"utils/argparse_utils.py": reader(no, nested)})
        assert (facts.yaml_false, facts.yaml_nested) == (bool(no), bool(nested))


def test_an_older_home_of_the_reader(tmp_path: Path) -> None:
    facts, _ = serve(tmp_path, {"utils/__init__.py": reader(nested=NESTED)})
    assert facts.yaml_nested is True


def test_flags(tmp_path: Path) -> None:
    source = 'group.add_argument("--block-size", "-b", **kw)\nparser.add_argument("--attention-backend")\nother("--no")'
    facts, _ = serve(tmp_path, {"engine/arg_utils.py": source, "envs.py": 'x = {"VLLM_ATTENTION_BACKEND": 1}'})
    assert facts.flags == ("attention-backend", "block-size")
    assert facts.backend_variable


def test_words_that_decide_the_method(tmp_path: Path) -> None:
    facts, _ = serve(tmp_path, {"config/speculative.py": GUESS})
    assert facts.method_kept == ("eagle", "eagle3")
    assert facts.method_words == (("eagle-", "eagle"), ("dspark", "dspark"))


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    facts, unknown = serve(tmp_path, {})
    assert facts == ServeFacts()
    assert set(unknown) == {"serve.yaml_nested", "serve.yaml_false", "serve.flags", "serve.method_words"}
