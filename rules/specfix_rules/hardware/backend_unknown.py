"""HWR012: an attention backend that the release does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving
from specfix.engines import Engine
from specfix.errors import NotApplicable, known
from specfix.facts.attention import asked_backend, asked_by_flag

NEAR = 3 / 4  # how alike two names must be for one to be meant by the other


@rule(
    "HWR012",
    "backend-unknown",
    severity="error",
    evidence=["vllm/v1/attention/backends/registry.py: AttentionBackendEnum"],
)
def backend_unknown(serving: Serving, engine: Engine) -> Iterator[Finding]:
    """No attention backend of this release has the name that is asked for."""
    flag = asked_by_flag(serving, engine)
    if flag is None:
        raise NotApplicable("no flag asks for a backend")
    names = known(engine.backends.backends or None, f"the attention backends of {engine}")
    name = asked_backend(serving, engine)
    if name is None or name in names:
        return
    near = next(iter(difflib.get_close_matches(name, names, 1, NEAR)), None)
    yield Finding(
        f"{engine} has no attention backend {name}; it has {', '.join(sorted(names))}. It does not start.",
        serving.at(flag),
        "config",
        repair=Repair("manual", f"the nearest that it has: {near}" if near else "leave the backend to the engine"),
    )
