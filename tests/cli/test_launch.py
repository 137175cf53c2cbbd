"""``specfix check`` of a launch as it stands: a command line, files, a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specfix.launching import preset_of

from .conftest import DRAFT, EXAMPLES, TARGET, Run

SPECULATIVE = json.dumps({"method": "eagle3", "model": DRAFT, "num_speculative_tokens": 5})
ON = ("--hardware", "h200", "--select", "POS001,CFG006,CFG007")
COMMAND = ("vllm", "serve", TARGET, "--max-model-len", "8k", "--speculative-config", SPECULATIVE)
SERVE = f"model: {TARGET}\nmax-model-len: 8192\nspeculative-config: {SPECULATIVE}\n"
COMPOSE = f"""\
services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    volumes: ["{EXAMPLES}:{EXAMPLES}:ro"]
    command: ["--model", "{TARGET}", "--max-model-len", "1024", "--speculative-config", '{SPECULATIVE}']
"""


BASES = Path(__file__).parent.parent / "bases"


def codes(text: str) -> list[str]:
    return [found["code"] for found in json.loads(text)["findings"]]


@pytest.mark.parametrize(
    "command",
    [
        COMMAND,
        ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", *COMMAND[2:]),
        ("docker", "run", "-v", f"{EXAMPLES}:{EXAMPLES}", "vllm/vllm-openai:v0.26.0", "--model", *COMMAND[2:]),
    ],
)
def test_a_command(specfix: Run, command: tuple[str, ...]) -> None:
    engine = () if command[0] == "docker" else ("--engine", "vllm==0.26.0")
    done = specfix("check", *ON, *engine, "--format", "json", "--", *command)
    assert (done.returncode, done.stderr) == (1, "")
    assert codes(done.stdout) == ["POS001"]
    assert json.loads(done.stdout)["deployment"]["serving"]["max_model_len"] == 8000


def test_what_the_release_does_not_take_is_a_finding(specfix: Run) -> None:
    done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--", *COMMAND, "--max-num-seq", "x", "--nothing")
    assert done.returncode == 1
    assert "error[CFG006]" in done.stdout and "vllm 0.26.0 has no --nothing" in done.stdout


def test_a_file_and_the_line_in_it(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(SERVE)
    done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--launch", str(file))
    assert (done.returncode, done.stderr) == (1, "")
    assert f"::: {file}:2" in done.stdout and "2 | max-model-len: 8192" in done.stdout


@pytest.mark.parametrize(
    ("written", "read"),
    [('"3"', 3), ("3.0", 3), ('" 3 "', 3), ("true", 1), ('"x"', None), ("3.5", None), ('"0"', None)],
)
def test_tokens_are_read_as_the_engine_does(specfix: Run, written: str, read: int | None) -> None:
    config = f'{{"method": "eagle3", "model": "{DRAFT}", "num_speculative_tokens": {written}}}'
    options = ("--hardware", "h200", "--engine", "vllm==0.32.0", "--select", "CFG006", "--format", "json")
    done = specfix("check", *options, "--", "vllm", "serve", TARGET, "-sc", config)
    assert json.loads(done.stdout)["deployment"]["serving"]["num_speculative_tokens"] == read
    assert codes(done.stdout) == ([] if read else ["CFG006"])


def test_the_config_as_a_whole_is_named_without_a_value(specfix: Run) -> None:
    config = json.dumps({**json.loads(SPECULATIVE), "Method": 1})
    done = specfix(
        "check", "--hardware", "h200", "--engine", "vllm==0.26.0", "--", "vllm", "serve", TARGET, "-sc", config
    )
    assert "error[CFG001]" in done.stdout and "--> --speculative-config\n" in done.stdout


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """A draft of the speculators library, whose verifier is the target here."""
    config = json.loads((BASES / "speculator-eagle3-llama-3.1-8b" / "config.json").read_text())
    config["speculators_config"]["verifier"]["name_or_path"] = TARGET
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def alone(specfix: Run, lone: Path, engine: str, *more: str) -> Any:
    options = ("--hardware", "h200", "--engine", f"vllm=={engine}", "--format", "json")
    done = specfix("check", *options, "--", "vllm", "serve", str(lone), "--max-model-len", "2048", *more)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_a_draft_that_is_served_alone(specfix: Run, lone: Path) -> None:
    told = alone(specfix, lone, "0.26.0")["deployment"]
    assert (told["target"], told["draft"], told["method"]) == (TARGET, str(lone), "eagle3")
    assert told["serving"]["num_speculative_tokens"] == 3
    assert f"target {TARGET}: the verifier that {lone} names" in told["assumptions"]


@pytest.mark.parametrize(("engine", "tokens", "dropped"), [("0.26.0", 3, True), ("0.32.0", 5, False)])
def test_what_is_asked_for_beside_such_a_draft(
    specfix: Run, lone: Path, engine: str, tokens: int, dropped: bool
) -> None:
    beside = json.dumps({"method": "eagle", "num_speculative_tokens": 5})
    told = alone(specfix, lone, engine, "--speculative-config", beside)
    deployment = told["deployment"]
    assert (deployment["method"], deployment["serving"]["num_speculative_tokens"]) == ("eagle3", tokens)
    assert any(each["code"] == "CFG007" for each in told["findings"]) is dropped


def test_a_verifier_that_must_be_on_the_hub(specfix: Run, lone: Path) -> None:
    (found,) = [each for each in alone(specfix, lone, "0.33.0")["findings"] if each["code"] == "CFG006"]
    assert "takes a repository on the Hub for the verifier" in found["message"]


@pytest.mark.parametrize("engine", ["0.10.0", "0.26.0"])
def test_a_draft_alone_of_which_the_release_makes_no_pair(specfix: Run, tmp_path: Path, engine: str) -> None:
    config = {"speculators_config": {"verifier": {"name_or_path": "org/target"}}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = specfix("check", "--engine", f"vllm=={engine}", "--", "vllm", "serve", str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path} is a draft, of which vllm {engine} makes no pair: give TARGET and DRAFT" in done.stderr


def test_a_launch_of_a_draft_alone_is_not_changed(specfix: Run, lone: Path) -> None:
    file = lone / "run.sh"
    file.write_text(f"vllm serve {lone}\n")
    done = specfix("fix", "--engine", "vllm==0.26.0", "--launch", str(file), "--out", str(lone / "out"))
    assert done.returncode == 2 and "fix takes a launch that names both" in done.stderr


def test_a_key_that_is_missing_is_told_where_it_would_stand(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(f"vllm serve {TARGET} \\\n  -sc.model {DRAFT} \\\n  -sc.method eagle3\n")
    options = ("--hardware", "h200", "--engine", "vllm==0.26.0", "--select", "CFG004", "--format", "json")
    done = specfix("check", *options, "--launch", str(file))
    (finding,) = json.loads(done.stdout)["findings"]
    at = {"file": str(file), "pointer": "--speculative-config.num_speculative_tokens", "line": 2}
    assert finding["location"] == at


def test_a_folder_is_one_report_and_a_table(specfix: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SERVE)
    (tmp_path / "b.yml").write_text(COMPOSE)
    (tmp_path / "c.yaml").write_text("apiVersion: v1\nkind: Service\n")
    (tmp_path / "d.sh").write_text("vllm serve $MODEL --speculative-config '{}'\n")
    (tmp_path / "e.yaml").write_text("a: {{ .Values.x }\n")
    done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--launch", str(tmp_path), "--launch", "/nowhere.yaml")
    assert (done.returncode, done.stderr) == (2, "")
    table = done.stdout.splitlines()[-5:]
    assert [line.split()[0] for line in table] == ["fail", "pass", "unreadable", "unreadable", "unreadable"]
    assert "the target of" in table[2] and "$MODEL" in table[2] and "give TARGET and DRAFT too" in table[2]
    assert "e.yaml: line 2: " in table[3] and "/nowhere.yaml: cannot be read" in table[4]
    for form in ("json", "sarif", "junit", "github", "markdown"):
        done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--launch", str(tmp_path), "--format", form)
        assert done.returncode == 2 and "POS001" in done.stdout and "$MODEL" in done.stdout


def test_several_reports_as_json(specfix: Run, tmp_path: Path) -> None:
    for name, text in (("a.yaml", SERVE), ("b.yaml", COMPOSE)):
        (tmp_path / name).write_text(text)
    done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--launch", str(tmp_path), "--format", "json")
    told = json.loads(done.stdout)
    assert told["schema"] == "specfix/reports-v1" and done.returncode == 1
    assert [each["report"]["verdict"] for each in told["reports"]] == ["fail", "pass"]


def test_where_the_models_are_here_may_be_said(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(
        'vllm serve $MODEL --max-model-len $LEN --speculative-config \'{"method": "eagle3", "model": "/d"}\'\n'
    )
    done = specfix("check", TARGET, DRAFT, *ON, "--engine", "vllm==0.26.0", "--launch", str(file), "--format", "json")
    told = json.loads(done.stdout)
    assert told["deployment"]["draft"] == DRAFT
    # a length that is known only where it runs decides nothing
    assert [skip["code"] for skip in told["skipped"]] == ["POS001"]
    assert "$LEN is known only where it runs" in told["skipped"][0]["reason"]


def test_a_tag_that_says_no_release_is_an_assumption(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(COMPOSE.replace("v0.26.0", "latest"))
    done = specfix("check", *ON, "--launch", str(file))
    assert "Assumed: engine vllm " in done.stdout and "its tag does not say which release" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--", "echo", "vllm", "serve"), "starts no vLLM server that can be recognised"),
        (("--max-model-len", "9", "--", *COMMAND), "--max-model-len and a launch are given"),
        (("--flag", "seed=1", "--", *COMMAND), "--flag and a launch are given"),
        (("--launch", "/nowhere"), "/nowhere cannot be read"),
        (("--", "vllm", "serve", TARGET), "asks for no speculation"),
        *((("--", "vllm", "serve", TARGET, "-sc", none), "asks for no speculation") for none in ("", "None", "null")),
        (("--", *COMMAND, *("x" for _ in range(2000))), "more than the 2,000 arguments that are read"),
        (
            ("--", "docker", "run", *(f"-eX{n}=1" for n in range(2001)), "vllm/vllm-openai:v0.26.0", *COMMAND[2:]),
            "sets more than the 2,000 variables that are read",
        ),
        (("--", "vllm", "serve", TARGET, "-sc", "[]"), "--speculative-config is [] where vllm 0.26.0 takes an object"),
        (("--", "vllm", "serve", TARGET, "-sc", '{"method": "eagel3"}'), 'knows no speculative method "eagel3"'),
        (("--", "vllm", "serve", TARGET, "--speculative-config", "{'a': 1}"), "is not valid JSON"),
        (("--", "vllm", "serve", TARGET, "--speculative-confg", "{}"), "has no --speculative-confg"),
        (("--", "vllm", "serve", "--speculative-config", SPECULATIVE), "names no model to serve"),
        ((), "give a TARGET and its DRAFT, or a launch"),
    ],
)
def test_what_cannot_be_checked(specfix: Run, arguments: tuple[str, ...], message: str) -> None:
    done = specfix("check", "--engine", "vllm==0.26.0", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_name_that_begins_with_a_dash_is_no_command(specfix: Run) -> None:
    done = specfix("check", "--", "-name")
    assert done.returncode == 2 and "the target '-name' does not exist here" in done.stderr.replace('"', "'")


def test_words_that_may_hold_any_option_leave_open_what_they_may_say(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(f"exec vllm serve {TARGET} --speculative-config '{SPECULATIVE}' \"$@\"\n")
    done = specfix("check", *ON, "--engine", "vllm==0.26.0", "--launch", str(file), "--format", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and [skip["code"] for skip in told["skipped"]] == ["POS001"]


def test_a_file_does_not_say_that_this_machine_will_serve_it(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(SERVE)
    done = specfix("check", "--select", "HWR", "--engine", "vllm==0.26.0", "--launch", str(file))
    assert done.returncode == 0 and "will run on is not known" in done.stdout and "unknown hardware" in done.stdout


def test_two_models_are_refused_as_the_engine_does(specfix: Run) -> None:
    done = specfix("check", *ON, "--engine", "vllm==0.32.0", "--", *COMMAND, "--model", TARGET)
    assert done.returncode == 1 and "as the first argument or by --model, not both" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("label", "preset"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100"),
        ("nvidia-h100-80gb", "h100"),
        ("NVIDIA-A100-SXM4-40GB", "a100-40gb"),
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-GeForce-RTX-4090", "rtx4090"),
        ("AMD_Instinct_MI300X_OAM", "mi300x"),
        ("NVIDIA-L40", None),
        ("NVIDIA-RTX-A4000", None),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", None),
        ("nvidia-tesla-t400", None),
    ],
)
def test_the_device_that_a_label_names(label: str, preset: str | None) -> None:
    assert preset_of(label) == preset


def test_an_image_wins_over_the_projects_settings_and_a_release_that_is_not_known_is_said(
    specfix: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specfix.toml").write_text('engine = "vllm==0.32.0"\n')
    file = tmp_path / "c.yaml"
    file.write_text(COMPOSE)
    assert "on vllm 0.26.0" in specfix("check", *ON, "--launch", str(file)).stdout
    done = specfix("check", *ON, "--engine", "0.24.0", "--launch", str(file))
    assert "engine vllm 0.24.0, though vllm/vllm-openai:v0.26.0 says 0.26.0" in done.stdout
    file.write_text(COMPOSE.replace("v0.26.0", "v0.8.5"))
    done = specfix("check", *ON, "--launch", str(file))
    assert done.returncode == 2 and "0.8.5" in done.stderr
    file.write_text(COMPOSE.replace("v0.26.0", "latest"))
    assert "on vllm 0.32.0" in specfix("check", *ON, "--launch", str(file)).stdout


SCRIPT = """\
#!/usr/bin/env bash
MODELS={models}
LEN=8192
ARGS=(
  --max-model-len "$LEN"
)
if [ -n "$SEED" ]; then
  ARGS+=(--seed 1)
