"""What specfix says of a pair, as it is served on enough H200s by the release that the reference was asked of."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import specfix
from specfix.deployment.presets import PRESETS
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck

from .corpus import Pair

ENGINE = "vllm==0.32.0"
HARDWARE = replace(PRESETS["h200"], memory_gib=None)  # enough of them: how many do not fit on one is not asked
REFUSED = "refused"  # in the place of a code: the pair cannot be checked at all, exit status 2


@dataclass(frozen=True)
class Said:
    """One finding."""

    code: str
    severity: str
    message: str


def judge(pair: Pair) -> tuple[list[Said], list[str]]:
    """(findings, codes of the rules that lacked a fact)."""
    find_engine(ENGINE)  # what is wrong with its facts is no word on the pair
    with tempfile.TemporaryDirectory() as folder:
        places = {}
        for side, config in (("target", pair.target_config), ("draft", pair.draft_config)):
            if config is None:
                continue
            places[side] = Path(folder) / side
            places[side].mkdir()
            (places[side] / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        try:
            report = specfix.check(
                places["target"],
                places.get("draft"),
                speculative_config=pair.speculative,
                max_model_len=pair.length,
                dtype="bfloat16",
                engine=ENGINE,
                hardware=HARDWARE,
            )
        except CannotCheck as refusal:
            return [Said(REFUSED, "error", str(refusal).replace(folder, ""))], []
    found = [Said(one.code, one.severity, one.finding.message.replace(folder, "")) for one in report.findings]
    return found, [skip.code for skip in report.skipped]
