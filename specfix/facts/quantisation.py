"""How a checkpoint says that it is quantised, and which of its layers that spares.

Sources: ``get_quant_config`` (vllm/model_executor/model_loader/weight_utils.py), ``_verify_quantization``
(vllm/config/model.py), and each method's own config in vllm/model_executor/layers/quantization. Whether an entry spares
a layer is judged generously: where it could, by any of the ways in which releases match names, it counts as sparing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from specfix.deployment import Draft, Model, Target
from specfix.deployment.config import escape
from specfix.engines import Engine
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import DraftClasses, first_known
from specfix.record import record

KEY = "quantization_config"
FLOATS = frozenset({"BF16", "F16", "F32", "F64"})
# what a quantised layer's tensors are called beside, or in the place of, its weight
SCALES = (
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "weight_packed",
    "input_scale",
    "qweight",
    "scales",
    "qzeros",
    "weight_zero_point",
    "scale",
)
# linear layers of a decoder layer, by the names that checkpoints give them; gates and norms are never quantised
LINEARS = frozenset(
    {
        *("q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj"),
        *("gate_proj", "up_proj", "down_proj", "gate_up_proj"),
    }
)
FUSED = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj"), "qkv_proj"),
    **dict.fromkeys(("gate_proj", "up_proj"), "gate_up_proj"),
}
FOUR_BITS = re.compile(r"fp4|int4|mxfp4|nvfp4|int2|fp6", re.I)
EXPERT = re.compile(r"\.experts\.\d+\.")
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
IN_MTP = re.compile(r"(?:^|[._])(?:mtp|nextn)(?:[._]|$)")


@record(frozen=True)
class Scheme:
    """What one quantization_config says.

    ``method``: as the release calls it; ``pointer``: where it stands in config.json, or would, and ``file`` the other
    file that holds it; ``reads``: the keys that can spare layers, of those that the release reads; ``spares``: their
    entries, by key; ``packed``: quantised weights have another shape or name (else the same ones, with scales beside
    them); ``everything``: each linear layer is quantised that is not spared; ``block``: the quantization_config itself.
    """

    method: str
    pointer: str
    block: Mapping[str, Any]
    spares: Mapping[str, tuple[str, ...]]
    packed: bool
    everything: bool
    reads: tuple[str, ...] = ()
    file: str | None = None

    def spares_any(self, module: str, layers: int | None) -> bool:
        """Whether an entry could spare the layer that the checkpoint calls ``module``."""
        names = spellings(module, layers)
        return any(matches(entry, names) for entries in self.spares.values() for entry in entries)


@record(frozen=True)
class MtpTensors:
    """The built-in draft's layers, by what the headers say of them. ``plain`` hold a weight in floating point alone,
    ``quantised`` something else; each name is a module's."""

    plain: tuple[str, ...]
    quantised: tuple[str, ...]

    def named(self, *leaves: str) -> tuple[str, ...]:
        """Plain layers of these names; of the experts of a layer, which are built as one, the first."""
        found = (name for name in self.plain if name.rpartition(".")[2] in leaves)
        return tuple({EXPERT.sub(".experts.", name): name for name in reversed(tuple(found))}.values())[::-1]


def mtp_scheme(target: Target, draft: Draft, method: str, engine: Engine) -> Scheme:
    """The scheme of the checkpoint that holds target and draft; NotApplicable where it is not quantised."""
    if method != "mtp" or draft.config.file != target.config.file:
        raise NotApplicable("the draft is a model of its own")
    scheme = scheme_of(target, engine)
    if scheme is None:
        raise NotApplicable("the target is not quantised")
    return scheme


def stated(model: Model, engine: Engine) -> tuple[str, Mapping[str, Any], str | None] | None:
    """(pointer, quantization_config, other file than config.json) as the release finds it; None where there is none."""
    values = model.config.values
    if isinstance(values.get(KEY), dict):
        return f"/{KEY}", values[KEY], None
    if model.modelopt is not None and known(
        engine.quantisation.modelopt_file, f"whether {engine} reads {model.modelopt.file}"
    ):
        return f"/{KEY}", model.modelopt.values, model.modelopt.file
    text = values.get("text_config")
    if isinstance(text, dict) and isinstance(text.get(KEY), dict):
        return f"/text_config/{KEY}", text[KEY], None
    if isinstance(values.get("compression_config"), dict):
        return "/compression_config", values["compression_config"], None
    return None


