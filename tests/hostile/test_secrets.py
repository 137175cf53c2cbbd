"""Secrets reach what starts the server, and no report, diff, log or error message."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from specfix.report import FORMATS
from specfix.report.secrets import masked

from .conftest import Run
from .makers import DRAFT, EXAMPLES, HOW, TARGET, WHERE, bounded, refused, speculative

PAIR = (str(TARGET), str(DRAFT), *HOW)
TOKEN, KEY, PASSWORD = "hf_x9Q", "sk-4711abc", "p4ssw0rd"
ENV = ("--env", f"HF_TOKEN={TOKEN}", "--env", f"HTTPS_PROXY=http://me:{PASSWORD}@proxy:3128")
FLAGS = ("--flag", f"hf-token={TOKEN}", "--flag", f'api-key=["{KEY}"]')
ALL = (TOKEN, KEY, PASSWORD)
ARGUMENTS = f"{TARGET} --hf-token {TOKEN} --api-key {KEY} --max-model-len 8192 --speculative-config '{speculative()}'"
LAUNCHES = {
    "run.sh": (
        f"export HF_TOKEN={TOKEN}\nexport OTHER_PASSWORD='{PASSWORD}' PROXY=http://me:{PASSWORD}@proxy\n"
        f"vllm serve {ARGUMENTS} --no-such-flag\n"
    ),
    "serve.yaml": (
        f"model: {TARGET}\nhf-token: {TOKEN}\nmax-model-len: 8192\napi-key: '{KEY}'\nno-such-flag: 1\n"
        f"speculative-config: '{speculative()}'\nlora-modules: http://me:{PASSWORD}@host/x\n"
    ),
    "compose.yaml": (
        "services:\n  db: {image: postgres, environment: [POSTGRES_PASSWORD=p4ssw0rd]}\n"
        f"  llm:\n    image: vllm/vllm-openai:v0.26.0\n    volumes: ['{EXAMPLES}:{EXAMPLES}']\n"
        f'    environment:\n      HF_TOKEN: {TOKEN}\n      MY_PASSWORD: "{PASSWORD}"\n'
        f"    command: [--model, {TARGET}, --hf-token, {TOKEN}, --api-key={KEY}, --max-model-len, '8192', "
        f"--no-such-flag, --speculative-config, '{speculative()}']\n"
    ),
    "pod.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: llm}\nspec:\n  containers:\n"
        f"  - image: vllm/vllm-openai:v0.26.0\n    env:\n    - name: HF_TOKEN\n      value: {TOKEN}\n"
        f"    - name: THEIR_SECRET\n      value: '{PASSWORD}'\n"
        f"    args: [--model, {TARGET}, --hf-token, {TOKEN}, --api-key={KEY}, --max-model-len, '8192', "
        f"--no-such-flag, --speculative-config, '{speculative()}']\n"
    ),
}


def silent(text: str) -> None:
    for each in ALL:
        assert each not in text, (each, text)


@pytest.mark.parametrize("form", FORMATS)
def test_options(specfix: Run, form: str) -> None:
    said = specfix("check", *PAIR, *ENV, *FLAGS, "--format", form)
    assert said.status == 1 and said.err == ""
    silent(said.out)
    if form == "json":
        serving = json.loads(said.out)["deployment"]["serving"]
        assert serving["env"] == {"HF_TOKEN": "***", "HTTPS_PROXY": "http://***@proxy:3128"}
        assert serving["flags"] == {"hf_token": "***", "api_key": "***"}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(specfix: Run, tmp_path: Path, name: str, form: str) -> None:
    file = tmp_path / name
    file.write_text(LAUNCHES[name])
    for given in (("check", str(TARGET), str(DRAFT), "--launch", str(file)), ("gate", str(tmp_path))):
        said = specfix(*given, *WHERE, "--format", form)
        assert said.status in (1, 2) and ("no-such-flag" in said.out or given[0] == "gate"), said
        silent(said.out + said.err)
    again = specfix("gate", str(tmp_path), *WHERE, "--engine", "vllm==0.32.0", "--format", form)
    silent(again.out + again.err)


@pytest.mark.parametrize("name", LAUNCHES)
def test_repairs_of_launches(specfix: Run, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(LAUNCHES[name].replace("--no-such-flag,", "").replace(" --no-such-flag", ""))
    given = ("fix", str(TARGET), str(DRAFT), "--launch", str(file), *WHERE)
    shown = specfix(*given, "--diff")
    assert shown.status == 1, shown
    silent(shown.out + shown.err)
    done = specfix(*given, "--out", str(tmp_path / "out"))
    silent(done.out + done.err)
    silent((tmp_path / "out/report.json").read_text())
    assert TOKEN in (tmp_path / "out" / name).read_text()  # it is what starts the server


def test_repairs(specfix: Run, tmp_path: Path) -> None:
    silent(specfix("fix", *PAIR, *ENV, *FLAGS, "--diff").out)
    out = tmp_path / "out"
    said = specfix("fix", *PAIR, *ENV, *FLAGS, "--out", str(out))
    assert said.status == 0
    silent(said.out + said.err)
    silent((out / "report.json").read_text())
    for name in ("launch.sh", "overrides.json", "serve.yaml"):
        text = (out / name).read_text()
        assert TOKEN in text and KEY in text
        assert stat.S_IMODE((out / name).stat().st_mode) & 0o077 == 0, name
    assert PASSWORD not in (out / "serve.yaml").read_text()


def test_a_flag_alone_closes_the_files(specfix: Run, tmp_path: Path) -> None:
    assert specfix("fix", *PAIR, *FLAGS, "--out", str(tmp_path / "out")).status == 0
    for name in ("launch.sh", "overrides.json", "serve.yaml"):
        assert stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) & 0o077 == 0, name


def test_error_messages(specfix: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"https://me:{PASSWORD}@huggingface.co/org/name"
    monkeypatch.setenv("HUGGING_FACE_HUB_TOKEN", KEY)
    for given in (
        ("check", url, str(DRAFT)),
        ("check", str(TARGET), f"{url}/{KEY}"),
        ("check", *PAIR[:-4], "--engine", f"git+{url}"),
        ("check", *PAIR[:-4], "--engine", f"https://{'hf_' + 'a1' * 17}@huggingface.co/x"),
        ("check", *PAIR, "--flag", f'api-key={{"{KEY}": 1}}', "--flag", f"max-num-seqs=http://{PASSWORD}@x"),
        ("fix", *PAIR, "--flag", f"hf-token={TOKEN}\udcff", "--diff"),
    ):
        said = specfix(*given)
        assert said.status == 2, given
        silent(said.out + said.err)
        assert "a1a1" not in said.err


def test_the_hub_is_asked_with_a_token_and_says_none(tmp_path: Path) -> None:
    said = bounded(
        *("check", "org/name", str(DRAFT), *HOW),
        env={
            "HF_TOKEN": TOKEN,
            "HUGGING_FACE_HUB_TOKEN": KEY,
            "HF_ENDPOINT": f"http://me:{PASSWORD}@127.0.0.1:9",
            "HF_HOME": str(tmp_path),
        },
    )
    refused(said, "org/name is no folder here, cannot be read from the Hub")
    silent(said.err)


def test_what_is_no_secret_is_told() -> None:
    values = {
        "tokenizer": "a/b",
        "max_num_batched_tokens": 8192,
        "VLLM_MAX_TOKENS_PER_EXPERT": "512",
        "return_tokens_as_token_ids": True,
        "hf_token": True,
        "endpoint": "https://host/a@b",
    }
    assert masked(values) == values


WITHIN = {"kv_connector": "X", "kv_connector_extra_config": {"password": PASSWORD, "hosts": [{"api_key": KEY}]}}


def test_a_secret_within_a_flag(tmp_path: Path) -> None:
    out = tmp_path / "out"
    flag = ("--flag", f"kv-transfer-config={json.dumps(WITHIN)}")
    said = bounded("fix", *PAIR, *flag, "--out", str(out))
    assert said.status == 0 and out.is_dir()
    for name in ("launch.sh", "overrides.json", "serve.yaml"):
        assert PASSWORD in (out / name).read_text() and stat.S_IMODE((out / name).stat().st_mode) & 0o077 == 0
    shown = bounded("check", *PAIR, *flag, "--format", "json", "--speculative-config", json.dumps({"token": TOKEN}))
    for text in ((out / "report.json").read_text(), said.out, shown.out, shown.err):
        assert not any(secret in text for secret in ALL)


def test_a_repaired_launch_with_a_secret_is_for_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text(LAUNCHES["run.sh"].replace(" --no-such-flag", ""))
    file.chmod(0o644)
    said = bounded("fix", "--launch", str(file), *WHERE, "--out", str(tmp_path / "out"))
    assert said.status in (0, 1) and stat.S_IMODE((tmp_path / "out/run.sh").stat().st_mode) & 0o077 == 0
