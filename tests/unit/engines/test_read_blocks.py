"""KV cache blocks, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.hardware import BlockFacts, KernelSizes, LatentBlocks
from specfix.engines.readers.blocks import read_blocks
from specfix.engines.source.tree import SourceTree

REGISTRY = "v1/attention/backends/registry.py"
BACKENDS = "v1/attention/backends/fast.py"
ENUM = """
    class AttentionBackendEnum(Enum):
        FAST = ("vllm.v1.attention.backends."
                "fast.FastBackend")
        HEIR = "vllm.v1.attention.backends.fast.HeirBackend"
        NONE = ""
        CUSTOM = None
    """
CLASSES = """
    PAGES = (64, 128)

    class AttentionBackend:
        @staticmethod
        def get_supported_kernel_block_sizes():
            return [MultipleOf(1)]

    class FastBackend(AttentionBackend):
        @staticmethod
        def get_supported_kernel_block_sizes():
{body}

        @classmethod
        def get_supported_head_sizes(cls):
            return [64, 128]

    class HeirBackend(AttentionBackend):
        @staticmethod
        def get_name():
            return "HEIR_NAME"
    """


def where(condition: str, *sizes: int) -> KernelSizes:
    return KernelSizes(sizes or None, None, condition)


def read(tmp_path: Path, files: dict[str, str]) -> tuple[BlockFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_blocks(SourceTree(tmp_path / "vllm"), unknown), unknown


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return [16, 32]", KernelSizes((16, 32), None)),
        ("return [MultipleOf(16)]", KernelSizes(None, (16,))),
        ("return [1, MultipleOf(base=16)]", KernelSizes((1,), (16,))),
        ("return list(PAGES)", KernelSizes((64, 128), None)),
        ("return work_it_out()", KernelSizes(None, None)),
        ("return [64 if new() else 128]", KernelSizes((128,), None, special=(where("new()", 64),))),
        ("return [1, 2] if new() else [4]", KernelSizes((4,), None, special=(where("new()", 1, 2),))),
        (
            "if odd():\n    return [64]\nif (size := pick()):\n    return [size]\nreturn [MultipleOf(16)]",
            KernelSizes(None, (16,), special=(where("odd()", 64), where("(size := pick())"))),
        ),
        (
            "if not large:\n    return [16]\nreturn [16, 256]",
            KernelSizes((16,), None, special=(where("large", 16, 256),)),
        ),
        (
            "if odd():\n    return [16]\nelse:\n    return [32]",
            KernelSizes(None, None, special=(where("odd()", 16), where("not (odd())", 32))),
        ),
    ],
)
def test_kernel_sizes(tmp_path: Path, body: str, expected: KernelSizes) -> None:
    lines = "\n".join("            " + line for line in body.splitlines())
    found, _ = read(tmp_path, {REGISTRY: ENUM, BACKENDS: CLASSES.format(body=lines)})
    assert found.backends == {"FAST": expected, "HEIR": KernelSizes(None, (1,))}


def test_sizes_as_a_class_attribute(tmp_path: Path) -> None:
    classes = """
        class FastBackend:
            supported_kernel_block_sizes: ClassVar[list[int | MultipleOf]] = [16, MultipleOf(64)]

        HeirBackend = composed(FastBackend)
        """
    found, unknown = read(tmp_path, {REGISTRY: ENUM, BACKENDS: classes})
    assert found.backends == {"FAST": KernelSizes((16,), (64,)), "HEIR": KernelSizes(None, None)}
    assert "blocks.backends.HEIR" in unknown
    assert "blocks.backends" not in unknown


def test_backends_that_state_no_sizes(tmp_path: Path) -> None:
    classes = "class FastBackend: ...\nclass HeirBackend: ...\n"
    found, unknown = read(tmp_path, {REGISTRY: ENUM, BACKENDS: classes})
    assert found.backends == {}
    assert "blocks.backends" in unknown


PICK = """
    def select_common_block_size(size, backends):
        if supported(size, backends):
            return size
        raise ValueError("none")

    class AttentionGroup:
        def create_metadata_builders(self, kernel_block_size):
            spec = {spec}
    """
GROUP = "groups[0].kv_cache_spec.block_size"
KERNEL_SPEC = "self.kv_cache_spec.copy_with_new_block_size(kernel_block_size)"


@pytest.mark.parametrize(
    ("file", "line", "spec", "unit"),
    [
        ("eagle.py", "self.block_size = config.cache_config.block_size", KERNEL_SPEC, "manager"),
        ("eagle.py", "block_size = builder.kv_cache_spec.block_size", KERNEL_SPEC, "kernel"),
        ("eagle.py", "block_size = builder.kv_cache_spec.block_size", "self.kv_cache_spec", "manager"),
        ("llm_base_proposer.py", "self.block_size = kernel_block_sizes[self.gid]", KERNEL_SPEC, "kernel"),
        ("llm_base_proposer.py", f"self.block_size = {GROUP}", KERNEL_SPEC, "manager"),
        ("eagle.py", f"block_size = {GROUP}; block_size = tree_builder.{GROUP}", KERNEL_SPEC, "manager"),
        ("eagle.py", "block_size = a.cache_config.block_size; block_size = kernel_block_sizes[0]", "x", None),
        ("eagle.py", "block_size = 16", "x", None),
    ],
)
def test_unit_of_the_proposer(tmp_path: Path, file: str, line: str, spec: str, unit: str | None) -> None:
    proposer = {f"v1/spec_decode/{file}": f"def f(self):\n    {line}\n"}
    files = {**proposer, "v1/worker/utils.py": PICK.format(spec=spec)}
    found, unknown = read(tmp_path, files)
    assert found.proposer == unit
    assert ("blocks.proposer" in unknown) is (unit is None)
    assert found.common_size is True


@pytest.mark.parametrize(
    ("parameters", "unit"),
    [("self, block_size", "manager"), ("self, block_size, kernel_block_size", "kernel")],
)
def test_unit_of_the_block_table(tmp_path: Path, parameters: str, unit: str) -> None:
    text = f"class BlockTable:\n    def __init__({parameters}):\n        pass\n"
    assert read(tmp_path, {"v1/worker/block_table.py": text})[0].table == unit


@pytest.mark.parametrize(
    ("lines", "size"),
    [
        ("if cache_config and cache_config.block_size is None:\n    cache_config.block_size = 128", 128),
        ("if not cache_config.user_specified_block_size:\n    cache_config.block_size = 128", 128),
        (
            "if cache_config.block_size is None:\n    if special():\n        cache_config.block_size = 64\n"
            "    else:\n        cache_config.block_size = 32",
            32,
        ),
        (
            "if not cache_config.user_specified_block_size:\n"
            "    cache_config.block_size = cls._preferred_block_size_for_backends(backends, 128)",
            128,
        ),
        ("if cache_config.block_size is None:\n    cache_config.block_size = 128 if fast() else 16", None),
        ("pass", 16),
    ],
)
def test_default_block_size(tmp_path: Path, lines: str, size: int | None) -> None:
    body = "\n".join("        " + line for line in lines.splitlines())
    platform = f"class Cpu:\n    def update_block_size_for_backend(cls):\n{body}\n"
    config = "class CacheConfig:\n    DEFAULT_BLOCK_SIZE: ClassVar[int] = 16\n"
    found, unknown = read(tmp_path, {"platforms/cpu.py": platform, "config/cache.py": config})
    assert found.default == {"cuda": 16, "cpu": size, "rocm": 16}
    assert not [path for path in unknown if path.startswith("blocks.default")]  # None says that it is computed
    assert found.default_adapts == {"cuda": False, "cpu": "preferred" in lines, "rocm": False}


@pytest.mark.parametrize(
    ("returned", "name"),
    [
        ("AttentionBackendEnum.CPU_ATTN.get_path()", "CPU_ATTN"),
        ('"vllm.v1.attention.backends.fast.HeirBackend"', "HEIR_NAME"),
        ("choose(selected)", None),
    ],
)
def test_backend_of_the_cpu(tmp_path: Path, returned: str, name: str | None) -> None:
    platform = f"""
        class Cpu:
            def get_attn_backend_cls(cls, selected):
                if selected.use_mla:
                    return AttentionBackendEnum.CPU_MLA.get_path()
                return {returned}
        """
    files = {"platforms/cpu.py": platform, BACKENDS: CLASSES.format(body="            return [16]")}
    found, unknown = read(tmp_path, files)
    assert found.cpu_backend == name
    assert ("blocks.cpu_backend" in unknown) is (name is None)


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    found, unknown = read(tmp_path, {"__init__.py": ""})
    assert (found.proposer, found.table, found.common_size, found.backends) == (None, None, False, {})
    expected = {"blocks.proposer", "blocks.table", "blocks.backends", "blocks.cpu_backend"}
    assert expected <= unknown.keys()


@pytest.mark.parametrize(("size", "own"), [("block_size", False), ("sw_block_size", True)])
def test_whether_a_window_has_a_size_of_its_own(tmp_path: Path, size: str, own: bool) -> None:
    layer = f"""
        class Attention:
            def get_kv_cache_spec(self, vllm_config):
                if self.sliding_window is not None:
                    return SlidingWindowSpec(block_size={size})
                return FullAttentionSpec(block_size=block_size)
        """
    facts, _ = read(tmp_path, {"model_executor/layers/attention/attention.py": layer})
    assert facts.windows_own is own


@pytest.mark.parametrize(
    ("test", "blocks"),
    [
        ("latent", LatentBlocks(16)),
        ("latent and not amx", LatentBlocks(16, unless_amx=True)),
        ("latent and not other", LatentBlocks(16, not_types=("deepseek_v4",))),
        ("other", None),
    ],
)
def test_blocks_of_latent_attention_on_a_cpu(tmp_path: Path, test: str, blocks: LatentBlocks | None) -> None:
    platform = f"""
        class Cpu:
            def check_and_update_config(cls, vllm_config):
                latent = getattr(model_config, "use_mla", False)
                amx = torch.cpu._is_amx_tile_supported()
                other = getattr(model_config.hf_config, "model_type", None) == "deepseek_v4"
                if {test}:
                    if cache_config.block_size != 16:
                        logger.warning("overridden")
                    cache_config.block_size = 16
                elif not cache_config.user_specified_block_size:
                    cache_config.block_size = 128
        """
    facts, _ = read(tmp_path, {"platforms/cpu.py": platform})
    assert facts.cpu_latent == blocks


@pytest.mark.parametrize(("assigned", "checked"), [("available_memory", True), ("num_blocks", False)])
def test_whether_an_override_is_checked(tmp_path: Path, assigned: str, checked: bool) -> None:
    planner = f"""
        def get_kv_cache_configs(vllm_config, available_memory):
            override = vllm_config.cache_config.num_gpu_blocks_override
            if override is not None:
                {assigned} = [override * bytes_per_block]
        """
    facts, unknown = read(tmp_path, {"v1/core/kv_cache_utils.py": planner})
    assert facts.override_checked is checked and "blocks.override_checked" not in unknown
    assert facts.null_reserved is False
    left = "    check_memory = [memory - _pool_bytes_per_block(groups) for memory in available_memory]\n        "
    facts, _ = read(tmp_path, {"v1/core/kv_cache_utils.py": f"{planner}{left}"})
    assert facts.null_reserved is checked


@pytest.mark.parametrize(("then", "checked"), [("raise ValueError", True), ("log()", False)])
def test_whether_one_sequence_must_fit(tmp_path: Path, then: str, checked: bool) -> None:
    check = f"def check_enough_kv_cache_memory(available_memory):\n    if needed_memory > available_memory: {then}\n"
    facts, _ = read(tmp_path, {"v1/core/kv_cache_utils.py": check})
    assert facts.sequence_checked is checked


def test_a_release_without_a_planner(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"__init__.py": ""})
    assert (
        facts.override_checked is None
        and {
            *("blocks.override_checked", "blocks.null_reserved", "blocks.sequence_checked"),
        }
        <= unknown.keys()
    )
