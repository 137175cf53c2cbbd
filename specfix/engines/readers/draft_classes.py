"""Read which class and which drafter a release takes for a draft: names that it makes, lists that it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from specfix.engines.compiled import Condition
from specfix.engines.conditions import evaluate
from specfix.engines.facts.drafting import Renaming
from specfix.engines.source.joining import ends
from specfix.engines.source.lift import Lifter
from specfix.engines.source.tree import SourceTree, dotted, find_function, literal, walk

EAGLE = "transformers_utils/configs/eagle.py"
CONVERTOR = "transformers_utils/model_arch_config_convertor.py"
MLA = "is_deepseek_mla"
SPECULATIVE = "SpeculativeConfig"
V1_RUNNER = "v1/worker/gpu_model_runner.py"
V2_DRAFTERS = "v1/worker/gpu/spec_decode/__init__.py"
INIT_DRAFTER = "init_speculator"
PROPOSERS = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py", "v1/spec_decode/draft_model.py")
REFUSALS = {"_raise_if_multimodal": "multimodal", "_raise_if_mrope": "mrope"}


# Names of classes


def renamings(tree: SourceTree) -> dict[str, Renaming] | None:
    """``if method == "eagle3": kwargs["architectures"] = [arch if … else f"Eagle3{arch}" for arch in …]``."""
    found: dict[str, Renaming] = {}
    module = tree.module(EAGLE)
    for branch in walk(module, ast.If) if module else ():
        match branch.test:
            case ast.Compare(left=ast.Name(id="method"), ops=[ast.Eq()], comparators=[ast.Constant(value=str(method))]):
                pass
            case _:
                continue
        for made in (each for statement in branch.body for each in walk(statement, ast.ListComp)):
            renaming = _renaming(made)
            if renaming is not None:
                found[method] = renaming
    return found or None


def _renaming(made: ast.ListComp) -> Renaming | None:
    match made.elt:
        case ast.IfExp(test=ast.UnaryOp(op=ast.Not(), operand=test), body=ast.JoinedStr() as new, orelse=ast.Name()):
            pass
        case ast.IfExp(test=test, body=ast.Name(), orelse=ast.JoinedStr() as new):
            pass
        case _:
            return None
    kept: dict[str, list[str]] = {"startswith": [], "endswith": [], "==": []}
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]:
        match part:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(), attr=("startswith" | "endswith") as how),
                args=[ast.Constant(value=str(text))],
            ):
                kept[how].append(text)
            case ast.Compare(left=ast.Name(), ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]):
                kept["=="].append(text)
            case _:
                return None
    match new.values:
        case [ast.Constant(value=str(prefix)), ast.FormattedValue(value=ast.Name())]:
            return Renaming(prefix, tuple(kept["startswith"]), tuple(kept["endswith"]), tuple(kept["=="]))
    return None


# Attention of a draft


def mla_types(tree: SourceTree) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The model types that may have MLA, and those that an EAGLE head (``eagle_config.model``) may have it of."""
    function = tree.function(CONVERTOR, MLA)
    if function is None or not any(True for _ in walk(function, ast.Compare)):
        file = tree.config_file("ModelConfig")
        function = tree.function(file, MLA) if file else None
    plain = inner = None
    for test in walk(function, ast.Compare) if function else ():
        name = dotted(test.left) or ""
        types = literal(test.comparators[0])
        if isinstance(test.ops[0], ast.In) and isinstance(types, tuple) and name.endswith(".model_type"):
            if name.endswith(".model.model_type"):
                inner = tuple(map(str, types))
            else:
                plain = tuple(map(str, types))
    return plain, inner


# Drafters


def drafters(tree: SourceTree, methods: Iterable[str]) -> dict[str, tuple[str, ...]] | None:
    """By runner the methods that one of its branches builds a drafter for; the last one raises."""
    named = tuple(methods)
    found: dict[str, tuple[str, ...]] = {}
    for runner, chain in (("V1", _v1_chain(tree)), ("V2", _v2_chain(tree))):
        if chain is None:
            continue
        tests = [_test(tree, branch.test) for branch in chain]
        found[runner] = tuple(
            method for method in named if any(evaluate(test, {"method": method}) is not False for test in tests)
        )
    return found if "V1" in found else None


def _v1_chain(tree: SourceTree) -> list[ast.If] | None:
    module = tree.module(V1_RUNNER)
    for node in walk(module, ast.If) if module else ():
        chain = _chain(node)
        if chain and len(chain) > 2 and all("speculative_config" in ast.unparse(branch.test) for branch in chain):
            text = ast.unparse(chain[-1].orelse[-1])
            if "Unknown speculative decoding method" in text:
                return chain
    return None


def _v2_chain(tree: SourceTree) -> list[ast.If] | None:
    function = tree.function(V2_DRAFTERS, INIT_DRAFTER)
    for node in function.body if function else ():
        if isinstance(node, ast.If):
            return _chain(node)
    return None


def _chain(node: ast.If) -> list[ast.If] | None:
    """The branches of ``if … elif … else: raise``; None where the last one does not end so."""
    branches = [node]
    while len(branches[-1].orelse) == 1 and isinstance(branches[-1].orelse[0], ast.If):
        branches.append(branches[-1].orelse[0])
    last = branches[-1].orelse
    return branches if last and ends(last) and isinstance(last[-1], ast.Raise) else None


def _test(tree: SourceTree, test: ast.expr) -> Condition:
    """A test of the speculative config by its own fields: ``use_eagle()`` is what the method of that name says."""
    file = tree.config_file(SPECULATIVE)
    if file is None:
        return ["?", SPECULATIVE]
    config = tree.class_(file, SPECULATIVE)
    match test:
        case ast.Call(func=ast.Attribute(attr=name), args=[]) if config and find_function(config, name):
            return Lifter(tree, file, SPECULATIVE).condition(name)
        case ast.Compare(left=ast.Attribute(attr="method")):
            asked = ast.parse(ast.unparse(test).replace(ast.unparse(test.left), "self.method", 1), mode="eval").body
            return Lifter(tree, file, SPECULATIVE).lift(asked, {})
    return ["?", ast.unparse(test)]


def extra_slots_refuse(tree: SourceTree) -> dict[str, tuple[str, ...]] | None:
    """What the V1 runner's drafters refuse that need more input slots than the target (a draft model, parallel
    drafting): "multimodal", "mrope", each with the methods whose own class allows it. Empty where none refuses."""
    found: dict[str, tuple[str, ...]] = {}
    seen = False
    for file in PROPOSERS:
        module = tree.module(file)
        for function in walk(module, ast.FunctionDef) if module else ():
            if function.name != "__init__":
                continue
            seen = True
            for call in walk(function, ast.Call):
                name = (dotted(call.func) or "").removeprefix("self.")
                if name in REFUSALS and _raises(module, name):
                    found[REFUSALS[name]] = tuple(_exempt(tree, name))
    return found if seen else None


def _raises(module: ast.Module | None, name: str) -> bool:
    return any(
        any(True for _ in walk(function, ast.Raise))
        for function in (walk(module, ast.FunctionDef) if module else ())
        if function.name == name
    )


def _exempt(tree: SourceTree, name: str) -> Iterator[str]:
    """Methods, by the file of their drafter, that override the refusal with nothing."""
    for file in tree.files("v1/spec_decode"):
        module = tree.module(file)
        method = file.rpartition("/")[2].removesuffix(".py")
        for function in walk(module, ast.FunctionDef) if module and file not in PROPOSERS else ():
            if function.name == name and not any(True for _ in walk(function, ast.Raise)):
                yield method
