"""What overrides make of drafts' configs, read from functions in the shapes of the releases and then applied."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from specfix.engines.drafts import Refused, Unknown, overridden
from specfix.engines.facts.speculative import Count, MtpFacts
from specfix.engines.readers.mtp import read_mtp
from specfix.engines.source.tree import SourceTree

HEAD = """
MTPModelTypes = Literal["a_mtp", "mtp"]

class SpeculativeConfig:
    method: str | None = None

    def __post_init__(self):
        if self.method in get_args(MTPModelTypes) and self.method != "mtp":
            self.method = "mtp"
        if self.draft_model_config.hf_config.model_type == "medusa":
            self.method = "medusa"
        elif self.draft_model_config.hf_config.model_type in get_args(MTPModelTypes):
            self.method = "mtp"

    @staticmethod
    def hf_config_override(hf_config, caller=None):
"""
CALL = """
    if caller is not None:
        hf_config.update(caller)
        return hf_config
"""
BODY = """
    initial_architecture = hf_config.architectures[0]
    first = hf_config.model_type in ("v32", "glm")
    if initial_architecture == "Radio" and getattr(getattr(hf_config, "decoder", None), "prefix", False):
        hf_config.model_type = "mtp"
        hf_config.update({"architectures": ["RadioMTP"], "n_predict": 1})
        return hf_config
    if hf_config.model_type in ("v3", "v32"):
        hf_config.model_type = "a_mtp"
    if hf_config.model_type == "a_mtp":
        n_predict = getattr(hf_config, "layers", None)
        hf_config.update({"n_predict": n_predict, "architectures": ["New" if first else "Old"]})
    if (arch := hf_config.architectures[0]) in ("One", "Two"):
        from vllm.models import _LAYERS
        table = {"One": "OneMTP", "Two": "TwoMTP"}
        hf_config.model_type = "mtp"
        hf_config.update({"n_predict": _LAYERS, "architectures": [table[arch]], "num_hidden_layers": 0})
    if hf_config.model_type == "v4":
        newer = hf_config.extra == "yes"
        overrides = {"n_predict": getattr(hf_config, "layers", 1)}
        if not newer:
            overrides["architectures"] = ["FourMTP"]
        hf_config.update(overrides)
    if hf_config.model_type == "vision":
        quantization = getattr(hf_config, "quantization", None)
        hf_config = getattr(hf_config, "text_config", hf_config)
        if quantization is not None and getattr(hf_config, "quantization", None) is None:
            hf_config.update({"quantization": quantization})
        hf_config.model_type = "mtp"
        hf_config.update({"n_predict": getattr(hf_config, "modules", 1), "architectures": ["VisionMTP"]})
    if hf_config.model_type == "falls_back":
        n_predict = getattr(hf_config, "layers", None)
        if n_predict is None:
            text = get_hf_text_config(hf_config)
            n_predict = getattr(text, "layers", getattr(text, "modules", None))
        hf_config.update({"n_predict": n_predict, "architectures": ["BackMTP"]})
    if hf_config.model_type == "nested":
        mtp = getattr(hf_config, "mtp_config", None) or {}
        depth = mtp.get("layers", 0)
        if depth < 1:
            raise ValueError("none")
        hf_config.model_type = "mtp"
        hf_config.update({"n_predict": depth, "architectures": ["NestedMTP"]})
    elif hf_config.model_type == "required" or "Required" in (getattr(hf_config, "architectures", []) or []):
        hf_config.update({"n_predict": hf_config.layers, "architectures": ["RequiredMTP"]})
    if hf_config.model_type == "repeated":
        count = getattr(hf_config, "layers", 1)
        kinds = getattr(hf_config, "kinds", None)
        if kinds is None:
            kinds = ["full"] * count
        if len(kinds) != count:
            raise ValueError("kinds")
        hf_config.update({"n_predict": count, "architectures": ["RepeatedMTP"]})
    if hf_config.model_type == "positive" and hasattr(hf_config, "layers") and hf_config.layers > 0:
        hf_config.model_type = "positive_mtp"
    return hf_config
