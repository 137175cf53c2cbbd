"""Transformers' config classes: what a key that is absent from a config.json means to an engine.

The classes are read from Transformers' own source, minor by minor, and shipped as differences between minors.
"""

from specfix.engines.transformers.lookup import class_defaults, named_in
from specfix.engines.transformers.resolve import fields, resolve

__all__ = ["class_defaults", "fields", "named_in", "resolve"]
