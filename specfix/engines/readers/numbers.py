"""Read the numbers that a release compares: slots for drafting, rows of the draft pass, sizes of CUDA graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final, Literal, cast

from specfix.engines.facts.numbers import Captures, Draws, NumberFacts
from specfix.engines.readers.section import Section
from specfix.engines.source.lookup import module_constant
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

CLASS: Final = "SpeculativeConfig"
SLOTS: Final = "max_num_new_slots_for_drafting"
HELD: Final = "_set_max_num_scheduled_tokens"
# methods of which some release has slots of its own; dflash and dspark draft in parallel whatever the user says
METHODS: Final = ("draft_model", "eagle", "eagle3", "mtp", "dflash", "dspark", "ngram", "medusa")
PARALLEL: Final = ("dflash", "dspark")
V2: Final = "v1/worker/gpu"
V2_DRAFTERS: Final = f"{V2}/spec_decode"
V1_PROPOSERS: Final = "v1/spec_decode"
V1_SAMPLER: Final = "v1/sample/rejection_sampler.py"
V1_RUNNER: Final = "v1/worker/gpu_model_runner.py"
STEP: Final = "spec_step_idx"


def read_numbers(tree: SourceTree, unknown: dict[str, str]) -> NumberFacts:
    read = Section("numbers", tree, unknown).read
    return NumberFacts(
        slots=read("slots", _slots),
        slots_held=read("slots_held", _held),
        uncapped_rows=read("uncapped_rows", _uncapped_rows),
        captures=read("captures", _captures),
        steps_numbered=read("steps_numbered", _steps_numbered),
        steps_by_type=tuple(_steps_by_type(tree)),
        batch_below_requests=read("batch_below_requests", _batch_below_requests),
        verified_at_most=read("verified_at_most", _verified_at_most),
    )


def _verified_at_most(tree: SourceTree) -> int:
    """``assert metadata.max_spec_len <= MAX_SPEC_LEN`` in ``RejectionSampler.forward``."""
    forward = tree.function(V1_SAMPLER, "RejectionSampler.forward")
    if forward is None:
        raise ValueError(f"no RejectionSampler in {V1_SAMPLER}")
    for statement in walk(forward, ast.Assert):
        test = statement.test
        if isinstance(test, ast.Compare) and ast.unparse(test.left).endswith(".max_spec_len"):
            if len(test.ops) == 1 and isinstance(test.ops[0], ast.LtE):
                side = test.comparators[0]
                bound = module_constant(tree, V1_SAMPLER, side.id) if isinstance(side, ast.Name) else literal(side)
                if isinstance(bound, int):
                    return bound
            raise ValueError("the bound of max_spec_len is not a number that is written there")
    return 0


def _batch_below_requests(tree: SourceTree) -> bool:
    """``if self.max_num_batched_tokens < self.max_num_seqs: raise`` in the scheduler's config."""
    file = tree.config_file("SchedulerConfig")
    cls = tree.class_(file, "SchedulerConfig") if file else None
    if cls is None:
        raise ValueError("no SchedulerConfig")
    return any(
        ast.unparse(branch.test) == "self.max_num_batched_tokens < self.max_num_seqs"
        and any(isinstance(statement, ast.Raise) for statement in branch.body)
        for branch in walk(cls, ast.If)
    )


# Slots that drafting takes of a batch


def _slots(tree: SourceTree) -> dict[str, Draws]:
    """The function is run for each method, with two numbers of draft tokens."""
    file = tree.config_file(CLASS)
    function = tree.function(file, f"{CLASS}.{SLOTS}") if file else None
    if file is None or function is None:
        return {}
    found: dict[str, Draws] = {}
    for method in METHODS:
        for parallel in (True,) if method in PARALLEL else (False, True):
            few, many = (
                _run(function.body, tree, file, {"method": method, "parallel_drafting": parallel, "k": k})
                for k in (5, 9)
            )
            words = {(0, 0): "0", (1, 1): "1", (5, 9): "k", (4, 8): "k-1"}.get((few, many))
            if words is None:
                raise ValueError(f"{SLOTS} gives {few} for 5 tokens of {method} and {many} for 9")
            if words != "0":
                key = f"{method}+parallel" if parallel and method not in PARALLEL else method
                found[key] = cast(Draws, words)
    return found


