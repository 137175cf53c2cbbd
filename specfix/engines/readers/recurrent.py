"""Read what a release does with recurrent layers while it speculates."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from specfix.engines.facts.drafting import MethodFacts
from specfix.engines.facts.recurrent import RecurrentFacts
from specfix.engines.source.classes import Classes
from specfix.engines.source.tree import SourceTree, config_homes, dotted, literal, walk

RUNNER = "v1/worker/gpu_model_runner.py"
LAYERS = "model_executor/layers/mamba/abstract.py"
SHAPES = "model_executor/layers/mamba/mamba_utils.py"
MIXER = "model_executor/layers/mamba/mamba_mixer2.py"
MODELS = "model_executor/models/config.py"
DELTA = "v1/attention/backends/gdn_attn.py"
ARGUMENTS = "engine/arg_utils.py"
CONFIGS = config_homes("model")

SHAPE = "mamba2_state_shape"
STATE = "get_mamba_state_shape_from_config"
CACHEABLE = "supports_mamba_prefix_caching"
MODE = "mamba_cache_mode"
EVENT = "num_accepted_tokens_event"


def read_recurrent(tree: SourceTree, methods: MethodFacts) -> RecurrentFacts:
    refusal = next(_refusals(tree), None)
    caching = _class_body(tree, "MambaModelConfig")
    cached = _cached(tree)
    cacheable = tuple(_bearing(tree, methods)) if caching is not None else ()
    return RecurrentFacts(
        refuses=refusal is not None,
        exempt=refusal or (),
        narrow=tuple(_narrow(tree, methods)),
        cached=False if caching is None else cached,
        caching=None if caching is None else _caching(caching),
        cacheable=cacheable,
        cached_mode=None if caching is None else _cached_mode(caching),
        align_refuses=caching is not None and _align_refuses(caching),
        all_drafts=_all_drafts(tree, caching),
        stale_without_drafts=_stale(tree),
        counts_raced=_raced(tree),
        size_needs_cache=_size_needs_cache(tree),
    )


def _size_needs_cache(tree: SourceTree) -> bool:
    """``if mamba_block_size_is_set and not ….enable_prefix_caching: raise`` where the whole config is validated."""
    file = tree.config_file("VllmConfig")
    cls = tree.class_(file, "VllmConfig") if file else None
    tests = (branch for branch in (walk(cls, ast.If) if cls else ()) if any(map(_is_raise, branch.body)))
    return any(
        "mamba_block_size" in text and "not self.cache_config.enable_prefix_caching" in text
        for text in (ast.unparse(branch.test) for branch in tests)
    )


def _is_raise(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Raise)


def _refusals(tree: SourceTree) -> Iterator[tuple[str, ...]]:
    """``if speculative_config is not None and model_type not in […]: raise`` where Mamba layers are given their cache;
    the model types."""
    for file in (LAYERS, RUNNER):
        module = tree.module(file)
        for branch in walk(module, ast.If) if module else ():
            raised = [each for each in branch.body if isinstance(each, ast.Raise)]
            if raised and "speculative_config" in ast.unparse(branch.test) and "Mamba" in ast.unparse(raised[0]):
                lists = [literal(node) for node in walk(branch.test, ast.List)]
                yield tuple(name for names in lists if isinstance(names, list) for name in names)


def _class_body(tree: SourceTree, name: str) -> ast.ClassDef | None:
    return tree.class_(MODELS, name)


def _cached(tree: SourceTree) -> bool | None:
    """The answer of ``is_prefix_caching_supported`` for a generating model whose ``attn_type`` is hybrid, but for a
    default that leaves hybrid ones out; before there was one, a model is cached unless its config class turns that
    off."""
    if _to_be_asked_for(tree):
        return False
    for file in CONFIGS:
        function = tree.function(file, "is_prefix_caching_supported")
        for branch in walk(function, ast.If) if function else ():
            if _asks_for(branch.test, "attn_type", "hybrid"):
                answers = [literal(each.value) for each in branch.body if isinstance(each, ast.Return)]
                return answers[0] if answers and isinstance(answers[0], bool) else None
        if function is not None:
            return None
    return True


def _to_be_asked_for(tree: SourceTree) -> bool:
    """Whether the default is ``… and not model_config.is_hybrid``."""
    module = tree.module(ARGUMENTS)
    return any(
        "default_prefix_caching" in map(dotted, each.targets)
        and isinstance(each.value, ast.BoolOp)
        and isinstance(each.value.op, ast.And)
        and any(
            isinstance(part, ast.UnaryOp)
            and isinstance(part.op, ast.Not)
            and (dotted(part.operand) or "").endswith(".is_hybrid")
            for part in each.value.values
        )
        for each in (walk(module, ast.Assign) if module else ())
    )


def _asks_for(test: ast.expr, name: str, value: str) -> bool:
    return (
        isinstance(test, ast.Compare)
        and (dotted(test.left) or "").rpartition(".")[2] == name
        and isinstance(test.ops[0], ast.Eq)
        and literal(test.comparators[0]) == value
    )


def _caching(node: ast.ClassDef) -> str | None:
    """Who is cached, by where ``enable_prefix_caching`` is set to False."""
    off = [
        each
        for each in walk(node, ast.Assign)
        if (dotted(each.targets[0]) or "").endswith("enable_prefix_caching") and literal(each.value) is False
    ]
    if not off:
        return "all"
    for branch in walk(node, ast.If):
        if any(CACHEABLE in ast.unparse(test) for test in (branch.test,)) and any(
            one in list(walk(branch, ast.Assign)) for one in off
        ):
            return "some"
    return "none"


def _cached_mode(node: ast.ClassDef) -> str | None:
    """What a mode of "none" becomes for those that say they can be cached, with speculation: in some releases
    ``"all" if model_config.supports_mamba_prefix_caching else "align"``, in some "align" where anything is speculated;
    "all" too where there are no modes yet."""
    if MODE not in ast.unparse(node):
        return "all"
    for branch in walk(node, ast.If):
        if not _asks_for(branch.test, MODE, "none"):
            continue
        values = [each.value for each in walk(branch, ast.Assign) if (dotted(each.targets[0]) or "").endswith(MODE)]
        drafting = [inner for inner in walk(branch, ast.If) if "speculative_config" in ast.unparse(inner.test)]
        if drafting:
            values = [each.value for each in walk(ast.Module(drafting[0].body, []), ast.Assign)]
        for value in values:
            chosen = literal(value.body if isinstance(value, ast.IfExp) else value)
            if isinstance(chosen, str):
                return chosen
    return None


def _align_refuses(node: ast.ClassDef) -> bool:
    """``assert not vllm_config.speculative_config`` where the mode is "align"."""
    return any(
        _asks_for(branch.test, MODE, "align")
        and any("speculative_config" in ast.unparse(each.test) for each in walk(branch, ast.Assert))
        for branch in walk(node, ast.If)
    )


def _bearing(tree: SourceTree, methods: MethodFacts) -> Iterator[str]:
    classes = Classes(tree)
    for architecture, path in sorted(methods.architectures.items()):
        lineages = [classes.lineage(cls) for cls in classes.at(path) if cls is not None]
        marks = [lineage.find(CACHEABLE) for lineage in lineages]
        if any(literal(getattr(mark[1], "value", None)) is True for mark in marks if mark):
            yield architecture


def _narrow(tree: SourceTree, methods: MethodFacts) -> Iterator[str]:
    """Classes that leave ``num_spec`` out of what plans the page, where the layers pass it."""
    shape = tree.function(SHAPES, SHAPE)
    takes = shape is not None and any(argument.arg == "num_spec" for argument in shape.args.args)
    if not takes or not _passes(_calls(tree.module(MIXER))):
        return
    classes = Classes(tree)
    for architecture, path in sorted(methods.architectures.items()):
        for cls in classes.at(path):
            method = classes.lineage(cls).method(STATE) if cls is not None else None
            calls = list(_calls(method[1])) if method else []
            if calls and not _passes(calls):
                yield architecture
                break


def _calls(node: ast.AST | None) -> Iterator[ast.Call]:
    for call in walk(node, ast.Call) if node is not None else ():
        if (dotted(call.func) or "").rpartition(".")[2] == SHAPE:
            yield call


def _passes(calls: Iterable[ast.Call]) -> bool:
    return any(keyword.arg == "num_spec" for call in calls for keyword in call.keywords)


def _all_drafts(tree: SourceTree, caching: ast.ClassDef | None) -> bool | None:
    """Whether the runner asks for the mode "all": what it then does is done for drafts alone. None where no class can
    have that mode."""
    if caching is None or MODE not in ast.unparse(caching) or not _allows_all(caching):
        return None
    module = tree.module(RUNNER)
    return any(_asks_for(test, MODE, "all") for test in (walk(module, ast.Compare) if module else ()))


def _allows_all(node: ast.ClassDef) -> bool:
    return any(literal(each) == "all" for each in walk(node, ast.Constant))


def _stale(tree: SourceTree) -> bool | None:
    """Rows without drafts take the path of plain decoding, which reads the first column: where the whole batch has no
    draft (``num_decode_draft_tokens…sum() == 0``), or where the runner leaves such rows at -1."""
    module = tree.module(DELTA)
    if module is None:
        return None
    arguments = {argument.arg for argument in walk(module, ast.arg)}
    if "num_accepted_tokens" not in arguments or "num_decode_draft_tokens_cpu" not in arguments:
        return None  # an older way of telling rows with drafts from rows without
    return any(
        "num_decode_draft_tokens" in ast.unparse(test.left)
        and ".sum()" in ast.unparse(test.left)
        and literal(test.comparators[0]) == 0
        for test in walk(module, ast.Compare)
    )


def _raced(tree: SourceTree) -> bool | None:
    """The mode "align" records the event after a copy that does not block, ``_prepare_inputs`` gathers the counts by
    the rows' former places, and nothing waits for the event before rows move (``_update_states``)."""
    prepare, update = tree.function(RUNNER, "_prepare_inputs"), tree.function(RUNNER, "_update_states")
    after = tree.function(RUNNER, "_update_states_after_model_execute")
    if prepare is None or update is None or after is None:
        return None
    gathers = "num_accepted_tokens_cpu[" in ast.unparse(prepare) and "prev_positions" in ast.unparse(prepare)
    records = any(
        f"{EVENT}.record" in ast.unparse(ast.Module(branch.body, []))
        for branch in walk(after, ast.If)
        if _asks_for(branch.test, MODE, "align")
    )
    waits = f"{EVENT}.synchronize" in ast.unparse(update)
    return gathers and records and not waits
