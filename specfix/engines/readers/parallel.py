"""Read what a draft does on several devices: pipeline, tensor, context, data and expert parallelism."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.numbers import ParallelFacts
from specfix.engines.readers.section import Section
from specfix.engines.source.classes import Classes, Lineage
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

V1_RUNNER: Final = "v1/worker/gpu_model_runner.py"
V2_RUNNER: Final = "v1/worker/gpu/model_runner.py"
DRAFT_MODEL: Final = "v1/spec_decode/draft_model.py"
CONTEXT: Final = "v1/worker/cp_utils.py"
BALANCER: Final = "distributed/eplb/eplb_state.py"
INTERLEAVES: Final = "supports_mtp_with_cp_non_trivial_interleave_size"
STAGES: Final = "intermediate_tensors"


def read_parallel(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts) -> ParallelFacts:
    read = Section("parallel", tree, unknown).read
    unpipelined, balanced = _classes(tree, unknown, methods)
    return ParallelFacts(
        draft_pipelined=read("draft_pipelined", _draft_pipelined),
        one_token_broadcast=read("one_token_broadcast", _one_token_broadcast),
        unpipelined=unpipelined,
        draft_tp_refused=read("draft_tp_refused", _draft_tp_refused),
        draft_tp_same=read("draft_tp_same", _draft_tp_same),
        draft_tp_heeded=read("draft_tp_heeded", _draft_tp_heeded),
        interleave_checked=INTERLEAVES in (tree.text(CONTEXT) or ""),
        interleaving=tuple(_interleaving(tree)),
        connector_interleaves=_connector_interleaves(tree),
        shards_drafts=read("shards_drafts", _shards_drafts),
        ranks_wait=read("ranks_wait", _ranks_wait),
        dynamic_off=read("dynamic_off", _dynamic_off),
        balanced=balanced,
        same_experts=_same_experts(tree),
        one_balanced=_one_balanced(tree),
        experts_needed=read("experts_needed", _experts_needed),
        ranks_counted=read("ranks_counted", _ranks_counted),
    )


# Devices


def _ranks_counted(tree: SourceTree) -> bool:
    """``if … device_count() < self.world_size: … raise``; earlier releases turn to Ray there, where it is installed."""
    file = tree.config_file("ParallelConfig")
    module = tree.module(file) if file else None
    for branch in walk(module, ast.If) if module else ():
        compared = [
            "".join(map(ast.unparse, [each.left, *each.comparators])) for each in walk(branch.test, ast.Compare)
        ]
        if any("device_count" in text and "world_size" in text for text in compared):
            return any(isinstance(statement, ast.Raise) for statement in branch.body)
    raise ValueError("ParallelConfig compares no world_size with a number of devices")


# Expert parallelism


def _experts_needed(tree: SourceTree) -> bool:
    """``verify_with_parallel_config`` asks for experts where there is expert parallelism."""
    file = tree.config_file("ModelConfig")
    stage = tree.function(file, "ModelConfig.verify_with_parallel_config") if file else None
    if file is None or stage is None:
        raise ValueError("no verify_with_parallel_config in ModelConfig")
    for branch in walk(stage, ast.If):
        if (dotted(branch.test) or "").endswith("enable_expert_parallel"):
            names = [(dotted(call.func) or "").removeprefix("self.") for call in walk(branch, ast.Call)]
            called = [found for name in names if (found := tree.function(file, f"ModelConfig.{name}"))]
            return any(list(walk(function, ast.Raise)) for function in called)
    return False


# Pipeline stages


def _speculative(tree: SourceTree, name: str) -> ast.FunctionDef:
    file = tree.config_file("SpeculativeConfig")
    function = tree.function(file, f"SpeculativeConfig.{name}") if file else None
    if function is None:
        raise ValueError(f"no {name} in SpeculativeConfig")
    return function


def _draft_pipelined(tree: SourceTree) -> bool:
    """``create_draft_parallel_config`` gives the draft the target's number of stages, or one."""
    function = _speculative(tree, "create_draft_parallel_config")
    for call in walk(function, ast.Call):
        for keyword in call.keywords:
            if keyword.arg == "pipeline_parallel_size":
                return literal(keyword.value) != 1
    raise ValueError("create_draft_parallel_config sets no pipeline_parallel_size")


def _one_token_broadcast(tree: SourceTree) -> bool:
    module = tree.module(V1_RUNNER)
    if module is None:
        raise ValueError(f"no {V1_RUNNER}")
    functions = [f for f in walk(module, ast.FunctionDef) if f.name == "_pp_broadcast_prev_sampled_token_ids"]
    return any(
        "shape[-1] == 1" in ast.unparse(each.test) for function in functions for each in walk(function, ast.Assert)
    )