"""


def read(root: Path, body: str) -> tuple[MtpFacts, dict[str, str]]:
    (root / "config").mkdir()
    (root / "models.py").write_text("_LAYERS = 1\n")
    (root / "config/speculative.py").write_text(dedent(HEAD) + indent(dedent(body), " " * 8))
    unknown: dict[str, str] = {}
    return read_mtp(SourceTree(root), unknown), unknown


def made(facts: MtpFacts, model_type: str, architecture: str = "X", **keys: Any) -> tuple[Any, ...]:
    config = overridden(facts, {"model_type": model_type, "architectures": [architecture], **keys})
    return config["model_type"], config["architectures"][0], config.get("n_predict")


def test_model_types_and_aliases(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, BODY)
    assert (facts.model_types, facts.method, facts.aliases) == (("a_mtp", "mtp"), "mtp", ("a_mtp",))
    assert unknown == {}


def test_each_shape_of_an_override(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, BODY)
    assert made(facts, "other") == ("other", "X", None)
    assert made(facts, "v3", layers=2) == ("a_mtp", "Old", 2)
    assert made(facts, "v32") == ("a_mtp", "New", None)  # by what the config was at first
    assert made(facts, "x", "Radio", decoder={"prefix": True}) == ("mtp", "RadioMTP", 1)
    assert made(facts, "x", "Radio") == ("x", "Radio", None)
    assert made(facts, "x", "Two") == ("mtp", "TwoMTP", 1)
    assert made(facts, "v4") == ("v4", "FourMTP", 1)
    assert made(facts, "v4", extra="yes", layers=5) == ("v4", "X", 5)
    text = {"model_type": "inner", "architectures": ["Inner"], "modules": 3, "layers": 4}
    assert made(facts, "vision", text_config=text) == ("mtp", "VisionMTP", 3)
    assert made(facts, "vision") == ("mtp", "VisionMTP", 1)
    assert made(facts, "falls_back", text_config={"modules": 6}) == ("falls_back", "BackMTP", 6)
    assert made(facts, "falls_back", text_config=text, layers=9) == ("falls_back", "BackMTP", 9)
    assert made(facts, "nested", mtp_config={"layers": 2}) == ("mtp", "NestedMTP", 2)
    assert made(facts, "x", "Required", layers=2) == ("x", "RequiredMTP", 2)
    assert made(facts, "repeated") == ("repeated", "RepeatedMTP", 1)
    assert made(facts, "repeated", kinds=["full"] * 2, layers=2) == ("repeated", "RepeatedMTP", 2)
    assert made(facts, "positive", layers=1)[0] == "positive_mtp"
    assert made(facts, "positive")[0] == "positive"  # though another step has a default for the same key
    for kind in ("nested", "required", "repeated"):
        with pytest.raises(Refused):
            made(facts, kind, kinds=["full"] * 2)
    with pytest.raises(Refused, match="architectures"):
        overridden(facts, {"model_type": "v3"})


def test_what_is_written_besides(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, BODY)
    assert facts.overrides is not None
    vision = next(o for o in facts.overrides if o.architectures == ("VisionMTP",))
    assert (vision.becomes, vision.keys) == ("text_config?", ("quantization",))
    assert vision.n_predict == Count(("text_config?.modules",), 1)
    back = next(o for o in facts.overrides if o.architectures == ("BackMTP",))
    assert back.n_predict == Count(("layers", "get_text_config().layers", "get_text_config().modules"))


def test_a_callers_own_argument_is_left_out(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, CALL + BODY)
    assert made(facts, "v3", layers=2) == ("a_mtp", "Old", 2)
    assert list(unknown.values()) == ["hangs on an argument that only some callers pass"]


@pytest.mark.parametrize(
    "body",
    [
        # read before an override that may change it
        "kind = hf_config.model_type\nif hf_config.model_type == 'a':\n    hf_config.model_type = 'b'\n"
        "kind = hf_config.model_type\nif hf_config.model_type == 'b':\n    hf_config.model_type = 'c'\n"
        "if kind == 'b':\n    hf_config.update({'architectures': ['B']})\n",
        "if hf_config.model_type == 'a':\n    for key in keys:\n        hf_config.model_type = key\n",
        "if hf_config.model_type == 'a':\n    hf_config.update({'n_predict': count(hf_config)})\n",
        "if hf_config.model_type == 'a':\n    if odd(hf_config):\n        raise ValueError\n    hf_config.x = 'b'\n",
        "if hf_config.model_type == 'a':\n    hf_config.update({'architectures': [name(hf_config)]})\n",
        "for key in keys:\n    hf_config.model_type = key\n",
    ],
)
def test_what_is_not_understood_is_unknown(tmp_path: Path, body: str) -> None:
    facts, unknown = read(tmp_path, body)
    assert any(name.startswith("mtp.overrides.") for name in unknown)
    with pytest.raises(Unknown):
        made(facts, "a")


def test_no_override_and_no_config(tmp_path: Path) -> None:
    unknown: dict[str, str] = {}
    assert read_mtp(SourceTree(tmp_path), unknown) == MtpFacts()
    assert set(unknown) == {"mtp.model_types", "mtp.method", "mtp.aliases", "mtp.overrides"}
