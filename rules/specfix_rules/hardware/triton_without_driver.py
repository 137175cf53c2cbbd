"""HWR004: Triton taken for usable where it is not."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.triton import DEVICES


@rule(
    "HWR004",
    "triton-without-driver",
    severity="error",
    evidence=["vllm/triton_utils/importing.py"],
    requires=["HWR001"],
)
def triton_without_driver(hardware: Hardware, serving: Serving, engine: Engine, has_triton: bool) -> Iterator[Finding]:
    """Triton is installed on a CPU host, has no driver, and is used all the same."""
    if hardware.platform != "cpu" or not has_triton or hardware.triton_drivers != 0:
        return
    if serving.greedy:
        raise NotApplicable("greedy requests do not reach the Triton sampler")
    rows = engine.triton.sampler_min_rows
    if rows is None:
        known(engine.triton.sampler_checks_platform, f"whether {engine} samples by a Triton kernel")
        return  # it never does on a CPU host
    most = (serving.max_num_seqs or rows) * ((serving.num_speculative_tokens or rows) + 1)
    if most < rows:
        return  # no batch is that large
    yield Finding(
        f"Triton is installed and has no active driver, but {DEVICES} is set and empty, which {engine} takes for a "
        f"distributed worker's and so counts Triton as usable. From {rows} rows on, top-k and top-p sampling then "
        "calls a Triton kernel, and the engine dies.",
        serving.at(DEVICES),
        "runtime",
        related=(hardware.at("triton_drivers"),),
        repair=Repair("safe", f"unset {DEVICES}", ("env",), (("env", DEVICES, None),)),
    )
