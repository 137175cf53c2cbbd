"""The dtype that the target is served in, which its draft gets too.

Source: ``_get_and_verify_dtype`` and ``_resolve_auto_dtype`` (vllm/config/model.py); ``SpeculativeConfig`` hands the
target's on (vllm/config/speculative.py).
"""

from __future__ import annotations

from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
from specfix.engines.conditions import choose
from specfix.errors import MissingFact, known

LONG = {"half": "float16", "float": "float32"}


def served_dtype(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> str:
    """As torch names it: --dtype, else the config's where the machine has it, else the machine's first."""
    given = serving.dtype
    if given is not None and given != "auto":
        return LONG.get(given, given)
    found = known(target.config.stated("dtype", "torch_dtype"), f"dtype in {target.config.file}")
    stated = str(found[1]).removeprefix("torch.")
    dtypes = machine_dtypes(hardware, engine)
    return stated if stated in dtypes and stated != "float32" else dtypes[0]


def machine_dtypes(hardware: Hardware, engine: Engine) -> list[str]:
    """What the release serves in on this machine, the preferred one first."""
    what = f"the dtypes that {engine} has on {hardware.name}"
    steps = known(engine.platforms.dtypes.get(hardware.platform), what)
    values: dict[str, object] = {"platform": hardware.platform}
    if hardware.compute_capability is not None:
        values["capability"] = list(hardware.compute_capability)
    if hardware.cpu_arch is not None:
        values["cpu_architecture"] = {"x86_64": "X86", "aarch64": "ARM", "arm64": "ARM"}.get(hardware.cpu_arch)
    chosen = choose(steps, values)
    if not isinstance(chosen.then, list):
        raise MissingFact(what)
    return [str(dtype) for dtype in chosen.then]
