"""Read how a release derives lengths, and what it does where the draft's is shorter than the target's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from specfix.engines.conditions import evaluate
from specfix.engines.facts.drafting import LengthFacts, MethodFacts
from specfix.engines.source.lift import Lifter
from specfix.engines.source.lookup import module_constant
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

CONVERTOR = "transformers_utils/model_arch_config_convertor.py"
RUNNER = "v1/worker/gpu_model_runner.py"

DERIVE = "_get_and_verify_max_len"
RAISE = "_maybe_override_draft_max_position_embeddings"
KEYS = "ModelArchConfigConvertorBase.derive_max_model_len_and_key"  # older releases: in DERIVE itself
LIMIT = "_limit_max_model_len_to_draft"
OWN = "_maybe_override_draft_max_model_len"
ORIGINAL = "original_max_position_embeddings"
OVERRIDES = "hf_overrides"


def read_lengths(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts) -> LengthFacts:
    model = tree.config_file("ModelConfig")
    derive = tree.function(model, DERIVE) if model else None
    if derive is None:
        for fact in (
            "keys",
            "unscaled_rope_types",
            "yarn_from_original",
            "unscaled_model_types",
            "longrope_from_original",
            "overriding_key",
            "refuses_longer",
            "longer_excused_by",
            "longer_allowed_by",
        ):
            unknown[f"lengths.{fact}"] = f"no {DERIVE} beside ModelConfig"
    source = tree.function(CONVERTOR, KEYS) or derive
    keys = _keys(tree, source)
    if keys is None:
        unknown.setdefault("lengths.keys", "no list of keys found")
    unscaled = _not_in(derive, "rope_type") if derive else None
    if derive and unscaled is None:
        unknown["lengths.unscaled_rope_types"] = f"no test of rope_type in {DERIVE}"
    guard = _guard(tree)
    readable = tree.module(RUNNER) is not None
    if not readable:
        unknown["lengths.v1_guard"] = unknown["lengths.guard_extra"] = f"no {RUNNER}"
    raised = _raised_methods(tree, methods, unknown)
    bound = _bound(derive) if derive else None
    return LengthFacts(
        keys=keys,
        unscaled_rope_types=unscaled,
        yarn_from_original=_starts_from_original(derive) if derive else None,
        unscaled_model_types=_unscaled_model_types(derive) if derive else None,
        v1_guard=guard is not None if readable else None,
        guard_extra=_extra(tree, guard, methods, unknown) if readable else None,
        raised_methods=raised,
        raised_rope_types=_raised_rope_types(tree) if raised else None,
        raise_also_lifts_length=None if raised is None else bool(raised) and _lifts_length(tree),
        limits_target=_limits_target(tree, unknown),
        overriding_key=_overriding_key(source),
        longrope_from_original=_longrope_from_original(derive) if derive else None,
        overrides_reach_draft=_overrides_reach_draft(tree, unknown),
        refuses_longer=bound is not None if derive else None,
        longer_excused_by=_excuse(bound) if bound else None,
        longer_allowed_by=_permission(bound) if bound else None,
        own_bounded_by=_own_bounds(tree, unknown),
        own_is_draft_length=_own_is_draft_length(tree, unknown),
        refuses_none=_refuses_none(tree, unknown),
    )


def _refuses_none(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    """``if … self.max_model_len < 1: raise`` in a validator of ModelConfig's that runs after the length is derived."""
    file = tree.config_file("ModelConfig")
    if file is None:
        unknown["lengths.refuses_none"] = "no ModelConfig"
        return None
    function = tree.function(file, "ModelConfig.validate_model_config_after")
    return any(
        isinstance(operator, ast.Lt) and dotted(left) == "self.max_model_len" and literal(right) == 1
        for node in (walk(function, ast.If) if function else ())
        if _raises(node.body)
        for operator, left, right in _comparisons(node.test)
    )


