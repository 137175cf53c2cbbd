"""Find rules through the entry-point group ``specfix.rules``: ours and a third party's by the same door."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from types import ModuleType

from specfix.checker.rule import Rule
from specfix.errors import CannotCheck

GROUP = "specfix.rules"
LOADING = Lock()


def load_rules() -> tuple[Rule, ...]:
    """Every rule of every installed rule package, by code; they are looked for once in a process. Raises CannotCheck
    for two rules with one code."""
    with LOADING:  # another thread would find modules that are still without their rules
        return _loaded()


@cache
def _loaded() -> tuple[Rule, ...]:
    rules: dict[str, Rule] = {}
    for package in rule_packages():
        for rule in rules_of(package):
            other = rules.setdefault(rule.code, rule)
            if other is not rule:
                raise CannotCheck(
                    f"two rules bear the code {rule.code}: {other.predicate.__module__} and {rule.predicate.__module__}"
                )
    return tuple(rules[code] for code in sorted(rules))


def rule_packages() -> list[ModuleType]:
    """The installed rule packages, by the names of their entry points."""
    return [entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]


def rules_of(package: ModuleType) -> list[Rule]:
    """The rules of a package and of all modules under it."""
    return [
        value
        for module in (package, *modules_under(package))
        for value in vars(module).values()
        if isinstance(value, Rule) and value.predicate.__module__ == module.__name__
    ]


def modules_under(package: ModuleType) -> Iterator[ModuleType]:
    """All modules under a package, each imported: rules and their pages are files in folders."""
    for folder in getattr(package, "__path__", ()):
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.path) for entry in entries)
        for name, path in found:
            inner = Path(path, "__init__.py")
            if name.endswith(".py") and name != inner.name:
                yield imported(package, name.removesuffix(".py"), path)
            elif "." not in name and inner.is_file():
                module = imported(package, name, str(inner))
                yield module
                yield from modules_under(module)


def imported(package: ModuleType, last: str, file: str) -> ModuleType:
    """The module ``last`` of a package, loaded straight from its file: for so many small ones the import system takes
    longer to look for them, by every finder it has, than to load them."""
    name = f"{package.__name__}.{last}"
    spec = None if name in sys.modules else spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    setattr(package, last, module)
    return module
