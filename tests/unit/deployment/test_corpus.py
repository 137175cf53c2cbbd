"""Real configs, where SPECFIX_CORPUS names a folder of them: target/*, draft/* and PAIRS.tsv."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Literal

import pytest

from specfix.deployment.kinds import draft_kind
from specfix.deployment.load import load_model
from specfix.errors import CannotCheck

CORPUS = Path(os.environ.get("SPECFIX_CORPUS", "absent"))
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="SPECFIX_CORPUS names no folder")

KINDS = frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark", "draft_model", "medusa", "mlp_speculator"})
# the authors' EAGLE-1 heads bear the class of their target, and nothing else tells them from a small model
UNMARKED = frozenset(f"SafeAILab__EAGLE.llama_2_chat_{size}_config" for size in ("7B", "13B", "70B"))
NAMELESS = frozenset(
    {"NVIDIA__Model-Optimizer.eagle_config", "vllm-project__speculators-research.train.k3_draft_layer_config"}
)


def configs(side: str) -> list[Path]:
    return sorted(CORPUS.glob(f"{side}/*/config*.json"))


@pytest.mark.parametrize("side", ["target", "draft"])
def test_every_config_loads(side: Literal["target", "draft"]) -> None:
    refused = {}
    for path in configs(side):
        try:
            model = load_model(str(path), side)
        except CannotCheck as error:
            refused[path.parent.name] = str(error)
            continue
        assert model.ropes
        assert all(rope.rope_type != "mrope" for rope in model.ropes)
    assert {name: why for name, why in refused.items() if "has no architectures" not in why} == {}
    assert set(refused) <= NAMELESS


def test_no_target_is_taken_for_a_head() -> None:
    assert {path.parent.name: kind for path in configs("target") if (kind := kind_of(path)) != "draft_model"} == {}


def test_each_draft_is_of_the_kind_that_it_was_made_for() -> None:
    made_for: dict[str, set[str]] = {}
    with (CORPUS / "PAIRS.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            made_for.setdefault(row["draft"], set()).add(row["method"].removeprefix("speculators/"))
    wrong = {}
    for path in configs("draft"):
        methods = made_for.get(path.parent.name, set()) & KINDS
        if methods and path.parent.name not in UNMARKED and kind_of(path) not in methods:
            wrong[path.parent.name] = (methods, kind_of(path))
    assert wrong == {}


def kind_of(path: Path) -> str:
    from specfix.deployment.files import read_config

    return draft_kind(read_config(path, path.name))