fi
exec vllm serve "$MODELS/llama-3.1-8b-instruct" "${{ARGS[@]}}" \\
  --speculative-config '{{"method":"eagle3","model":"'$MODELS'/eagle3-llama-3.1-8b","num_speculative_tokens":'$K'}}' \\
  # --quantization fp8 \\
  --max-num-seqs 8
"""


def test_a_script_as_users_write_it(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(SCRIPT.format(models=EXAMPLES))
    done = specfix(
        "check", *ON, "--select", "CFG,NUM001", "--engine", "0.26.0", "--launch", str(file), "--format", "json"
    )
    told = json.loads(done.stdout)
    found = {each["code"]: each for each in told["findings"]}
    assert set(found) == {"POS001", "CFG007"}
    assert [place["line"] for place in found["POS001"]["related"]] == [5]
    assert "--max-num-seqs: no part of the command" in found["CFG007"]["message"]
    assert found["CFG007"]["location"]["line"] == 13
    # what is unknown of the speculative config leaves open what hangs on it, and nothing else
    assert {"CFG004", "NUM001"} <= {skip["code"] for skip in told["skipped"]}
    assert all("$K" in skip["reason"] for skip in told["skipped"] if skip["code"] in ("CFG004", "NUM001"))


def test_a_speculative_config_behind_the_end_of_the_command(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(f"vllm serve {TARGET}\n  --speculative-config '{SPECULATIVE}'\n")
    done = specfix("check", "--engine", "0.26.0", "--launch", str(file))
    assert done.returncode == 2 and "--speculative-config: no part of the command" in done.stderr


def test_a_doubled_entry_point_is_refused(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(COMPOSE.replace('["--model",', '["vllm", "serve", "--model",'))
    done = specfix("check", *ON, "--launch", str(file))
    said = " ".join(done.stdout.split())
    assert done.returncode == 1 and "error[CFG006]" in done.stdout
    assert 'vllm/vllm-openai:v0.26.0 starts the server itself, and takes "vllm serve" for arguments' in said


def test_paths_inside_a_container(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    text = COMPOSE.replace(f"{EXAMPLES}/", "/models/").replace(f":{EXAMPLES}:ro", ":/models")
    file.write_text(text)
    assert specfix("check", *ON, "--launch", str(file)).returncode == 0
    file.write_text(text.replace(str(EXAMPLES), "models"))  # a volume of that name
    done = specfix("check", *ON, "--launch", str(file))
    assert done.returncode == 2 and "in a container, which is known only where it runs" in done.stderr
    file.write_text(COMPOSE.replace("/eagle3", "/../nowhere/eagle3"))
    assert "the draft of" in specfix("check", *ON, "--launch", str(file)).stderr


def test_a_config_file_inside_a_container(specfix: Run, tmp_path: Path) -> None:
    file, inner = tmp_path / "c.yaml", tmp_path / "inner"
    inner.mkdir()
    (inner / "serve.yaml").write_text("max-model-len: 8192\n")
    text = COMPOSE.replace('"--max-model-len", "1024"', '"--config", "/etc/vllm/serve.yaml"')
    file.write_text(text)
    done = specfix("check", *ON, "--launch", str(file), "--format", "json")
    told = json.loads(done.stdout)
    assert [skip["code"] for skip in told["skipped"]] == ["POS001"] and not told["findings"]
    assert any("/etc/vllm/serve.yaml in the container" in each for each in told["deployment"]["assumptions"])
    file.write_text(text.replace("volumes: [", 'volumes: ["./inner:/etc/vllm", '))
    done = specfix("check", *ON, "--launch", str(file), "--format", "json")
    assert codes(done.stdout) == ["POS001"]


def test_variables_from_elsewhere_are_unknown(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(COMPOSE.replace("1024", "8192").replace("    command", "    env_file: more.env\n    command"))
    done = specfix("check", *ON, "--launch", str(file), "--format", "json")
    told = json.loads(done.stdout)
    assert [skip["code"] for skip in told["skipped"]] == ["POS001"] and not told["findings"]
    assert any("more.env may set are known only where it runs" in each for each in told["deployment"]["assumptions"])
    (tmp_path / "more.env").write_text("# mine\nHF_TOKEN=secret\nVLLM_USE_V2_MODEL_RUNNER='1'\nVLLM_NO_SUCH=1\n")
    done = specfix("check", *ON, "--launch", str(file), "--format", "json")
    told = json.loads(done.stdout)
    assert sorted(codes(done.stdout)) == ["CFG007", "POS001"] and "secret" not in done.stdout
    assert [each["location"]["line"] for each in told["findings"] if each["code"] == "CFG007"] == [4]


def test_the_launch_that_fix_wrote(specfix: Run, tmp_path: Path) -> None:
    out = tmp_path / 'fix"ed'
    options = ("--hardware", "h200", "--engine", "0.26.0", "--method", "eagle3", "--max-model-len", "8192")
    assert specfix("fix", TARGET, DRAFT, *options, "--num-speculative-tokens", "3", "--out", str(out)).returncode == 0
    done = specfix("check", *options[:4], "--launch", str(out / "launch.sh"), "--format", "json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["deployment"]["draft"] == str(out / "draft")
    assert told["deployment"]["serving"]["max_model_len"] == 8192


def test_a_model_in_words_that_are_unknown(specfix: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(f"vllm serve \"${{ARGS[@]}}\" --speculative-config '{SPECULATIVE}'\n")
    done = specfix("check", "--engine", "0.26.0", "--launch", str(file))
    assert done.returncode == 2 and "the target of" in done.stderr and "${ARGS[@]}, which is known only" in done.stderr