def scheme_of(model: Model, engine: Engine) -> Scheme | None:
    """The scheme of a checkpoint; None where it is not quantised. MissingFact where it is not one that is known."""
    found = stated(model, engine)
    if found is None or not found[1]:
        return None
    pointer, values, file = found
    name = method_name(values)
    keys = known(engine.quantisation.ignore_keys, f"the keys of a {KEY} that {engine} reads")
    if name not in keys or (model.model_type or "").startswith("deepseek_v4"):  # which has a method of its own
        raise MissingFact(f"how {engine} reads a {KEY} of method {name!r}")
    packed, everything = form(name, values)
    spares = dict(sparing(values, keys[name]))
    return Scheme(name, pointer, values, spares, packed, everything, keys[name], file)


def method_name(values: Mapping[str, Any]) -> str:
    """The method, by the name that the release gives it inside."""
    name = text_of(values.get("quant_method")).lower().replace("compressed_tensors", "compressed-tensors")
    producer = values.get("producer")
    by_modelopt = isinstance(producer, Mapping) and producer.get("name") == "modelopt"
    if name.startswith("modelopt") or (not name and by_modelopt):
        algorithm = text_of(algorithm_of(values)).upper()
        if algorithm == "MIXED_PRECISION":
            return "modelopt_mixed"
        return "modelopt_fp4" if "FP4" in algorithm else "modelopt_mxfp8" if algorithm == "MXFP8" else "modelopt"
    return name


def algorithm_of(values: Mapping[str, Any]) -> Any:
    """ModelOpt's ``quant_algo``: within ``quantization`` in its own format, else beside the method."""
    nested = values.get("quantization")
    return (nested if isinstance(nested, Mapping) else values).get("quant_algo")


def form(method: str, values: Mapping[str, Any]) -> tuple[bool, bool]:
    """(packed, everything) of a method's config. MissingFact where the method's form is not known."""
    if method in {"fp8", "modelopt"}:
        return False, True
    if method in {"modelopt_fp4", "gptq", "gptq_marlin", "auto_gptq", "awq", "awq_marlin", "auto_awq"}:
        return True, True
    if method == "modelopt_mixed":  # only the layers that it lists
        return True, False
    if method == "compressed-tensors":
        groups = values.get("config_groups")
        wide = [group for group in inner(groups) if "Linear" in list_of(group.get("targets"))]
        formats = [text_of(group.get("format") or values.get("format")) for group in wide]
        return any("pack" in each for each in formats), bool(wide)
    if method == "quark":
        weight = inner_of(values.get("global_quant_config")).get("weight")
        if isinstance(weight, Mapping):
            return bool(FOUR_BITS.search(text_of(weight.get("dtype")))), True
    raise MissingFact(f"which layers a {KEY} of method {method!r} quantises")


