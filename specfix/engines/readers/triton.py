"""When Triton counts as there on a CPU host, and whether the sampler then uses it."""

from __future__ import annotations

import ast

from specfix.engines.facts.hardware import TritonFacts
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

IMPORTING = "triton_utils/importing.py"
SAMPLER = "v1/sample/ops/topk_topp_sampler.py"
FLAG = "HAS_TRITON"


def read_triton(tree: SourceTree, unknown: dict[str, str]) -> TritonFacts:
    module = tree.module(IMPORTING)
    if module is None:
        unknown["triton.empty_devices_forgives"] = unknown["triton.cpu_backend"] = f"no {IMPORTING}"
    cpu_backend = None if module is None else _asks_for_cpu_backend(module)
    sampler = tree.function(SAMPLER, "apply_top_k_top_p")
    if sampler is None:
        for fact in ("sampler_min_rows", "sampler_checks_platform"):
            unknown[f"triton.{fact}"] = f"no apply_top_k_top_p in {SAMPLER}"
    return TritonFacts(
        empty_devices_forgives=None if module is None else _forgives(module) and not cpu_backend,
        sampler_min_rows=None if sampler is None else _min_rows(sampler.body),
        sampler_checks_platform=None if sampler is None else _asks_first(sampler),
        cpu_backend=cpu_backend,
    )


def _asks_for_cpu_backend(module: ast.Module) -> bool:
    """``if "cpu" in backends: … else: HAS_TRITON = False``: without such a backend no other excuse counts."""
    return any(
        isinstance(branch.test, ast.Compare)
        and isinstance(branch.test.ops[0], ast.In)
        and literal(branch.test.left) == "cpu"
        and any(_switches_off(statement) for statement in branch.orelse)
        for branch in walk(module, ast.If)
    )


def _forgives(module: ast.Module) -> bool:
    """No active driver and yet no ``HAS_TRITON = False``, since the variable is set and empty."""
    empty = {
        target.id
        for node in walk(module, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and "strip()" in ast.unparse(node.value)
    }
    for branch in walk(module, ast.If):
        names = {node.id for node in walk(branch.test, ast.Name)}
        negated = {dotted(node.operand) for node in walk(branch.test, ast.UnaryOp)}
        if names & empty - negated and not any(_switches_off(statement) for statement in branch.body):
            return True
    return False


def _switches_off(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign) and dotted(statement.targets[0]) == FLAG and literal(statement.value) is False
    )


def _asks_first(sampler: ast.FunctionDef) -> bool:
    """Whether the platform is asked for before the Triton kernel is called."""
    lines: dict[bool, list[int]] = {True: [], False: []}
    for call in walk(sampler, ast.Call):
        name = dotted(call.func) or ""
        if ".is_" in name or "triton" in name:
            lines["triton" in name].append(call.lineno)
    return bool(lines[False]) and min(lines[False]) < min(lines[True], default=1 << 30)


def _min_rows(body: list[ast.stmt]) -> int | None:
    """Rows from which a CPU host with HAS_TRITON comes to the Triton kernel; None where it returns before."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return 1 if statement.value is not None and "triton" in ast.unparse(statement.value) else None
        if not isinstance(statement, ast.If):
            continue
        holds, rows = _on_cpu(statement.test)
        if holds is False:
            continue
        inner = _min_rows(statement.body)
        if inner is not None:
            return max(inner, rows)
        if holds and rows == 1 and any(isinstance(each, ast.Return) for each in statement.body):
            return None
    return None


def _on_cpu(test: ast.expr) -> tuple[bool | None, int]:
    """Whether a test holds there, and the number of rows that it asks for."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = [_on_cpu(part) for part in test.values]
        values = {holds for holds, _ in parts}
        holds = False if False in values else None if None in values else True
        return holds, max(rows for _, rows in parts)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        holds, rows = _on_cpu(test.operand)
        return None if holds is None else not holds, rows
    if dotted(test) == FLAG:
        return True, 1
    if isinstance(test, ast.Call) and ".is_" in (name := dotted(test.func) or ""):
        return name.endswith(".is_cpu"), 1
    if isinstance(test, ast.Compare) and "shape[0]" in ast.unparse(test.left):
        limit = literal(test.comparators[0])
        if isinstance(limit, int) and isinstance(test.ops[0], ast.GtE | ast.Gt):
            return True, limit + isinstance(test.ops[0], ast.Gt)
    return None, 1
