"""Upstream fixes that verdicts hang on, and whether a release has them.

Each is told by facts, which are read by the shape of the code and never by a release's number: forks, nightlies and
backports are judged by what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from specfix.engines.engine import Engine

State = Literal["in", "not in", "not needed", "not known"]
Question = Callable[[Engine], bool | None]

# the file that holds what the V1 runner's proposers share: the newer name first
SHARED_PROPOSERS: Final = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")
NESTED_AUX: Final = "eagle_config.eagle_aux_hidden_state_layer_ids"
EAGLE3_DRAFT: Final = "Eagle3LlamaForCausalLM"


@dataclass(frozen=True, slots=True)
class Fix:
    """One upstream fix.

    ``mends``: what is right where it is in. ``thread``: the public one that describes the fault or the fix; None where
    none is known. ``facts``: those that decide, as ``Engine.unknown`` names them. ``needed``: whether the release has
    what could be at fault; None: each has.
    """

    name: str
    mends: str
    facts: tuple[str, ...]
    holds: Question
    thread: str | None = None
    needed: Question | None = None

    def present(self, engine: Engine) -> bool | None:
        """Whether the release's code does it right; None where the facts that decide could not be read."""
        return None if any(fact in engine.unknown for fact in self.facts) else self.holds(engine)

    def state(self, engine: Engine) -> State:
        """``present`` in words; "not needed" where the release has nothing that could be at fault."""
        if self.needed is not None and self.needed(engine) is False:
            return "not needed"
        present = self.present(engine)
        return "not known" if present is None else "in" if present else "not in"

    def reason(self, engine: Engine) -> str | None:
        """Why it is not known; None where no reason was noted."""
        return next((engine.unknown[fact] for fact in self.facts if fact in engine.unknown), None)


def states(engine: Engine) -> dict[str, State]:
    """Each fix of the catalogue by its name."""
    return {fix.name: fix.state(engine) for fix in FIXES}


def has_v2_runner(engine: Engine) -> bool | None:
    if "runner.steps" in engine.unknown:
        return None
    return any(step.then == "V2" for step in engine.runner.steps)


def speculates_on_cpu(engine: Engine) -> bool | None:
    return None if "cpu.refuses" in engine.unknown else engine.cpu.refuses is None


def _raises(method: str) -> Question:
    def holds(engine: Engine) -> bool | None:
        methods = engine.lengths.raised_methods
        return None if methods is None else method in methods

    return holds


def _knows(method: str) -> Question:
    def needed(engine: Engine) -> bool | None:
        return None if "methods.methods" in engine.unknown else method in engine.methods.methods

    return needed


def _aux_place(runner: str, key: str | None = None) -> Question:
    """The runner looks for aux layers in the draft's config: at ``key``, or anywhere."""

    def holds(engine: Engine) -> bool | None:
        if engine.eagle.aux_places is None:
            return None
        places = [place for place, _ in engine.eagle.aux_places.get(runner, ())]
        return bool(places) if key is None else key in places

    return holds


def _fc_follows_config(engine: Engine) -> bool | None:
    sources = engine.eagle.fc_states.get(EAGLE3_DRAFT)
    return None if sources is None else not sources[0].isdigit()


def _negated(fact: bool | None) -> bool | None:
    return None if fact is None else not fact


def _one_unit(engine: Engine) -> bool | None:
    units = engine.blocks.proposer, engine.blocks.table
    return None if None in units else units[0] == units[1]


def _none_narrow(engine: Engine) -> bool | None:
    narrow = engine.blocks.recurrent.narrow
    return None if narrow is None else not narrow


def _shared_sorted(engine: Engine) -> bool | None:
    orders = (engine.layers.iteration.get(file) for file in SHARED_PROPOSERS)
    order = next(filter(None, orders), None)
    return None if order is None else order == "sorted"


def _own_orders(engine: Engine) -> list[str]:
    """Of proposers that go through the layers themselves."""
    iteration: Mapping[str, str] = engine.layers.iteration
    folder = SHARED_PROPOSERS[0].rpartition("/")[0]
    return [iteration[file] for file in iteration if file.startswith(folder) and file not in SHARED_PROPOSERS]


def _needs_driver(engine: Engine) -> bool | None:
    forgives, facts = engine.triton.empty_devices_forgives, engine.triton
    if forgives is None or (facts.sampler_min_rows is None and facts.sampler_checks_platform is None):
        return None
    return not forgives or facts.sampler_min_rows is None


def _drafts(architecture: str) -> Question:
    def needed(engine: Engine) -> bool | None:
        return None if "methods.drafts" in engine.unknown else architecture in engine.methods.drafts

    return needed


def _own_quantisation(engine: Engine) -> bool | None:
    drafts = engine.quantisation.drafts
    return None if drafts is None else drafts.get(EAGLE3_DRAFT) == "draft"