def _bound(function: ast.FunctionDef) -> ast.If | None:
    """``if max_model_len > derived_max_model_len: …`` where it raises."""
    for node in walk(function, ast.If):
        for operator, left, right in _comparisons(node.test):
            asked, derived = dotted(left), dotted(right) or ""
            compares = asked == "max_model_len" and derived.startswith("derived")
            if isinstance(operator, ast.Gt) and compares and _raises(node.body):
                return node
    return None


def _raises(body: list[ast.stmt]) -> bool:
    return any(True for statement in body for _ in walk(statement, ast.Raise))


def _excuse(bound: ast.If) -> str | None:
    """The key of the config that is read before it is refused."""
    for call in (call for statement in bound.body for call in walk(statement, ast.Call)):
        key = literal(call.args[1]) if dotted(call.func) == "getattr" and len(call.args) > 1 else None
        if isinstance(key, str):
            return key
    return None


def _permission(bound: ast.If) -> str | None:
    """The variable in ``if envs.NAME: … else: raise``."""
    for node in (node for statement in bound.body for node in walk(statement, ast.If)):
        owner, _, name = (dotted(node.test) or "").rpartition(".")
        if owner == "envs" and _raises(node.orelse):
            return name
    return None


def _own_bounds(tree: SourceTree, unknown: dict[str, str]) -> tuple[str, ...] | None:
    """``if speculative_max_model_len > draft_max_model_len: raise …``, and the same of the target's."""
    file = tree.config_file("SpeculativeConfig")
    if file is None:
        unknown["lengths.own_bounded_by"] = "no SpeculativeConfig"
        return None
    function = tree.function(file, OWN)
    bounds = [
        dotted(right) or ""
        for node in (walk(function, ast.If) if function else ())
        for operator, left, right in _comparisons(node.test)
        if isinstance(operator, ast.Gt) and dotted(left) == "speculative_max_model_len" and _raises(node.body)
    ]
    return tuple(side for side in ("draft", "target") if f"{side}_max_model_len" in bounds)


