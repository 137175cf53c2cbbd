"""How lengths are derived, guarded and raised, read from sources with each part and from sources without."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import LengthFacts, MethodFacts
from specfix.engines.find import find_engine, shipped_versions
from specfix.engines.readers.lengths import read_lengths
from specfix.engines.source.tree import SourceTree

METHODS = MethodFacts(("eagle", "eagle3", "dflash", "draft_model", "ngram"), {})

OLD = {
    "config/model.py": """
        class ModelConfig: ...

        def _get_and_verify_max_len(hf_config, asked):
            names = ["longest", "model_max_length"]
            length = float("inf")
            for name in names:
                found = getattr(hf_config, name, None)
                if found is not None:
                    length = min(length, found)
            if own := getattr(hf_config, "model_max_length", None):
                length = own
            if "gemma3" not in hf_config.model_type:
                for rope in ropes:
                    rope_type = rope["rope_type"]
                    if rope_type not in ("su", "llama3"):
                        factor = rope.get("factor", 1)
                        if rope_type == "yarn":
                            length = rope["original_max_position_embeddings"]
                length *= factor
            if asked is None:
                if any(rope["rope_type"] == "longrope" for rope in ropes):
                    return getattr(hf_config, "original_max_position_embeddings", length)
            return length
    """,
    "config/speculative.py": """
        class SpeculativeConfig:
            def __post_init__(self):
                self.draft_model_config = ModelConfig(hf_overrides=SpeculativeConfig.hf_config_override)
    """,
    "config/vllm.py": "class VllmConfig: ...",
    "v1/worker/gpu_model_runner.py": """
        class Runner:
            def sample(self):
                fits = longest + self.num_spec_tokens <= self.effective_drafter_max_model_len
    """,
}
NEW = {
    "config/model.py": """
        class ModelConfig: ...

        def _get_and_verify_max_len(hf_config, asked):
            if rope_type not in ("yarn", "longrope"):
                factor = rope.get("factor", 1)
            return length
    """,
    "transformers_utils/model_arch_config_convertor.py": """
        class ModelArchConfigConvertorBase:
            def derive_max_model_len_and_key(self):
                names = ["max_position_embeddings", "seq_len"]
                for name in names:
                    found = getattr(self.config, name, None)
                return found

        class OddOne(ModelArchConfigConvertorBase):
            def derive_max_model_len_and_key(self):
                return getattr(self.config, "odd", None)
    """,
    "config/speculative.py": """
        _SIZED = frozenset({"default", "linear"})

        def _only_sized(config):
            return all(p.get("rope_type", "default") in _SIZED for p in parameters(config))

        class SpeculativeConfig:
            method: str | None = None

            def __post_init__(self):
                if self.method in ("ngram",):
                    pass
                elif self.model is not None:
                    self.draft_model_config = ModelConfig(
                        model=self.model, hf_overrides=SpeculativeConfig.hf_config_override
                    )
                    if self.method != "draft_model":
                        SpeculativeConfig._maybe_override_draft_max_position_embeddings(self.hf_config, 5)

            def _maybe_override_draft_max_position_embeddings(config, target):
                if not _only_sized(config):
                    return
                config.max_position_embeddings = target

            def use_dflash(self):
                return self.method == "dflash"
    """,
    "config/vllm.py": """
        from .speculative import SpeculativeConfig

        class VllmConfig:
            speculative_config: SpeculativeConfig | None = None

            def __post_init__(self):
                self._limit_max_model_len_to_draft()

            def _limit_max_model_len_to_draft(self):
                self.model_config.max_model_len = 5
    """,
    "v1/worker/gpu_model_runner.py": """
        class Runner:
            def fits(self, longest):
                more = self.num_spec_tokens + (1 if self.speculative_config.use_dflash() else 0)
                return longest + more <= self.effective_drafter_max_model_len
    """,
}


def read(root: Path, files: dict[str, str]) -> tuple[LengthFacts, dict[str, str]]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_lengths(SourceTree(root), unknown, METHODS), unknown


def test_a_release_that_scales_yarn_and_raises_nothing(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, OLD)
    assert facts == LengthFacts(
        keys=("longest", "model_max_length"),
        unscaled_rope_types=("su", "llama3"),
        yarn_from_original=True,
        unscaled_model_types=("gemma3",),
        v1_guard=True,
        guard_extra={},
        raised_methods=(),
        raised_rope_types=None,
        raise_also_lifts_length=False,
        limits_target=False,
        overriding_key="model_max_length",
        longrope_from_original=True,
        overrides_reach_draft=False,
        refuses_longer=False,
        own_bounded_by=(),
        own_is_draft_length=False,
        refuses_none=False,
    )
    assert not unknown


@pytest.mark.parametrize(
    ("test", "refuses"),
    [("isinstance(length, int) or self.max_model_len < 1", True), ("isinstance(length, int)", False)],
)
def test_a_length_below_one(tmp_path: Path, test: str, refuses: bool) -> None:
    validator = f"""
        class ModelConfig:
            def validate_model_config_after(self):
                if not {test}:
                    raise ValueError("not a length")
    """
    facts, _ = read(
        tmp_path, {**OLD, "config/model.py": OLD["config/model.py"].replace("class ModelConfig: ...", "") + validator}
    )
    assert facts.refuses_none is refuses


def test_a_length_that_is_asked_for_and_is_above_the_derived_one(tmp_path: Path) -> None:
    files = {
        "config/model.py": """
            class ModelConfig: ...

            def _get_and_verify_max_len(hf_config, max_model_len):
                if max_model_len is None:
                    max_model_len = derived
                elif max_model_len > derived_max_model_len:
                    own = getattr(hf_config, "own_length", None)
                    if own is None or max_model_len > own:
                        if envs.LONGER:
                            logger.warning("longer")
                        else:
                            raise ValueError("longer")
        """,
        "config/speculative.py": """
            class SpeculativeConfig:
                def __post_init__(self):
                    self.draft_model_config = ModelConfig(max_model_len=self.max_model_len)

                @staticmethod
                def _maybe_override_draft_max_model_len(speculative_max_model_len, target_max_model_len):
                    if speculative_max_model_len > target_max_model_len:
                        raise ValueError("longer")
        """,
    }
    facts, _ = read(tmp_path / "bounded", files)
    assert (facts.refuses_longer, facts.longer_excused_by, facts.longer_allowed_by) == (True, "own_length", "LONGER")
    assert (facts.own_bounded_by, facts.own_is_draft_length) == (("target",), True)
    warned = {name: text.replace("raise ValueError", "logger.warning") for name, text in files.items()}
    facts, _ = read(tmp_path / "warned", warned)
    assert (facts.refuses_longer, facts.longer_allowed_by, facts.own_bounded_by) == (False, None, ())


def test_a_release_whose_config_classes_share_one_file(tmp_path: Path) -> None:
    """And whose longrope is but one of the types without a factor."""
    text = "\n".join(map(dedent, (text for name, text in OLD.items() if name.startswith("config/"))))
    files = {"v1/worker/gpu_model_runner.py": OLD["v1/worker/gpu_model_runner.py"]}
    for home in ("config/__init__.py", "config.py"):
        facts, unknown = read(tmp_path / home.replace("/", "_"), {**files, home: text})
        assert facts == read(tmp_path / "split", OLD)[0]
        assert not unknown
    plain = text.replace('("su", "llama3")', '("su", "longrope")').replace('== "longrope"', '== "other"')
    facts, unknown = read(tmp_path / "plain", {**files, "config.py": plain})
    assert (facts.longrope_from_original, facts.yarn_from_original) == (False, True)


def test_a_release_that_raises_positions_and_limits_the_target(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, NEW)
    assert facts == LengthFacts(
        keys=("max_position_embeddings", "seq_len"),
        unscaled_rope_types=("yarn", "longrope"),
        yarn_from_original=False,
        unscaled_model_types=(),
        v1_guard=True,
        guard_extra={"dflash": 1},
        raised_methods=("eagle", "eagle3", "dflash"),
        raised_rope_types=("default", "linear"),
        raise_also_lifts_length=False,
        limits_target=True,
        overriding_key=None,
        longrope_from_original=False,
        overrides_reach_draft=False,
        refuses_longer=False,
        own_bounded_by=(),
        own_is_draft_length=False,
        refuses_none=False,
    )
    assert not unknown


def test_a_raise_for_some_methods_and_all_types(tmp_path: Path) -> None:
    text = (
        NEW["config/speculative.py"]
        .replace('!= "draft_model"', 'in ("eagle", "eagle3")')
        .replace("if not _only_sized", "if not any")
    )
    facts, _ = read(tmp_path, {**NEW, "config/speculative.py": text})
    assert facts.raised_methods == ("eagle", "eagle3")
    assert facts.raised_rope_types is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "config.max_position_embeddings = target",
            "config.max_position_embeddings = self.max_model_len = target",
        ),
        (
            "hf_config, 5)",
            "hf_config, 5)\n                self.length = ModelConfig.get_and_verify_max_len(9)",
        ),
    ],
)
def test_a_raise_that_lifts_the_derived_length_too(tmp_path: Path, old: str, new: str) -> None:
    text = NEW["config/speculative.py"].replace(old, new)
    assert read(tmp_path, {**NEW, "config/speculative.py": text})[0].raise_also_lifts_length is True


def test_a_runner_without_the_guard(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {**NEW, "v1/worker/gpu_model_runner.py": "class Runner: ..."})
    assert (facts.v1_guard, facts.guard_extra) == (False, {})
    assert not unknown


def test_a_guard_that_counts_by_something_unreadable(tmp_path: Path) -> None:
    runner = NEW["v1/worker/gpu_model_runner.py"].replace("self.speculative_config.use_dflash()", "ask(self)")
    facts, unknown = read(tmp_path, {**NEW, "v1/worker/gpu_model_runner.py": runner})
    assert facts.v1_guard is True
    assert facts.guard_extra is None
    assert list(unknown) == ["lengths.guard_extra"]


def test_what_cannot_be_read_is_none_and_has_a_reason(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {})
    for fact in LengthFacts.__dataclass_fields__:
        assert getattr(facts, fact) is None
        assert fact == "overriding_key" or f"lengths.{fact}" in unknown


def test_the_shipped_releases() -> None:
    raised = {v: find_engine(v).lengths.raised_methods or () for v in shipped_versions()}
    first = shipped_versions().index("0.27.0")  # the release that the fix came with
    assert [v for v, methods in raised.items() if methods] == shipped_versions()[first:]
    assert raised["0.32.0"] == ("eagle", "eagle3")
    assert {"eagle3", "dflash", "dspark", "mtp"} < set(raised["0.33.0"]) and "draft_model" not in raised["0.33.0"]
    lengths = {v: find_engine(v).lengths for v in shipped_versions()}
    assert [v for v, facts in lengths.items() if facts.limits_target] == ["0.33.0"]
    assert lengths["0.33.0"].raised_rope_types == ("default", "linear", "llama3", "ntk", "proportional")
    assert lengths["0.32.0"].raised_rope_types is None
    changed = shipped_versions().index("0.30.0")
    assert [v for v, facts in lengths.items() if not facts.yarn_from_original] == shipped_versions()[changed:]
    assert lengths["0.22.1"].guard_extra == {} and lengths["0.24.0"].guard_extra == {"dflash": 1}
    guarded = shipped_versions().index("0.11.0")
    assert [v for v, facts in lengths.items() if facts.v1_guard] == shipped_versions()[guarded:]
    for facts in lengths.values():
        assert facts.keys and facts.keys[0] == "max_position_embeddings"
        assert facts.raise_also_lifts_length is False
        assert facts.unscaled_model_types == ("gemma3",)
        assert facts.refuses_longer and facts.longer_excused_by == "model_max_length"
        assert facts.longer_allowed_by == "VLLM_ALLOW_LONG_MAX_MODEL_LEN"
        assert facts.own_bounded_by == ("draft", "target")
    asked = shipped_versions().index("0.21.0")
    assert [v for v, facts in lengths.items() if facts.own_is_draft_length] == shipped_versions()[asked:]


@pytest.mark.parametrize(
    ("argument", "maker", "reach"),
    [
        ("SpeculativeConfig.hf_config_override", "", False),
        ("made", "if not callable(given):\n            return own()\n        return both(given)", False),
        ("made", "return both(given)", True),
        ("made", "if not callable(given):\n            return both(given)\n        return own()", True),
        ("unheard_of", "", None),
    ],
)
def test_whether_overrides_reach_the_draft(tmp_path: Path, argument: str, maker: str, reach: bool | None) -> None:
    path = tmp_path / "vllm" / "config" / "speculative.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "class SpeculativeConfig:\n"
        f"    def compose(given):\n        {maker or 'pass'}\n\n"
        "    def __post_init__(self):\n"
        "        made = SpeculativeConfig.compose(self.target_model_config.hf_overrides)\n"
        f"        self.draft_model_config = ModelConfig(model=self.model, hf_overrides={argument})\n"
    )
    unknown: dict[str, str] = {}
    found = read_lengths(SourceTree(tmp_path / "vllm"), unknown, MethodFacts((), {}))
    assert found.overrides_reach_draft is reach
    assert ("lengths.overrides_reach_draft" in unknown) is (reach is None)
