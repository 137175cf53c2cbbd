"""What is known of releases, and what differs between them, to the letter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from specfix.engines import Engine
from specfix.engines.facts.backends import Backend
from specfix.engines.facts.decisions import Step
from specfix.engines.facts.hardware import KernelSizes
from specfix.engines.facts.serving import Flag, Variable
from specfix.engines.facts.speculative import Key
from specfix.engines.fixes import FIXES
from specfix.report.engine import engine_json, engine_text, list_json, list_text, names
from specfix.report.engine_diff import diff_json, diff_text
from specfix.report.terminal import Terminal, cells

SmallEngine = Callable[..., Engine]

OLD: dict[str, Any] = {
    "unknown": {"lengths.limits_target": "no config/vllm.py", "eagle.support.Odd": "its class is built at run time"},
    "methods": {"methods": ("ngram", "eagle3", "a_mtp"), "architectures": {"Odd": "odd:Odd", "Plain": "plain:Plain"}},
    "eagle": {
        "has_interface": True,
        "support": {"Odd": None, "Plain": True, "Other": False},
        "config_stage": ("llama", "qwen"),
        "aux_places": {"V1": (("eagle_aux_hidden_state_layer_ids", 0),)},
        "fc_states": {"Eagle3LlamaForCausalLM": ("3",)},
        "aux_deduplicates": True,
    },
    "runner": {"steps": (Step(["const", True], "V1", 1),)},
    "lengths": {"raised_methods": (), "raise_also_lifts_length": False, "v1_guard": True, "limits_target": None},
    "speculative": {"keys": {"method": Key("str"), "depth": Key("int", 1)}},
    "backends": {"backends": {"PLAIN": Backend("plain.Backend", non_causal=False)}},
    "blocks": {
        "proposer": "manager",
        "table": "kernel",
        "common_size": True,
        "backends": {"PLAIN": KernelSizes((16,), None)},
    },
    "layers": {"iteration": {"v1/spec_decode/eagle.py": "unsorted"}},
    "cpu": {"refuses": "not supported"},
    "serve": {"flags": {"max-model-len": Flag("int"), "api-key": Flag()}, "yaml_nested": False},
    "variables": {"variables": {"VLLM_CACHE_ROOT": Variable()}},
    "requirements": {"python": ">=3.10", "torch": "==2.8.0", "transformers": ">=4.55"},
}
NEW: dict[str, Any] = OLD | {
    "unknown": {"lengths.raise_also_lifts_length": "no config/speculative.py"},
    "methods": {
        "methods": ("ngram", "eagle3", "dflash", "b_mtp"),
        "architectures": {"Odd": "odd:Odd", "New": "new:New"},
    },
    "eagle": OLD["eagle"]
    | {
        "support": {"Odd": True, "New": True},
        "config_stage": None,
        "aux_places": {"V1": (("eagle_aux_hidden_state_layer_ids", 0), ("dflash_config.target_layer_ids", 1))},
    },
    "runner": {
        "steps": (Step(["name", "asked"], "V2", 1), Step(["const", True], "V1", 2)),
        "unsupported": (Step(["const", True], "LoRA", 3),),
    },
    "lengths": {"raised_methods": ("eagle3",), "v1_guard": True, "limits_target": False},
    "speculative": {
        "keys": {"method": Key("str"), "depth": Key("int", 2), "tree": Key("str", choices=("flat", "deep"))}
    },
    "backends": {"backends": {"PLAIN": Backend("plain.Backend", non_causal=True)}},
    "blocks": {
        "proposer": "kernel",
        "table": "kernel",
        "common_size": True,
        "backends": {"PLAIN": KernelSizes(None, (16,))},
    },
    "cpu": {"refuses": None, "aux_setup": False, "sampling_expands_copy": True},
    "serve": {"flags": {"max-model-len": Flag("size"), "root-path": Flag()}, "yaml_nested": True},
    "requirements": {"python": ">=3.10", "torch": "==2.9.0", "transformers": ">=4.55"},
}

LIST = """\
release  model runner        EAGLE3 targets  fixes    not known
1.0      V1                  1               3 of 22  2
2.0      V1, or V2 if asked  2               8 of 29  1

installed here: 2.0
fixes: those that are in, of the upstream fixes that verdicts hang on and that the release needs
more: specfix engine RELEASE; what differs for speculative decoding: specfix engine OLD NEW
"""

ONE = """\
vllm 2.0: shipped with specfix, read from the release's own wheel

