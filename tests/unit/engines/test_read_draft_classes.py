"""Which class and which drafter a release takes for a draft, read from small sources in the shapes of the releases."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.drafting import Renaming
from specfix.engines.readers.draft_classes import drafters, extra_slots_refuse, mla_types, renamings
from specfix.engines.readers.speculative import read_speculative
from specfix.engines.source.tree import SourceTree

EAGLE = """
    class EAGLEConfig(PreTrainedConfig):
        def __init__(self, model=None, method="eagle", **kwargs):
            if method == "eagle":
                kwargs["architectures"] = [
                    f"Eagle{arch}" if not arch.startswith("Eagle") else arch for arch in self.model.architectures
                ]
            elif method == "eagle3":
                kwargs["architectures"] = [
                    arch if arch.startswith("Eagle3") or arch.endswith("Eagle3") else f"Eagle3{arch}"
                    for arch in self.model.architectures
                ]
            elif method == "dflash":
                kwargs["architectures"] = [
                    arch if arch.startswith("DFlash") or arch == "OtherDraft" else f"DFlash{arch}"
                    for arch in self.model.architectures
                ]
            elif method == "computed":
                kwargs["architectures"] = [rename(arch) for arch in self.model.architectures]
            else:
                raise ValueError(method)
"""
SPECULATIVE = """
    class SpeculativeConfig:
        method: str | None = None

        def use_eagle(self) -> bool:
            return self.method in ("eagle", "eagle3")

        def use_special(self) -> bool:
            return self.method == "mtp" and self.draft_model_config.special
"""
RUNNER = """
    class GPUModelRunner:
        def __init__(self):
            if self.speculative_config:
                if self.speculative_config.method == "ngram":
                    self.drafter = Ngram()
                elif self.speculative_config.use_special():
                    self.drafter = Special()
                elif self.speculative_config.use_eagle():
                    self.drafter = Eagle()
                else:
                    raise ValueError(f"Unknown speculative decoding method: {self.speculative_config.method}")
"""
INIT = """
    def init_speculator(vllm_config, device):
        speculative_config = vllm_config.speculative_config
        if speculative_config.use_eagle():
            return Eagle()
        else:
            raise NotImplementedError(f"{speculative_config.method} is not supported yet.")
"""
CONVERTOR = """
    class Convertor:
        def is_deepseek_mla(self) -> bool:
            if self.hf_text_config.model_type in ("deepseek_v2", "kimi"):
                return self.hf_text_config.kv_lora_rank is not None
            elif self.hf_text_config.model_type == "eagle":
                return self.hf_text_config.model.model_type in ("deepseek_v2", "deepseek_v3")
            return False
"""
PROPOSER = """
    class SpecDecodeBaseProposer:
        def __init__(self):
            if self.needs_extra_input_slots:
                self._raise_if_multimodal()
                self._raise_if_mrope()

        def _raise_if_multimodal(self):
            if self.supports_mm_inputs:
                raise NotImplementedError("not yet")

        def _raise_if_mrope(self):
            if self.draft_model_config.uses_mrope:
                raise NotImplementedError("not yet")
"""
ALLOWS = """
    class DFlashProposer(SpecDecodeBaseProposer):
        def _raise_if_multimodal(self):
            pass
"""


def tree(root: Path, **files: str) -> SourceTree:
    for name, text in files.items():
        file = root / (name.replace("__", "/") + ".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    return SourceTree(root)


def test_the_names_of_heads(tmp_path: Path) -> None:
    made = renamings(tree(tmp_path, transformers_utils__configs__eagle=EAGLE))
    assert made == {
        "eagle": Renaming("Eagle", ("Eagle",)),
        "eagle3": Renaming("Eagle3", ("Eagle3",), ("Eagle3",)),
        "dflash": Renaming("DFlash", ("DFlash",), (), ("OtherDraft",)),
    }


@pytest.mark.parametrize(
    ("name", "becomes"),
    [("LlamaX", "Eagle3LlamaX"), ("LlamaXEagle3", "LlamaXEagle3"), ("EagleLlamaX", "Eagle3EagleLlamaX")],
)
def test_a_name_that_says_so_is_kept(name: str, becomes: str) -> None:
    assert Renaming("Eagle3", ("Eagle3",), ("Eagle3",)).of(name) == becomes


def test_a_name_is_kept_only_for_what_is_listed() -> None:
    assert Renaming("DFlash", ("DFlash",), (), ("OtherDraft",)).of("OtherDraft") == "OtherDraft"
    assert Renaming("Eagle", ("Eagle",)).of("LlamaXEagle") == "EagleLlamaXEagle"


def test_methods_with_a_drafter(tmp_path: Path) -> None:
    source = tree(tmp_path, config__speculative=SPECULATIVE, v1__worker__gpu_model_runner=RUNNER)
    methods = ("ngram", "eagle", "eagle3", "mtp", "medusa")
    assert drafters(source, methods) == {"V1": ("ngram", "eagle", "eagle3", "mtp")}  # mtp: it hangs on the draft
    (tmp_path / "v1/worker/gpu/spec_decode").mkdir(parents=True)
    (tmp_path / "v1/worker/gpu/spec_decode/__init__.py").write_text(dedent(INIT))
    assert (drafters(SourceTree(tmp_path), methods) or {})["V2"] == ("eagle", "eagle3")


def test_branches_that_do_not_end_in_a_refusal_say_nothing(tmp_path: Path) -> None:
    kept = RUNNER.replace("raise ValueError(", "print(")
    source = tree(tmp_path, config__speculative=SPECULATIVE, v1__worker__gpu_model_runner=kept)
    assert drafters(source, ("ngram",)) is None


def test_types_with_latent_attention(tmp_path: Path) -> None:
    source = tree(tmp_path, transformers_utils__model_arch_config_convertor=CONVERTOR)
    assert mla_types(source) == (("deepseek_v2", "kimi"), ("deepseek_v2", "deepseek_v3"))
    assert mla_types(SourceTree(tmp_path / "none")) == (None, None)


def test_what_drafters_refuse(tmp_path: Path) -> None:
    source = tree(tmp_path, v1__spec_decode__llm_base_proposer=PROPOSER, v1__spec_decode__dflash=ALLOWS)
    assert extra_slots_refuse(source) == {"multimodal": ("dflash",), "mrope": ()}
    warns = PROPOSER.replace("raise NotImplementedError", "logger.warning")
    assert extra_slots_refuse(tree(tmp_path, v1__spec_decode__llm_base_proposer=warns)) == {}
    assert extra_slots_refuse(SourceTree(tmp_path / "none")) is None


def test_classes_that_the_config_stage_sets(tmp_path: Path) -> None:
    source = """
        class SpeculativeConfig:
            method: str | None = None

            def __post_init__(self):
                if self.method == "dspark" and "One" not in self.draft_model_config.architectures:
                    is_new = self.target_model_config.hf_config.model_type == "new"
                    draft_hf_config = self.draft_model_config.hf_config
                    draft_hf_config.architectures = ["New" if is_new else "Old"]
                elif self.method == "dspark":
                    self.draft_model_config.hf_config.architectures = ["Other"]
    """
    facts = read_speculative(tree(tmp_path, config__speculative=source), {})
    assert [step.then for step in facts.architectures or ()] == ["New", "Old", "Other"]
