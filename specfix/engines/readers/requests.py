"""Read what a release does with what requests ask for, where it speculates."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

from specfix.engines.facts.requests import Range, RequestFacts
from specfix.engines.source.tree import SourceTree, config_homes, dotted, literal, walk

# where requests are checked: the newer home first
CHECKS = ("sampling_params.py", "v1/engine/input_processor.py", "v1/engine/processor.py")
UNSUPPORTED = ("v1/spec_decode/utils.py", "is_spec_decode_unsupported")
SKIPPED = "spec_decode_unsupported_reqs"
# files that ask for those, and the method that they draft by; in a file with "" the name of the function says it
DRAFTERS = {
    "v1/spec_decode/ngram_proposer.py": "ngram",
    "v1/spec_decode/suffix_decoding.py": "suffix",
    "v1/worker/gpu_model_runner.py": "",
}
PROCESSORS = ("v1/sample/logits_processor/__init__.py", "v1/sample/logits_processor.py")
STRUCTURED = "v1/structured_output/__init__.py"
CONFIGS = config_homes("model")
NAMES = {
    "min_p", "logit_bias", "min_tokens", "repetition_penalty", "presence_penalty", "frequency_penalty", "logprobs",
    "bad_words_token_ids", "structured_outputs", "guided_decoding",
}  # fmt: skip

# what is left where a comparison of the parameter refuses, and where one of a number with it holds
REFUSES: Mapping[type[ast.cmpop], str] = {ast.Lt: "at_least", ast.LtE: "above", ast.Gt: "at_most"}
BELOW: Mapping[type[ast.cmpop], str] = {ast.Lt: "above", ast.LtE: "at_least"}


def read_requests(tree: SourceTree) -> RequestFacts:
    defaults = _defaults(tree)
    checks = [(branch, parts) for branch in _refusals(tree) for parts in (_asked(branch.test),)]
    undrafted = _undrafted(tree)
    return RequestFacts(
        refused=tuple(name for branch, names in checks if not _is_async(branch) for name in names),
        async_refused=tuple(name for branch, names in checks if _is_async(branch) for name in names),
        undrafted=undrafted,
        undrafted_methods=tuple(_undrafted_methods(tree)) if undrafted else (),
        drops_processors=_processors(tree, ast.Return),
        refuses_processors=_processors(tree, ast.Raise),
        defaults=defaults,
        grammar_from_reasoning_end=_grammar_from_reasoning_end(tree),
        greedy_resets=tuple(_greedy_resets(tree)),
        ranges={name: bounds for name, bounds in sorted(_ranges(tree).items()) if name in (defaults or ())},
    )


def _ranges(tree: SourceTree) -> dict[str, Range]:
    """``if not 0.0 < self.top_p <= 1.0: raise`` and ``if self.top_k < -1: raise`` in ``_verify_args``."""
    function = tree.function("sampling_params.py", "SamplingParams._verify_args")
    found: dict[str, Range] = {}
    for branch in function.body if function else ():
        if isinstance(branch, ast.If) and isinstance(branch.body[0], ast.Raise):
            for name, bound, number in _bounds(branch.test):
                found[name] = replace(found.get(name, Range()), **{bound: number})
    return found


def _bounds(refused: ast.expr) -> Iterator[tuple[str, str, float]]:
    """(parameter, bound, number): what a test that refuses leaves of it."""
    if isinstance(refused, ast.Compare) and len(refused.ops) == 1:
        (op,), (right,) = refused.ops, refused.comparators
        yield from _bound(refused.left, REFUSES.get(type(op)), right)
    negated = isinstance(refused, ast.UnaryOp) and isinstance(refused.op, ast.Not) and refused.operand
    if isinstance(negated, ast.Compare) and len(negated.ops) == 2:
        (low, high), (middle, right) = negated.ops, negated.comparators
        yield from _bound(middle, BELOW.get(type(low)), negated.left)
        yield from _bound(middle, "at_most" if isinstance(high, ast.LtE) else None, right)


def _bound(parameter: ast.expr, bound: str | None, number: ast.expr) -> Iterator[tuple[str, str, float]]:
    block, _, name = (dotted(parameter) or "").partition(".")
    value = literal(number)
    if block == "self" and bound and isinstance(value, int | float):
        yield name, bound, value


def _greedy_resets(tree: SourceTree) -> Iterator[str]:
    """``if self.temperature < eps: self.min_p = 0.0`` where sampling parameters are made."""
    function = tree.function("sampling_params.py", "SamplingParams.__post_init__")
    for branch in walk(function, ast.If) if function else ():
        if ast.unparse(branch.test).startswith("self.temperature <"):
            for statement in branch.body:
                if isinstance(statement, ast.Assign) and literal(statement.value) is not None:
                    block, _, name = (dotted(statement.targets[0]) or "").partition(".")
                    if block == "self":
                        yield name


def _refusals(tree: SourceTree) -> Iterator[ast.If]:
    """Tests of a request's parameters that raise where a speculative config is there: asked for in the test itself, or
    at the function's start."""
    for file in CHECKS:
        module = tree.module(file)
        for function in walk(module, ast.FunctionDef) if module else ():
            left = any(_leaves_without(branch) for branch in walk(function, ast.If))
            for branch in walk(function, ast.If):
                raises = any(isinstance(each, ast.Raise) for each in branch.body)
                speculates = left or "speculative_config" in ast.unparse(branch.test)
                if raises and speculates and _asked(branch.test):
                    yield branch


