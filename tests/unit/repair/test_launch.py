"""What starts the engine: launch.sh is run, with a vllm that tells what it was given."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import specfix
from specfix.checker import Finding, Repair, rule
from specfix.deployment import Target
from specfix.engines.facts.serving import Flag, ServeFacts
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.repair.apply import overridable
from specfix.repair.files import launch_sh, serve_yaml
from specfix.repair.launch import Launch, Place, check_path

from .pairs import OPTIONS, ROOT, change, state, write_pair

VLLM = f"""#!{sys.executable}
import json, os, sys
names = ("PYTHONPATH", "VLLM_PLUGINS", "CUDA_VISIBLE_DEVICES", "ODD", "here", "json", "quote", "slash", "python")
print(json.dumps([sys.argv[1:], {{name: os.environ[name] for name in names if name in os.environ}}]))
"""


def start(script: Path, *arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """Run launch.sh; what vllm was given: its arguments and variables."""
    done = run(script, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    given, variables = json.loads(done.stdout)
    return given, variables


def run(script: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    tools = script.parent.parent / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "vllm").write_text(VLLM)
    (tools / "vllm").chmod(0o755)
    if not (tools / "python").exists():
        (tools / "python").symlink_to(sys.executable)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(script.parent), **environment}
    return subprocess.run(
        ["bash", str(script), *arguments], capture_output=True, text=True, env=variables, check=False, cwd="/"
    )


def options_of(given: list[str]) -> dict[str, str]:
    """Flags and their values."""
    return {given[at]: given[at + 1] for at in range(len(given) - 1) if given[at].startswith("--")}


@pytest.mark.parametrize("name", ["out", "a b", "quo\"te's", "back\\slash", "do$llar `x` & ;", "ümlaut"])
def test_the_script_runs_from_wherever_it_lies(tmp_path: Path, name: str) -> None:
    target, draft = write_pair(tmp_path / "models")
    specfix.fix(target, draft, out=tmp_path / name, copy=True, **OPTIONS)
    moved = tmp_path / "elsewhere" / name
    moved.parent.mkdir()
    for folder in (tmp_path / name, moved):
        if folder is moved:
            shutil.move(tmp_path / name, moved)
        given, _ = start(folder / "launch.sh", "--port", "8001")
        assert given[:2] == ["serve", str(target)]
        assert given[-2:] == ["--port", "8001"]
        config = json.loads(options_of(given)["--speculative-config"])
        assert config == {"method": "eagle3", "num_speculative_tokens": 5, "model": str(folder / "draft")}
        assert options_of(given)["--max-model-len"] == "8192"


def test_all_three_say_the_same(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    more: dict[str, Any] = {"dtype": "bfloat16", "enforce_eager": True, "max_num_seqs": 4, "tensor_parallel_size": 2}
    specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS, **more)
    overrides = json.loads((tmp_path / "out/overrides.json").read_text())
    served = yaml.safe_load((tmp_path / "out/serve.yaml").read_text())
    assert list(overrides) == [
        *("schema", "target", "draft", "engine_args", "speculative_config", "hf_overrides", "env", "unset_env", "shim")
    ]
    assert served == {
        "model": overrides["target"],
        **overrides["engine_args"],
        "speculative-config": overrides["speculative_config"],
    }
    assert overrides["speculative_config"]["model"] == overrides["draft"] == str(tmp_path / "out/draft")
    given, _ = start(tmp_path / "out/launch.sh")
    assert "--enforce-eager" in given and options_of(given)["--tensor-parallel-size"] == "2"
    assert json.loads(options_of(given)["--speculative-config"]) == overrides["speculative_config"]


CPU: dict[str, Any] = OPTIONS | {"hardware": "cpu"}


@pytest.mark.parametrize(
    ("asked", "here", "plugins"),
    [
        (None, None, None),
        (None, "", "specfix_shim"),
        (None, "a", "a,specfix_shim"),
        (None, "specfix_shim,a", "specfix_shim,a"),
        (None, "xspecfix_shim", "xspecfix_shim,specfix_shim"),
        ("b", None, "b,specfix_shim"),
        ("b", "a", "b,specfix_shim"),
    ],
)
def test_the_shim_is_found_and_let_in(tmp_path: Path, asked: str | None, here: str | None, plugins: str | None) -> None:
    target, draft = write_pair(tmp_path / "models")
    env = {} if asked is None else {"VLLM_PLUGINS": asked}
    specfix.fix(target, draft, out=tmp_path / "out", env=env, **CPU)
    there = {} if here is None else {"VLLM_PLUGINS": here}
    _, variables = start(tmp_path / "out/launch.sh", **there)
    assert variables["PYTHONPATH"] == str(tmp_path / "out/shim")
    assert variables.get("VLLM_PLUGINS") == plugins
    _, variables = start(tmp_path / "out/launch.sh", PYTHONPATH="/other", **there)
    assert variables["PYTHONPATH"] == f"{tmp_path / 'out/shim'}:/other"
    manifest = json.loads((tmp_path / "out/shim/specfix_shim/manifest.json").read_text())
    assert manifest == {"schema": "specfix/shim-v1", "patches": {"cpu_sampling": {}}}
    assert json.loads((tmp_path / "out/overrides.json").read_text())["shim"] == str(tmp_path / "out/shim")


def test_variables_are_set_and_unset(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    machine = {"platform": "cpu", "triton_installed": True, "triton_drivers": 0}
    (tmp_path / "machine.json").write_text(json.dumps({"name": "m", **machine}))
    odd = "a b\n'$x' \"y\""
    options = OPTIONS | {"engine": "vllm==0.21.0", "hardware": str(tmp_path / "machine.json"), "select": "HWR004"}
    fixed = specfix.fix(target, draft, out=tmp_path / "out", env={"CUDA_VISIBLE_DEVICES": "", "ODD": odd}, **options)
    assert [found.code for found in fixed.plan.done] == ["HWR004"]
    overrides = json.loads((tmp_path / "out/overrides.json").read_text())
    assert (overrides["env"], overrides["unset_env"]) == ({"ODD": odd}, ["CUDA_VISIBLE_DEVICES"])
    _, variables = start(tmp_path / "out/launch.sh", CUDA_VISIBLE_DEVICES="")
    assert variables == {"ODD": odd}
    with pytest.raises(CannotCheck, match="'A-B' is no name of a variable"):
        specfix.fix(target, draft, out=tmp_path / "other", env={"A-B": "1"}, **OPTIONS)


ENGINE = find_engine("0.26.0")
PLAIN = Launch(
    target=Place(Path("/models/target")),
    draft=None,
    has_draft=True,
    engine_args={"enable-prefix-caching": False, "enforce-eager": True, "block-size": 64},
    speculative_config={"method": "draft_model"},
    hf_overrides={"text_config": {"x": 1.5}},
    env={},
    unset_env=(),
    shim=None,
)


@pytest.mark.parametrize(
    ("facts", "no", "nested"),
    [
        (ServeFacts(), {"no-enable-prefix-caching": True}, False),
        (ServeFacts(yaml_nested=False, yaml_false=False), {"no-enable-prefix-caching": True}, False),
        (ServeFacts(yaml_nested=True, yaml_false=False), {"no-enable-prefix-caching": True}, True),
        (ServeFacts(yaml_nested=True, yaml_false=True), {"enable-prefix-caching": False}, True),
    ],
)
def test_the_yaml_is_what_the_release_reads(facts: ServeFacts, no: dict[str, bool], nested: bool) -> None:
    found = yaml.safe_load(serve_yaml.render(PLAIN, replace(ENGINE, serve=facts), "/out"))
    configs: dict[str, Any] = {
        "hf-overrides": {"text_config": {"x": 1.5}},
        "speculative-config": {"method": "draft_model", "model": "/out/draft"},
    }
    for key, value in configs.items():
        assert found.pop(key) == (value if nested else json.dumps(value))
    assert found == {"model": "/models/target", "enforce-eager": True, "block-size": 64, **no}


def test_a_false_flag_on_the_command_line() -> None:
    assert list(launch_sh.words(PLAIN))[1:3] == ["--no-enable-prefix-caching", "--enforce-eager"]


@pytest.mark.parametrize(
    ("path", "method", "wrong"),
    [
        ("/m/eagle3-x/draft", "eagle3", None),
        ("/m/my-EAGLE3-things/draft", "draft_model", "eagle3"),
        ("/m/dflash/x", "mtp", "dflash"),
        ("/m/dspark/eagle-1", "draft_model", "eagle"),
        ("/m/plain/draft", "draft_model", None),
        ("/m/eagle3", "ngram", None),
        ("/m/eagle3", None, None),
    ],
)
def test_a_path_that_decides_the_method(path: str, method: str | None, wrong: str | None) -> None:
    if wrong is None:
        return check_path(path, method, ENGINE)
    with pytest.raises(CannotCheck, match=f"takes method {wrong} for a draft whose path holds"):
        check_path(path, method, ENGINE)
    return None


def test_an_out_that_would_change_the_method(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    engine = find_engine(OPTIONS["engine"])
    for path in ("/x/eagle3-fixed/draft", "/x/My-DFlash/draft"):
        with pytest.raises(CannotCheck, match="choose another --out"):
            check_path(path, "mtp", engine)
        check_path(path, "eagle3", engine)  # what is asked for is kept
    # and the folder may be moved to such a place later
    made = specfix.fix(target, draft, out=tmp_path / "fixed", **OPTIONS)
    start = replace(made.launch, speculative_config={**made.launch.speculative_config, "method": "mtp"})
    (tmp_path / "my-DFlash").mkdir()
    moved = Path(shutil.move(tmp_path / "fixed", tmp_path / "my-DFlash/fixed"))
    (moved / "launch.sh").write_text(launch_sh.render(start, engine, "a pair", {}))
    done = run(moved / "launch.sh")
    assert done.returncode == 1 and "takes method dflash" in done.stderr


def test_a_draft_that_needs_no_repair_stays_where_it_is(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    fixed = specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS | {"max_model_len": 1024})
    assert not fixed.plan.changes and not (tmp_path / "out/draft").exists()
    assert json.loads((tmp_path / "out/overrides.json").read_text())["draft"] == str(draft)


def test_mtp_has_no_model_of_its_own(tmp_path: Path) -> None:
    target, _ = write_pair(tmp_path / "models")
    change(target / "config.json", num_nextn_predict_layers=1)
    specfix.fix(target, out=tmp_path / "out", **OPTIONS | {"method": "mtp"})
    overrides = json.loads((tmp_path / "out/overrides.json").read_text())
    assert overrides["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 5}
    assert overrides["draft"] is None


@pytest.mark.parametrize(("version", "flag"), [("0.12.0", False), ("0.26.0", True)])
def test_the_attention_backend_is_a_flag_or_a_variable(tmp_path: Path, version: str, flag: bool) -> None:
    target, draft = write_pair(tmp_path / "models")
    options = OPTIONS | {"engine": version, "attention_backend": "FLASHINFER"}
    specfix.fix(target, draft, out=tmp_path / "out", **options)
    overrides = json.loads((tmp_path / "out/overrides.json").read_text())
    assert overrides["env"] == ({} if flag else {"VLLM_ATTENTION_BACKEND": "FLASHINFER"})
    assert overrides["engine_args"].get("attention-backend") == ("FLASHINFER" if flag else None)


def test_an_additional_config_keeps_what_it_has(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS, flags={"additional_config": {"a": 1}})
    given = json.loads((tmp_path / "out/overrides.json").read_text())["engine_args"]["additional-config"]
    assert json.loads(given)["a"] == 1 and json.loads(given)["specfix_draft"]


@pytest.mark.parametrize(
    ("pointer", "value", "by_flag"),
    [
        ("/max_position_embeddings", 1, True),
        ("/text_config/x", 1, True),
        ("/thinker_config/text_config/x", [1], True),
        ("/rope_scaling", {"factor": 2}, False),
        ("/rope_scaling/factor", 2, False),
        ("/model_type", "llama", False),
        ("/layers/0", 1, False),
    ],
)
def test_what_hf_overrides_can_do(pointer: str, value: object, by_flag: bool) -> None:
    assert overridable(pointer, value) == by_flag


@pytest.mark.parametrize("pointer", ["/some_key", "/rope_scaling/factor"])
def test_a_target_moves_only_where_no_flag_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pointer: str
) -> None:
    @rule("AAA001", "target", severity="error", evidence=["a/b#1"])
    def wants(target: Target) -> Iterator[Finding]:
        """Wants one value in the target."""
        keys = pointer.split("/")[1:]
        value: Any = target.config.values
        for key in keys:
            value = value.get(key, {})
        if value != 7:
            repair = Repair("safe", "set it", ("target_config",), (("target_config", pointer, 7),))
            yield Finding("not 7", target.config.at(pointer), "load", repair=repair)

    monkeypatch.setattr("specfix.checking.load_rules", lambda: [wants])
    target, draft = write_pair(tmp_path / "models")
    before = state(tmp_path / "models")
    fixed = specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS)
    assert not fixed.plan.left
    overrides = json.loads((tmp_path / "out/overrides.json").read_text())
    given, _ = start(tmp_path / "out/launch.sh")
    if pointer == "/some_key":
        assert (overrides["target"], overrides["hf_overrides"]) == (str(target), {"some_key": 7})
        assert json.loads(options_of(given)["--hf-overrides"]) == {"some_key": 7}
        more = {"hf_overrides": {"text_config": {"x": 1}}}
        specfix.fix(target, draft, out=tmp_path / "more", **OPTIONS, flags=more)
        given, _ = start(tmp_path / "more/launch.sh")
        assert json.loads(options_of(given)["--hf-overrides"]) == {"text_config": {"x": 1}, "some_key": 7}
        assert more == {"hf_overrides": {"text_config": {"x": 1}}}
    else:
        assert (overrides["target"], overrides["hf_overrides"]) == (str(tmp_path / "out/target"), {})
        assert options_of(given)["--served-model-name"] == overrides["engine_args"]["served-model-name"] == str(target)
        assert given[1] == str(tmp_path / "out/target")
        assert json.loads((tmp_path / "out/target/config.json").read_text())["rope_scaling"]["factor"] == 7
    assert state(tmp_path / "models") == before


def test_a_release_without_the_flag(tmp_path: Path) -> None:
    from specfix.repair.launch import launch

    target, draft = write_pair(tmp_path / "models")
    deployment = specfix.check(target, draft, block_size=16, **OPTIONS).deployment
    engine = replace(ENGINE, serve=ServeFacts(flags={"max-model-len": Flag("size")}))
    with pytest.raises(CannotCheck, match="has no --block-size"):
        launch(deployment, deployment, {}, engine)


def test_a_hostile_version_is_no_command(tmp_path: Path) -> None:
    engine = replace(ENGINE, version=f"1\n$(touch {tmp_path}/x) `y` 'z")
    text = launch_sh.render(PLAIN, engine, f"x on {engine}", {})
    (tmp_path / "out").mkdir()
    (tmp_path / "out/launch.sh").write_text(text)
    start(tmp_path / "out/launch.sh")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("version", ["0.12.0", "0.26.0", "0.32.0"])
def test_golden(tmp_path: Path, version: str) -> None:
    """Flat YAML on a GPU, and nested YAML on a CPU, with a shim. SPECFIX_GOLDEN=1 writes them anew."""
    target, draft = write_pair(tmp_path / "models")
    hardware = "h200" if version == "0.12.0" else "cpu"
    backend = {"attention_backend": "FLASHINFER"} if version == "0.12.0" else {}
    options = OPTIONS | backend | {"engine": version, "hardware": hardware, "env": {"VLLM_PLUGINS": "mine"}}
    specfix.fix(target, draft, out=tmp_path / "out", **options)
    golden = ROOT / "tests/golden/fix" / version
    for name in ("overrides.json", "serve.yaml", "launch.sh"):
        text = (tmp_path / "out" / name).read_text().replace(str(tmp_path), "/folder")
        if os.environ.get("SPECFIX_GOLDEN"):
            golden.mkdir(parents=True, exist_ok=True)
            (golden / name).write_text(text)
        assert text == (golden / name).read_text()


@pytest.mark.parametrize("plugins", [None, "mine", "", "specfix_shim,mine"])
def test_the_launcher_in_the_readme_starts_the_same(tmp_path: Path, plugins: str | None) -> None:
    target, draft = write_pair(tmp_path / "models")
    specfix.fix(target, draft, out=tmp_path / "fixed", enforce_eager=True, **CPU)
    here = {} if plugins is None else {"VLLM_PLUGINS": plugins}
    given, variables = start(tmp_path / "fixed/launch.sh", **here)
    code = re.search(r"^```python launcher\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)
    assert code
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **here}
    done = subprocess.run(
        [sys.executable, "-c", code[1]], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    theirs, their_variables = json.loads(done.stdout)
    assert their_variables == variables
    assert theirs[:2] == given[:2] == ["serve", str(target)]
    assert flags_of(theirs[2:]) == flags_of(given[2:])


def flags_of(given: list[str]) -> dict[str, list[str]]:
    """Each flag with the words that follow it."""
    found: dict[str, list[str]] = {}
    for word in given:
        if word.startswith("--"):
            assert word not in found
            found[word] = []
        else:
            found[list(found)[-1]].append(word)
    return found


def test_the_users_variables_are_not_the_scripts(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    env = dict.fromkeys(("here", "json", "quote", "slash", "python"), "/evil")
    specfix.fix(target, draft, out=tmp_path / "out", env=env, **CPU)
    given, variables = start(tmp_path / "out/launch.sh", json="/theirs")
    assert json.loads(options_of(given)["--speculative-config"])["model"] == str(tmp_path / "out/draft")
    assert variables == {**env, "PYTHONPATH": str(tmp_path / "out/shim")}
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/launch.sh").write_text(launch_sh.render(PLAIN, ENGINE, "x", {}))
    assert start(tmp_path / "plain/launch.sh", **env)[1] == env


@pytest.mark.parametrize(
    "name", ["UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO", "_specfix_here", "_"]
)
def test_a_name_that_bash_keeps_for_itself(tmp_path: Path, name: str) -> None:
    target, draft = write_pair(tmp_path / "models")
    with pytest.raises(CannotCheck, match=f"cannot set a variable called '{name}'"):
        specfix.fix(target, draft, out=tmp_path / "out", env={name: "1"}, **OPTIONS)


def test_the_names_that_bash_sets_are_all_refused(tmp_path: Path) -> None:
    names = subprocess.run(["bash", "-c", "compgen -v"], capture_output=True, text=True, check=True, env={}).stdout
    for name in names.split():
        script = f"set -eu; env=$(type -P env); export {name}=7; exec $env"
        kept = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False).stdout
        assert f"\n{name}=7\n" in f"\n{kept}" or launch_sh.NOT_OURS.fullmatch(name), name


@pytest.mark.parametrize("link", ["o2/launch.sh", "{here}/o2/launch.sh", "deep/two.sh", "-odd/launch.sh"])
def test_a_link_to_the_script_starts_what_lies_beside_it(tmp_path: Path, link: str) -> None:
    target, draft = write_pair(tmp_path / "models")
    for name in ("o1", "o2", "-odd"):
        specfix.fix(target, draft, out=tmp_path / name, **OPTIONS)
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/two.sh").symlink_to("er/three.sh")
    (tmp_path / "deep/er/three.sh").symlink_to("../../o2/launch.sh")
    (tmp_path / "o1/ls.sh").symlink_to(link.format(here=tmp_path) if link.startswith("{") else f"../{link}")
    given, _ = start(tmp_path / "o1/ls.sh")
    home = tmp_path / ("-odd" if link.startswith("-") else "o2")
    assert json.loads(options_of(given)["--speculative-config"])["model"] == str(home / "draft")


def test_a_colon_in_the_path_of_the_shim(tmp_path: Path) -> None:
    target, draft = write_pair(tmp_path / "models")
    with pytest.raises(CannotCheck, match="holds a ':', and PYTHONPATH"):
        specfix.fix(target, draft, out=tmp_path / "a:b", **CPU)
    specfix.fix(target, draft, out=tmp_path / "out", **CPU)
    shutil.move(tmp_path / "out", tmp_path / "a:b")
    done = run(tmp_path / "a:b/launch.sh")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "PYTHONPATH cannot name a folder with ':'" in done.stderr
    specfix.fix(target, draft, out=tmp_path / "c:d", **OPTIONS)
    given, _ = start(tmp_path / "c:d/launch.sh")
    assert json.loads(options_of(given)["--speculative-config"])["model"] == str(tmp_path / "c:d/draft")


@pytest.mark.parametrize("name", ["\ue000", "\\ud800", "$_specfix_json"])
def test_no_path_is_mistaken_for_the_scripts_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    target, draft = write_pair(tmp_path / name)
    specfix.fix(target, draft, out=tmp_path / "out", **OPTIONS | {"max_model_len": 1024})
    given, _ = start(tmp_path / "out/launch.sh")
    assert given[1] == str(target)
    assert json.loads(options_of(given)["--speculative-config"])["model"] == str(draft)


def test_compiled_code_of_the_draft_as_it_was_is_not_met(tmp_path: Path) -> None:
    """A word of its own for each patched config goes into the key of the compile cache; nothing else needs one."""
    target, draft = write_pair(tmp_path / "models")

    def word(out: str, **options: Any) -> object:
        return specfix.fix(target, draft, out=tmp_path / out, **(OPTIONS | options)).launch.engine_args.get(
            "additional-config"
        )

    longer = word("a"), word("b", max_model_len=16384)
    assert None not in longer and len(set(longer)) == 2
    assert word("c", enforce_eager=True) is None
    assert word("d", keep_draft=True) is None
    assert word("e", max_model_len=2048) is None
