"""What differs between two releases, whatever the shape of the facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from specfix.engines import Engine
from specfix.engines.compare import TOPICS, Change, differences, fixes_between
from specfix.engines.facts.backends import Backend
from specfix.engines.facts.decisions import Step
from specfix.engines.facts.speculative import Key
from specfix.engines.find import find_engine, shipped_versions

SmallEngine = Callable[..., Engine]


def changes(before: Engine, after: Engine) -> Iterator[tuple[Any, ...]]:
    for found in differences(before, after):
        for change in found.changes:
            yield change.kind, change.fact, change.entry, change.before, change.after


def test_members_of_a_list_come_and_go(small_engine: SmallEngine) -> None:
    old = small_engine(methods={"methods": ("ngram", "medusa", "a_mtp")})
    new = small_engine(methods={"methods": ("dspark", "ngram", "b_mtp")})
    assert list(changes(old, new)) == [
        ("removed", "methods.methods", ("medusa",), "medusa", None),
        ("added", "methods.methods", ("dspark",), None, "dspark"),
    ]


def test_the_order_counts_where_the_first_one_wins(small_engine: SmallEngine) -> None:
    old = small_engine(eagle={"aux_places": {"V1": (("a", 0), ("b", 1))}}, methods={"methods": ("a", "b")})
    new = small_engine(eagle={"aux_places": {"V1": (("b", 1), ("a", 0))}}, methods={"methods": ("b", "a")})
    assert list(changes(old, new)) == [("changed", "eagle.aux_places", ("V1",), ["a", "b +1"], ["b +1", "a"])]


def test_fields_of_entries(small_engine: SmallEngine) -> None:
    old = {"a": Key("int", 1), "b": Key("str"), "method": Key("str", choices=("x",))}
    new = {"a": Key("int", 2, nullable=True), "c": Key("str"), "method": Key("str", choices=("y",))}
    keys = [small_engine(speculative={"keys": side}) for side in (old, new)]
    found = list(changes(*keys))
    assert found[0] == ("changed", "speculative.keys", ("a", "default"), 1, 2)
    assert [(kind, entry) for kind, _, entry, *_ in found[1:]] == [("removed", ("b",)), ("added", ("c",))]


def test_what_is_not_known_of_one_is_no_difference(small_engine: SmallEngine) -> None:
    known = small_engine(
        lengths={"v1_guard": True},
        eagle={"support": {"A": True, "B": False, "C": True}},
        speculative={"keys": {"k": Key("int", 1)}},
    )
    unread = small_engine(
        unknown={
            "lengths.v1_guard": "no file",
            "eagle.support.A": "no class",
            "eagle.support.B": "no class",
            "speculative.keys.k.default": "computed",
        },
        eagle={"support": {"A": None, "B": None, "C": False}},
        speculative={"keys": {"k": Key("int")}},
    )
    assert list(changes(known, unread)) == [
        ("unknown", "speculative.keys", ("k", "default"), 1, None),
        ("unknown", "eagle.support", ("A",), True, None),
        ("removed", "eagle.support", ("C",), True, None),
        ("unknown", "eagle.support", ("B",), None, None),
        ("unknown", "lengths.v1_guard", (), True, None),
    ]
    assert list(changes(unread, unread)) == []


def test_steps_count_by_their_outcome_not_by_their_line(small_engine: SmallEngine) -> None:
    old = small_engine(runner={"unsupported": (Step(["const", True], "graphs", 10),)})
    new = small_engine(
        runner={"unsupported": (Step(["const", True], "graphs", 99), Step(["const", True], "LoRA", 100))}
    )
    assert list(changes(old, new)) == [("added", "runner.unsupported", ("LoRA",), None, "LoRA")]


def test_backends_are_compared_by_what_both_ask_of_them(small_engine: SmallEngine) -> None:
    old = {"A": Backend("m.A", mla=False), "B": Backend("m.B", mla=True), "C": Backend("m.C", mla=False)}
    new = {
        "A": Backend("n.A", mla=False, non_causal=True),
        "B": Backend("n.B", non_causal=False, conditions={"mla": ["name", "use_mla"]}),
        "C": Backend("n.C", present=False, mla=False),
    }
    found = list(changes(*(small_engine(backends={"backends": side}) for side in (old, new))))
    assert ("changed", "backends.backends", ("B", "mla"), True, "in some cases") in found
    assert [entry for kind, _, entry, *_ in found if kind == "removed"] == [("C",)]
    assert [(entry, after) for kind, _, entry, _, after in found if kind == "added"] == [
        (("A", "non_causal"), True),
        (("B", "non_causal"), False),
    ]


def test_what_has_nothing_to_do_with_speculation_is_counted(small_engine: SmallEngine) -> None:
    from specfix.engines.facts.serving import Variable

    old = small_engine(variables={"variables": {"VLLM_CACHE_ROOT": Variable("str")}})
    new = small_engine(variables={"variables": {"VLLM_USE_V2_MODEL_RUNNER": Variable("bool")}})
    (found,) = differences(old, new)
    assert [change.entry for change in found.changes] == [("VLLM_USE_V2_MODEL_RUNNER",)]
    assert found.others == 1


def test_fixes_between(small_engine: SmallEngine) -> None:
    old, new = small_engine(lengths={"v1_guard": False}), small_engine(lengths={"v1_guard": True})
    assert fixes_between(old, new) == {"v1-stops-drafting": ("not in", "in")}
    assert fixes_between(new, new) == {}


def test_each_topic_reads_the_shipped_facts() -> None:
    old, *_, new = shipped_versions()
    titles = [topic.title for topic in TOPICS]
    there = differences(find_engine(old), find_engine(new))
    back = differences(find_engine(new), find_engine(old))
    assert [found.title for found in there] == [title for title in titles if title in {f.title for f in there}]
    assert sorted(map(turned, there_and(there))) == sorted(map(as_text, there_and(back)))
    json.dumps([[change.entry, change.before, change.after] for found in there for change in found.changes])


def there_and(found: Any) -> list[Change]:
    return [change for each in found for change in each.changes]


def as_text(change: Change) -> str:
    return json.dumps([change.fact, change.entry, change.kind, change.before, change.after])


def turned(change: Change) -> str:
    kind = {"added": "removed", "removed": "added"}.get(change.kind, change.kind)
    return json.dumps([change.fact, change.entry, kind, change.after, change.before])
