"""Call back when a module has been imported, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]


class Finder:
    """Stands first on ``sys.meta_path``, leaves the finding to the others, and has what they found call back."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callback]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self.callbacks:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec: ModuleSpec) -> None:
        """A loader is made for one import of one module, so that its method can be replaced on it alone."""
        loader: Any = spec.loader
        try:
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                for callback in self.callbacks.get(spec.name, ()):
                    callback(module)

            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader of another kind: this module stays as it is, and status says that it was not reached


_finder = Finder()


def when_imported(name: str, callback: Callback) -> None:
    """Call back once the module is imported: now, if it is already."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.callbacks.setdefault(name, []).append(callback)
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        callback(module)
