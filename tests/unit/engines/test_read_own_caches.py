"""Which KV caches an attention with a format of its own refuses, read of small sources of the shapes that releases
have."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from specfix.engines.facts.quantisation import OwnCache
from specfix.engines.find import find_engine
from specfix.engines.readers.own_caches import read_own_caches
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree

CACHE = """
    CacheDType = Literal["auto", "bfloat16", "fp8", "fp8_ds_mla", "nvfp4"]
    """
IN_LAYER = """
    class Wrapper:
        def __init__(self, cache_config):
            self.attn = Inner(cache_config)

    class Inner:
        def __init__(self, heads, cache_config=None):
            if heads > 128:
                raise ValueError("heads")
            kv_cache_dtype = cache_config.cache_dtype if cache_config is not None else "fp8"
            assert kv_cache_dtype.startswith("fp8"), "only fp8"
            if self.backend() and kv_cache_dtype != "fp8_ds_mla":
                kv_cache_dtype = "fp8_ds_mla"

    class Beside:
        def __init__(self): ...
    """
IN_FUNCTION = """
    def resolve(packed, kv_cache_dtype, cache_config):
        if packed:
            assert kv_cache_dtype.startswith("fp8"), "only fp8"
            return "fp8_ds_mla"
        if kv_cache_dtype.startswith("fp8"):
            return kv_cache_dtype
        return kv_cache_dtype

    class Attention:
        packed = True

        def is_packed(self):
            return self.packed

        def __init__(self, cache_config):
            self.kv_cache_dtype = resolve(self.is_packed(), cache_config.cache_dtype, cache_config)
    """
RAISING = IN_FUNCTION.replace(
    'assert kv_cache_dtype.startswith("fp8"), "only fp8"',
    """if kv_cache_dtype == "auto":
                kv_cache_dtype = "fp8"
            if not kv_cache_dtype.startswith("fp8"):
                raise ValueError("only fp8")""",
)
ENDING = IN_FUNCTION.replace(
    'assert kv_cache_dtype.startswith("fp8"), "only fp8"',
    """if kv_cache_dtype in ("auto", "fp8"):
                kv_cache_dtype = kernels_own()
            elif not kv_cache_dtype.endswith("_ds_mla"):
                raise ValueError("only packed ones")""",
)
SWITCHED = IN_FUNCTION.replace("assert", "if envs.PLAIN:\n                return None\n            assert")
SUBCLASSES = """
    from vllm.models.big.attention import Attention

    class Packed(Attention):
        packed: ClassVar[bool] = True

    class Plain(Attention):
        packed: ClassVar[bool] = False
    """
MODEL = """
    from vllm.models.big.attention import {name}
    from vllm.models.big.rows import Packed, Plain

    def choose(config):
        backend = config.backend
        if backend in (AttentionBackendEnum.FIRST, AttentionBackendEnum.SECOND):
            return Plain
        return Packed

    class Big:
        def __init__(self, config):
            self.attn = choose(config)(config)

    class Small: ...
    """
REFUSED = ("auto", "bfloat16", "nvfp4")
PLAIN = ("FIRST", "SECOND")


def read(root: Path, attention: str, name: str = "Attention", model: str = MODEL) -> dict[str, OwnCache]:
    files = {
        "config/cache.py": CACHE,
        "models/big/attention.py": attention,
        "models/big/rows.py": SUBCLASSES,
        "models/big/model.py": model.replace("{name}", name),
        "models/other.py": "class Other: ...",
    }
    for file, text in files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(dedent(text))
    tree = SourceTree(root)
    architectures = {"BigForCausalLM": "vllm.models.big.model:Big", "OtherForCausalLM": "vllm.models.other:Other"}
    return read_own_caches(tree, Classes(tree), architectures)


@pytest.mark.parametrize(
    ("attention", "name", "refuses", "plain"),
    [
        (IN_LAYER, "Wrapper", REFUSED, ()),
        (IN_LAYER, "Inner", REFUSED, ()),
        (IN_FUNCTION, "Attention", REFUSED, PLAIN),
        (RAISING, "Attention", ("bfloat16", "nvfp4"), PLAIN),
        (ENDING, "Attention", ("bfloat16", "nvfp4"), PLAIN),
    ],
)
def test_what_is_refused(
    tmp_path: Path, attention: str, name: str, refuses: tuple[str, ...], plain: tuple[str, ...]
) -> None:
    assert read(tmp_path, attention, name) == {"BigForCausalLM": OwnCache(refuses, plain)}


@pytest.mark.parametrize(
    ("attention", "name", "model"),
    [
        (IN_LAYER, "Beside", MODEL),  # of the same file, and asks for nothing
        (SWITCHED, "Attention", MODEL),  # what it hangs on is not known
        (IN_FUNCTION, "Attention", MODEL.replace("return Packed", "return Plain")),  # plain without being asked
        (IN_FUNCTION.replace("assert", "print"), "Attention", MODEL),
    ],
)
def test_what_cannot_be_told_refuses_nothing(tmp_path: Path, attention: str, name: str, model: str) -> None:
    assert read(tmp_path, attention, name, model) == {}


def test_releases() -> None:
    found = {
        version: find_engine(version).quantisation.own_caches
        for version in ("0.19.1", "0.20.0", "0.22.1", "0.29.0", "0.30.0", "0.33.0")
    }
    assert found.pop("0.19.1") == {}
    assert all(set(caches) == {"DeepseekV4ForCausalLM"} for caches in found.values())
    own = {version: caches["DeepseekV4ForCausalLM"] for version, caches in found.items()}
    assert {version for version, cache in own.items() if "auto" in cache.refuses} == {"0.20.0", "0.22.1", "0.29.0"}
    assert {version for version, cache in own.items() if not cache.plain} == {"0.20.0", "0.22.1"}
    assert all("bfloat16" in cache.refuses and "fp8" not in cache.refuses for cache in own.values())
