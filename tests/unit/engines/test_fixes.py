"""Upstream fixes: in, not in, not needed, not known; and over the shipped releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specfix.engines import Engine
from specfix.engines.facts.backends import DraftAttention
from specfix.engines.facts.decisions import Step
from specfix.engines.facts.hardware import StandIn
from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.engines.facts.requests import RequestFacts
from specfix.engines.find import find_engine, shipped_versions
from specfix.engines.fixes import FIXES, states

SmallEngine = Callable[..., Engine]
BY_NAME = {fix.name: fix for fix in FIXES}
LAPSE = (StandIn("kernel", "v1/sample/rejection_sampler.py", 1, ("FLAG",)),)
NESTED = ("eagle_config.eagle_aux_hidden_state_layer_ids", 0)
TOP = ("eagle_aux_hidden_state_layer_ids", 0)
FILE = "v1/spec_decode/llm_base_proposer.py"
OWN = "v1/spec_decode/gemma4.py"
V2 = {"steps": (Step(["const", True], "V2", 1),)}

# fix: facts of a release that has it, facts of one that has not
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "draft-positions-raised": (
        {"lengths": {"raised_methods": ("eagle", "eagle3")}},
        {"lengths": {"raised_methods": ()}},
    ),
    "dflash-positions-raised": (
        {"lengths": {"raised_methods": ("eagle3", "dflash")}, "methods": {"methods": ("dflash",)}},
        {"lengths": {"raised_methods": ("eagle3",)}, "methods": {"methods": ("dflash",)}},
    ),
    "draft-length-raised": (
        {"lengths": {"raise_also_lifts_length": True}},
        {"lengths": {"raise_also_lifts_length": False}},
    ),
    "v1-stops-drafting": ({"lengths": {"v1_guard": True}}, {"lengths": {"v1_guard": False}}),
    "v2-shortens-context": (
        {"lengths": {"limits_target": True}, "runner": V2},
        {"lengths": {"limits_target": False}, "runner": V2},
    ),
    "eagle3-interface": ({"eagle": {"has_interface": True}}, {"eagle": {"has_interface": False}}),
    "eagle3-any-model-type": ({"eagle": {"config_stage": None}}, {"eagle": {"config_stage": ("llama",)}}),
    "draft-names-aux-layers": ({"eagle": {"aux_places": {"V1": (TOP,)}}}, {"eagle": {"aux_places": {"V1": ()}}}),
    "nested-aux-layers-v1": (
        {"eagle": {"aux_places": {"V1": (TOP, NESTED), "V2": (TOP,)}}},
        {"eagle": {"aux_places": {"V1": (TOP,), "V2": (TOP, NESTED)}}},
    ),
    "nested-aux-layers-v2": (
        {"eagle": {"aux_places": {"V1": (TOP,), "V2": (TOP, NESTED)}}},
        {"eagle": {"aux_places": {"V1": (TOP, NESTED), "V2": (TOP,)}}},
    ),
    "aux-flag-v2": (
        {"eagle": {"aux_places": {"V2": (TOP,)}, "use_aux_flag": {"V1": False, "V2": True}}},
        {"eagle": {"aux_places": {"V2": (TOP,)}, "use_aux_flag": {"V1": True, "V2": False}}},
    ),
    "fc-follows-config": (
        {"eagle": {"fc_states": {"Eagle3LlamaForCausalLM": ("num_aux_hidden_states", "3")}}},
        {"eagle": {"fc_states": {"Eagle3LlamaForCausalLM": ("3",)}}},
    ),
    "aux-state-for-each-id": ({"eagle": {"aux_deduplicates": False}}, {"eagle": {"aux_deduplicates": True}}),
    "slot-unit": (
        {"blocks": {"proposer": "kernel", "table": "kernel", "common_size": True}},
        {"blocks": {"proposer": "manager", "table": "kernel", "common_size": True}},
    ),
    "recurrent-speculation": (
        {"blocks": {"recurrent": RecurrentFacts(refuses=False)}},
        {"blocks": {"recurrent": RecurrentFacts(refuses=True)}},
    ),
    "recurrent-width": (
        {"blocks": {"recurrent": RecurrentFacts(refuses=False, narrow=())}},
        {"blocks": {"recurrent": RecurrentFacts(refuses=False, narrow=("SomeHybrid",))}},
    ),
    "recurrent-without-drafts": (
        {"blocks": {"recurrent": RecurrentFacts(stale_without_drafts=False)}},
        {"blocks": {"recurrent": RecurrentFacts(stale_without_drafts=True)}},
    ),
    "draft-own-backend": (
        {"backends": {"draft": DraftAttention(own={"V1": True})}},
        {"backends": {"draft": DraftAttention(own={"V1": False})}},
    ),
    "connector-waits-for-draft": (
        {"backends": {"draft": DraftAttention(connector_waits=True)}},
        {"backends": {"draft": DraftAttention(connector_waits=False)}},
    ),
    "grammar-at-reasoning-end": (
        {"speculative": {"requests": RequestFacts(grammar_from_reasoning_end=True)}},
        {"speculative": {"requests": RequestFacts(grammar_from_reasoning_end=False)}},
    ),
    "sorted-draft-layers": (
        {"layers": {"iteration": {FILE: "sorted", OWN: "unsorted"}}},
        {"layers": {"iteration": {FILE: "unsorted", OWN: "sorted"}}},
    ),
    "sorted-own-proposers": (
        {"layers": {"iteration": {FILE: "unsorted", OWN: "sorted"}}},
        {"layers": {"iteration": {FILE: "sorted", OWN: "unsorted"}}},
    ),
    "draft-own-quantisation": (
        {"quantisation": {"drafts": {"Eagle3LlamaForCausalLM": "draft"}}},
        {"quantisation": {"drafts": {"Eagle3LlamaForCausalLM": "target"}}},
    ),
    "draft-cache-dtype": (
        {"quantisation": {"kv_cache_dtype": ("Eagle3LlamaForCausalLM",)}},
        {"quantisation": {"kv_cache_dtype": ()}},
    ),
    "no-algorithm-is-none": (
        {"quantisation": {"empty_method_is_none": True}},
        {"quantisation": {"empty_method_is_none": False}},
    ),
    "draft-moe-backend-v2": (
        {"quantisation": {"draft_moe_backend": ("V1", "V2"), "unquantised_moe": ("triton",)}, "runner": V2},
        {"quantisation": {"draft_moe_backend": ("V1",), "unquantised_moe": ("triton",)}, "runner": V2},
    ),
    "assistant-kv-scales-v2": (
        {"quantisation": {"assistant_scales": ("V2",)}, "methods": {"drafts": ("Gemma4MTPModel",)}},
        {"quantisation": {"assistant_scales": ()}, "methods": {"drafts": ("Gemma4MTPModel",)}},
    ),
    "cpu-speculation": ({"cpu": {"refuses": None}}, {"cpu": {"refuses": "not supported"}}),
    "cpu-stand-ins": ({"cpu": {"stand_ins": ()}}, {"cpu": {"stand_ins": LAPSE}}),
    "cpu-keeps-triton": ({"cpu": {"spared_by_triton": True}}, {"cpu": {"spared_by_triton": False}}),
    "cpu-aux-setup": ({"cpu": {"aux_setup": True}}, {"cpu": {"aux_setup": False}}),
    "cpu-sampling": ({"cpu": {"sampling_expands_copy": False}}, {"cpu": {"sampling_expands_copy": True}}),
    "triton-needs-driver": (
        {"triton": {"empty_devices_forgives": True, "sampler_min_rows": None, "sampler_checks_platform": True}},
        {"triton": {"empty_devices_forgives": True, "sampler_min_rows": 8, "sampler_checks_platform": False}},
    ),
}

# releases that lost what an earlier one had, each seen in its source
LAPSES = {
    # slots from the cache group's own spec, which keeps the manager's size, over a table of kernel blocks
    "slot-unit": {"0.17.0", "0.17.1"},
    # a new argument of a kernel that its stand-in does not take; in 0.30.0 launchers that keep the kernel itself
    "cpu-stand-ins": {"0.23.0", "0.24.0", "0.30.0"},
}


@pytest.mark.parametrize("name", BY_NAME)
def test_a_fix_is_in_where_its_code_is(name: str, small_engine: SmallEngine) -> None:
    fixed, faulty = CASES[name]
    assert BY_NAME[name].state(small_engine(**fixed)) == "in"
    assert BY_NAME[name].state(small_engine(**faulty)) == "not in"


@pytest.mark.parametrize("name", [name for name, fix in BY_NAME.items() if fix.facts])
def test_what_cannot_be_read_is_not_known(name: str, small_engine: SmallEngine) -> None:
    fix = BY_NAME[name]
    for facts in CASES[name]:
        for fact in fix.facts:
            engine = small_engine(unknown={fact: "no such file"}, **facts)
            assert fix.present(engine) is None
            assert (fix.state(engine), fix.reason(engine)) == ("not known", "no such file")


def test_no_fact_and_no_reason_is_not_known_either(small_engine: SmallEngine) -> None:
    empty = small_engine(runner=V2, methods={"methods": ("dflash",)}, eagle={"aux_places": {"V2": (TOP,)}})
    assert {name for name, state in states(empty).items() if state == "not known"} == {
        "draft-positions-raised",
        "dflash-positions-raised",
        "draft-length-raised",
        "v1-stops-drafting",
        "v2-shortens-context",
        "aux-flag-v2",
        "fc-follows-config",
        "aux-state-for-each-id",
        "slot-unit",
        "recurrent-speculation",
        "recurrent-width",
        "recurrent-without-drafts",
        "draft-own-backend",
        "connector-waits-for-draft",
        "grammar-at-reasoning-end",
        "sorted-draft-layers",
        "draft-own-quantisation",
        "draft-cache-dtype",
        "no-algorithm-is-none",
        "draft-moe-backend-v2",
        "cpu-keeps-triton",
        "cpu-aux-setup",
        "cpu-sampling",
        "triton-needs-driver",
    }


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("dflash-positions-raised", {"methods": {"methods": ("eagle3",)}}),
        ("v2-shortens-context", {"runner": {"steps": (Step(["const", True], "V1", 1),)}}),
        ("nested-aux-layers-v2", {"eagle": {"aux_places": {"V1": (TOP,)}}}),
        ("slot-unit", {"blocks": {"common_size": False}}),
        ("sorted-own-proposers", {"layers": {"iteration": {FILE: "unsorted"}}}),
        ("cpu-stand-ins", {"cpu": {"refuses": "not supported", "stand_ins": LAPSE}}),
        ("cpu-sampling", {"cpu": {"refuses": "not supported", "sampling_expands_copy": True}}),
    ],
)
def test_what_a_release_does_not_have_needs_no_fix(name: str, facts: dict[str, Any], small_engine: SmallEngine) -> None:
    assert BY_NAME[name].state(small_engine(**facts)) == "not needed"


def test_whether_a_fix_is_needed_may_itself_be_unknown(small_engine: SmallEngine) -> None:
    engine = small_engine(unknown={"cpu.refuses": "no runner", "cpu.aux_setup": "no runner"})
    assert states(engine)["cpu-aux-setup"] == "not known"


def test_names_are_distinct_and_threads_are_upstream_ones() -> None:
    assert len(BY_NAME) == len(FIXES) and set(CASES) == set(BY_NAME)
    for fix in FIXES:
        assert fix.thread is None or fix.thread.startswith("vllm-project/vllm#")


@pytest.mark.parametrize("fix", FIXES, ids=lambda fix: fix.name)
def test_a_fix_once_in_stays_in(fix: Any) -> None:
    seen, lapsed = False, set()
    for version in shipped_versions():
        state = fix.state(find_engine(version))
        if seen and state != "in":
            lapsed.add(version)
        seen = seen or state == "in"
    assert lapsed == LAPSES.get(fix.name, set()) & set(shipped_versions())
