"""A Hub on this machine, for those tests that ask for it."""

from .fake_hub import cache, fake, library

__all__ = ["cache", "fake", "library"]
