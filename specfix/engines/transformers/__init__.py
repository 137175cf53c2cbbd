"""Transformers' config classes: what a key that is absent from a config.json means to an engine. And the names of its
model classes.

The config classes are read from Transformers' own source, minor by minor, and shipped as differences between minors.
"""

from specfix.engines.transformers.lookup import class_defaults, layers_counted, named_in, types_checked
from specfix.engines.transformers.models import has_model_class
from specfix.engines.transformers.resolve import fields, resolve

__all__ = ["class_defaults", "fields", "has_model_class", "layers_counted", "named_in", "resolve", "types_checked"]