drafting
  methods          ngram, eagle3, dflash, 1 older name of mtp
  config keys      3 keys: method, depth, tree
  EAGLE3 targets   2 architectures
  aux layers, V1   eagle_aux_hidden_state_layer_ids, dflash_config.target_layer_ids
  MTP              not known
  speculators      not known
  draft positions  raised to max_model_len for eagle3
  V1 drafting      stops at the draft's own length: yes
  served length    lowered to the draft's own: no

model runner and hardware
  runner         V1, or V2 if asked: 2 conditions, and 1 feature that V2 lacks
  attention      1 backend; non-causal: PLAIN
  KV block unit  the proposer's: kernel, its table's: kernel
  on a CPU       speculation is let through
  requires       Python >=3.10; torch ==2.9.0; transformers >=4.55

vllm serve
  flags           2
  variables       1
  architectures   2
  config classes  not known
  --config YAML   takes mappings: yes; heeds `key: false`: not known

upstream fixes that verdicts hang on: 8 in, 8 not in, 4 not needed, 13 not known
  in
    draft-positions-raised     the draft's rotary table reaches as far as what is served (EAGLE,
                               EAGLE3) (vllm-project/vllm#49343)
    v1-stops-drafting          the V1 runner stops drafting where the draft's length ends, instead
                               of dying (vllm-project/vllm#24662)
    eagle3-interface           a target that gives no auxiliary states is refused by name
                               (vllm-project/vllm#22642)
    eagle3-any-model-type      no list of model types keeps targets from EAGLE3: their class decides
                               (vllm-project/vllm#32079)
    draft-names-aux-layers     aux layers are taken from the draft's config, not guessed
                               (vllm-project/vllm#25961)
    slot-unit                  the draft's slots are counted in the blocks that the block table
                               holds (vllm-project/vllm#31540)
    cpu-speculation            drafts are served on a CPU at all (vllm-project/vllm#28384)
    cpu-stand-ins              on a CPU the stand-ins for Triton kernels are called, and take what
                               they are given
  not in
    dflash-positions-raised    the rotary table of a DFlash draft, too, reaches as far as what is
                               served (vllm-project/vllm#57964)
    v2-shortens-context        with the V2 runner no more is served than the draft can follow
    nested-aux-layers-v1       the V1 runner also reads aux layers in the draft's eagle_config
    fc-follows-config          an EAGLE3 draft's fc is built for the number of aux layers that its
                               config says
    aux-state-for-each-id      an aux layer that is named twice, or that is not there, is no shape
                               error (vllm-project/vllm#48113)
    sorted-draft-layers        the draft's layers are taken in one order in every process
    cpu-aux-setup              on a CPU the target is asked for its auxiliary states
                               (vllm-project/vllm#42468)
    cpu-sampling               on a CPU temperature, top_k and top_p reach the drafted positions
                               (vllm-project/vllm#55005)
  not needed
    nested-aux-layers-v2       the V2 runner also reads aux layers in the draft's eagle_config
    aux-flag-v2                the V2 runner heeds use_aux_hidden_state in the draft's eagle_config
    sorted-own-proposers       proposers of one family or method, too, take the draft's layers in
                               one order
    assistant-kv-scales-v2     in the V2 runner a Gemma 4 assistant reads its target's cache with
                               the target's scales (vllm-project/vllm#48666)
  not known
    draft-length-raised        where positions are raised, so is the length at which the V1 runner
                               stops drafting: no config/speculative.py (vllm-project/vllm#57964)
    draft-own-quantisation     an EAGLE3 draft is built with its own quantisation, not with its
                               target's (vllm-project/vllm#25883)
    draft-cache-dtype          an EAGLE3 draft is told the dtype of the KV cache
                               (vllm-project/vllm#24505)
    no-algorithm-is-none       a quantization_config that names no method counts as none
                               (vllm-project/vllm#24410)
    draft-moe-backend-v2       the V2 runner heeds the speculative config's moe_backend
                               (vllm-project/vllm#54788)
    cpu-keeps-triton           on a CPU with a usable Triton no stand-ins are put in its place
    triton-needs-driver        a Triton without a driver samples nothing on a CPU, whatever
                               CUDA_VISIBLE_DEVICES is
    recurrent-speculation      targets with recurrent layers are served with drafts, whatever their
                               family (vllm-project/vllm#25752)
    recurrent-width            pages of recurrent states are planned with room for drafts, by every
                               class (vllm-project/vllm#47635)
    recurrent-without-drafts   a step without drafts goes on from the recurrent state of the last
                               accepted token (vllm-project/vllm#39273)
    draft-own-backend          the attention backend of a draft is chosen for itself
                               (vllm-project/vllm#39126)
    connector-waits-for-draft  a KV connector saves what the draft writes (vllm-project/vllm#34529)
    grammar-at-reasoning-end   a grammar holds from the end of the reasoning on, also among drafted
                               tokens (vllm-project/vllm#44993)

not known: 1 fact
  1  no config/speculative.py: lengths.raise_also_lifts_length
"""

DIFF = """\
vllm 1.0 → 2.0, for speculative decoding

upstream fixes
  + draft-positions-raised: the draft's rotary table reaches as far as what is served (EAGLE,
    EAGLE3) (vllm-project/vllm#49343)
  ~ dflash-positions-raised [not needed → not in]: the rotary table of a DFlash draft, too, reaches
    as far as what is served (vllm-project/vllm#57964)
  ? draft-length-raised [not in → not known]: where positions are raised, so is the length at which
    the V1 runner stops drafting (vllm-project/vllm#57964)
  ~ v2-shortens-context [not needed → not in]: with the V2 runner no more is served than the draft
    can follow
  + eagle3-any-model-type: no list of model types keeps targets from EAGLE3: their class decides
    (vllm-project/vllm#32079)
  + slot-unit: the draft's slots are counted in the blocks that the block table holds
    (vllm-project/vllm#31540)
  + cpu-speculation: drafts are served on a CPU at all (vllm-project/vllm#28384)
  ~ cpu-stand-ins [not needed → in]: on a CPU the stand-ins for Triton kernels are called, and take
    what they are given
  ? cpu-keeps-triton [not needed → not known]: on a CPU with a usable Triton no stand-ins are put in
    its place
  ~ cpu-aux-setup [not needed → not in]: on a CPU the target is asked for its auxiliary states
    (vllm-project/vllm#42468)
  ~ cpu-sampling [not needed → not in]: on a CPU temperature, top_k and top_p reach the drafted
    positions (vllm-project/vllm#55005)
  ? triton-needs-driver [not needed → not known]: a Triton without a driver samples nothing on a
    CPU, whatever CUDA_VISIBLE_DEVICES is

methods
  + dflash

--speculative-config
  + tree (str, choices flat, deep)
  ~ depth: default 1 → 2

EAGLE3 targets
  + New
  \N{MINUS SIGN} Plain
  ? not known of one of the two: Odd
  ~ only model types with: llama, qwen → none

model runner
  ~ V1 → V1, or V2 if asked
  + not with V2: LoRA

lengths
  + positions of the draft are raised for: eagle3
  ? and its length with them: not known of one of the two
  ? the V2 runner serves no more than the draft's length: not known of one of the two

auxiliary states
  ~ layer ids are read from: V1: + dflash_config.target_layer_ids +1

attention backends
  ~ PLAIN: non_causal no → yes
  ~ kernel block sizes: PLAIN: + multiples of 16 \N{MINUS SIGN} 16

KV cache blocks
  ~ the proposer counts in blocks of the: manager → kernel

on a CPU
  ~ speculation is refused: not supported → none
  ~ auxiliary states are set up: none → no
  ~ sampling parameters go into a copy: none → yes

vllm serve
  ~ max-model-len: kind int → size
  ~ mappings in a --config YAML: no → yes
  ~ not of speculation: 2 more differences

requirements
  ~ torch: ==2.8.0 → ==2.9.0

no difference: MTP model types, speculators format, order of draft layers, environment variables
"""


@pytest.fixture
def pair(small_engine: SmallEngine) -> tuple[Engine, Engine]:
    return small_engine("1.0", **OLD), small_engine("2.0", **NEW)


def test_the_list_to_the_letter(pair: tuple[Engine, Engine]) -> None:
    assert list_text(pair, "2.0", Terminal()) == LIST


def test_one_release_to_the_letter(pair: tuple[Engine, Engine]) -> None:
    assert engine_text(pair[1], Terminal()) == ONE


def test_two_releases_to_the_letter(pair: tuple[Engine, Engine]) -> None:
    assert diff_text(pair, Terminal()) == DIFF


def test_nothing_differs(pair: tuple[Engine, Engine]) -> None:
    first, blank, *rest = diff_text((pair[0], pair[0]), Terminal()).splitlines()
    assert (first, blank) == ("vllm 1.0 → 1.0, for speculative decoding", "")
    assert rest[0].startswith("no difference: methods, --speculative-config, ")


def test_three_releases_are_two_steps(pair: tuple[Engine, Engine], small_engine: SmallEngine) -> None:
    text = diff_text((*pair, small_engine("3.0")), Terminal())
    assert [line for line in text.splitlines() if " → " in line and line.startswith("vllm")] == [
        "vllm 1.0 → 2.0, for speculative decoding",
        "vllm 2.0 → 3.0, for speculative decoding",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit(pair: tuple[Engine, Engine], width: int) -> None:
    for text in (
        engine_text(pair[1], Terminal(width)),
        diff_text(pair, Terminal(width)),
        list_text(pair, None, Terminal(width)),
    ):
        assert max(map(cells, text.splitlines())) <= width


def test_colour_adds_nothing_but_colour(pair: tuple[Engine, Engine]) -> None:
    renders: list[Callable[[Terminal], str]] = [
        lambda terminal: engine_text(pair[1], terminal),
        lambda terminal: diff_text(pair, terminal),
        lambda terminal: list_text(pair, None, terminal),
    ]
    for render in renders:
        painted = render(Terminal(color=True))
        assert "\x1b[" in painted
        assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render(Terminal())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("installed here", "read here, from the vLLM of this environment"),
        ("/opt/engine", "read here, from /opt/engine"),
        ("shipped, by the image's tag", "shipped with specfix, taken for the image by its tag"),
        ("a\x1b[2Jb", "read here, from a\\x1b[2Jb"),
    ],
)
def test_how_it_is_known(source: str, said: str, small_engine: SmallEngine) -> None:
    text = engine_text(small_engine("1.0", source=source), Terminal())
    assert text.splitlines()[0] == f"vllm 1.0: {said}"


def test_long_lists_are_shortened_with_a_count(small_engine: SmallEngine) -> None:
    support = {f"Model{n}": True for n in range(30)}
    unknown = {f"eagle.support.Odd{n}": "no class" for n in range(40)}
    unknown |= {f"serve.flags.flag{n}": f"reason {n}" for n in range(20)}
    unread = dict.fromkeys(name.rpartition(".")[2] for name in unknown if "Odd" in name)
    new = small_engine("2.0", eagle={"support": support | unread}, unknown=unknown)
    short, whole = engine_text(new, Terminal()), engine_text(new, Terminal(), everything=True)
    assert "not known: 60 facts\n  40  no class: eagle.support of Odd0, " in short
    assert "32 more" in short and "Odd39" not in short and "  …   13 more reasons: --all shows them\n" in short
    assert "more" not in whole.partition("not known: 60")[2] and "Odd39" in whole and "reason 19" in whole
    short, whole = (diff_text((small_engine("1.0"), new), Terminal(), everything=all_) for all_ in (False, True))
    assert "Model7, 22 more" in short.replace("\n    ", " ") and "Model29" in whole


def test_a_list_is_not_shortened_by_one() -> None:
    assert names("abcd", 3) == "a, b, c, d"
    assert names("abcde", 3) == "a, b, c, 2 more"
    assert names("", 3) == "none" and names("abcde", None) == "a, b, c, d, e"


def test_json_of_one_release_holds_every_fact(pair: tuple[Engine, Engine]) -> None:
    document = json.loads(engine_json(pair[1]))
    assert document["schema"] == "specfix/engine-v1" and document["version"] == "2.0"
    assert document["speculative"]["keys"]["tree"]["choices"] == ["flat", "deep"]
    assert document["unknown"] == NEW["unknown"]
    assert document["fixes"]["slot-unit"] == "in" and list(document["fixes"]) == [fix.name for fix in FIXES]


def test_json_of_the_list(pair: tuple[Engine, Engine]) -> None:
    document = json.loads(list_json(pair, None))
    assert (document["schema"], document["installed"]) == ("specfix/engines-v1", None)
    old, new = document["engines"]
    assert (old["version"], old["runner"], old["eagle3_targets"], old["unknown"]) == ("1.0", "V1", 1, 2)
    assert sum(new["fixes"].values()) == len(FIXES)


def test_json_of_the_differences(pair: tuple[Engine, Engine]) -> None:
    document = json.loads(diff_json(pair))
    assert document["schema"] == "specfix/engine-diff-v1"
    (step,) = document["steps"]
    assert (step["before"]["version"], step["after"]["version"]) == ("1.0", "2.0")
    assert {"name": "slot-unit", "before": "not in", "after": "in"} in step["fixes"]
    topics = {topic["title"]: topic for topic in step["topics"]}
    assert topics["--speculative-config"]["changes"][0] == {
        "fact": "speculative.keys",
        "entry": ["depth", "default"],
        "kind": "changed",
        "before": 1,
        "after": 2,
    }
    assert topics["vllm serve"]["others"] == 2
    assert topics["EAGLE3 targets"]["changes"][0]["kind"] == "unknown"