def _own_is_draft_length(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    file = tree.config_file("SpeculativeConfig")
    if file is None:
        unknown["lengths.own_is_draft_length"] = "no SpeculativeConfig"
        return None
    given = {
        dotted(keyword.value)
        for call in _calls(tree, file, "ModelConfig")
        for keyword in call.keywords
        if keyword.arg == "max_model_len"
    }
    return "self.max_model_len" in given


def _keys(tree: SourceTree, function: ast.FunctionDef | None) -> tuple[str, ...] | None:
    """The list over which a loop reads attributes of the config."""
    lists = {
        target.id: node.value
        for node in (walk(function, ast.Assign) if function else ())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for loop in walk(function, ast.For) if function else ():
        over = lists.get(loop.iter.id) if isinstance(loop.iter, ast.Name) else loop.iter
        if isinstance(over, ast.Name):
            keys = module_constant(tree, CONVERTOR, over.id)
        else:
            keys = literal(over)
        reads = any(isinstance(call.func, ast.Name) and call.func.id == "getattr" for call in walk(loop, ast.Call))
        if reads and isinstance(keys, list | tuple) and all(isinstance(key, str) for key in keys):
            return tuple(keys)
    return None


def _overriding_key(function: ast.FunctionDef | None) -> str | None:
    """A key that is read after the loop and, where it is set, replaces what the loop found."""
    for node in walk(function, ast.If) if function else ():
        if isinstance(node.test, ast.NamedExpr) and isinstance(call := node.test.value, ast.Call):
            key = literal(call.args[1]) if dotted(call.func) == "getattr" and len(call.args) > 1 else None
            if isinstance(key, str):
                return key
    return None


def _comparisons(function: ast.AST) -> Iterator[tuple[ast.cmpop, ast.expr, ast.expr]]:
    for node in walk(function, ast.Compare):
        if len(node.ops) == 1:
            yield node.ops[0], node.left, node.comparators[0]


def _not_in(function: ast.AST, name: str) -> tuple[str, ...] | None:
    """The literal types in ``name not in (…)``."""
    for operator, left, right in _comparisons(function):
        types = literal(right)
        if (
            isinstance(operator, ast.NotIn)
            and dotted(left) == name
            and isinstance(types, tuple | list | set | frozenset)
        ):
            return tuple(map(str, types))
    return None


def _unscaled_model_types(function: ast.AST) -> tuple[str, ...]:
    """The substrings in ``"gemma3" not in hf_config.model_type``."""
    return tuple(
        str(literal(left))
        for operator, left, right in _comparisons(function)
        if isinstance(operator, ast.NotIn)
        and isinstance(literal(left), str)
        and (dotted(right) or "").endswith("model_type")
    )


def _mentions(node: ast.AST, text: str) -> bool:
    return any(constant.value == text for constant in walk(node, ast.Constant))


def _starts_from_original(function: ast.AST) -> bool:
    """Whether, for yarn, the length so far is replaced by original_max_position_embeddings."""
    return any(
        _mentions(node.test, "yarn")
        and any(_mentions(a.value, ORIGINAL) for s in node.body for a in walk(s, ast.Assign))
        for node in walk(function, ast.If)
    )


def _longrope_from_original(function: ast.AST) -> bool:
    """``if … rope_type == "longrope"``: of that type alone, not of all but a few."""
    return any(
        _equals(node.test, "longrope") and any(_mentions(statement, ORIGINAL) for statement in node.body)
        for node in walk(function, ast.If)
    )


def _equals(test: ast.expr, text: str) -> bool:
    return any(isinstance(operator, ast.Eq) and literal(right) == text for operator, _, right in _comparisons(test))


def _guard(tree: SourceTree) -> ast.FunctionDef | None:
    """The function of the V1 runner that compares with the drafter's own length."""
    module = tree.module(RUNNER)
    for function in walk(module, ast.FunctionDef) if module else ():
        for operator, _, right in _comparisons(function):
            if isinstance(operator, ast.LtE) and (dotted(right) or "").endswith("effective_drafter_max_model_len"):
                return function
    return None


def _extra(
    tree: SourceTree, guard: ast.FunctionDef | None, methods: MethodFacts, unknown: dict[str, str]
) -> dict[str, int] | None:
    """Tokens that a method counts beyond num_spec_tokens: ``… + (1 if … else 0)`` in the guard."""
    lifter = Lifter(tree, tree.config_file("VllmConfig") or "", "VllmConfig")
    found: dict[str, int] = {}
    for node in walk(guard, ast.IfExp) if guard else ():
        then, otherwise = literal(node.body), literal(node.orelse)
        if not (isinstance(then, int) and isinstance(otherwise, int)):
            continue
        test = lifter.lift(node.test, {})
        for method in methods.methods:
            holds = evaluate(test, {"speculative_config.method": method})
            if holds is None:
                unknown["lengths.guard_extra"] = f"{RUNNER}:{node.lineno} not understood"
                return None
            if extra := then if holds else otherwise:
                found[method] = extra
    return found


def _limits_target(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    file = tree.config_file("VllmConfig")
    if file is None:
        unknown["lengths.limits_target"] = "no VllmConfig"
        return None
    return any(_calls(tree, file, LIMIT))


def _calls(tree: SourceTree, file: str, method: str) -> Iterator[ast.Call]:
    module = tree.module(file)
    for call in walk(module, ast.Call) if module else ():
        if (dotted(call.func) or "").rpartition(".")[2] == method:
            yield call


def _raised_methods(tree: SourceTree, methods: MethodFacts, unknown: dict[str, str]) -> tuple[str, ...] | None:
    """Methods for which the call that raises the draft's positions is reached."""
    file = tree.config_file("SpeculativeConfig")
    module = tree.module(file) if file else None
    if file is None or module is None:
        for fact in ("raised_methods", "raised_rope_types", "raise_also_lifts_length"):
            unknown[f"lengths.{fact}"] = "no SpeculativeConfig"
        return None
    call = next(_calls(tree, file, RAISE), None)
    owner = next((f for f in walk(module, ast.FunctionDef) if call in walk(f, ast.Call)), None) if call else None
    if call is None or owner is None:
        return ()
    reached = Lifter(tree, file, "SpeculativeConfig").reached(owner.name, call)
    return tuple(method for method in methods.methods if evaluate(reached, {"method": method}) is not False)


def _raised_rope_types(tree: SourceTree) -> tuple[str, ...] | None:
    """The rope types that the raise is confined to, by a test in it or in a function that it calls."""
    file = tree.config_file("SpeculativeConfig")
    module = tree.module(file) if file else None
    function = find_function(module, RAISE) if module else None
    if file is None or module is None or function is None:
        return None
    called = [find_function(module, dotted(call.func) or "?") for call in walk(function, ast.Call)]
    for scope in (function, *filter(None, called)):
        for operator, left, right in _comparisons(scope):
            if not (isinstance(operator, ast.In | ast.NotIn) and _mentions(left, "rope_type")):
                continue
            types = module_constant(tree, file, right.id) if isinstance(right, ast.Name) else literal(right)
            if isinstance(types, set | frozenset | tuple | list):
                return tuple(sorted(map(str, types)))
    return None


def _lifts_length(tree: SourceTree) -> bool:
    """Whether the draft's max_model_len, derived when its ModelConfig was made, is raised as well."""
    file = tree.config_file("SpeculativeConfig") or ""
    function = tree.function(file, RAISE)
    assigned = [t for a in walk(function, ast.Assign) for t in a.targets] if function else []
    if any(isinstance(target, ast.Attribute) and target.attr == "max_model_len" for target in assigned):
        return True
    raised = next(_calls(tree, file, RAISE))
    derived = [*_calls(tree, file, DERIVE), *_calls(tree, file, DERIVE.lstrip("_"))]
    return any(call.lineno > raised.lineno for call in derived)


def _overrides_reach_draft(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    """Whether the draft's ModelConfig is made with a mapping that was given for the target.

    It is not where the argument is the release's own function, or what a function makes that, for what is not
    callable, returns something without it."""
    file = tree.config_file("SpeculativeConfig")
    for call in _calls(tree, file, "ModelConfig") if file else ():
        value = next((keyword.value for keyword in call.keywords if keyword.arg == OVERRIDES), None)
        if file is None or value is None:
            continue
        if (dotted(value) or "").endswith(".hf_config_override"):
            return False
        maker = next(_makers(tree, file, value), None)
        if maker is not None:
            return not any(_leaves_out_mappings(node) for node in walk(maker, ast.If))
    unknown["lengths.overrides_reach_draft"] = "no ModelConfig with hf_overrides is made in SpeculativeConfig"
    return None


def _makers(tree: SourceTree, file: str, value: ast.expr) -> Iterator[ast.FunctionDef]:
    """Functions of the file whose result was assigned to the name ``value``."""
    module = tree.module(file)
    for assign in walk(module, ast.Assign) if module and isinstance(value, ast.Name) else ():
        if isinstance(assign.value, ast.Call) and any(dotted(target) == dotted(value) for target in assign.targets):
            name = (dotted(assign.value.func) or "?").rpartition(".")[2]
            if function := tree.function(file, name):
                yield function


def _leaves_out_mappings(node: ast.If) -> bool:
    """``if not callable(x): return …`` of something without x."""
    match node.test:
        case ast.UnaryOp(ast.Not(), ast.Call(ast.Name("callable"), [ast.Name(name)])):
            returned = [each.value for each in node.body if isinstance(each, ast.Return) and each.value]
            return bool(returned) and all(use.id != name for value in returned for use in walk(value, ast.Name))
    return False
