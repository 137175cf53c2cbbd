"""Which model runner the release will choose for this deployment."""

from __future__ import annotations

from specfix.deployment import Hardware, Serving, Target
from specfix.engines import Engine