def sparing(values: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Entries that can spare layers, by the key that holds them."""
    nested = values.get("quantization")
    for key in (*keys, "disable_quant_module"):
        for level in (values, nested if isinstance(nested, Mapping) else {}):
            given = level.get(key)
            if key == "dynamic":
                given = [entry for entry in inner_of(given) if str(entry).startswith("-:")]
            elif key in {"layer_quant_config", "extra_config"}:
                given = list(inner_of(given))
            elif key in {"config_groups", "quantized_layers", "modules_in_block_to_quantize"}:
                continue  # what they say is what is quantised
            if isinstance(given, list) and given:
                yield key, tuple(entry for entry in given if isinstance(entry, str))


def spellings(module: str, layers: int | None) -> frozenset[str]:
    """What a release may call a layer that the checkpoint calls ``module``, its fused forms included."""
    head, _, leaf = module.rpartition(".")
    heads = {head}
    for prefix in ("model.language_model.", "language_model.model.", "language_model.", "model.", "mtp."):
        if head.startswith(prefix):
            heads.add(head.removeprefix(prefix))
    match = LAYER.search(head)
    if match and layers is not None and IN_MTP.search(head):
        number = int(match[1])
        for index in {number, number + layers}:
            heads.add(f"layers.{index}" + head[match.end() - 1 :])
    heads |= {re.sub(r"(layers\.\d+)(?=\.|$)", r"\1.mtp_block", each) for each in heads}
    heads |= {
        f"{prefix}{each}" for each in heads for prefix in ("model.", "mtp.", "model.mtp.", "language_model.model.")
    }
    names = {leaf, FUSED.get(leaf, leaf)}
    if ".experts" in head or leaf == "experts":  # they are built as one
        heads |= {each[: each.index(".experts") + len(".experts")] for each in heads if ".experts" in each}
        return frozenset(heads | {f"{each}.{name}" for each in heads for name in names})
    return frozenset(f"{each}.{name}" for each in heads for name in names)


def matches(entry: str, names: frozenset[str]) -> bool:
    """Whether an entry could mean one of ``names``: a regular expression, a wildcard, a name, a part or end of one."""
    for mark in ("re:", "-:"):
        if entry.startswith(mark):
            try:
                pattern = re.compile(entry.removeprefix(mark))
            except re.error:
                return True
            return any(pattern.search(name) for name in names)
    if "*" in entry:
        literal = max(entry.split("*"), key=len)  # most entries are of other layers
        return any(literal in name for name in names) and any(
            fnmatchcase(name, entry) or fnmatchcase(name, f"*{entry}*") for name in names
        )
    return any(entry in name or name in entry.split("@") or entry.startswith(f"{name}.") for name in names)


def mtp_tensors(target: Target, draft: Draft, method: str) -> MtpTensors:
    """The layers of a draft that is in the target's own checkpoint. MissingFact without headers."""
    if method != "mtp" or draft.config.file != target.config.file:
        raise NotApplicable("the draft is a model of its own")
    tensors = known(target.tensors, f"safetensors headers of {target.reference}")
    layers = target.number("num_hidden_layers")
    plain: set[str] = set()
    quantised: set[str] = set()
    for name, tensor in tensors.items():
        if not in_mtp(name, layers):
            continue
        module, _, leaf = name.rpartition(".")
        if leaf in {"gate_up_proj", "down_proj"} and module.endswith("experts"):  # stacked, without .weight
            module, leaf = name, "weight"
        if leaf == "weight" and tensor.dtype in FLOATS and len(tensor.shape) > 1:
            plain.add(module)
        elif leaf in SCALES or (leaf == "weight" and tensor.dtype not in FLOATS):
            quantised.add(module)
    if not plain and not quantised:
        raise NotApplicable("the checkpoint holds no layers of multi-token prediction")
    return MtpTensors(tuple(sorted(plain - quantised)), tuple(sorted(quantised)))


def in_mtp(name: str, layers: int | None) -> bool:
    """Whether a tensor belongs to multi-token prediction: by its name, or as a layer past the target's own."""
    if ("mtp" in name or "nextn" in name) and IN_MTP.search(name):
        return True
    number = name.partition("layers.")[2].partition(".")[0]
    past = number.isdecimal() and layers is not None and int(number) >= layers
    return past and "visual" not in name and LAYER.search(name) is not None


def draft_class(draft_classes: DraftClasses, engine: Engine) -> str:
    """The architecture by which the release serves the draft."""
    if draft_classes.refused is not None:
        raise NotApplicable(f"{engine} refuses the draft's config")
    return known(first_known(draft_classes.built, engine), "the architecture of the draft")


def quant_origin(draft_classes: DraftClasses, engine: Engine) -> str:
    """Whose quantization config the draft's layers are built with: "target", "draft" or "none"."""
    name = draft_class(draft_classes, engine)
    found = known(engine.quantisation.drafts, f"how {engine} builds the layers of a draft").get(name)
    if found is None or found == "own":
        raise MissingFact(f"whose quantisation {engine} builds {name} with")
    return found


def draft_quantised(draft: Draft) -> bool:
    """Whether the headers show quantised weights in a draft of its own. MissingFact without them."""
    tensors = known(draft.tensors, f"safetensors headers of {draft.reference}")
    return any(name.rpartition(".")[2] in SCALES for name in tensors) or any(
        name.endswith(".weight") and tensor.dtype not in FLOATS for name, tensor in tensors.items()
    )


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def inner_of(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def inner(value: Any) -> list[Mapping[str, Any]]:
    """The objects that an object holds."""
    return [each for each in inner_of(value).values() if isinstance(each, Mapping)]


def pointer_to(scheme: Scheme, key: str) -> str:
    """JSON pointer of a key of the scheme, in config.json."""
    nested = inner_of(scheme.block.get("quantization"))
    within = "/quantization" if key in nested and key not in scheme.block else ""
    return f"{scheme.pointer}{within}/{escape(key)}"


# keys that spare layers, to how they write a pattern; the first that a release reads is taken where none is stated
PATTERNS = {
    "ignore": "re:",
    "exclude": "re:",
    "exclude_modules": "*",
    "ignored_layers": "",
    "modules_to_not_convert": "",
    "dynamic": "-:",
}


def sparing_changes(
    target: Target, scheme: Scheme, tensors: MtpTensors
) -> tuple[tuple[Literal["target_config"], str, object], ...]:
    """What of config.json to change so that the MTP layers are spared; nothing where that is not known."""
    key = sparing_key(scheme)
    if key is None:
        return ()
    if key == "dynamic":
        pairs: list[tuple[str, object]] = [(f"-:.*{part}", {}) for part in parts(target, tensors, regular=True)]
        pointer = pointer_to(scheme, key)
        if scheme.file is None:
            return tuple(("target_config", f"{pointer}/{escape(name)}", value) for name, value in pairs)
        return ()
    added = entries(key, scheme, target, tensors)
    if scheme.file is not None or key not in holder(scheme):
        values = dict(holder(scheme)) | {key: [*list_of(holder(scheme).get(key)), *added]}
        whole = {**scheme.block, "quantization": values} if holder(scheme) is not scheme.block else values
        return (("target_config", scheme.pointer, whole),)
    return (("target_config", pointer_to(scheme, key), [*list_of(holder(scheme).get(key)), *added]),)


def by_pattern(scheme: Scheme) -> bool:
    """Whether what is added are patterns, or parts of names; else it is whole names."""
    if scheme.method.startswith(("modelopt", "awq", "auto_awq")):
        return True
    return PATTERNS.get(sparing_key(scheme) or "", "") != ""


def holder(scheme: Scheme) -> Mapping[str, Any]:
    """The object that holds the keys that spare layers."""
    nested = scheme.block.get("quantization")
    return nested if isinstance(nested, Mapping) and scheme.method.startswith("modelopt") else scheme.block


def sparing_key(scheme: Scheme) -> str | None:
    """The key to add to: the one that is stated, else the first that the release reads."""
    reads = [key for key in scheme.reads if key in PATTERNS]
    if holder(scheme) is not scheme.block:  # ModelOpt's own format has one name for it
        return "exclude_modules"
    return next(iter([*(key for key in reads if holder(scheme).get(key)), *reads]), None)


def entries(key: str, scheme: Scheme, target: Target, tensors: MtpTensors) -> list[str]:
    """What to add under ``key``, in the way in which the method matches names."""
    if scheme.method.startswith("modelopt"):  # a star at the end alone would be taken for a whole subtree's
        return [f"*{part}*" if part.endswith(".") else f"*{part}*.*" for part in parts(target, tensors)]
    if PATTERNS[key] == "re:":
        return [f"re:.*{part}" for part in parts(target, tensors, regular=True)]
    if scheme.method.startswith(("awq", "auto_awq")):  # any part of a name
        return list(parts(target, tensors))
    experts = {name[: name.index(".experts") + len(".experts")] for name in tensors.plain if ".experts" in name}
    return sorted({*tensors.plain, *experts})  # whole names


def parts(target: Target, tensors: MtpTensors, *, regular: bool = False) -> list[str]:
    """Parts of names that only MTP layers have: ``mtp``, and the numbers past the target's last layer."""
    layers = target.number("num_hidden_layers")
    numbers = {int(match[1]) for match in map(LAYER.search, tensors.plain) if match}
    named = any(IN_MTP.search(name) for name in tensors.plain)
    if layers is not None and named:  # some releases count them on from the target's
        numbers = {number if number >= layers else number + layers for number in numbers}
    dot, end = (r"\.", r"\..*") if regular else (".", ".")
    found = [f"layers{dot}{number}{end}" for number in sorted(numbers)]
    return (["mtp.*" if regular else "mtp"] if named else []) + found