def _run(body: list[ast.stmt], tree: SourceTree, file: str, given: Mapping[str, object]) -> int:
    """What a function of whole numbers returns. ValueError for what this is not made for."""
    local: dict[str, object] = dict(given)

    def value(node: ast.expr) -> object:
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name) if name in local:
                return local[name]
            case ast.Attribute(value=ast.Name(id="self"), attr="num_speculative_tokens"):
                return local["k"]
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if attr in given:
                return given[attr]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr), args=[], keywords=[]):
                function = tree.function(file, f"{CLASS}.{attr}")
                last = function.body[-1] if function else None
                if isinstance(last, ast.Return) and last.value is not None:
                    return value(last.value)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                one, other = value(left), value(right)
                if isinstance(one, int) and isinstance(other, int):
                    return one + other if isinstance(op, ast.Add) else one - other
            case ast.BoolOp(op=op, values=parts):
                held = [bool(value(part)) for part in parts]
                return all(held) if isinstance(op, ast.And) else any(held)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not value(operand)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                return value(left) == value(right)
            case ast.Compare(left=left, ops=[ast.In()], comparators=[right]):
                return value(left) in cast(tuple[object, ...], literal(right) or ())
        raise ValueError(f"{SLOTS} hangs on {ast.unparse(node)}")

    def run(block: list[ast.stmt]) -> object:
        for node in block:
            match node:
                case ast.Return(value=ast.expr() as result):
                    return value(result)
                case ast.If(test=test, body=then, orelse=otherwise):
                    result_of = run(then if value(test) else otherwise)
                    if result_of is not None:
                        return result_of
                case ast.Assign(targets=[ast.Name(id=name)], value=assigned):
                    local[name] = value(assigned)
                case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=added):
                    local[name] = cast(int, local[name]) + cast(int, value(added))
                case ast.Expr():
                    pass
                case _:
                    raise ValueError(f"{SLOTS} has a {type(node).__name__}")
        return None

    result = run(body)
    if not isinstance(result, int):
        raise ValueError(f"{SLOTS} gives no number")
    return result


def _held(tree: SourceTree) -> Literal["each", "once", "none"]:
    """Of newer releases by the product with max_num_seqs; where a batch must only be larger, it is compared as is."""
    file = tree.config_file("VllmConfig")
    function = tree.function(file, HELD) if file else None
    if function is None:
        return "none"
    named = {SLOTS}
    for node in walk(function, ast.Assign):
        if SLOTS in ast.unparse(node.value):
            product = [b for b in walk(node.value, ast.BinOp) if isinstance(b.op, ast.Mult)]
            if product:
                return "each" if "max_num_seqs" in ast.unparse(product[0]) else "once"
            named.add(dotted(node.targets[0]) or SLOTS)
    for compare in walk(function, ast.Compare):
        if isinstance(compare.ops[0], ast.LtE) and any(name in ast.unparse(compare.comparators[0]) for name in named):
            return "once"
    return "none"


# The V2 runner's draft pass


def _uncapped_rows(tree: SourceTree) -> dict[str, str]:
    runner = tree.function(f"{V2}/model_runner.py", "_dummy_run")
    found: dict[str, str] = {}
    for method in PARALLEL:
        rows = _rows(tree, f"{V2_DRAFTERS}/{method}/speculator.py")
        if rows:
            found[method] = rows
    if found and runner is None:
        raise ValueError(f"no _dummy_run in {V2}/model_runner.py")
    if runner is not None and "num_query_per_req" in ast.unparse(runner):
        return {}  # the warm-up takes no more requests than there is room for
    return found


def _rows(tree: SourceTree, file: str) -> str:
    """The least that a drafter assigns to ``num_query_per_req``, "" where it does not."""
    module = tree.module(file)
    found = set()
    for node in walk(module, ast.Assign) if module else ():
        if dotted(node.targets[0]) == "self.num_query_per_req":
            text = ast.unparse(node.value)
            terms = {"self.num_speculative_steps": "k", "1 + self.num_speculative_steps": "k+1"}
            if text not in terms:
                raise ValueError(f"{file}:{node.lineno}: {text} is not understood")
            found.add(terms[text])
    return min(found, default="")


