"""How Transformers 5 puts RoPE parameters together."""

from __future__ import annotations

import ast
from typing import Any, Final

from specfix.engines.source.symbolic.expressions import Expressions
from specfix.engines.source.symbolic.machine import CONVERTS, ROOT, ROOTS, STANDARDIZES, State, digest
from specfix.engines.source.symbolic.values import ABSENT_WORD, NONE, Keywords, Lit, given, is_unknown, unknown, word
from specfix.engines.source.tree import dotted

ROPE_THETA: Final = 10000.0  # default_theta of Transformers' base class


COMPLETED: Final = "what Transformers makes of it"


OWN_ROPE: Final = "RoPE parameters put together in its own way"


ROPE_WITHOUT_OWN_THETA: Final = "9ed0b84c46e1"  # the form that takes no rope_theta of the class for what is missing


PLAIN_ROPE: Final = word("or", word("else", given("rope_scaling"), NONE), word("else", given("rope_parameters"), NONE))


class Ropes(Expressions):
    """Knows the flat case of RoPE parameters."""

    def _rope(self, handed: Keywords, method: ast.FunctionDef, state: State) -> Keywords:
        """Transformers 5 gathers RoPE's keys in ``rope_parameters``; what it makes of one set of them is known."""
        theta = self._get(state, "default_theta")
        if digest(method) != ROPE_WITHOUT_OWN_THETA:
            theta = word("else", self._get(state, "rope_theta"), theta)
        if self._shared_rope(STANDARDIZES):
            given_ = word("or", word("else", handed.get("rope_scaling"), NONE), self._get(state, "rope_parameters"))
            theta = word("else", handed.get("rope_theta"), theta)
            partial = word("else", handed.get("partial_rotary_factor"), self._get(state, "partial_rotary_factor"))
            self._set(state, "rope_parameters", self._rope_word(given_, theta, partial, state))
        else:
            self._set(state, "rope_parameters", unknown(OWN_ROPE))
        for node in ast.walk(method):
            if (
                isinstance(node, ast.Call)
                and dotted(node.func) == "kwargs.pop"
                and isinstance(node.args[0], ast.Constant)
            ):
                handed = handed.with_(str(node.args[0].value), ABSENT_WORD)
        return handed

    def _standard_rope(self, state: State) -> Any:
        """The second half of it alone, which a class calls that gathers the keys in its own way."""
        theta = word("else", self._get(state, "rope_theta"), NONE)
        before, partial = self._get(state, "rope_parameters"), self._get(state, "partial_rotary_factor")
        self._set(state, "rope_parameters", self._rope_word(before, theta, partial, state))
        return NONE

    def _rope_word(self, stated: Any, theta: Any, partial: Any, state: State) -> Any:
        original = self._get(state, "original_max_position_embeddings")
        positions = self._get(state, "max_position_embeddings")
        if is_unknown(stated):
            return stated
        return word("rope", stated, theta, partial, original, positions, self._kind(state))

    def _kind(self, state: State) -> Any:
        kind = self._get(state, "default_rope_type")
        return NONE if kind in (ABSENT_WORD, Lit("default")) else kind

    def _completed(self, state: State, keywords: Keywords) -> dict[str, Any]:
        """RoPE parameters that were set: Transformers 5 completes them, and takes rope_scaling for them."""
        set_ = {"rope_parameters", "rope_scaling"} & set(state.attributes)
        if self.base != ROOT or "rope_scaling" in set_:
            return dict.fromkeys({"rope_parameters", "rope_scaling"} if set_ else (), unknown(COMPLETED))
        if not set_:
            return {}
        stated = state.attributes["rope_parameters"]
        scaling = word("or", word("else", keywords.get("rope_scaling"), NONE), stated)
        theta = word("else", keywords.get("rope_theta"), word("else", self._get(state, "rope_theta"), Lit(ROPE_THETA)))
        partial = word("else", keywords.get("partial_rotary_factor"), self._get(state, "partial_rotary_factor"))
        completed = self._rope_word(scaling, theta, partial, state)
        return {"rope_parameters": word("completed", stated, completed)}

    def _completes_rope(self) -> str:
        if self.cls.name not in ROOTS or CONVERTS not in self.members:
            return ""
        method = self._shared_rope(CONVERTS)
        known = method and self._shared_rope(STANDARDIZES) and digest(method) != ROPE_WITHOUT_OWN_THETA
        return "yes" if known else "unknown"
