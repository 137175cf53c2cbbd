"""Read all facts of one engine from its source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from specfix.engines.engine import Engine
from specfix.engines.readers.backends import read_backends
from specfix.engines.readers.blocks import read_blocks
from specfix.engines.readers.configs import read_configs
from specfix.engines.readers.cpu import read_cpu
from specfix.engines.readers.eagle import read_eagle
from specfix.engines.readers.layers import read_layers
from specfix.engines.readers.lengths import read_lengths
from specfix.engines.readers.methods import read_methods
from specfix.engines.readers.mtp import read_mtp
from specfix.engines.readers.numbers import read_numbers
from specfix.engines.readers.parallel import read_parallel
from specfix.engines.readers.platforms import read_platforms
from specfix.engines.readers.quantisation import read_quantisation
from specfix.engines.readers.requirements import read_requirements
from specfix.engines.readers.rope import read_rope
from specfix.engines.readers.runner import read_runner
from specfix.engines.readers.serve import read_serve
from specfix.engines.readers.speculative import read_speculative
from specfix.engines.readers.speculators import read_speculators
from specfix.engines.readers.traits import read_traits
from specfix.engines.readers.triton import read_triton
from specfix.engines.readers.variables import read_variables
from specfix.engines.source.tree import SourceTree, collector_paused
from specfix.errors import CannotCheck

# without these there is nothing to judge by; a config class may stand in an older home, too (SourceTree.config_file)
NEEDED: Final[Mapping[str, str | None]] = {
    "config/model.py": "ModelConfig",
    "config/speculative.py": "SpeculativeConfig",
    "config/vllm.py": "VllmConfig",
    "envs.py": None,
    "model_executor/models/registry.py": None,
    "v1/worker/gpu_model_runner.py": None,
    "v1/worker/gpu_worker.py": None,
}


def read_engine(package: Path, source: str, version: str | None = None) -> Engine:
    """All facts of the vLLM package folder ``package``. CannotCheck where it is none, or only half of one."""
    with collector_paused():
        return _read(SourceTree(package), source, version)


def _read(tree: SourceTree, source: str, version: str | None) -> Engine:
    missing = [file for file, cls in NEEDED.items() if (tree.config_file(cls) if cls else tree.module(file)) is None]
    if missing:
        raise CannotCheck(f"{tree.package} is no readable vLLM package: {', '.join(missing)} is missing or not Python")
    unknown: dict[str, str] = {}
    methods = read_methods(tree, unknown)
    eagle = read_eagle(tree, unknown, methods)
    return Engine(
        name="vllm",
        version=version or tree.version or "unknown version",
        source=source,
        runner=read_runner(tree, unknown),
        lengths=read_lengths(tree, unknown, methods),
        rope=read_rope(tree, unknown),
        eagle=eagle,
        cpu=read_cpu(tree, unknown),
        triton=read_triton(tree, unknown),
        blocks=read_blocks(tree, unknown, methods),
        layers=read_layers(tree, unknown, methods),
        methods=methods,
        traits=read_traits(tree, unknown, methods, eagle.decoders),
        serve=read_serve(tree, unknown),
        backends=read_backends(tree, unknown),
        platforms=read_platforms(tree, unknown),
        speculative=read_speculative(tree, unknown),
        mtp=read_mtp(tree, unknown),
        speculators=read_speculators(tree, unknown),
        quantisation=read_quantisation(tree, unknown, methods),
        numbers=read_numbers(tree, unknown),
        parallel=read_parallel(tree, unknown, methods),
        variables=read_variables(tree, unknown),
        requirements=read_requirements(tree, unknown),
        configs=read_configs(tree, unknown),
        unknown=dict(sorted(unknown.items())),
    )
