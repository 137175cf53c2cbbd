"""A plan's changes on each surface, made in a launch file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specfix.checker import Finding, Repair, rule
from specfix.checker.finding import Change
from specfix.deployment import Target
from specfix.errors import CannotCheck
from specfix.launch.command import Mount
from specfix.repair.in_launch import inside
from specfix.repairing import Fixed, prepare_launch, write

from .pairs import state, write_pair

SPEC = '{"method": "eagle3", "model": "DRAFT", "num_speculative_tokens": 5}'
SCRIPT = (
    f"VLLM_PLUGINS=other CUDA_VISIBLE_DEVICES=0 vllm serve TARGET --seed 1 \\\n  --speculative-config '{SPEC}' # end\n"
)


def fixed(folder: Path, monkeypatch: pytest.MonkeyPatch, *changes: Change, text: str = SCRIPT, **options: Any) -> Fixed:
    """A plan of just these changes, safe ones, that are wanted until they are made."""
    target, draft = write_pair(folder / "models")
    file = folder / "run.sh"
    file.write_text(text.replace("TARGET", str(target)).replace("DRAFT", str(draft)))
    asked: list[Target] = []

    @rule("AAA001", "wish", severity="error", evidence=["a/b#1"])
    def wish(target: Target) -> Iterator[Finding]:
        """Wants them once."""
        asked.append(target)
        if len(asked) == 1:
            surfaces = tuple(dict.fromkeys(surface for surface, _, _ in changes))
            yield Finding("wanted", target.config.at("/x"), "load", repair=Repair("safe", "do", surfaces, changes))

    monkeypatch.setattr("specfix.checking.load_rules", lambda: [wish])
    return prepare_launch(file, out=folder / "out", engine="vllm==0.26.0", hardware="h200", **options)


def after(found: Fixed) -> str:
    assert found.file is not None and found.inside is not None and not found.plan.left
    text = found.inside.file.text
    for model in ("target", "draft"):
        text = text.replace(str(found.out.parent / "models" / model), model.upper())
    made = found.file.text.replace(str(found.out), "OUT")
    for model in ("target", "draft"):
        made = made.replace(str(found.out.parent / "models" / model), model.upper())
    return made


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (("engine_args", "seed", 2), "--seed 1", "--seed 2"),
        (("engine_args", "seed", None), " --seed 1", ""),
        (("engine_args", "async_scheduling", False), "5}'", "5}' \\\n  --no-async-scheduling"),
        (("speculative_config", "num_speculative_tokens", 3), ": 5", ": 3"),
        (("env", "CUDA_VISIBLE_DEVICES", None), "CUDA_VISIBLE_DEVICES=0 ", ""),
        (("target_config", "/some_key", 7), "5}'", "5}' \\\n  --hf-overrides '{\"some_key\": 7}'"),
        (
            ("target_config", "/rope_scaling/factor", 7),
            "TARGET --seed 1 \\\n  --speculative-config '" + SPEC + "'",
            "OUT/target --seed 1 \\\n  --speculative-config '" + SPEC + "' \\\n  --served-model-name TARGET",
        ),
    ],
)
def test_each_surface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, old: str, new: str) -> None:
    found = fixed(tmp_path, monkeypatch, change)
    assert after(found) == SCRIPT.replace(old, new)
    before = state(tmp_path / "models")
    assert write(found).written and state(tmp_path / "models") == before
    assert (tmp_path / "out/target").is_dir() == ("OUT/target" in new)


def test_the_shim_is_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = fixed(tmp_path, monkeypatch, ("shim", "cpu_sampling", {}))
    path = 'export PYTHONPATH="OUT/shim${PYTHONPATH:+:$PYTHONPATH}"\n'
    assert after(found) == path + SCRIPT.replace("=other", "=other,specfix_shim")


def test_a_draft_of_no_named_method_is_named_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCRIPT.replace('"method": "eagle3", ', "").replace("--seed 1", "--enforce-eager")
    found = fixed(tmp_path, monkeypatch, ("draft_config", "/max_position_embeddings", 9000), text=text)
    assert after(found) == text.replace("DRAFT", "OUT/draft").replace(": 5}", ': 5,"method": "eagle3"}').replace(
        ',"method"', ', "method"'
    )


def test_of_several_changes_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCRIPT.replace("--seed 1", "--seed $SEED")
    found = fixed(tmp_path, monkeypatch, ("engine_args", "seed", 2), ("speculative_config", "model", "/x"), text=text)
    assert found.file is not None and found.inside is not None and found.file.text == found.inside.file.text
    (left,) = found.plan.left
    assert "run.sh, line 1: " in left.reason and "$SEED" in left.reason and "--seed 2" in left.reason


def test_a_path_that_decides_the_method_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCRIPT.replace('"eagle3"', '"draft_model"')
    with pytest.raises(CannotCheck, match="whose path holds 'eagle"):
        fixed(tmp_path, monkeypatch, ("draft_config", "/x", 1), text=text, at="/eagle3-fixed")


def test_what_a_written_file_is_checked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    found = fixed(tmp_path, monkeypatch, ("engine_args", "seed", 2))
    assert found.file is not None
    wrong = replace(found.file, text=found.file.text.replace("vllm serve", "vllm bench"))
    with pytest.raises(CannotCheck):
        write(replace(found, file=wrong))
    assert not (tmp_path / "out").exists()
    assert json.loads((write(found).out / "report.json").read_text())["changes"][0]["name"] == "seed"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/a/b/out", "/in/b/out"),
        ("/a", "/in"),
        ("/a/deep/out", "/deeper/out"),
        ("/ab/out", None),
        ("/a/lost/x", None),
    ],
)
def test_where_a_container_sees_a_path(path: str, seen: str | None) -> None:
    mounts = [Mount("/in", "/a"), Mount("/deeper", "/a/deep"), Mount("/in/lost", None), Mount("/v", None)]
    assert inside(path, mounts) == seen