def _told_cache(engine: Engine) -> bool | None:
    told = engine.quantisation.kv_cache_dtype
    return None if told is None else EAGLE3_DRAFT in told


def _heeds_moe_backend(engine: Engine) -> bool | None:
    heeding = engine.quantisation.draft_moe_backend
    return None if heeding is None else "V2" in heeding


def _v2_and_moe_backend(engine: Engine) -> bool | None:
    """Whether there is a moe_backend to heed."""
    taken = engine.quantisation.unquantised_moe
    return None if taken is None else bool(taken) and has_v2_runner(engine)


def _hands_scales_on(engine: Engine) -> bool | None:
    handing = engine.quantisation.assistant_scales
    return None if handing is None else "V2" in handing


FIXES: Final[tuple[Fix, ...]] = (
    Fix(
        "draft-positions-raised",
        "the draft's rotary table reaches as far as what is served (EAGLE, EAGLE3)",
        ("lengths.raised_methods",),
        _raises("eagle3"),
        "vllm-project/vllm#49343",
    ),
    Fix(
        "dflash-positions-raised",
        "the rotary table of a DFlash draft, too, reaches as far as what is served",
        ("lengths.raised_methods",),
        _raises("dflash"),
        "vllm-project/vllm#57964",
        needed=_knows("dflash"),
    ),
    Fix(
        "draft-length-raised",
        "where positions are raised, so is the length at which the V1 runner stops drafting",
        ("lengths.raise_also_lifts_length",),
        lambda engine: engine.lengths.raise_also_lifts_length,
        "vllm-project/vllm#57964",
    ),
    Fix(
        "v1-stops-drafting",
        "the V1 runner stops drafting where the draft's length ends, instead of dying",
        ("lengths.v1_guard",),
        lambda engine: engine.lengths.v1_guard,
        "vllm-project/vllm#24662",
    ),
    Fix(
        "v2-shortens-context",
        "with the V2 runner no more is served than the draft can follow",
        ("lengths.limits_target",),
        lambda engine: engine.lengths.limits_target,
        needed=has_v2_runner,
    ),
    Fix(
        "eagle3-interface",
        "a target that gives no auxiliary states is refused by name",
        (),
        lambda engine: engine.eagle.has_interface,
        "vllm-project/vllm#22642",
    ),
    Fix(
        "eagle3-any-model-type",
        "no list of model types keeps targets from EAGLE3: their class decides",
        ("eagle.config_stage",),
        lambda engine: engine.eagle.config_stage is None,
        "vllm-project/vllm#32079",
    ),
    Fix(
        "draft-names-aux-layers",
        "aux layers are taken from the draft's config, not guessed",
        ("eagle.aux_places",),
        _aux_place("V1"),
        "vllm-project/vllm#25961",
    ),
    Fix(
        "nested-aux-layers-v1",
        "the V1 runner also reads aux layers in the draft's eagle_config",
        ("eagle.aux_places",),
        _aux_place("V1", NESTED_AUX),
    ),
    Fix(
        "nested-aux-layers-v2",
        "the V2 runner also reads aux layers in the draft's eagle_config",
        ("eagle.aux_places",),
        _aux_place("V2", NESTED_AUX),
        needed=_aux_place("V2"),
    ),
    Fix(
        "aux-flag-v2",
        "the V2 runner heeds use_aux_hidden_state in the draft's eagle_config",
        ("eagle.use_aux_flag",),
        lambda engine: engine.eagle.use_aux_flag.get("V2"),
        needed=_aux_place("V2"),
    ),
    Fix(
        "fc-follows-config",
        "an EAGLE3 draft's fc is built for the number of aux layers that its config says",
        ("eagle.fc_states", f"eagle.fc_states.{EAGLE3_DRAFT}"),
        _fc_follows_config,
    ),
    Fix(
        "aux-state-for-each-id",
        "an aux layer that is named twice, or that is not there, is no shape error",
        ("eagle.aux_deduplicates",),
        lambda engine: _negated(engine.eagle.aux_deduplicates),
        "vllm-project/vllm#48113",
    ),
    Fix(
        "slot-unit",
        "the draft's slots are counted in the blocks that the block table holds",
        ("blocks.proposer", "blocks.table"),
        _one_unit,
        "vllm-project/vllm#31540",
        needed=lambda engine: engine.blocks.common_size,
    ),
    Fix(
        "sorted-draft-layers",
        "the draft's layers are taken in one order in every process",
        ("layers.iteration",),
        _shared_sorted,
    ),
    Fix(
        "sorted-own-proposers",
        "proposers of one family or method, too, take the draft's layers in one order",
        ("layers.iteration",),
        lambda engine: "unsorted" not in _own_orders(engine),
        needed=lambda engine: None if "layers.iteration" in engine.unknown else bool(_own_orders(engine)),
    ),
    Fix(
        "draft-own-quantisation",
        "an EAGLE3 draft is built with its own quantisation, not with its target's",
        ("quantisation.drafts", f"quantisation.drafts.{EAGLE3_DRAFT}"),
        _own_quantisation,
        "vllm-project/vllm#25883",
    ),
    Fix(
        "draft-cache-dtype",
        "an EAGLE3 draft is told the dtype of the KV cache",
        ("quantisation.kv_cache_dtype",),
        _told_cache,
        "vllm-project/vllm#24505",
    ),
    Fix(
        "no-algorithm-is-none",
        "a quantization_config that names no method counts as none",
        ("quantisation.empty_method_is_none",),
        lambda engine: engine.quantisation.empty_method_is_none,
        "vllm-project/vllm#24410",
    ),
    Fix(
        "draft-moe-backend-v2",
        "the V2 runner heeds the speculative config's moe_backend",
        ("quantisation.draft_moe_backend",),
        _heeds_moe_backend,
        "vllm-project/vllm#54788",
        needed=_v2_and_moe_backend,
    ),
    Fix(
        "assistant-kv-scales-v2",
        "in the V2 runner a Gemma 4 assistant reads its target's cache with the target's scales",
        ("quantisation.assistant_scales",),
        _hands_scales_on,
        "vllm-project/vllm#48666",
        needed=_drafts("Gemma4MTPModel"),
    ),
    Fix(
        "cpu-speculation",
        "drafts are served on a CPU at all",
        ("cpu.refuses",),
        lambda engine: engine.cpu.refuses is None,
        "vllm-project/vllm#28384",
    ),
    Fix(
        "cpu-stand-ins",
        "on a CPU the stand-ins for Triton kernels are called, and take what they are given",
        ("cpu.stand_ins",),
        lambda engine: not engine.cpu.stand_ins,
        needed=speculates_on_cpu,
    ),
    Fix(
        "cpu-keeps-triton",
        "on a CPU with a usable Triton no stand-ins are put in its place",
        ("cpu.spared_by_triton",),
        lambda engine: engine.cpu.spared_by_triton,
        needed=speculates_on_cpu,
    ),
    Fix(
        "cpu-aux-setup",
        "on a CPU the target is asked for its auxiliary states",
        ("cpu.aux_setup",),
        lambda engine: engine.cpu.aux_setup,
        "vllm-project/vllm#42468",
        needed=speculates_on_cpu,
    ),
    Fix(
        "cpu-sampling",
        "on a CPU temperature, top_k and top_p reach the drafted positions",
        ("cpu.sampling_expands_copy",),
        lambda engine: _negated(engine.cpu.sampling_expands_copy),
        "vllm-project/vllm#55005",
        needed=speculates_on_cpu,
    ),
    Fix(
        "triton-needs-driver",
        "a Triton without a driver samples nothing on a CPU, whatever CUDA_VISIBLE_DEVICES is",
        ("triton.empty_devices_forgives", "triton.sampler_min_rows", "triton.sampler_checks_platform"),
        _needs_driver,
        needed=speculates_on_cpu,
    ),
    Fix(
        "recurrent-speculation",
        "targets with recurrent layers are served with drafts, whatever their family",
        ("blocks.recurrent",),
        lambda engine: _negated(engine.blocks.recurrent.refuses),
        "vllm-project/vllm#25752",
    ),
    Fix(
        "recurrent-width",
        "pages of recurrent states are planned with room for drafts, by every class",
        ("blocks.recurrent",),
        _none_narrow,
        "vllm-project/vllm#47635",
        needed=lambda engine: _negated(engine.blocks.recurrent.refuses),
    ),
    Fix(
        "recurrent-without-drafts",
        "a step without drafts goes on from the recurrent state of the last accepted token",
        ("blocks.recurrent",),
        lambda engine: _negated(engine.blocks.recurrent.stale_without_drafts),
        "vllm-project/vllm#39273",
    ),
    Fix(
        "draft-own-backend",
        "the attention backend of a draft is chosen for itself",
        ("backends.draft",),
        lambda engine: engine.backends.draft.own.get("V1"),
        "vllm-project/vllm#39126",
    ),
    Fix(
        "connector-waits-for-draft",
        "a KV connector saves what the draft writes",
        ("backends.draft",),
        lambda engine: engine.backends.draft.connector_waits,
        "vllm-project/vllm#34529",
    ),
    Fix(
        "grammar-at-reasoning-end",
        "a grammar holds from the end of the reasoning on, also among drafted tokens",
        ("speculative.requests",),
        lambda engine: engine.speculative.requests.grammar_from_reasoning_end,
        "vllm-project/vllm#44993",
    ),
)
