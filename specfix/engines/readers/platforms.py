"""What a platform takes where the user says nothing: backends, types, batch sizes, and what it sets anyway."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final

from specfix.engines.compiled import Condition
from specfix.engines.facts.backends import PlatformFacts
from specfix.engines.facts.decisions import Step
from specfix.engines.readers.answers.ask import Answers
from specfix.engines.readers.answers.platform import PLATFORMS
from specfix.engines.readers.backends import class_paths, kv_cache_dtypes
from specfix.engines.readers.folding import both, negated, pruned, steps
from specfix.engines.readers.forced import read_forced
from specfix.engines.readers.old_backends import V1, choose
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree, dotted, find_function, walk

ARGUMENTS: Final = "engine/arg_utils.py"
INTERFACE: Final = "platforms/interface.py"
CHECK: Final = "check_and_update_config"
ASYNC: Final = "scheduler_config.async_scheduling"
UNSAID: Final[Condition] = ["is", ["name", ASYNC], ["const", None]]
BATCHES: Final = ("default_max_num_batched_tokens", "default_max_num_seqs")
# TPU is left out: it has no speculation, and is a plugin in newer releases
NAMES: Final = ("cuda", "rocm", "cpu", "xpu")


def read_platforms(tree: SourceTree, unknown: dict[str, str]) -> PlatformFacts:
    reader = _Reader(tree)
    there = [platform for platform in NAMES if tree.module(f"platforms/{platform}.py")]

    def each(fact: str, read: Callable[[str], tuple[Step, ...]]) -> dict[str, tuple[Step, ...] | None]:
        found: dict[str, tuple[Step, ...] | None] = {}
        for platform in there:
            try:
                found[platform] = read(platform)
            except ValueError as error:
                found[platform] = None
                unknown[f"platforms.{fact}.{platform}"] = str(error)
        return found

    def workers(platform: str) -> bool:
        try:
            return reader.batch(0, 2)(platform) != tokens[platform]
        except ValueError:
            return False

    tokens, seqs = (each(name.removeprefix("default_"), reader.batch(index)) for index, name in enumerate(BATCHES))
    facts = PlatformFacts(
        backends=each("backends", reader.backends),
        dtypes=each("dtypes", reader.dtypes),
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        per_worker=tuple(filter(workers, there)),
        forced={platform: read_forced(tree, f"platforms/{platform}.py", CHECK) for platform in there},
        async_scheduling=_async_scheduling(tree),
    )
    if not there:
        unknown["platforms.backends"] = "no module of a platform"
    return facts


def _async_scheduling(tree: SourceTree) -> tuple[Step, ...]:
    """The choices that are made where the field is not set, without what they have in common: that it is not set."""
    found = read_forced(tree, "config/vllm.py", "VllmConfig.__post_init__", only=ASYNC).get(ASYNC, ())
    parts = [step.when[1:] if step.when[0] == "and" else [step.when] for step in found]
    if not all(UNSAID in each for each in parts):
        return ()
    kept: list[Step] = []
    for step, each in zip(found, parts, strict=True):
        passed = [negated(earlier.when) for earlier in kept]  # a later choice is only made where no earlier one is
        own = [part for part in each if not all(part in other for other in parts) and part not in passed]
        kept.append(Step(both(own), step.then, step.line))
    return pruned(kept)


class _Reader:
    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        self._classes = Classes(tree)
        domains = {"kv_cache_dtype": kv_cache_dtypes(tree)}
        self._answers = Answers(tree, self._classes, known=V1, domains=domains)
        paths = class_paths(tree)
        self._names = {path: name for name, path in reversed(paths.items()) if path}

    def backends(self, platform: str) -> tuple[Step, ...]:
        """Of newer releases a list in the order of trying, else what is chosen where no name is given."""
        file = f"platforms/{platform}.py"
        tree = self._answers.function(file, "_get_backend_priorities", {})
        if tree is None:
            tree = choose(self._answers, platform, None)
        found = []
        for step in steps(tree, _line(self._tree, file, "_get_backend_priorities", "get_attn_backend_cls")):
            names = [step.then] if isinstance(step.then, str) else step.then
            named = None if names is None else [self._names.get(name, name) for name in names]
            found.append(Step(step.when, named, step.line))
        return tuple(found)

    def dtypes(self, platform: str) -> tuple[Step, ...]:
        for file in (f"platforms/{platform}.py", INTERFACE):
            tree = self._answers.function(file, "supported_dtypes", {})
            if tree is not None:
                return steps(tree, _line(self._tree, file, "supported_dtypes"))
        raise ValueError("no supported_dtypes")

    def batch(self, index: int, workers: int = 1) -> Callable[[str], tuple[Step, ...]]:
        """Reads one of the two defaults, for ``workers`` processes."""

        def read(platform: str) -> tuple[Step, ...]:
            tree, line = self._batches(platform, workers)
            found = steps(tree, line)
            if not all(isinstance(step.then, list) and len(step.then) == len(BATCHES) for step in found):
                raise ValueError("the defaults are no pair of tables")
            return pruned([Step(step.when, step.then[index], step.line) for step in found])

        return read

    def _batches(self, platform: str, workers: int) -> tuple[Condition, int]:
        known: dict[str, object] = {f"current_platform.is_{each}()": each == platform for each in PLATFORMS}
        known |= {"self.pipeline_parallel_size": 1, "self.tensor_parallel_size": workers}
        answers = Answers(self._tree, self._classes, known=known)
        tree = answers.function(ARGUMENTS, "get_batch_defaults", {"world_size": ["const", workers]})
        if tree is not None:
            return tree, _line(self._tree, ARGUMENTS, "get_batch_defaults")
        module = self._tree.module(ARGUMENTS)
        for function in walk(module, ast.FunctionDef) if module else ():
            body = _between(function, "device_memory", BATCHES[1])
            if body:
                pair = ast.Tuple([ast.Name(name, ast.Load()) for name in BATCHES], ast.Load())
                return answers.statements(ARGUMENTS, [*body, ast.Return(pair)], {}), function.lineno
        raise ValueError("no function for the defaults of a batch")


def _between(function: ast.FunctionDef, first: str, last: str) -> list[ast.stmt]:
    """The statements of a function from the one that first assigns one name to the last that assigns another."""
    starts = [i for i, statement in enumerate(function.body) if first in _assigned(statement)]
    ends = [i for i, statement in enumerate(function.body) if last in _assigned(statement)]
    return function.body[starts[0] : ends[-1] + 1] if starts and ends else []


def _assigned(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            yield dotted(target) or ""


def _line(tree: SourceTree, file: str, *names: str) -> int:
    module = tree.module(file)
    found = [function.lineno for name in names if module and (function := find_function(module, name))]
    return found[0] if found else 0
