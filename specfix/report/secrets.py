"""Variables that look like secrets: their values go to no report."""

from __future__ import annotations

import re
from collections.abc import Mapping

SECRET = re.compile("TOKEN(?!IZER)|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
MASK = "***"


def masked(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` with each value hidden whose name says that it is a secret."""
    return {name: MASK if SECRET.search(name) else value for name, value in env.items()}
