"""What the runners give a draft of the target's own, how they load it, and where they look for its mask token."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from specfix.engines.facts.drafting import Borrowing
from specfix.engines.source.tree import SourceTree, dotted, literal, walk

V1_FILES = ("v1/spec_decode/llm_base_proposer.py", "v1/spec_decode/eagle.py")
V2_FOLDER = "v1/worker/gpu/spec_decode"
MAPPING = "draft_id_to_target_id"


def read_load_config(tree: SourceTree) -> dict[str, bool]:
    """Runner to whether it loads a drafting head by ``draft_load_config``."""
    v2 = tuple(file for file in tree.files(V2_FOLDER) if file.startswith((f"{V2_FOLDER}/eagle", f"{V2_FOLDER}/dflash")))
    found = {}
    for runner, files in (("V1", V1_FILES), ("V2", v2)):
        texts = [text for file in files if (text := tree.text(file)) and "get_model(" in text]
        if texts:
            found[runner] = any("draft_load_config" in text for text in texts)
    return found


def read_mask_places(tree: SourceTree) -> dict[str, tuple[str, ...]]:
    """Runner to where it looks for the id of the token that stands for what a parallel drafter is to draft."""
    found: dict[str, tuple[str, ...]] = {}
    v2 = [file for file in tree.files(V2_FOLDER) if "mask_token_id" in (tree.text(file) or "")]
    for runner, files in (("V1", V1_FILES), ("V2", v2)):
        for file in files:
            module = tree.module(file)
            for function in walk(module, ast.FunctionDef) if module else ():
                places = tuple(_mask_places(function))
                if len(places) > 1 and any(True for _ in walk(function, ast.Raise)):
                    found.setdefault(runner, places)
    return found


def _mask_places(function: ast.FunctionDef) -> Iterator[str]:
    """``"mask_token_id" in dflash_config``, ``hasattr(config, "pard_token")``, in the order of writing."""
    for node in sorted(walk(function, ast.If), key=lambda each: each.lineno):
        for test in walk(node.test, ast.Compare):
            key, block = literal(test.left), dotted(test.comparators[0])
            if isinstance(test.ops[0], ast.In) and isinstance(key, str) and block and key.endswith("token_id"):
                yield f"{block.rpartition('.')[2]}.{key}"
        for call in walk(node.test, ast.Call):
            if dotted(call.func) in {"hasattr", "getattr"} and len(call.args) > 1:
                key = literal(call.args[1])
                if isinstance(key, str) and key.endswith(("token_id", "_token")):
                    yield key


def read_borrowing(tree: SourceTree) -> dict[str, Borrowing]:
    """By runner, and by runner and method ("V2 dflash") where a method has a loader of its own."""
    found: dict[str, Borrowing] = {}
    for file in V1_FILES:
        made = _borrowing(tree.module(file))
        if made:
            found.setdefault("V1", made)
    files = {f.removeprefix(f"{V2_FOLDER}/"): f for f in tree.files(V2_FOLDER)} if tree.package.is_dir() else {}
    for name, runner in (("eagle/utils.py", "V2"), ("eagle.py", "V2")):
        made = _borrowing(tree.module(files[name])) if name in files else None
        if made:
            found.setdefault(runner, made)
    for method in ("dflash", "dspark"):
        name = f"{method}/utils.py"
        made = _borrowing(tree.module(files[name])) if name in files else None
        general = found.get("V2")
        if made:
            embeddings = made.embeddings or (general.embeddings if general else None)
            found[f"V2 {method}"] = Borrowing(embeddings, made.lm_head)
    return found


def _borrowing(module: ast.Module | None) -> Borrowing | None:
    if module is None:
        return None
    embeddings = lm_head = None
    for function in walk(module, ast.FunctionDef):
        targets = {target for node in walk(function, ast.Assign) for target in map(_attribute, node.targets) if target}
        text = ast.unparse(function)
        if "embed_tokens" in targets:
            embeddings = _embeddings(function, text)
        if "lm_head" in targets:
            lm_head = _lm_head(function, text)
    return Borrowing(embeddings, lm_head) if lm_head else None


def _attribute(target: ast.expr) -> str:
    """``lm_head`` of ``draft.lm_head``, not of ``self.lm_head``, which is no model's."""
    name = dotted(target) or ""
    return "" if name.count(".") == 1 and name.startswith("self.") else name.rpartition(".")[2] if "." in name else ""


def _embeddings(function: ast.FunctionDef, text: str) -> Any:
    if "has_own_embed_tokens" in text:
        widths = {
            target.id
            for node in walk(function, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and ast.unparse(node.value).endswith(".weight.shape[-1]")
        }
        for test in walk(function, ast.Compare):
            names = {name.id for name in walk(test, ast.Name)}
            if isinstance(test.ops[0], ast.NotEq) and len(names & widths) > 1:
                return "missing, same width"
        return "missing"
    return "same shape" if ".shape" in text else "always"


def _lm_head(function: ast.FunctionDef, text: str) -> dict[str, str]:
    if "has_own_lm_head" in text:
        return {"": "missing"}
    if MAPPING in text:
        return {"": "unmapped"}
    if "!= 'eagle3'" in text:
        return {"": "always", "eagle3": "same shape" if "lm_head.weight.shape" in text else "never"}
    return {"": "always"}
