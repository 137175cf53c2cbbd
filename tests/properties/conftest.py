"""How many examples: few and always the same in a plain run, many and new ones with ``--hypothesis-profile=thorough``.
Examples of one test are a multiple of its profile's (``examples``)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick",
    max_examples=10,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("quick"), max_examples=250, derandomize=False, print_blob=True
)
settings.load_profile("quick")
