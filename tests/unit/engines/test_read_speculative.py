"""Keys of the speculative config and what becomes of them, read from small sources in the shapes of the releases."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from specfix.engines.conditions import evaluate
from specfix.engines.facts.speculative import Key, SpeculativeFacts
from specfix.engines.readers.speculative import read_speculative
from specfix.engines.source.tree import SourceTree

PYDANTIC_ALONE = """
    from typing import Literal, Optional
    from pydantic import SkipValidation
    from pydantic.dataclasses import dataclass
    from vllm.config.utils import config
    Method = Literal["ngram", "eagle"]

    @config
    @dataclass
    class SpeculativeConfig:
        num_speculative_tokens: SkipValidation[int] = None
        method: Optional[Method] = None
        disable_logprobs: bool = True
        target_model_config: SkipValidation[ModelConfig] = None
        draft_model_config: SkipValidation[ModelConfig] = None

        def __post_init__(self):
            self.draft_model_config = self.target_model_config
"""
IDENTITY = """
    def config(cls):
        return cls
"""
FORBIDS = """
    from pydantic import ConfigDict
    from pydantic.dataclasses import dataclass

    def config(cls=None, *, config=None, **kwargs):
        merged = ConfigDict(extra="forbid")
        def decorator(cls):
            return dataclass(cls, config=merged, **kwargs)
        return decorator if cls is None else decorator(cls)
"""
CREATE = """
    class EngineArgs:
        def create_speculative_config(self, target_model_config):
            self.speculative_config.update({"target_model_config": target_model_config})
            return SpeculativeConfig(**self.speculative_config)
"""
LATER = """
    from typing import TYPE_CHECKING, Literal, get_args
    from pydantic import Field, SkipValidation, field_validator
    from vllm.config.cache import CacheDType
    from vllm.config.utils import config
    from vllm.backends import Backend
    if TYPE_CHECKING:
        import vllm.quantization as me_quant
        Checked = Literal["for type checkers alone"]
    else:
        me_quant = LazyLoader("quantization", globals(), "vllm.quantization")
        Checked = Any
    Built = Literal["a_mtp", "mtp"]
    Method = Literal["ngram", "suffix", "hidden", Literal["eagle", Built], "draft_model"]

    @config
    class SpeculativeConfig:
        num_speculative_tokens: int = Field(default=None, gt=0)
        method: Method | None = None
        model: str | None = None
        rate: float = Field(default=0.5, ge=0, le=1)
        depth: int = 24
        quantization: me_quant.Methods | None = None
        other_quantization: me_quant.Methods | str | None = None
        kv_cache_dtype: CacheDType | None = None
        attention_backend: Backend | None = None
        checked: Checked = None
        rates: list[float] | None = None
        computed: int = compute()
        odd: Callable[[int], int] | None = None
        target_model_config: SkipValidation[ModelConfig] = None
        draft_model_config: SkipValidation[ModelConfig] = None

        @field_validator("attention_backend", mode="before")
        @classmethod
        def _parse(cls, value):
            return Backend[value.upper()]

        def __post_init__(self):
            if self.method in get_args(Built) and self.method != "mtp":
                self.method = "mtp"
            if self.method is None and SpeculativeConfig._is_path(self.model):
                self.method = "draft_model"
            if self.method is None and not self.model.startswith(("http://", "file://")):
                self.method = "ngram"
            if self.method == "suffix":
                self._validate()
            elif self.method == "hidden":
                if isinstance(self.draft_model_config, dict) and "hf_config" in self.draft_model_config:
                    pass
            else:
                self.draft_model_config = ModelConfig(self.model)
                if self.draft_model_config.hf_config.model_type in get_args(Built):
                    self.method = "mtp"
                    if self.num_speculative_tokens > 1:
                        log()
                n_predict = getattr(self.draft_model_config.hf_config, "n_predict", None)
                if n_predict is not None:
                    if self.num_speculative_tokens is None:
                        self.num_speculative_tokens = n_predict
                    elif self.num_speculative_tokens > n_predict and self.num_speculative_tokens % n_predict != 0:
                        raise ValueError("no multiple")
                if self.num_speculative_tokens % 2 != 0 and odd():
                    raise ValueError("never lifted")

        def _validate(self):
            if self.num_speculative_tokens is None:
                self.num_speculative_tokens = self.depth
            if self.depth < 1:
                raise ValueError("shallow")

        def _verify_args(self):
            if self.rate > 0.5 and self.method != "eagle":
                raise ValueError("rate")
            return self
