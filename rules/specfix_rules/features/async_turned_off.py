"""FTR007: asynchronous scheduling that speculation turns off."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Hardware, Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable
from specfix.facts import parallel

# a method that goes with asynchronous scheduling in each release that knows both
SUITED = "eagle3"
# methods that draft on the host, of which nobody expects it
ON_THE_HOST = frozenset({"ngram", "[ngram]", "suffix"})


@rule("FTR007", "async-turned-off", severity="note", evidence=["vllm-project/vllm#48341", "VllmConfig.__post_init__"])
def async_turned_off(
    serving: Serving,
    engine: Engine,
    method: str,
    runners: tuple[str, ...],
    async_scheduling: bool,
    hardware: Hardware | None = None,
) -> Iterator[Finding]:
    """This method turns the release's asynchronous scheduling off."""
    if method not in engine.methods.methods or method in ON_THE_HOST:
        raise NotApplicable("the release does not know the method, or it drafts on the host")
    if serving.flag("async_scheduling") is not None:
        raise NotApplicable("the user says how requests are scheduled")
    if async_scheduling or not parallel.async_scheduling(serving, SUITED, engine, runners, hardware):
        return
    yield Finding(
        f"{engine} schedules asynchronously by default, and not with {method}: the GPU waits for the host between "
        "steps, which takes off some of what speculation gains. No more than a log line says so.",
        serving.at("method"),
        "silent",
        repair=Repair("manual", "a method that goes with it, or a release in which this one does", ()),
    )
