"""What the user wants to run, as typed facts. Knows no rule and no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from specfix.deployment.hardware import Hardware
from specfix.deployment.location import Location
from specfix.deployment.model import Draft, Model, Target
from specfix.deployment.serving import Misfit, Serving
from specfix.deployment.shim import Shim
from specfix.errors import MissingFact, NotApplicable
from specfix.record import record

__all__ = ["Deployment", "Draft", "Hardware", "Location", "Misfit", "Model", "Serving", "Shim", "Target"]


@record(frozen=True)
class Deployment:
    """One deployment: target, draft (None for methods that have no draft model), serving options, hardware.

    For MTP without a draft argument the draft is a view on the target's own files. ``hardware`` is None where
    it is not known. ``assumptions`` are the facts that the user did not give, in words, for the report's
    first line. ``shim`` holds the repairs that the server will load by itself; MissingFact where that cannot be
    seen from here. ``method_given``: the user named the method. ``config_given``: the speculative config is the user's
    own and will be served as it stands, so that a key which is not in it is not set. ``sources`` are the texts of other
    files that places lie in: the launch's.
    """

    target: Target
    draft: Draft | None
    serving: Serving
    hardware: Hardware | None
    assumptions: tuple[str, ...] = ()
    shim: Shim | MissingFact | None = None
    method_given: bool = True
    config_given: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def patches(self) -> Mapping[str, Any]:
        """The shim's patches that will be in force, by name, each with its settings."""
        return self.shim.patches if isinstance(self.shim, Shim) and self.shim.enabled else {}

    def facts(self) -> dict[str, Any]:
        """The given facts by the names that rules ask for; an absent one is the exception that says so."""
        serving = self.serving.guarded()
        return {
            "deployment": self if serving is self.serving else replace(self, serving=serving),
            "target": self.target,
            "draft": self.draft or NotApplicable("no draft model"),
            "serving": serving,
            "hardware": self.hardware or MissingFact("the hardware that will serve"),
            "shim": self.shim or NotApplicable("no shim on PYTHONPATH"),
        }
