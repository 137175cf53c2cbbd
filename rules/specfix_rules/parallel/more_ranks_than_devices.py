"""PAR012: more ranks than the server has GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from math import prod

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Location, Serving
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.budget import size
from specfix.record import record

SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size")
VARIABLE = "CUDA_VISIBLE_DEVICES"
DEVICE = re.compile(r"\d+|GPU-[\w-]+", re.ASCII)
FOUND_HERE = "found here"  # of the hardware: another machine than this one may serve


@record(frozen=True)
class Seen:
    """So many GPUs, as ``said``, and where that stands."""

    count: int
    said: str
    place: Location


@rule(
    "PAR012",
    "more-ranks-than-devices",
    severity="error",
    evidence=["vllm/config/parallel.py: ParallelConfig", "vllm/v1/worker/gpu_worker.py: init_device"],
)
def more_ranks_than_devices(serving: Serving, engine: Engine, hardware: Hardware | None = None) -> Iterator[Finding]:
    """The target is cut among more ranks than there are GPUs."""
    if hardware is not None and hardware.platform != "cuda":
        raise NotApplicable("no NVIDIA GPUs")
    seen = fewest(serving, hardware)
    if seen is None:
        raise NotApplicable("nobody says how many GPUs there are")
    sizes = {name: count for name in SIZES if (count := size(serving, name)) > 1}
    ranks = prod(sizes.values())
    if seen.count >= ranks:
        return
    backend = serving.flag("distributed_executor_backend")
    # ranks of an executor that nobody names are counted, whatever places the data-parallel ones
    by_ray = backend is not None and serving.flag("data_parallel_backend") == "ray"
    if backend not in (None, "mp") or by_ray or size(serving, "nnodes") > 1:
        raise NotApplicable("ranks on other nodes")
    if hardware is None and serving.devices is None:
        raise MissingFact("the hardware that will serve")
    counted = known(engine.parallel.ranks_counted, f"whether {engine} compares ranks and devices")
    if backend is None and not counted:
        raise NotApplicable("the release may look for the other devices on other nodes, by Ray")
    cut = " and ".join(f"{name} {count}" for name, count in sizes.items())
    yield Finding(
        f"{cut}: {ranks} ranks, each of which needs a GPU of its own. The server is given {seen.count} ({seen.said}). "
        + ("The first rank without one ends the start." if backend else f"{engine} refuses to start."),
        serving.at(next(iter(sizes))),
        "load" if backend else "config",
        related=(seen.place,),
        repair=Repair("manual", f"{ranks} GPUs, or as many ranks as there are GPUs", ("engine_args",)),
    )


def fewest(serving: Serving, hardware: Hardware | None) -> Seen | None:
    """The GPUs that the server sees, by whoever gives it the fewest; None where nobody says."""
    found = []
    if serving.devices is not None:
        place = serving.at("devices")
        found.append(Seen(serving.devices, place.pointer, place))
    if hardware is not None and hardware.devices and hardware.source != FOUND_HERE:
        found.append(Seen(hardware.devices, f"devices of {hardware.name}", hardware.at("devices")))
    with suppress(MissingFact):  # a variable that is not known may make them fewer still, not more
        text = serving.env.get(VARIABLE, "")
        listed = text.split(",")
        if all(map(DEVICE.fullmatch, listed)) and len(set(listed)) == len(listed):
            found.append(Seen(len(listed), f"{VARIABLE} is {text}", serving.at(VARIABLE)))
    return min(found, key=lambda seen: seen.count, default=None)
