"""EAGLE3 in a release: which target classes can serve it, and which auxiliary hidden states they give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from specfix.engines.facts.drafting import Decoder, EagleFacts, Head, MethodFacts
from specfix.engines.readers.aux import LAYERS, fc_states, final_layer, formula, records, records_outputs
from specfix.engines.readers.aux_places import Unreadable, read_places
from specfix.engines.readers.borrowing import read_borrowing, read_load_config, read_mask_places
from specfix.engines.readers.decoders import read_decoder
from specfix.engines.readers.heads import (
    built_beside,
    load_keys,
    read_head,
    refuses_missing,
    strict_loader,
)
from specfix.engines.source.classes import Class, Classes, Lineage
from specfix.engines.source.tree import SourceTree, config_homes, dotted, find_function, literal, walk

INTERFACES = "model_executor/models/interfaces.py"
PROTOCOL = "SupportsEagle3"
SETTER = "set_aux_hidden_state_layers"
DEFAULTS = re.compile(r"get_eagle3_(default_)?aux_hidden_state_layers")
CONFIGS = config_homes("speculative")
V1_RUNNER = "v1/worker/gpu_model_runner.py"
V2_FOLDER = "v1/worker/gpu"
NAMING = ("architectures", "model_class")  # arguments that say which class a model is made of


def read_eagle(tree: SourceTree, unknown: dict[str, str], methods: MethodFacts) -> EagleFacts:
    models = _Models(tree, methods.architectures)
    support = {name: models.supported(name) for name in methods.architectures}
    for name, verdict in support.items():
        if verdict is None:
            unknown[f"eagle.support.{name}"] = "its class could not be followed through the source"
    serving = [name for name, verdict in support.items() if verdict]
    by_config = [name for name in serving if models.language_by_config(name)]
    targets = [name for name in serving if name not in {*by_config, *methods.drafts}]
    default_aux, counts = models.default_aux(serving)
    final = {name: models.final_layer(name) for name in targets}
    states = {name: models.fc_states(name) for name in support if "eagle3" in name.lower()}
    for fact, entries, why in (
        ("default_aux", default_aux, "its own formula is none that is known here"),
        ("aux_final_layer", final, "no place was seen where its layers' states are recorded"),
        ("fc_states", states, "no layer called fc was seen, or the source of its size"),
    ):
        unknown.update({f"eagle.{fact}.{name}": why for name, entry in entries.items() if entry is None})
    places, hidden_by, unshifted = _places(tree, unknown)
    config_stage, guarded = _config_stage(tree)
    return EagleFacts(
        has_interface=models.protocol is not None,
        support=support,
        config_stage=config_stage,
        config_stage_methods=guarded,
        aux_places=places,
        default_aux=default_aux,
        aux_deduplicates=_deduplicates(tree, unknown),
        aux_hidden_by=hidden_by,
        aux_unshifted=unshifted,
        use_aux_flag={runner: _heeds_flag(tree, runner) for runner in places or ()},
        default_aux_count=counts,
        aux_final_layer=final,
        language_by_config=tuple(by_config),
        fc_states=states,
        heads=_heads(models.classes, methods),
        decoders=_decoders(tree, models.classes, methods),
        borrowing=read_borrowing(tree),
        mask_places=read_mask_places(tree),
        load_config=read_load_config(tree),
        checks_heads=strict_loader(tree),
        load_keys=load_keys(tree),
        mtp_own=_mtp_own(tree, models.classes, methods),
        refuse_missing=tuple(
            name for name in methods.drafts if refuses_missing(models.classes, methods.architectures[name])
        ),
    )


def _mtp_own(tree: SourceTree, classes: Classes, methods: MethodFacts) -> dict[str, tuple[str, ...]]:
    if not strict_loader(tree):
        return {}
    own = {name: built_beside(classes, methods.architectures[name]) for name in methods.drafts if "MTP" in name}
    return {name: parts for name, parts in own.items() if parts}


def _decoders(tree: SourceTree, classes: Classes, methods: MethodFacts) -> dict[str, Decoder]:
    """Models of plain layers that answer with tokens; those that are built in another way are left out."""
    names = [name for name in methods.architectures if name.endswith("ForCausalLM") and name not in methods.drafts]
    read = {path: read_decoder(tree, classes, path) for path in {methods.architectures[name] for name in names}}
    found = {name: read[methods.architectures[name]] for name in names}
    return {name: decoder for name, decoder in found.items() if decoder is not None}


def _heads(classes: Classes, methods: MethodFacts) -> dict[str, Head]:
    """What the classes of drafting heads build; those that load in another way are left out."""
    read = {path: read_head(classes, path) for name in methods.drafts for path in [methods.architectures[name]]}
    found = {name: read[methods.architectures[name]] for name in methods.drafts}
    return {name: head for name, head in found.items() if head is not None}


class _Models:
    """The release's model classes, seen with the eyes of ``supports_eagle3``."""

    def __init__(self, tree: SourceTree, architectures: dict[str, str]) -> None:
        self.classes = Classes(tree)
        self._architectures = architectures
        node = tree.class_(INTERFACES, PROTOCOL)
        self.protocol = self.classes.lineage(Class(INTERFACES, node)) if node else None
        self.getter = _getter_name(tree)

    def supported(self, architecture: str) -> bool | None:
        return _agree(None if c is None else self._supports(c) for c in self._of(architecture))

    def _of(self, architecture: str) -> list[Class | None]:
        return self.classes.at(self._architectures[architecture]) or [None]

    def _supports(self, cls: Class) -> bool | None:
        lineage = self.classes.lineage(cls)
        if self.protocol is None:  # no check at all: what the runner calls must be there
            needed = {SETTER, self.getter}
        else:
            needed = {name for owner in self.protocol.classes for name in owner.members()}
        absent = {name for name in needed if lineage.find(name) is None} - set(_set_on_self(lineage))
        if absent:
            return False if lineage.complete else None
        setter = lineage.method(SETTER)
        if setter is None:
            return None
        if _is_stub(setter[1]):  # inherited from the interface and never written
            return False if lineage.complete else None
        return not self._cannot_record(self.inner(lineage), _asserted_class(setter[1]))

    @staticmethod
    def _cannot_record(inner: Lineage | None, mixin: str | None) -> bool:
        """The inner model surely gives no states: setting the layers asserts, or there are none to unpack."""
        if inner is None or not inner.complete:
            return False
        lacks_mixin = mixin is not None and mixin not in {owner.name for owner in inner.classes}
        return lacks_mixin or records(inner) is False

    def inner(self, lineage: Lineage, depth: int = 4) -> Lineage | None:
        """The model with the decoder layers: ``model`` of the language model, or of the class itself."""
        language = self._made(lineage, _marked(lineage) or "language_model")
        if language is None and lineage.find("get_language_model"):
            return None  # found at run time among the children
        holder = language or self._made(lineage, "model")
        classes = [cls for cls in holder or () if cls is not None]
        if len(classes) != 1 or len(holder or ()) != 1:
            return None
        found = self.classes.lineage(classes[0])
        return self.inner(found, depth - 1) or found if language and depth else found

    def _made(self, lineage: Lineage, attribute: str) -> list[Class | None] | None:
        """The classes of ``self.attribute``, as the nearest ``__init__`` sets it; None where none does."""
        for owner in lineage.classes:
            values = list(_assigned(owner, attribute))
            if values:
                return [made for value in values for made in self._constructed(lineage, owner, value)]
        return None

    def _constructed(self, lineage: Lineage, owner: Class, value: ast.expr) -> list[Class | None]:
        if not isinstance(value, ast.Call):
            return [None]
        name = dotted(value.func) or ""
        if name.startswith("self."):
            method = lineage.method(name.removeprefix("self."))
            if method:
                returned = [node.value for node in walk(method[1], ast.Return) if node.value]
                return [made for each in returned for made in self._constructed(lineage, method[0], each)]
            attribute = lineage.find(name.removeprefix("self."))
            bound = getattr(attribute[1], "value", None) if attribute else None
            return self.classes.of_expression(attribute[0].file, bound) if attribute and bound else [None]
        chosen = next((k.value for k in value.keywords if k.arg == "model_class"), None)
        if chosen is not None:  # initialize_model(model_class=X)
            return self.classes.of_expression(owner.file, chosen) or [None]
        asked = next((literal(k.value) for k in value.keywords if k.arg == "architectures"), None)
        if isinstance(asked, list) and len(asked) == 1:  # init_vllm_registered_model(architectures=["X"])
            return self._of(asked[0]) if asked[0] in self._architectures else [None]
        return self.classes.of_expression(owner.file, value.func) or [None]

    def language_by_config(self, architecture: str) -> bool:
        """Whether the decoder is of the class that ``text_config`` names."""
        for cls in self._of(architecture):
            lineage = self.classes.lineage(cls) if cls else None
            for owner in lineage.classes if lineage else ():
                values = list(_assigned(owner, "language_model"))
                if values:
                    return any(_made_by_config(value) for value in values)
        return False

    def default_aux(self, architectures: list[str]) -> tuple[dict[str, tuple[str, ...] | None], dict[str, str]]:
        """The interface's formula under "", and those of the architectures that have another."""
        terms: dict[str, tuple[str, ...] | None] = {}
        counts: dict[str, str] = {}
        method = self.protocol.method(self.getter) if self.protocol else None
        common = formula(method[1]) if method else None
        if common:
            terms[""], counts[""] = common
        for architecture in architectures:
            found = {self._formula(cls) for cls in self._of(architecture)}
            own = found.pop() if len(found) == 1 else None
            if own is None or common is None or own[0] != common[0]:
                terms[architecture] = own[0] if own else None
                counts.update({architecture: own[1]} if own else {})
        return terms, counts

    def _formula(self, cls: Class | None, depth: int = 3) -> tuple[tuple[str, ...], str] | None:
        lineage = self.classes.lineage(cls) if cls else None
        method = lineage.method(self.getter) if lineage else None
        if lineage is None or method is None:
            return None
        found = formula(method[1])
        if found is None and depth and f"self.language_model.{self.getter}()" in ast.unparse(method[1]):
            children = self._made(lineage, "language_model") or [None]
            return self._formula(children[0], depth - 1) if len(children) == 1 else None
        return found

    def final_layer(self, architecture: str) -> bool | None:
        return _agree(
            None if cls is None else self._final_layer(self.classes.lineage(cls)) for cls in self._of(architecture)
        )

    def _final_layer(self, lineage: Lineage) -> bool | None:
        setter = lineage.method(SETTER)
        if setter and records_outputs(setter[1]):
            return True
        return final_layer(self.inner(lineage))

    def fc_states(self, architecture: str) -> tuple[str, ...] | None:
        (cls, *others) = self._of(architecture)
        inner = self.inner(self.classes.lineage(cls)) if cls and not others else None
        return fc_states(inner) if inner else None


