"""Find rules through the entry-point group ``specfix.rules``: ours and a third party's by the same door."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

from specfix.checker.rule import Rule
from specfix.errors import CannotCheck

GROUP = "specfix.rules"


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule of every installed rule package, by code; they are looked for once in a process. Raises CannotCheck
    for two rules with one code."""
    rules: dict[str, Rule] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        for rule in rules_of(entry.load()):
            other = rules.setdefault(rule.code, rule)
            if other is not rule:
                raise CannotCheck(
                    f"two rules bear the code {rule.code}: {other.predicate.__module__} and {rule.predicate.__module__}"
                )
    return tuple(rules[code] for code in sorted(rules))


def rules_of(package: ModuleType) -> list[Rule]:
    """The rules of a package and of all modules under it."""
    modules = [package]
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
        modules.append(importlib.import_module(found.name))
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Rule) and value.predicate.__module__ == module.__name__
    ]