"""
FILES = {
    "config/speculative.py": LATER,
    "config/utils.py": FORBIDS,
    "config/cache.py": 'CacheDType = Literal["auto", "fp8"]',
    "quantization.py": 'Methods = Literal["awq", "fp8"]',
    "backends.py": """
        class Backend(Enum):
            FLASH = "vllm.flash"
            TRITON = auto()
            _hidden = 1
    """,
    "engine/arg_utils.py": CREATE.replace(
        "self.speculative_config.update", 'd = {k.replace("-", "_"): 1}; self.speculative_config.update'
    ),
}


def read(root: Path, files: dict[str, str]) -> tuple[SpeculativeFacts, dict[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_speculative(SourceTree(root), unknown), unknown


def test_keys_of_pydantic_alone_drop_what_is_no_field(tmp_path: Path) -> None:
    files = {"config/speculative.py": PYDANTIC_ALONE, "config/utils.py": IDENTITY, "engine/arg_utils.py": CREATE}
    facts, unknown = read(tmp_path, files)
    assert facts.keys == {
        "num_speculative_tokens": Key("int", nullable=True, validated=False),
        "method": Key("str", nullable=True, choices=("ngram", "eagle")),
        "disable_logprobs": Key("bool", True),
    }
    assert (facts.passed, facts.made) == (("target_model_config",), ("draft_model_config",))
    assert (facts.refuses_others, facts.dashes, unknown) == (False, False, {})


def test_a_class_of_the_standard_library_refuses_what_is_no_field(tmp_path: Path) -> None:
    plain = PYDANTIC_ALONE.replace("from pydantic.dataclasses", "from dataclasses")
    facts, _ = read(tmp_path, {"config/__init__.py": plain, "config/utils.py": IDENTITY, "engine/arg_utils.py": CREATE})
    assert facts.refuses_others is True


def test_types_choices_and_bounds_are_looked_up(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, FILES)
    assert facts.keys is not None
    assert facts.keys["num_speculative_tokens"] == Key("int", above=0)
    assert facts.keys["rate"] == Key("float", 0.5, at_least=0, at_most=1)
    methods = ("ngram", "suffix", "hidden", "eagle", "a_mtp", "mtp", "draft_model")
    assert facts.keys["method"] == Key("str", nullable=True, choices=methods)
    assert facts.keys["quantization"].choices == ("awq", "fp8")
    assert facts.keys["other_quantization"] == Key("str", nullable=True)
    assert facts.keys["kv_cache_dtype"].choices == ("auto", "fp8")
    assert facts.keys["attention_backend"] == Key("str", nullable=True, choices=("FLASH", "TRITON"), parsed=True)
    assert facts.keys["checked"] == Key("Any", nullable=True, validated=False)
    assert facts.keys["rates"] == Key("list[float]", nullable=True)
    assert (facts.refuses_others, facts.dashes) == (True, True)
    assert facts.read_as_mapping == {"draft_model_config": ["==", ["name", "method"], ["const", "hidden"]]}
    assert facts.keys["computed"].default is None and facts.keys["odd"].type is None
    entries = {"keys.computed.default", "keys.odd.type", "keys.odd.choices", "multiples.68"}
    assert {key.removeprefix("speculative.") for key in unknown if "multiples" not in key} == entries - {"multiples.68"}
    assert sum("multiples" in key for key in unknown) == 1


def test_what_becomes_of_the_method_and_the_tokens(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, FILES)
    assert facts.methods and facts.tokens and facts.multiples and facts.refusals
    renamed, path, local, found = facts.methods
    assert renamed.then == "mtp" and evaluate(renamed.when, {"method": "a_mtp"}) is True
    assert evaluate(renamed.when, {"method": "mtp"}) is False
    assert path.when == ["and", ["is", ["name", "method"], ["const", None]], ["name", "_is_path(model)"]]
    assert local.when[2] == ["not", ["name", "model.startswith('http://', 'file://')"]]
    draft = {"draft_model_config.hf_config.model_type": "a_mtp", "draft_model_config.hf_config.n_predict": 3}
    assert found.then == "mtp" and evaluate(found.when, {"method": "draft_model", **draft}) is True
    assert evaluate(found.when, {"method": "suffix", **draft}) is False
    suffix, predicted = facts.tokens
    assert suffix.then == ["depth"] and predicted.then == ["draft_model_config.hf_config.n_predict"]
    assert evaluate(suffix.when, {"method": "suffix", "num_speculative_tokens": None}) is True
    (multiple,) = facts.multiples
    assert multiple.then == "draft_model_config.hf_config.n_predict"
    assert evaluate(multiple.when, {"method": "mtp", "num_speculative_tokens": 4, **draft}) is True


def test_refusals_that_lift_are_there(tmp_path: Path) -> None:
    facts, _ = read(tmp_path, FILES)
    values = {"method": "eagle", "num_speculative_tokens": 1, "rate": 0.5, "depth": 24}
    values["draft_model_config.hf_config.model_type"] = "a_mtp"

    def refused(**others: object) -> bool:
        return any(evaluate(step.when, {**values, **others}) for step in facts.refusals or ())

    assert not refused()
    assert refused(method="mtp", rate=0.6) and not refused(rate=0.6)
    assert refused(method="suffix", depth=0) and not refused(depth=0)
    assert refused(num_speculative_tokens=None)  # None > 1


def test_no_config_is_unknown(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"config/utils.py": IDENTITY})
    assert facts == SpeculativeFacts()
    assert {"speculative.keys", "speculative.refuses_others", "speculative.methods"} <= set(unknown)