# CUDA graphs


def _captures(tree: SourceTree) -> Captures:
    """By ``min(max_num_seqs * … * 2, 512)``, which stands where the sizes are made or with the scheduler's fields."""
    vllm, scheduler = (tree.config_file(cls) for cls in ("VllmConfig", "SchedulerConfig"))
    places = [(vllm, "VllmConfig._set_cudagraph_sizes"), (scheduler, "SchedulerConfig.__post_init__")]
    for file, name in places:
        function = tree.function(file, name) if file else None
        for call in walk(function, ast.Call) if function else ():
            if dotted(call.func) == "min" and len(call.args) == 2:
                product, limit = call.args
                words = ast.unparse(product)
                if "max_num_seqs" in words and words.endswith("* 2") and function is not None:
                    counted = "decode_query_len" in words
                    return Captures(
                        per_seq="2*(k+1)" if counted else "2",
                        ceiling=_limit(function, limit, -1),
                        ceiling_100=_limit(function, limit, 0),
                        wide=_is_wide(tree, vllm),
                        rounded=any(
                            tree.function(home, "adjust_cudagraph_sizes_for_spec_decode") is not None
                            for home in ("config/compilation.py", vllm)
                            if home
                        ),
                    )
    raise ValueError("no min(max_num_seqs * 2, …) where sizes of CUDA graphs are made")


def _limit(function: ast.FunctionDef, node: ast.expr, way: int) -> int:
    """A number, or one of the two that a platform chooses among: the first (0), or the last (-1)."""
    if isinstance(node, ast.Name):
        values = [a.value for a in walk(function, ast.Assign) if dotted(a.targets[0]) == node.id]
        node = values[0] if len(values) == 1 else node
    if isinstance(node, ast.IfExp) and "is_device_capability_family(100)" in ast.unparse(node.test):
        node = (node.body, node.orelse)[way]
    number = literal(node)
    if not isinstance(number, int):
        raise ValueError(f"{ast.unparse(node)} is no number")
    return number


def _is_wide(tree: SourceTree, file: str | None) -> bool:
    """Whether the sizes from 256 on are multiples of 16."""
    function = tree.function(file, "VllmConfig._set_cudagraph_sizes") if file else None
    ranges = [c for c in walk(function, ast.Call) if dotted(c.func) == "range"] if function else []
    return any(len(each.args) == 3 and literal(each.args[2]) == 16 for each in ranges)


# Steps of a draft of several layers


def _steps_numbered(tree: SourceTree) -> tuple[str, ...]:
    if tree.module(V1_RUNNER) is None:
        raise ValueError(f"no {V1_RUNNER}")
    shared = [f"{V1_PROPOSERS}/{name}" for name in ("llm_base_proposer.py", "eagle.py")]
    second = [file for file in tree.files(V2_DRAFTERS) if tree.module(file)]
    found = {"V1": any(_numbers(tree, file) for file in shared), "V2": any(_numbers(tree, file) for file in second)}
    return tuple(runner for runner, numbered in found.items() if numbered)


def _numbers(tree: SourceTree, file: str) -> bool:
    """Whether a drafter hands its model the number of the step."""
    module = tree.module(file)
    if module is None or STEP not in (tree.text(file) or ""):
        return False
    as_keyword = any(keyword.arg == STEP for call in walk(module, ast.Call) for keyword in call.keywords)
    as_key = any(literal(node.slice) == STEP for node in walk(module, ast.Subscript))
    return as_keyword or as_key


def _steps_by_type(tree: SourceTree) -> Iterator[str]:
    """Proposers of the V1 runner that are made for one model type: ``step3p5.py`` for step3p5_mtp."""
    for file in tree.files(V1_PROPOSERS):
        name = file.rpartition("/")[2].removesuffix(".py")
        if name not in {"llm_base_proposer", "eagle"} and _numbers(tree, file):
            yield f"{name}_mtp"
