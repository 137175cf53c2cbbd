"""FTR001: a repair shim that VLLM_PLUGINS keeps out."""

from __future__ import annotations

from collections.abc import Iterator

from specfix.checker import Finding, Repair, rule
from specfix.deployment import Serving, Shim
from specfix.deployment.shim import PATH, PLUGIN, PLUGINS, allowing
from specfix.errors import NotApplicable


@rule("FTR001", "shim-not-loaded", severity="error", evidence=["vllm/plugins/__init__.py: load_plugins_by_group"])
def shim_not_loaded(serving: Serving, shim: Shim) -> Iterator[Finding]:
    """VLLM_PLUGINS is set and does not name the repair shim that lies on PYTHONPATH."""
    plugins = serving.env.get(PLUGINS)
    if plugins is None:
        raise NotApplicable(f"{PLUGINS} is not set, so every plugin is loaded")
    if shim.enabled:
        return
    named = f"names {plugins!r}" if plugins else "is empty"
    patches = ", ".join(sorted(shim.patches)) or "nothing"
    yield Finding(
        f"{PLUGINS} {named}, and the engine loads the plugins that it names and no other. The shim in {shim.folder}, "
        f"which repairs {patches}, is called {PLUGIN}: it is not loaded, and no log line says so.",
        serving.at(PLUGINS),
        "silent",
        related=(serving.at(PATH),),
        repair=Repair("safe", f"add {PLUGIN} to {PLUGINS}", ("env",), (("env", PLUGINS, allowing(plugins)),)),
    )
