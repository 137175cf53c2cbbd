"""The same Hub as the deployment's tests have."""

from tests.unit.deployment.fake_hub import cache, fake, library

__all__ = ["cache", "fake", "library"]
