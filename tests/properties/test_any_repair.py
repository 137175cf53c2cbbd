"""Any pair repaired: the result is what the plan says, a second repair changes nothing, and what was not to be changed
is as it was, byte for byte."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, note

import specfix
from specfix.checker.report import Report
from specfix.checking import SPECULATIVE
from specfix.deployment.json_text import offset_of
from specfix.deployment.serving import AUTO, AUTO_LENGTH, COMMON
from specfix.errors import CannotCheck
from specfix.repair.patch_json import dropped
from specfix.repairing import Fixed, prepare
from tests.fuzz.targets import check_sentence, judge

from .drawing import Choose, examples, made
from .junk_text import restyled
from .pairs import Pair, any_repairable, shown, workplace

BOM = "\ufeff"
KEPT = ("engine", "hardware", "greedy", "unsafe", "keep_draft")


@dataclass(frozen=True)
class Order:
    """A pair, how its configs are written, and which repairs are asked for."""

    pair: Pair
    texts: dict[str, str]
    unsafe: bool
    keep_draft: bool
    copy: bool


def any_order(choose: Choose) -> Order:
    pair = any_repairable(choose)
    with workplace() as folder:
        models, _ = pair.written(folder)
        texts = {
            Path(model).name: BOM * choose(2) + restyled(choose, json.loads((Path(model) / "config.json").read_text()))
            for model in models
        }
    return Order(pair, texts, unsafe=not choose(3), keep_draft=not choose(6), copy=not choose(6))


@examples(4)
@given(made(any_order))
def test_a_pair_is_repaired_once_and_for_all(order: Order) -> None:
    note(shown(order.pair.given))
    with workplace() as folder:
        models, options = order.pair.written(folder)
        for model in models:
            (Path(model) / "config.json").write_bytes(order.texts[Path(model).name].encode())
        before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        options |= {"unsafe": order.unsafe, "keep_draft": order.keep_draft}
        out = folder / "out"
        try:
            fixed = specfix.fix(*models, out=out, copy=order.copy, **options)
        except CannotCheck as problem:
            check_sentence(str(problem).replace(str(folder), ""))
            assert not out.exists(), "refused, and yet written"
            return
        judge(fixed.report)
        judge(fixed.plan.after)
        assert {file: file.read_bytes() for file in before} == before, "what was given is changed"
        for side, model in zip(("target", "draft"), models, strict=False):
            check_bytes(Path(model), out / side, fixed, f"{side}_config")
        assert not specfix.fix(*models, out=out, copy=order.copy, **options).written, "the second run wrote again"
        check_once(fixed, out, options)


def check_bytes(model: Path, made: Path, fixed: Fixed, surface: str) -> None:
    """Of a config.json that was patched, all but the values that the plan names is as it was."""
    if not (made / "config.json").exists() or (made / "config.json").is_symlink():
        return
    before, after = ((folder / "config.json").read_bytes().decode() for folder in (model, made))
    assert before.startswith(BOM) == after.startswith(BOM)
    before, after = before.removeprefix(BOM), after.removeprefix(BOM)
    restored = after
    for change in reversed(list(fixed.plan.changes.values())):
        if change.surface == surface:
            assert value_at(after, change.name) == change.value
            restored = undone(restored, before, change.name)
    assert restored == before


def value_at(text: str, pointer: str) -> Any:
    start = offset_of(text, pointer)
    assert start is not None, f"{pointer} is not in the patched config"
    return json.JSONDecoder().raw_decode(text, start)[0]


def undone(after: str, before: str, pointer: str) -> str:
    """The patched text with one value as it was: as it was written, or not there."""
    was, now = offset_of(before, pointer), offset_of(after, pointer)
    if was is None:
        above = pointer.rpartition("/")[0]
        return dropped(after, pointer) if offset_of(before, above) is not None else undone(after, before, above)
    if now is None:
        return after  # taken out with what encloses it
    ends = [json.JSONDecoder().raw_decode(text, at)[1] for text, at in ((before, was), (after, now))]
    return after[:now] + before[was : ends[0]] + after[ends[1] :]


def check_once(fixed: Fixed, out: Path, options: dict[str, Any]) -> None:
    """What overrides.json says, checked again, is what the plan said is left; and there is nothing more to repair."""
    models, again = served(json.loads((out / "overrides.json").read_text("utf-8")), options)
    more = prepare(*models, out=out.with_name("again"), **again)
    assert codes(more.report) == codes(fixed.plan.after)
    assert not more.plan.changes, "what was repaired is repaired again"


def served(given: dict[str, Any], options: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Models and options as overrides.json says, in the terms of ``specfix.check``."""
    again = {name: options[name] for name in KEPT if name in options}
    flags = {name.replace("-", "_"): value for name, value in given["engine_args"].items()}
    if "additional_config" in flags:  # a word to the compile cache
        flags["additional_config"] = {**json.loads(flags["additional_config"])}
        flags["additional_config"].pop("specfix_draft", None)
    if given["hf_overrides"]:
        flags["hf_overrides"] = given["hf_overrides"]
    speculative = {name: value for name, value in given["speculative_config"].items() if name != "model"}
    if not {"model", "method"} & set(options["speculative_config"]):  # else the config counts as the user's own
        again |= {name: speculative.pop(name) for name in SPECULATIVE if name in speculative}
    again |= {name: flags.pop(name) for name in COMMON & flags.keys()}
    if again.get("max_model_len") == AUTO:
        again["max_model_len"] = AUTO_LENGTH
    env = dict(given["env"])
    if given["shim"]:
        env["PYTHONPATH"] = ":".join(filter(None, [given["shim"], env.get("PYTHONPATH")]))
        if "VLLM_PLUGINS" in env and "specfix_shim" not in env["VLLM_PLUGINS"].split(","):
            env["VLLM_PLUGINS"] = f"{env['VLLM_PLUGINS']},specfix_shim".removeprefix(",")
    models = [given["target"], *([given["draft"]] if given["draft"] else [])]
    return models, {**again, "flags": flags, "speculative_config": speculative, "env": env}


def codes(report: Report) -> Counter[str]:
    return Counter(found.code for found in report.findings)
