"""Bounds of flags, read of small config classes."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from specfix.engines.facts.requests import Range
from specfix.engines.readers.flag_bounds import read_flag_bounds
from specfix.engines.source.tree import SourceTree

FILES = {
    "config/cache.py": """
        class CacheConfig:
            utilization: float = Field(default=0.9, gt=0, le=1)
            blocks: int | None = Field(default=None, ge=1)
            share: float = Field(default=0.5, lt=LIMIT)
            plain: int = 3
    """,
    "config/lora.py": "class LoRAConfig:\n    max_loras: int = Field(default=1, ge=1)\n",
    "engine/arg_utils.py": """
        from vllm.config.cache import CacheConfig
        from vllm.config.lora import LoRAConfig

        class EngineArgs:
            def create_engine_config(self):
                cache = CacheConfig(
                    utilization=self.gpu_utilization, blocks=self._blocks, share=self.share, plain=self.plain
                )
                other = CacheConfig(blocks=blocks)
                lora = LoRAConfig(max_loras=self.max_loras) if self.enable_lora else None
    """,
}


def test_bounds_of_the_config_that_a_flag_is_put_into(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    assert read_flag_bounds(SourceTree(tmp_path / "vllm")) == {"gpu-utilization": Range(above=0, at_most=1)}


def test_a_source_without_arguments(tmp_path: Path) -> None:
    assert read_flag_bounds(SourceTree(tmp_path)) == {}
