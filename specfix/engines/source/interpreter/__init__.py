"""Works out what a piece of an engine's source would make, without importing it: the source's own functions are run on
Python's syntax tree, so that a rule which changes from release to release is not written down here a second time.

What is not in the source (another package, the platform, the machine) is ``standins.Unknown``, or an
``standins.Outside`` name where only its identity counts; what would be decided by such a value is unknown too.

A hostile tree gets at nothing: of Python itself there are only the names in ``standins``, which open, write and start
nothing; of any value only the attributes in ``access``; and what is in ``limits`` ends every loop.

standins, access, limits → names (scopes, modules) → functions, source_classes → attributes, operators, calls →
expressions → definitions, dataclass_fields → statements → run.
"""
