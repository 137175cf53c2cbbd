"""Runs parts of one source tree."""

from __future__ import annotations

from functools import partial
from typing import Any

from specfix.engines.source.interpreter.calls import Calls
from specfix.engines.source.interpreter.dataclass_fields import fields, is_dataclass
from specfix.engines.source.interpreter.definitions import Definitions
from specfix.engines.source.interpreter.expressions import Expressions
from specfix.engines.source.interpreter.limits import Budget
from specfix.engines.source.interpreter.names import Modules
from specfix.engines.source.interpreter.standins import Names, UndecidedError, Unknown, modules, said
from specfix.engines.source.interpreter.statements import Statements
from specfix.engines.source.tree import SourceTree


class Interpreter:
    """``environment`` holds the only environment variables that are set; ``document`` is what every YAML file is read
    as."""

    def __init__(self, tree: SourceTree) -> None:
        self.environment: dict[str, str] = {}
        self.document: Any = None
        budget = Budget()
        calls = Calls(budget)
        expressions = Expressions(budget, calls, self)
        python = modules(self.environment)
        python["yaml"] = Names("yaml", {"safe_load": lambda *_: self.document})
        python["dataclasses"].names.update(fields=partial(fields, expressions), is_dataclass=is_dataclass)
        self._modules = Modules(tree, python, self)
        definitions = Definitions(expressions, self._modules, self)
        # what stands behind the names asks for these: see names.Runner
        self.builtins = calls.builtins
        self.bind = definitions.bind
        self.holds = expressions.holds
        self.call = Statements(budget, expressions, definitions).call

    def name(self, module: str, name: str) -> Any:
        """The value of ``name`` in a module; Unknown where the source does not tell."""
        try:
            return self._modules.member(module, name)
        except UndecidedError as error:
            return Unknown(str(error))
        except (Exception, SystemExit) as error:  # the source's own, or one of a source that would not run
            return Unknown(said(error))
