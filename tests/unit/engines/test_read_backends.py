"""Attention backends, read of small source trees."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from specfix.engines.conditions import choose, evaluate
from specfix.engines.facts.backends import Backend, BackendFacts
from specfix.engines.readers.backends import read_backends
from specfix.engines.source.tree import SourceTree

REGISTRY = "v1/attention/backends/registry.py"
BACKENDS = "v1/attention/backends/fast.py"
ENUM = """
    class AttentionBackendEnum(Enum):
        FAST = ("vllm.v1.attention.backends."
                "fast.FastBackend")
        GONE = "vllm.v1.attention.backends.gone.GoneBackend"
        IMAGES = ""
        CUSTOM = None
    """
BASE = """
    class AttentionType(str, Enum):
        DECODER = "decoder"
        ENCODER_ONLY = "encoder_only"

    class AttentionBackend:
        supported_dtypes = [torch.float16, torch.bfloat16]
        supported_kv_cache_dtypes = ["auto", "bfloat16"]

        @classmethod
        def get_supported_head_sizes(cls):
            return []

        @classmethod
        def supports_head_size(cls, head_size):
            sizes = cls.get_supported_head_sizes()
            return (not sizes) or head_size in sizes

        @classmethod
        def supports_dtype(cls, dtype):
            return dtype in cls.supported_dtypes

        @classmethod
        def supports_kv_cache_dtype(cls, kv_cache_dtype):
            if kv_cache_dtype is None:
                return True
            return (not cls.supported_kv_cache_dtypes) or (kv_cache_dtype in cls.supported_kv_cache_dtypes)

        @classmethod
        def is_mla(cls):
            return False

        @classmethod
        def supports_sink(cls):
            return False

        @classmethod
        def supports_attn_type(cls, attn_type):
            return attn_type == AttentionType.DECODER

        @classmethod
        def supports_compute_capability(cls, capability):
            return True

        @classmethod
        def get_required_kv_cache_layout(cls):
            return None
    """
IMPORTS = """
    from vllm.platforms import current_platform
    from vllm.utils.torch_utils import is_quantized
    from vllm.v1.attention.backend import AttentionBackend, AttentionType
    """
UTILITY = """
    def is_quantized(kv_cache_dtype):
        return kind_of(kv_cache_dtype) != KVQuantMode.NONE

    def kind_of(kv_cache_dtype):
        if isinstance(kv_cache_dtype, str) and kv_cache_dtype.startswith("fp8"):
            return KVQuantMode[kv_cache_dtype.upper()]
        return KVQuantMode.NONE
    """
CACHE = 'CacheDType = Literal["auto", "bfloat16", "fp8", "fp8_e5m2"]'


def read(tmp_path: Path, files: dict[str, str]) -> tuple[BackendFacts, dict[str, str]]:
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    unknown: dict[str, str] = {}
    return read_backends(SourceTree(tmp_path / "vllm"), unknown), unknown


def fast(tmp_path: Path, members: str, more: str = "") -> tuple[Backend, dict[str, str]]:
    """FAST, whose class has these members."""
    text = dedent(IMPORTS) + f"class FastBackend(AttentionBackend):\n    pass\n{indent(dedent(members), '    ')}\n"
    files = {
        REGISTRY: ENUM,
        "v1/attention/backend.py": BASE,
        "config/cache.py": CACHE,
        "utils/torch_utils.py": UTILITY,
        BACKENDS: text + dedent(more),
    }
    facts, unknown = read(tmp_path, files)
    return facts.backends["FAST"], unknown


def method(name: str, body: str, parameter: str = "") -> str:
    inner = indent(dedent(body).strip(), "    ")
    return f"@classmethod\ndef {name}({', '.join(filter(None, ('cls', parameter)))}):\n{inner}\n"


def test_what_the_base_answers(tmp_path: Path) -> None:
    backend, unknown = fast(tmp_path, "")
    assert backend == Backend(
        "vllm.v1.attention.backends.fast.FastBackend",
        dtypes=("float16", "bfloat16"),
        kv_cache_dtypes=("auto", "bfloat16"),
        head_sizes=(),
        attention_types=("decoder",),
        capability=["const", True],
        layouts=(),
        mla=False,
        sinks=False,
    )  # is_sparse, supports_non_causal and the like: not asked
    assert not unknown


def test_what_a_class_states(tmp_path: Path) -> None:
    members = (
        "supported_dtypes: ClassVar[list[torch.dtype]] = [torch.bfloat16]\n"
        "supported_kv_cache_dtypes = list(CACHES)\n"
        + method("get_supported_head_sizes", "return [64, 128]")
        + method("is_mla", "return True")
        + method("supports_non_causal", "return True")
        + method("supports_attn_type", "return attn_type in (AttentionType.DECODER, 'encoder_only')", "attn_type")
        + method("get_required_kv_cache_layout", "return 'HND'")
    )
    backend, unknown = fast(tmp_path, members, "FP8 = ('fp8',)\nCACHES = ('auto', *FP8)\n")
    assert backend.dtypes == ("bfloat16",)
    assert backend.kv_cache_dtypes == ("auto", "fp8")
    assert backend.head_sizes == (64, 128)
    assert backend.attention_types == ("decoder", "encoder_only")
    assert (backend.mla, backend.non_causal) == (True, True)
    assert backend.layouts is not None
    assert choose(backend.layouts, {}).then == ["HND"]
    assert not unknown


def test_names_without_a_class(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {REGISTRY: ENUM, BACKENDS: "FastBackend = find_it()"})
    assert facts.backends["GONE"] == Backend("vllm.v1.attention.backends.gone.GoneBackend", present=False)
    assert facts.backends["IMAGES"] == facts.backends["CUSTOM"] == Backend(None)
    assert unknown.keys() == {"backends.backends.FAST"}


@pytest.mark.parametrize(
    ("body", "sizes", "taken", "refused"),
    [
        ("return head_size == 192", (192,), {}, {}),
        ("return head_size >= 32", None, {32: {}}, {31: {}}),
        (
            "if head_size % 8 != 0:\n    return False\nif head_size <= 256:\n    return True\n"
            "return newer(4) and head_size <= 512",
            None,
            {256: {}, 512: {"newer(4)": True}},
            {100: {}, 512: {"newer(4)": False}, 520: {}},
        ),
    ],
)
def test_head_sizes(
    tmp_path: Path,
    body: str,
    sizes: tuple[int, ...] | None,
    taken: dict[int, dict[str, object]],
    refused: dict[int, dict[str, object]],
) -> None:
    backend, unknown = fast(tmp_path, method("supports_head_size", body, "head_size"))
    assert backend.head_sizes == sizes
    assert not unknown
    for expected, cases in ((True, taken), (False, refused)):
        for size, values in cases.items():
            assert evaluate(backend.conditions["head_sizes"], {**values, "head_size": size}) is expected


def test_cache_types_that_hang_on_the_machine(tmp_path: Path) -> None:
    body = """
        if kv_cache_dtype is not None and is_quantized(kv_cache_dtype):
            return current_platform.is_device_capability_family(90)
        return super().supports_kv_cache_dtype(kv_cache_dtype)
        """
    backend, unknown = fast(tmp_path, method("supports_kv_cache_dtype", body, "kv_cache_dtype"))
    assert backend.kv_cache_dtypes == ("auto", "bfloat16")
    hopper = ["==", ["name", "capability.major"], ["const", 9]]
    assert backend.conditions == {"kv_cache_dtypes.fp8": hopper, "kv_cache_dtypes.fp8_e5m2": hopper}
    assert not unknown


@pytest.mark.parametrize(
    ("body", "takes", "refuses"),
    [
        ("return capability >= DeviceCapability(8, 0)", [8, 6], [7, 5]),
        ("return capability.major in [9, 10]", [10, 3], [12, 0]),
        ("return (capability.major, capability.minor) in ((12, 0), (12, 1))", [12, 1], [12, 2]),
    ],
)
def test_compute_capability(tmp_path: Path, body: str, takes: list[int], refuses: list[int]) -> None:
    backend, _ = fast(tmp_path, method("supports_compute_capability", body, "capability"))
    assert backend.capability is not None
    for pair, expected in ((takes, True), (refuses, False)):
        values = {"capability": pair, "capability.major": pair[0], "capability.minor": pair[1]}
        assert evaluate(backend.capability, values) is expected


def test_a_layout_by_device(tmp_path: Path) -> None:
    body = """
        capability = current_platform.get_device_capability()
        if capability is not None and capability.major == 10:
            return (KVCacheLayout.LBHNC, KVCacheLayout.BLHNC)
        return None
        """
    backend, _ = fast(tmp_path, method("supported_kv_cache_layouts", body))
    assert backend.layouts is not None
    assert choose(backend.layouts, {"capability": [10, 0], "capability.major": 10}).then == ["LBHNC", "BLHNC"]
    assert choose(backend.layouts, {"capability": [9, 0], "capability.major": 9}).then == []


def test_what_only_a_run_can_tell_is_a_condition_by_the_engines_words(tmp_path: Path) -> None:
    backend, unknown = fast(tmp_path, method("supports_sink", "return here() and fa_version() in (3, 4)"))
    assert backend.sinks is None
    assert evaluate(backend.conditions["sinks"], {"here()": True, "fa_version()": 4}) is True
    assert not unknown


@pytest.mark.parametrize(
    "body", ["for one in ones():\n    return one", "with lock:\n    return True", "return one()()"]
)
def test_what_cannot_be_followed_is_unknown(tmp_path: Path, body: str) -> None:
    backend, unknown = fast(tmp_path, method("supports_sink", body))
    assert backend.sinks is None
    assert unknown.keys() == {"backends.backends.FAST.sinks"}


def test_numbers_are_no_truths(tmp_path: Path) -> None:
    more = "def generation():\n    if new():\n        return 1\n    return 0\n"
    backend, _ = fast(tmp_path, method("supports_sink", "return generation() > 0"), more)
    assert backend.conditions["sinks"] == ["name", "new()"]


COMPOSITE = """
    from vllm.v1.attention.backends.fast import FastBackend, SlowBackend
    from vllm.v1.attention.backends.make import compose

    BothBackend = compose(FastBackend, SlowBackend, name="Both", sizes=(128, 256), major=10)
    """
MAKE = """
    from vllm.v1.attention.backend import AttentionBackend

    def compose(first, second, *, name, sizes=(), major=None):
        class Composite(AttentionBackend):
            @classmethod
            def supports_head_size(cls, head_size):
                return head_size in sizes and all(each.supports_head_size(head_size) for each in (first, second))

            @classmethod
            def supports_compute_capability(cls, capability):
                return major is None or capability.major == major

            @classmethod
            def supports_sink(cls):
                return all(number == 1 or each.supports_sink() for number, each in enumerate((first, second)))

        Composite.__name__ = name
        return Composite
    """


def test_a_class_that_a_function_makes(tmp_path: Path) -> None:
    files = {
        REGISTRY: 'class AttentionBackendEnum(Enum):\n    BOTH = "vllm.v1.attention.backends.both.BothBackend"\n',
        "v1/attention/backends/both.py": COMPOSITE,
        "v1/attention/backends/make.py": MAKE,
        "v1/attention/backend.py": BASE,
        "config/cache.py": CACHE,
        BACKENDS: dedent(IMPORTS)
        + "class FastBackend(AttentionBackend):\n"
        + indent(method("supports_sink", "return True"), "    ")
        + "class SlowBackend(AttentionBackend):\n"
        + indent(method("supports_head_size", "return head_size > 128", "head_size"), "    "),
    }
    facts, unknown = read(tmp_path, files)
    both = facts.backends["BOTH"]
    taken = both.conditions["head_sizes"]
    assert [evaluate(taken, {"head_size": size}) for size in (64, 128, 256)] == [False, False, True]
    assert both.capability == ["==", ["name", "capability.major"], ["const", 10]]
    assert both.sinks is True
    assert both.dtypes == ("float16", "bfloat16")
    assert not unknown


OLD = {
    "platforms/interface.py": """
        class _Backend(enum.Enum):
            FAST = enum.auto()
            FAST_MLA = enum.auto()
            IMAGES = enum.auto()
            SLOW = enum.auto()
        """,
    "platforms/cuda.py": """
        class Cuda:
            @classmethod
            def get_attn_backend_cls(cls, selected_backend, head_size, use_v1, use_mla):
                if use_mla:
                    use_fast = selected_backend in [_Backend.FAST_MLA] or (selected_backend is None and works()[0])
                    if use_fast:
                        return "vllm.v1.attention.backends.fast.FastMLABackend"
                if use_v1:
                    FAST = "vllm.v1.attention.backends.fast.FastBackend"
                    if selected_backend == _Backend.FAST:
                        logger.info("fast")
                        return FAST
                    if cls.has_device_capability(80):
                        return FAST
                    return "vllm.v1.attention.backends.fast.SlowBackend"
                return "vllm.attention.backends.fast.OldBackend"
        """,
    "platforms/cpu.py": """
        class Cpu:
            @classmethod
            def get_attn_backend_cls(cls, selected_backend, head_size, use_v1, use_mla):
                if use_mla:
                    raise NotImplementedError("no MLA")
                return "vllm.v1.attention.backends.fast.CpuBackend"
        """,
    BACKENDS: """
        class FastBackend:
            @classmethod
            def get_supported_dtypes(cls):
                return [torch.float16]

            @classmethod
            def validate_head_size(cls, head_size):
                sizes = [64, 128]
                if head_size not in sizes:
                    raise ValueError("no")

        class FastMLABackend(FastBackend):
            pass

        class SlowBackend(FastBackend):
            pass

        class CpuBackend:
            @staticmethod
            def get_name():
                return "SDPA"

            @classmethod
            def validate_head_size(cls, head_size):
                return
        """,
}


def test_older_releases_say_the_class_only_where_they_choose_it(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, OLD)
    module = "vllm.v1.attention.backends.fast"
    assert {name: backend.path for name, backend in facts.backends.items()} == {
        "FAST": f"{module}.FastBackend",
        "FAST_MLA": f"{module}.FastMLABackend",
        "IMAGES": None,
        "SLOW": None,
        "SDPA": f"{module}.CpuBackend",
    }
    assert facts.backends["FAST"].dtypes == ("float16",)
    assert facts.backends["FAST"].head_sizes == (64, 128)
    assert facts.backends["SDPA"].head_sizes == ()
    assert facts.backends["SDPA"].dtypes is None
    assert not unknown


def test_an_empty_tree_is_unknown_not_wrong(tmp_path: Path) -> None:
    facts, unknown = read(tmp_path, {"__init__.py": ""})
    assert facts.backends == {}
    assert unknown.keys() == {"backends.backends"}
