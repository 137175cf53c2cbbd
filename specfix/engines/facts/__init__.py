"""The facts that are read of one release. Plain values, so that a file of them is JSON and loads in milliseconds.

Each class is a section of :class:`specfix.engines.engine.Engine`, and the module ``specfix.engines.readers.<section>``
reads it from a source tree. ``None`` means that this fact, or this entry of a mapping, could not be read;
``Engine.unknown`` says why, under its dotted path (``lengths.v1_guard``, ``eagle.support.LlamaForCausalLM``).
"""
