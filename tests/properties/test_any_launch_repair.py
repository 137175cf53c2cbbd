"""Any launch file repaired: it says what the plan says, a second repair changes nothing, and its other lines stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from hypothesis import given, note

from specfix.checker.report import Report
from specfix.errors import CannotCheck
from specfix.launch.manifests import read_launches
from specfix.launching import gather_launch
from specfix.repairing import Fixed, prepare_launch, write
from tests.fuzz.targets import check_sentence, judge

from .drawing import Choose, examples, made, one
from .launch_texts import FORMS, launch_text
from .pairs import Pair, any_repairable, shown, workplace

OWN = ("hf-overrides", "additional-config", "PYTHONPATH", "VLLM_PLUGINS", "env", "vllm serve", "target")
SIDES = ("target", "draft")
SPECULATIVE = ("method", "num_speculative_tokens")


@dataclass(frozen=True)
class Order:
    """A pair, the file that serves it (``{target}`` and ``{draft}`` are the models), and the repairs wanted."""

    pair: Pair
    form: str
    text: str
    unsafe: bool
    keep_draft: bool


def any_order(choose: Choose) -> Order:
    pair, form = any_repairable(choose), one(choose, FORMS)
    serve = dict(pair.given.get("serve", {}))
    env = {name: str(value) for name, value in serve.pop("env", {}).items()} if form != "serve.yaml" else {}
    spec = {name: serve.pop(name) for name in SPECULATIVE if name in serve} | serve.pop("speculative", {})
    spec |= {"model": "{draft}"} if pair.given.get("draft") else {}
    flags = {name.replace("_", "-"): value for name, value in serve.items() if name != "greedy" and value is not None}
    text = launch_text(choose, form, "{target}", flags, spec, env)
    return Order(pair, form, text, unsafe=not choose(3), keep_draft=not choose(6))


@examples(4)
@given(made(any_order))
def test_a_launch_is_repaired_once_and_for_all(order: Order) -> None:
    note(shown(order.pair.given))
    note(order.text)
    with workplace() as folder:
        models, options = order.pair.written(folder)
        inside = order.form in ("compose.yaml", "pod.yaml")
        seen = [f"/models/{Path(model).name}" if inside else model for model in models]
        file, out = folder / order.form, folder / "out"
        text = order.text
        for side, model in zip(("{target}", "{draft}"), seen, strict=False):
            text = text.replace(side, model)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        where: dict[str, Any] = {
            "engine": options["engine"],
            "hardware": options["hardware"],
            "greedy": options.get("greedy", False),
        }
        asked: dict[str, Any] = {
            "unsafe": order.unsafe,
            "keep_draft": order.keep_draft,
            "at": "/models/out" if inside else None,
        }
        given = named(models if inside else ())
        try:
            fixed = write(prepare_launch(file, **given, out=out, **asked, **where))
        except CannotCheck as problem:
            check_sentence(str(problem).replace(str(folder), ""))
            assert not out.exists(), "refused, and yet written"
            return
        judge(fixed.report)
        judge(fixed.plan.after)
        assert fixed.file is not None and file.read_bytes() == text.encode(), "what was given is changed"
        made = (out / order.form).read_bytes().decode()
        check_lines(text, made, names(fixed))
        assert not write(prepare_launch(file, **given, out=out, **asked, **where)).written, "the second run wrote again"
        places = {**named(models), **{side: str(out / side) for side in SIDES if (out / side).is_dir()}}
        if inside and (out / "shim").is_dir():
            return  # that the shim lies where the container looks for it cannot be known here
        found = places if inside else {}
        report = checked(out / order.form, **found, **where)
        assert codes(report) == codes(fixed.plan.after)
        more = prepare_launch(out / order.form, **found, out=folder / "again", **{**asked, "at": None}, **where)
        assert not more.plan.changes, "what was repaired is repaired again"
        assert more.file is not None and more.file.text == made, "what was repaired is changed again"


def named(models: Sequence[str]) -> dict[str, Any]:
    """The models as the options that say where they are."""
    return dict(zip(SIDES, models, strict=False))


def checked(file: Path, **where: Any) -> Report:
    (found,) = read_launches(file)
    case = gather_launch(found, **where)
    return case.check(case.deployment)


def check_lines(before: str, after: str, changed: set[str]) -> None:
    """All lines are there, in their order, but for those that name what was changed, or hold its value below that."""
    old, new = before.split("\n"), after.split("\n")
    for kind, start, end, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for at in range(start, end) if kind in ("replace", "delete") else ():
            beside = old[max(at - 1, 0)] + old[at]
            assert any(name in beside for name in changed), f"{old[at]!r} is not there any more"


def names(fixed: Fixed) -> set[str]:
    """What a plan changes, by the names that a launch file has for it; nothing where it changes nothing."""
    changes = fixed.plan.changes.values()
    own = {spelt for change in changes for spelt in (change.name, change.name.replace("_", "-"))}
    return own | {"spec", "model", *OWN} if changes else set()


def codes(report: Report) -> Counter[str]:
    return Counter(found.code for found in report.findings)
