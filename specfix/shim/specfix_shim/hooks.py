"""Call back when a module has been imported, without importing it; and tell where that went past us."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .log import Inert, guarded

Callback = Callable[[ModuleType], None]
Missed = Callable[[], None]
NOT_FOLLOWED = "an import is not followed"


class Finder:
    """Stands first on ``sys.meta_path``, leaves the finding to the others, and has what they found call back."""

    def __init__(self) -> None:
        self.callbacks: dict[str, list[tuple[Callback, Missed]]] = {}  # of what was not imported yet
        self.asking: set[tuple[str, int]] = set()
        self.asked_for: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        with guarded("", NOT_FOLLOWED):  # then it is found without us, or raises what it would have raised
            if self.callbacks:
                self.tell_missed()
            asking = (name, threading.get_ident())
            if name in self.callbacks and asking not in self.asking:  # there are others that ask all the others
                self.asking.add(asking)
                self.asked_for.add(name)
                try:
                    return self._found(name, path, target)
                finally:
                    self.asking.discard(asking)
        return None

    def _found(self, name: str, path: Any, target: Any) -> ModuleSpec | None:
        for finder in sys.meta_path[:]:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                self._follow(spec)
                return spec
        return None

    def _follow(self, spec: ModuleSpec) -> None:
        """A loader is made for one import of one module, as a rule, so that its method can be replaced on it alone."""
        loader: Any = spec.loader
        if isinstance(loader, type) or not hasattr(loader, "exec_module"):
            raise Inert(f"{spec.name} is loaded in a way of its own")
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            with guarded("", NOT_FOLLOWED):
                for callback, _ in self.callbacks.pop(spec.name, ()) if module.__name__ == spec.name else ():
                    callback(module)

        loader.exec_module = exec_module

    def tell_missed(self, *, at_exit: bool = False) -> None:
        """Of what was imported though we were not asked, since a finder before us knew it: once, and here where nothing
        can be done about it, for an import is under way. At the end also where we were asked, to no avail."""
        for name in list(self.callbacks):
            if imported(name) is not None and (at_exit or name not in self.asked_for):
                for _, missed in self.callbacks.pop(name, ()):
                    missed()


_finder = Finder()


def when_imported(name: str, callback: Callback, missed: Missed) -> None:
    """Call back once the module is imported: now, if it is already. Else ``missed``, where we learn of it too late."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        atexit.register(tell_missed)
    module = imported(name)
    if module is None:
        _finder.callbacks.setdefault(name, []).append((callback, missed))
    else:
        callback(module)


def imported(name: str) -> ModuleType | None:
    """The module, once it is whole."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def tell_missed() -> None:
    """Tell of all that was imported and did not come by us."""
    with guarded("", "what was missed is not known"):
        _finder.tell_missed(at_exit=True)