def _classes(
    tree: SourceTree, unknown: dict[str, str], methods: MethodFacts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Architectures that do not support stages, and drafts whose experts can be balanced."""
    classes = Classes(tree)
    unpipelined = []
    balanced = []
    for architecture, path in sorted(methods.architectures.items()):
        lineages = [None if cls is None else classes.lineage(cls) for cls in classes.at(path)]
        if not lineages or not all(lineage is not None and lineage.complete for lineage in lineages):
            unknown[f"parallel.unpipelined.{architecture}"] = "its class or a base of it could not be followed"
            continue
        experts = any(cls.name == "MixtureOfExperts" for each in lineages if each for cls in each.classes)
        if experts and architecture in methods.drafts:
            balanced.append(architecture)
        answers = {_is_pipelined(lineage) for lineage in lineages if lineage is not None}
        if len(answers) > 1:
            unknown[f"parallel.unpipelined.{architecture}"] = "platforms have classes of their own"
        elif not answers.pop():
            unpipelined.append(architecture)
    return tuple(unpipelined), tuple(balanced)


def _is_pipelined(lineage: Lineage) -> bool:
    """``supports_pp`` of models/interfaces.py: the mark, what makes empty tensors, and a forward that takes them."""
    mark = lineage.find("supports_pp")
    forward = lineage.method("forward")
    marked = mark is not None and literal(getattr(mark[1], "value", None)) is True
    if not marked or forward is None or lineage.find("make_empty_intermediate_tensors") is None:
        return False
    arguments = forward[1].args
    named = [each.arg for each in (*arguments.args, *arguments.kwonlyargs)]
    return STAGES in named or arguments.kwarg is not None


# Tensor parallel size of the draft


def _draft_tp_refused(tree: SourceTree) -> bool:
    function = _speculative(tree, "_verify_and_get_draft_tp")
    tests = [test for node in walk(function, ast.If) if any(walk(node, ast.Raise)) for test in walk(node, ast.Compare)]
    return any(isinstance(test.ops[0], ast.NotIn) for test in tests)


def _draft_tp_same(tree: SourceTree) -> tuple[str, ...]:
    module = tree.module(DRAFT_MODEL)
    for function in walk(module, ast.FunctionDef) if module else ():
        raises = any(any(walk(node, ast.Raise)) for node in walk(function, ast.If))
        if raises and "draft_parallel_config.tensor_parallel_size" in ast.unparse(function):
            return ("draft_model",)
    return ()


def _draft_tp_heeded(tree: SourceTree) -> tuple[str, ...]:
    found = set()
    for file in tree.files("v1"):
        if "draft_parallel_config" in (tree.text(file) or ""):
            path = file.removeprefix("v1/")
            own = "standalone" in path or "draft_model" in path or path == "spec_decode/utils.py"
            found.add("dspark" if "dspark" in path else "draft_model" if own else "")
    return tuple(sorted(found))


# Context parallelism


def _interleaving(tree: SourceTree) -> Iterator[str]:
    for file in tree.files("v1/attention"):
        module = tree.module(file) if INTERLEAVES in (tree.text(file) or "") else None
        for cls in walk(module, ast.ClassDef) if module else ():
            for node in cls.body:
                target = getattr(node, "target", None) or (node.targets[0] if isinstance(node, ast.Assign) else None)
                named = isinstance(target, ast.Name) and target.id == INTERLEAVES
                if named and literal(getattr(node, "value", None)) is True:
                    yield cls.name


def _connector_interleaves(tree: SourceTree) -> bool:
    """The size that the user left alone is set to that of a block once the workers know it."""
    file = tree.config_file("VllmConfig")
    function = tree.function(file, "VllmConfig.adjust_dcp_kv_cache_interleave_size") if file else None
    return function is not None and any(
        (dotted(node.targets[0]) or "").endswith(".cp_kv_cache_interleave_size") and isinstance(node.value, ast.Name)
        for node in walk(function, ast.Assign)
    )


def _shards_drafts(tree: SourceTree) -> tuple[str, ...]:
    """Runners whose block tables know of ranks of context parallelism, and that keep no whole cache for a draft."""
    found = []
    runners = {"V1": ("v1/worker/block_table.py", V1_RUNNER), "V2": ("v1/worker/gpu/block_table.py", V2_RUNNER)}
    for name, (table, runner) in runners.items():
        text = tree.text(table) or ""
        sharded = "dcp_world_size" in text or "cp_size" in text
        module = tree.module(runner) if sharded else None
        whole = any(
            keyword.arg == "dcp_sharded" and literal(keyword.value) is False
            for call in (walk(module, ast.Call) if module else ())
            for keyword in call.keywords
        )
        if sharded and not whole:
            found.append(name)
    return tuple(found)


# Data and expert parallelism


def _ranks_wait(tree: SourceTree) -> bool:
    """Where a rank's sequences do not fit, it runs the drafter on a dummy."""
    module = tree.module(V1_RUNNER)
    if module is None:
        raise ValueError(f"no {V1_RUNNER}")
    for node in walk(module, ast.If):
        if "data_parallel_size" in ast.unparse(node.test):
            for call in walk(node, ast.Call):
                if (dotted(call.func) or "") == "self.drafter.dummy_run" and call.lineno >= node.lineno:
                    return "num_tokens=1" in ast.unparse(call)
    return False


def _dynamic_off(tree: SourceTree) -> bool:
    file = tree.config_file("VllmConfig")
    module = tree.module(file) if file else None
    key = "num_speculative_tokens_per_batch_size"
    for function in walk(module, ast.FunctionDef) if module else ():
        takes_away = any(
            (dotted(node.targets[0]) or "").endswith(key) and literal(node.value) is None
            for node in walk(function, ast.Assign)
        )
        if takes_away and "data_parallel_size" in ast.unparse(function):
            return True
    return False


def _same_experts(tree: SourceTree) -> bool:
    module = tree.module(BALANCER)
    for node in walk(module, ast.If) if module else ():
        words = ast.unparse(node.test)
        if words.count("num_routed_experts") >= 2 and "!=" in words and any(walk(node, ast.Raise)):
            return True
    return False


def _one_balanced(tree: SourceTree) -> bool:
    """EplbState holds one model, and expert layers turn balancing on by the parallel config, a draft's too."""
    module = tree.module(BALANCER)
    if module is None or "model_states" in (tree.text(BALANCER) or ""):
        return False
    layers = tree.module("model_executor/models/deepseek_v2.py")
    return layers is not None and any(
        dotted(node.targets[0]) == "self.enable_eplb" and "parallel_config.enable_eplb" in ast.unparse(node.value)
        for node in walk(layers, ast.Assign)
    )
