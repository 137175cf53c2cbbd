"""Attention backends of the releases whose registry is a bare list of names.

Which class a name stands for is only said by the platforms, which choose one for it: it is the class that
``get_attn_backend_cls`` returns for this name and for no unknown one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from specfix.engines.compiled import Condition
from specfix.engines.readers.answers.ask import Answers
from specfix.engines.readers.answers.platform import PLATFORMS
from specfix.engines.source.tree import SourceTree, literal, walk

CHOOSER: Final = "get_attn_backend_cls"
# a V0 engine, where a release still has one, has backends of its own, and no part in this
V1: Final = {"envs.VLLM_USE_V1": True}
UNHEARD_OF: Final = "a name that no release has"


def old_backends(answers: Answers) -> dict[str, str | None]:
    """Name to class, or to None where naming it chooses no class of its own."""
    names = [ast.unparse(s.targets[0]) for s in _members(answers.tree) if isinstance(s, ast.Assign)]
    found: dict[str, str | None] = dict.fromkeys(names)
    for platform in PLATFORMS:
        for mla in (False, True):
            usual = choose(answers, platform, UNHEARD_OF, mla)
            for name in names:
                path = _chosen(choose(answers, platform, name, mla), usual)
                if found[name] is None:
                    found[name] = path
            if not mla and len(set(_classes(usual))) == 1:  # it takes its one backend whatever is asked for
                only = next(_classes(usual))
                own = _own_name(answers, only)
                if own and found.get(own) is None:
                    found[own] = only
    return found


def choose(answers: Answers, platform: str, name: str | None, mla: bool | None = None) -> Condition:
    """What the platform chooses for this name; for None of itself. ``mla`` None: it hangs on it."""
    given: dict[str, Condition] = {"selected_backend": ["const", name], "use_v1": ["const", True]}
    if mla is not None:
        given["use_mla"] = ["const", mla]
    return answers.function(f"platforms/{platform}.py", CHOOSER, given) or ["?", f"no {CHOOSER}"]


def _chosen(tree: Condition, usual: Condition) -> str | None:
    """The class that a name stands for: the one class that it leads to, or the last resort where that is another than
    usual (environment variables may take precedence over the name)."""
    classes, others = list(_classes(tree)), list(_classes(usual))
    if not classes or tree == usual:
        return None
    last = classes[-1]
    return last if len(set(classes)) == 1 or others[-1:] != [last] else None


def _members(tree: SourceTree) -> list[ast.stmt]:
    node = tree.class_("platforms/interface.py", "_Backend")
    return node.body if node else []


def _classes(tree: Condition) -> Iterator[str]:
    """The classes among the leaves of a tree."""
    if tree[0] == "if":
        yield from _classes(tree[2])
        yield from _classes(tree[3])
    elif tree[0] == "const" and isinstance(tree[1], str) and "." in tree[1]:
        yield tree[1]


def _own_name(answers: Answers, path: str) -> str | None:
    backing = answers.backing(path)
    method = backing.lineage.method("get_name") if backing else None
    names = [literal(node.value) for node in walk(method[1], ast.Return)] if method else []
    return names[0] if names and isinstance(names[0], str) else None
