"""EAGLE3 support and auxiliary states, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import EagleFacts, MethodFacts
from specfix.engines.readers.eagle import read_eagle
from specfix.engines.source.tree import SourceTree

INTERFACE = """
    from typing import ClassVar, Literal, Protocol

    class Mixin:
        aux_hidden_state_layers = ()

        def _maybe_add_hidden_state(self, states, index, hidden, residual):
            if index in self.aux_hidden_state_layers:
                states.append(hidden)
            return states

    class EagleBase(Protocol):
        own_head: bool = False

    class SupportsEagle3(EagleBase, Protocol):
        supports_eagle3: ClassVar[Literal[True]] = True

        def set_aux_hidden_state_layers(self, layers):
            assert isinstance(self.model, Mixin), "no mixin"
            self.model.aux_hidden_state_layers = layers

        def get_eagle3_default_aux_hidden_state_layers(self):
            count = len(self.model.layers)
            return (1, count // 3, count - 2)
"""

MODEL = """
    from torch import nn
    from .interfaces import Mixin, SupportsEagle3

    class Decoder(nn.Module, Mixin):
        def forward(self, x):
            aux = []
            for i, layer in enumerate(self.layers):
                x = layer(x)
                self._maybe_add_hidden_state(aux, i + 1, x, None)
            return x, aux

    class Bare(nn.Module):
        def forward(self, x):
            return x

    class Served(nn.Module, SupportsEagle3):
        def __init__(self):
            self.model = self.build()

        def build(self):
            return Decoder()

    class Heir(Served):
        pass

    class NoMixin(Served):
        def build(self):
            return Bare()

    class Plain(nn.Module):
        pass

    class Structural(Plain):
        own_head = True
        supports_eagle3 = True

        def set_aux_hidden_state_layers(self, layers):
            self.layers = layers

        def get_eagle3_default_aux_hidden_state_layers(self):
            total = self.config.num_hidden_layers
            return (0, total - 1)

    class Made(as_something(Plain)):
        pass
"""

RUNNER = """
    class Runner:
        def setup(self):
            layers = self.from_config() or self.model.get_eagle3_default_aux_hidden_state_layers()
            self.model.set_aux_hidden_state_layers(layers)
"""


def facts(tmp_path: Path, files: dict[str, str], names: str = "Served") -> tuple[EagleFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    methods = MethodFacts(methods=(), architectures={name: f"net:{name}" for name in names.split()})
    return read_eagle(SourceTree(tmp_path / "vllm"), unknown, methods), unknown


MODELS = {
    "model_executor/models/interfaces.py": INTERFACE,
    "model_executor/models/net.py": MODEL,
    "v1/worker/gpu_model_runner.py": RUNNER,
}


def test_support_is_structural_and_goes_through_bases(tmp_path: Path) -> None:
    names = "Served Heir NoMixin Plain Structural Made Absent"
    read, unknown = facts(tmp_path, MODELS, names)
    assert read.has_interface
    assert read.support == {
        "Served": True,
        "Heir": True,
        "NoMixin": False,  # setting the layers asserts
        "Plain": False,
        "Structural": True,  # names no interface and meets it all the same
        "Made": None,
        "Absent": None,
    }
    assert {"eagle.support.Made", "eagle.support.Absent"} <= unknown.keys()


def test_a_model_that_records_nothing_does_not_support(tmp_path: Path) -> None:
    silent = MODEL.replace("class Bare(nn.Module)", "class Bare(nn.Module, Mixin)")
    read, _ = facts(tmp_path, {**MODELS, "model_executor/models/net.py": silent}, "NoMixin")
    assert read.support == {"NoMixin": False}


def test_an_inherited_forward_counts_where_it_is_called(tmp_path: Path) -> None:
    heir = MODEL.replace("class Bare(nn.Module)", "class Bare(Decoder)").replace(
        "            return x\n", "            return super().forward(x)\n"
    )
    read, _ = facts(tmp_path, {**MODELS, "model_executor/models/net.py": heir}, "NoMixin")
    assert read.support == {"NoMixin": True}


def test_without_interface_the_called_methods_decide(tmp_path: Path) -> None:
    files = {**MODELS, "model_executor/models/interfaces.py": "class Mixin: ...\nSupportsEagle3 = Mixin\n"}
    read, _ = facts(tmp_path, files, "Plain Structural")
    assert not read.has_interface
    assert read.support == {"Plain": False, "Structural": True}


def test_the_branch_of_cuda_is_followed_and_lazy_modules_too(tmp_path: Path) -> None:
    files = {
        **MODELS,
        "special/__init__.py": """
            from vllm.platforms import current_platform
            if current_platform.is_rocm():
                from .other import Thing
            else:
                from vllm.model_executor.models.net import Served as Thing

            def __getattr__(name):
                if name == "Late":
                    from . import late
                    return getattr(late, name)
            """,
        "special/late.py": "from vllm.model_executor.models.net import Plain as Late\n",
    }
    facts(tmp_path, files)
    methods = MethodFacts((), {"Thing": "vllm.special:Thing", "Late": "vllm.special:Late"})
    assert read_eagle(SourceTree(tmp_path / "vllm"), {}, methods).support == {"Thing": True, "Late": False}


def test_default_layers_of_the_interface_and_of_an_override(tmp_path: Path) -> None:
    read, _ = facts(tmp_path, MODELS, "Served Structural")
    assert read.default_aux == {"": ("1", "L//3", "L-2"), "Structural": ("0", "L-1")}
    assert read.default_aux_count == {
        "": "len(self.model.layers)",
        "Structural": "self.config.num_hidden_layers",
    }


def test_a_decoder_that_is_marked_named_by_the_config_or_recorded_from_outside(tmp_path: Path) -> None:
    more = """
    class Seen(Served):
        def __init__(self):
            with self._mark_language_model(config):
                self.decoder: Decoder = Decoder()

        def get_language_model(self): ...

    class Open(Served):
        def __init__(self):
            self.language_model = init_vllm_registered_model(hf_config=config.text_config)

        def get_language_model(self): ...

    class Outside(nn.Module, SupportsEagle3):
        def set_aux_hidden_state_layers(self, layers):
            for layer in layers:
                self.recorders[layer] = OutputRecorder(self.kind, layer_name=self.names[layer - 1])

    class Draft(Served):
        pass
    """
    files = {**MODELS, "model_executor/models/net.py": MODEL + more}
    facts(tmp_path, files)
    names = ("Seen", "Open", "Outside", "Draft")
    methods = MethodFacts((), {name: f"net:{name}" for name in names}, drafts=("Draft",))
    unknown: dict[str, str] = {}
    read = read_eagle(SourceTree(tmp_path / "vllm"), unknown, methods)
    assert set(read.support.values()) == {True}
    assert read.aux_final_layer == {"Seen": True, "Outside": True}
    assert read.language_by_config == ("Open",)
    assert not [key for key in unknown if "final_layer" in key]


def test_an_unreadable_formula_is_none(tmp_path: Path) -> None:
    odd = MODEL.replace("return (0, total - 1)", "return tuple(pick(total))")
    read, unknown = facts(tmp_path, {**MODELS, "model_executor/models/net.py": odd}, "Structural")
    assert read.default_aux is not None
    assert read.default_aux["Structural"] is None
    assert "eagle.default_aux.Structural" in unknown


LOOP = "for i, layer in enumerate(self.layers):\n    "
ASKS = "if i in self.aux_hidden_state_layers: aux.append(x)"


@pytest.mark.parametrize(
    ("body", "reaches"),
    [
        (LOOP + "self._maybe_add_hidden_state(aux, i + 1, x, None)", True),
        (LOOP + ASKS, False),
        (LOOP + ASKS + "\n" + ASKS.replace("if i", "if self.end_layer"), True),
        ("aux = somewhere_else(x)", None),
    ],
)
def test_whether_the_last_layers_output_can_be_asked_for(tmp_path: Path, body: str, reaches: bool | None) -> None:
    loop = "\n".join(f"            {line}" for line in ["aux = []", *body.splitlines(), "return x, aux"])
    head, tail = MODEL[: MODEL.index("            aux = []")], MODEL[MODEL.index("    class Bare") :]
    model = f"{head}{loop}\n\n{tail}"
    read, _ = facts(tmp_path, {**MODELS, "model_executor/models/net.py": model})
    assert read.aux_final_layer == {"Served": reaches}
    assert read.aux_deduplicates


def test_states_that_the_drafts_fc_takes(tmp_path: Path) -> None:
    draft = """
        class Inner:
            def __init__(self, config):
                self.config = config
                extra = getattr(self.config, "eagle_config", None) or {}
                self.count = getattr(self.config, "num_aux_hidden_states", None)
                if self.count is None:
                    ids = extra.get("layer_ids")
                    self.count = len(ids) if ids else 3
                width = self.config.hidden_size * self.count
                self.fc = Linear(input_size=width)

        class FixedInner:
            def __init__(self, config):
                self.fc = Linear(config.hidden_size * 4, config.hidden_size)

        class Eagle3A:
            def __init__(self, config):
                self.model = Inner(config)

        class Eagle3B:
            def __init__(self, config):
                self.model = FixedInner(config)
        """
    read, _ = facts(tmp_path, {**MODELS, "model_executor/models/net.py": draft}, "Eagle3A Eagle3B")
    assert read.fc_states == {
        "Eagle3A": ("num_aux_hidden_states", "len(eagle_config.layer_ids)", "3"),
        "Eagle3B": ("4",),
    }


PLACES = """
    class Runner:
        def _get_eagle3_aux_layers_from_config(self):
            if not self.speculative_config:
                return None
            config = self.speculative_config.draft_model_config.hf_config
{body}
            if ids and isinstance(ids, (list, tuple)):
                return tuple(ids)
            return None
"""


def places(tmp_path: Path, *lines: str) -> tuple[EagleFacts, dict[str, str]]:
    body = "\n".join("            " + line for line in lines)
    return facts(tmp_path, {**MODELS, "v1/worker/gpu_model_runner.py": PLACES.format(body=body)})


def test_one_place(tmp_path: Path) -> None:
    read, _ = places(tmp_path, 'if not hasattr(config, "ids"):', "    return None", "ids = config.ids")
    assert read.aux_places == {"V1": (("ids", 0),)}
    assert read.aux_hidden_by == {}


def test_a_later_assignment_wins_and_hides_the_earlier(tmp_path: Path) -> None:
    read, _ = places(
        tmp_path,
        'ids = getattr(config, "ids", None)',
        "if not ids:",
        '    first = getattr(config, "first_config", None)',
        '    second = getattr(config, "second_config", None)',
        "    if first and isinstance(first, dict):",
        '        ids = [i + 1 for i in (first.get("layer_ids") or [])]',
        "    if second and isinstance(second, dict):",
        '        ids = second.get("ids")',
    )
    assert read.aux_places == {"V1": (("ids", 0), ("second_config.ids", 0), ("first_config.layer_ids", 1))}
    assert read.aux_hidden_by == {"V1": {"first_config.layer_ids": "second_config"}}


def test_chained_fallbacks_a_loop_and_a_model_type(tmp_path: Path) -> None:
    read, _ = places(
        tmp_path,
        'ids = getattr(config, "ids", None)',
        "if not ids:",
        '    others = getattr(config, "other_ids", None)',
        "    if others:",
        '        if getattr(config, "model_type", None) == "odd":',
        "            ids = list(others)",
        "        else:",
        "            ids = [i + 1 for i in others]",
        "if not ids:",
        '    for name in ("a_config", "b_config"):',
        "        part = getattr(config, name, None)",
        "        if part:",
        '            ids = part.get("layer_ids")',
        "            if ids:",
        "                break",
    )
    assert read.aux_places == {
        "V1": (("ids", 0), ("other_ids", 1), ("a_config.layer_ids", 0), ("b_config.layer_ids", 0))
    }
    assert read.aux_unshifted == {"other_ids": ("odd",)}


def test_an_unknown_form_is_not_guessed(tmp_path: Path) -> None:
    read, unknown = places(tmp_path, "ids = somewhere(config)")
    assert read.aux_places is None
    assert "somewhere" in unknown["eagle.aux_places.V1"]


def test_a_runner_that_asks_no_config(tmp_path: Path) -> None:
    direct = """
        class Runner:
            def setup(self):
                self.model.set_aux_hidden_state_layers(
                    self.model.get_eagle3_default_aux_hidden_state_layers())
        """
    read, _ = facts(tmp_path, {**MODELS, "v1/worker/gpu_model_runner.py": direct})
    assert read.aux_places == {"V1": ()}
    assert read.use_aux_flag == {"V1": False}


def test_the_second_runner_and_the_flag(tmp_path: Path) -> None:
    second = """
        def get_eagle3_aux_layers_from_config(spec):
            config = spec.draft_model_config.hf_config
            ids = getattr(config, "ids", None)
            return tuple(ids)

        def wants_aux(spec):
            part = getattr(spec.draft_model_config.hf_config, "eagle_config", None) or {}
            return part.get("use_aux_hidden_state", True)
        """
    read, _ = facts(tmp_path, {**MODELS, "v1/worker/gpu/spec_decode/utils.py": second})
    assert read.aux_places == {"V2": (("ids", 0),)}
    assert read.use_aux_flag == {"V2": True}


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (
            'self.method in ("eagle3", "other") and'
            " not any(name in self.target.hf_text_config.model_type for name in NAMES)",
            (("alpha", "beta"), ("eagle3", "other")),
        ),
        (
            'self.method == "eagle3" and "alpha" not in self.target.hf_text_config.model_type',
            (("alpha",), ("eagle3",)),
        ),
        ('self.method == "eagle3" and self.target is None', (None, ())),
    ],
)
def test_list_of_the_config_stage(
    tmp_path: Path, test: str, expected: tuple[tuple[str, ...] | None, tuple[str, ...]]
) -> None:
    config = f"""
        def check(self):
            NAMES = ["alpha", "beta"]
            if {test}:
                raise ValueError("no")
        """
    read, _ = facts(tmp_path, {**MODELS, "config/speculative.py": config})
    assert (read.config_stage, read.config_stage_methods) == expected


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    read, unknown = facts(tmp_path, {"__init__.py": ""})
    assert read.support == {"Served": None}
    assert read.aux_places is None
    assert read.aux_deduplicates is None
    assert {"eagle.aux_places", "eagle.aux_deduplicates", "eagle.support.Served"} <= unknown.keys()
