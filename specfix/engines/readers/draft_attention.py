"""Read how a release chooses attention for a draft, and what a proposer or a connector makes of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from specfix.engines.facts.backends import DraftAttention
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

# the file that holds what the V1 runner's proposers share: the newer name first
PROPOSERS = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")
V2_DRAFTERS = "v1/worker/gpu/spec_decode"
KEY = "attention_backend"
CONNECTOR = "v1/worker/kv_connector_model_runner_mixin.py"
FLASHINFER = ("v1/attention/backends/flashinfer.py", "get_cudagraph_support")
TRTLLM = ("utils/flashinfer.py", "supports_trtllm_attention")
CAPABILITY = {"is_device_capability", "is_device_capability_family"}


def read_draft_attention(tree: SourceTree) -> DraftAttention:
    return DraftAttention(
        own=dict(_own(tree)),
        chained={platform: tuple(names) for platform, names in _chained(tree).items() if names},
        flashinfer_graphs=_graphs(tree),
        connector_waits=_connector_waits(tree),
        one_group=_one_group(tree),
    )


def _own(tree: SourceTree) -> Iterator[tuple[str, bool]]:
    """Runner, or runner and folder of a drafter, to whether what loads the draft puts ``attention_backend`` of the
    speculative config in the place of the target's."""
    for file in PROPOSERS:
        module = tree.module(file)
        if module is not None and tree.class_(file, _proposer(module)):
            yield "V1", _reads_key(module)
            break
    found: dict[str, bool] = {}
    for file in tree.files(V2_DRAFTERS):
        name = file.removeprefix(f"{V2_DRAFTERS}/").rpartition("/")[0].replace("/", ".")
        module = tree.module(file)
        if name and module is not None and any(_is_load(call) for call in walk(module, ast.Call)):
            found[name] = found.get(name, False) or _reads_key(module)
    yield from ((f"V2.{name}", own) for name, own in found.items())


def _proposer(module: ast.Module) -> str:
    """The proposer that all others extend."""
    names = [node.name for node in walk(module, ast.ClassDef)]
    return next((name for name in names if name in {"SpecDecodeBaseProposer", "EagleProposer"}), "")


def _is_load(call: ast.Call) -> bool:
    return (dotted(call.func) or "").rpartition(".")[2] == "get_model"


def _reads_key(module: ast.Module) -> bool:
    return any(node.attr == KEY for node in walk(module, ast.Attribute))


def _chained(tree: SourceTree) -> dict[str, list[str]]:
    """Names of metadata classes in the test that stands before the second draft token, by platform: in an assertion,
    or in the list that a test asks for."""
    found: dict[str, list[str]] = {"cuda": [], "rocm": []}
    for file in PROPOSERS:
        module = tree.module(file)
        if module is None or not _proposer(module):
            continue
        branches = [
            branch for branch in walk(module, ast.If) if "current_platform.is_rocm()" in ast.unparse(branch.test)
        ]
        for branch in branches:
            found["rocm"] += _metadata(branch.body)
            found["cuda"] += _metadata(branch.orelse)
        if not branches:
            both = [each for each in walk(module, ast.Assert) if "isinstance(attn_metadata" in ast.unparse(each.test)]
            found["rocm"] += _metadata(both)
            found["cuda"] += _metadata(both)
        break
    return {platform: list(dict.fromkeys(names)) for platform, names in found.items()}


def _metadata(body: Iterable[ast.stmt]) -> list[str]:
    return re.findall(r"\b\w+Metadata\b", ast.unparse(ast.Module(list(body), [])))


def _graphs(tree: SourceTree) -> tuple[int, ...] | None:
    """Major compute capabilities for which FlashInfer captures a step with several tokens of a request whole."""
    support, supports = tree.function(*FLASHINFER), tree.function(*TRTLLM)
    if support is None or supports is None:
        return None
    text = ast.unparse(support)
    if "can_use_trtllm_attention" not in text or "UNIFORM_BATCH" not in text or "fa2" in text:
        return None
    without: set[int] = set()
    for branch in walk(support, ast.If):
        if branch.body and "UNIFORM_SINGLE_TOKEN_DECODE" in ast.unparse(branch.body[0]):
            if not isinstance(branch.test, ast.Call):
                continue  # a further condition: for some deployments alone
            without |= set(_capabilities(branch.test))
    return tuple(sorted(set(_capabilities(supports)) - without)) or None


def _capabilities(node: ast.AST) -> Iterator[int]:
    for call in walk(node, ast.Call):
        if (dotted(call.func) or "").rpartition(".")[2] in CAPABILITY and call.args:
            number = literal(call.args[0])
            if isinstance(number, int):
                yield number // 10


def _connector_waits(tree: SourceTree) -> bool | None:
    """Whether the runner can put off what ends a KV connector's step until the draft has run: an argument says so."""
    function = tree.function(CONNECTOR, "maybe_get_kv_connector_output")
    if function is None:
        return None
    return any(argument.arg in {"clear_metadata", "defer_finalize"} for argument in function.args.args)


def _one_group(tree: SourceTree) -> bool | None:
    """The proposer's test of the draft's groups asserts that there is one."""
    for file in PROPOSERS:
        module = tree.module(file)
        if module is not None and _proposer(module):
            function = tree.function(file, "validate_same_kv_cache_group")
            return function is not None and any(True for _ in walk(function, ast.Assert))
    return None