def _leaves_without(branch: ast.If) -> bool:
    """``if speculative_config is None: return``."""
    return ast.unparse(branch.test) == "speculative_config is None" and isinstance(branch.body[0], ast.Return)


def _asked(test: ast.expr) -> list[str]:
    """Names of sampling parameters in a test, in its order."""
    found = [node.attr for node in walk(test, ast.Attribute) if node.attr in NAMES]
    order = ast.unparse(test)
    return sorted(dict.fromkeys(found), key=order.index)


def _is_async(branch: ast.If) -> bool:
    return "async_scheduling" in ast.unparse(branch.test)


def _undrafted(tree: SourceTree) -> tuple[str, ...]:
    function = tree.function(*UNSUPPORTED)
    returned = next((each.value for each in walk(function, ast.Return)), None) if function else None
    return tuple(_asked(returned)) if returned is not None else ()


def _undrafted_methods(tree: SourceTree) -> Iterator[str]:
    for file, method in DRAFTERS.items():
        module = tree.module(file)
        for function in walk(module, ast.FunctionDef) if module else ():
            named = method or ("ngram" if "ngram" in function.name else "")
            if named and any(
                SKIPPED in ast.unparse(test.comparators[0]) and isinstance(test.ops[0], ast.In)
                for test in walk(function, ast.Compare)
            ):
                yield named
                break


def _processors(tree: SourceTree, kind: type[ast.stmt]) -> bool | None:
    """Whether what makes the logits processors returns none, or raises, where it speculates."""
    for file in PROCESSORS:
        function = tree.function(file, "build_logitsprocs")
        if function is None:
            continue
        for branch in walk(function, ast.If):
            if "speculative_config" in ast.unparse(branch.test):
                return any(True for _ in walk(ast.Module(branch.body, []), kind))
        return False
    return None


def _defaults(tree: SourceTree) -> tuple[str, ...] | None:
    for file in CONFIGS:
        function = tree.function(file, "get_diff_sampling_param")
        for each in walk(function, ast.Assign) if function else ():
            names = literal(each.value)
            if dotted(each.targets[0]) == "available_params" and isinstance(names, list):
                return tuple(str(name) for name in names)
    return None


def _grammar_from_reasoning_end(tree: SourceTree) -> bool | None:
    """``grammar_bitmask``, or a method of its own that it calls, looks for the end of the reasoning among the tokens
    of the window. ``should_fill_bitmask`` looks at what came before."""
    module = tree.module(STRUCTURED)
    functions = {function.name: function for function in walk(module, ast.FunctionDef)} if module else {}
    start = functions.get("grammar_bitmask")
    if start is None:
        return None
    called = {(dotted(call.func) or "").rpartition(".")[2] for call in walk(start, ast.Call)} - {"should_fill_bitmask"}
    looked_at = [start, *(functions[name] for name in sorted(called & functions.keys()))]
    return any(
        isinstance(call.func, ast.Attribute)
        and "reasoning_end" in call.func.attr
        and "prompt_token_ids" not in ast.unparse(call)
        for function in looked_at
        for call in walk(function, ast.Call)
    )
