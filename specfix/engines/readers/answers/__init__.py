"""What a function of the engine answers, as a tree of its own tests: ``["if", test, answer, answer]``.

The tree is a condition (see ``conditions``) whose leaves are the values that the function returns. Methods of a class
are looked up through its bases, calls of functions of the tree are followed where they only decide, and what cannot be
followed is ``["?", reason]``. Statements that only log or configure are passed over.

scope, platform → expressions → calls, statements → ask.
"""