def _getter_name(tree: SourceTree) -> str:
    """The method that the runner asks for the default layers; overrides of an older name are never called."""
    module = tree.module(V1_RUNNER)
    for call in walk(module, ast.Call) if module else ():
        name = getattr(call.func, "attr", "")
        if DEFAULTS.fullmatch(name):
            return str(name)
    return "get_eagle3_default_aux_hidden_state_layers"


def _assigned(owner: Class, attribute: str) -> Iterator[ast.expr]:
    """Values given to ``self.attribute`` in the class's own ``__init__``."""
    init = owner.members().get("__init__")
    for node in walk(init, ast.stmt) if init else ():
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(dotted(target) == f"self.{attribute}" for target in targets):
                yield node.value


def _marked(lineage: Lineage) -> str | None:
    """The attribute of the decoder: what is made ``with self._mark_language_model(…)``."""
    for owner in lineage.classes:
        init = owner.members().get("__init__")
        for node in walk(init, ast.With) if init else ():
            if "self._mark_language_model(" in ast.unparse(node.items[0]):
                made = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
                made += [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
                names = [name for name in map(dotted, made) if name and name.startswith("self.")]
                return names[0].removeprefix("self.") if names else None
    return None


def _made_by_config(value: ast.expr) -> bool:
    """``init_vllm_registered_model(hf_config=config.text_config)``, with no architecture or class named."""
    if not isinstance(value, ast.Call) or dotted(value.func) != "init_vllm_registered_model":
        return False
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    named = [literal(given[key]) is not None or key == "model_class" for key in given if key in NAMING]
    return "hf_config" in given and not any(named)


def _set_on_self(lineage: Lineage) -> Iterator[str]:
    for owner in lineage.classes:
        init = owner.members().get("__init__")
        for node in walk(init, ast.Attribute) if init else ():
            if isinstance(node.ctx, ast.Store) and dotted(node.value) == "self":
                yield node.attr


def _is_stub(function: ast.FunctionDef) -> bool:
    """Nothing but a docstring, ``...`` or ``pass``."""
    return all(
        isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def _asserted_class(function: ast.FunctionDef) -> str | None:
    """X of ``assert isinstance(holder, X)``."""
    for node in walk(function, ast.Assert):
        test = node.test
        if isinstance(test, ast.Call) and dotted(test.func) == "isinstance" and len(test.args) == 2:
            return dotted(test.args[1])
    return None


def _agree(values: Iterable[bool | None]) -> bool | None:
    """What all say; None where they differ or one is unknown."""
    said = set(values)
    return said.pop() if len(said) == 1 else None


Order = dict[str, tuple[tuple[str, int], ...]]


def _places(
    tree: SourceTree, unknown: dict[str, str]
) -> tuple[Order | None, dict[str, dict[str, str]], dict[str, tuple[str, ...]]]:
    order: Order = {}
    hidden_by: dict[str, dict[str, str]] = {}
    unshifted: dict[str, tuple[str, ...]] = {}
    for runner in ("V1", "V2"):
        function = _aux_function(tree, runner)
        if function is None:
            if _sets_defaults_only(tree, runner):
                order[runner] = ()
            continue
        try:
            places = read_places(function)
        except Unreadable as error:
            unknown[f"eagle.aux_places.{runner}"] = str(error)
            continue
        order[runner] = places.order
        hidden_by.update({runner: places.hidden_by} if places.hidden_by else {})
        unshifted.update(places.unshifted)
    if not order:
        unknown.setdefault("eagle.aux_places", "no runner was seen that sets aux layers")
    return order or None, hidden_by, unshifted


def _files(tree: SourceTree, runner: str) -> Iterator[str]:
    if runner == "V1":
        yield V1_RUNNER
    else:
        yield from tree.files(V2_FOLDER)


def _aux_function(tree: SourceTree, runner: str) -> ast.FunctionDef | None:
    for file in _files(tree, runner):
        module = tree.module(file) if "aux_layers_from_config" in (tree.text(file) or "") else None
        for name in ("_get_eagle3_aux_layers_from_config", "get_eagle3_aux_layers_from_config"):
            found = find_function(module, name) if module else None
            if found:
                return found
    return None


def _sets_defaults_only(tree: SourceTree, runner: str) -> bool:
    """``model.set_aux_hidden_state_layers(model.get_eagle3_...())``, with no look at a config."""
    for file in _files(tree, runner):
        module = tree.module(file) if SETTER in (tree.text(file) or "") else None
        for call in walk(module, ast.Call) if module else ():
            if getattr(call.func, "attr", None) == SETTER and len(call.args) == 1:
                inner = call.args[0]
                if isinstance(inner, ast.Call) and DEFAULTS.fullmatch(getattr(inner.func, "attr", "")):
                    return True
    return False


def _heeds_flag(tree: SourceTree, runner: str) -> bool:
    """Whether ``eagle_config.use_aux_hidden_state`` is read by the runner (V1: by its proposer)."""
    files = tree.files("v1/spec_decode") if runner == "V1" else tree.files(V2_FOLDER)
    for file in files:
        module = tree.module(file) if "use_aux_hidden_state" in (tree.text(file) or "") else None
        for function in walk(module, ast.FunctionDef) if module else ():
            strings = {node.value for node in walk(function, ast.Constant) if isinstance(node.value, str)}
            if {"use_aux_hidden_state", "eagle_config"} <= strings:
                return True
    return False


def _config_stage(tree: SourceTree) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Substrings of the target's model_type that the config stage asks for, and for which methods."""
    for file in CONFIGS:
        module = tree.module(file)
        for node in walk(module, ast.If) if module else ():
            if "hf_text_config.model_type" in ast.unparse(node.test):
                methods = tuple(_compared(node.test, "method", ast.Eq, ast.In))
                if "eagle3" in methods and any(isinstance(each, ast.Raise) for each in node.body):
                    direct = tuple(_wanted(node.test))
                    return direct or _listed(module, node.test), methods
    return None, ()


def _compared(test: ast.expr, name: str, *operators: type[ast.cmpop]) -> Iterator[str]:
    """The strings that ``….name`` is compared with."""
    for node in walk(test, ast.Compare):
        if (dotted(node.left) or "").endswith(f".{name}") and isinstance(node.ops[0], operators):
            value = literal(node.comparators[0])
            yield from [value] if isinstance(value, str) else [str(each) for each in _sequence(value)]


def _wanted(test: ast.expr) -> Iterator[str]:
    """``"llama" not in model_type``."""
    for node in walk(test, ast.Compare):
        value = literal(node.left)
        if isinstance(node.ops[0], ast.NotIn) and isinstance(value, str):
            yield value


def _listed(module: ast.Module | None, test: ast.expr) -> tuple[str, ...] | None:
    """``not any(x in model_type for x in NAMES)``, NAMES written as a literal in the same file."""
    names = {dotted(generator.iter) for generator in walk(test, ast.comprehension)}
    for node in walk(module, ast.Assign) if module else ():
        if any(dotted(target) in names for target in node.targets):
            return tuple(str(each) for each in _sequence(literal(node.value))) or None
    return None


def _sequence(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else ()


def _deduplicates(tree: SourceTree, unknown: dict[str, str]) -> bool | None:
    """States are recorded by asking of each layer whether it is among the ids, so an id twice gives one."""
    for file in (INTERFACES, "model_executor/models/llama.py"):
        module = tree.module(file)
        for node in walk(module, ast.Compare) if module else ():
            if isinstance(node.ops[0], ast.In) and getattr(node.comparators[0], "attr", None) == LAYERS:
                return True
    unknown["eagle.aux_deduplicates"] = "no model was seen that records states by layer id"
    return None
