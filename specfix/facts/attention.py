"""Which attention backend the target and the draft will have, and what a backend refuses."""

from __future__ import annotations

from typing import Any

from specfix.deployment import Draft, Hardware, Location, Model, Serving, Target
from specfix.engines import Engine
from specfix.engines.conditions import choose, evaluate
from specfix.errors import MissingFact, NotApplicable, known
from specfix.facts.architecture import architecture_of

VARIABLE = "VLLM_ATTENTION_BACKEND"
MLA_DISABLE = "VLLM_MLA_DISABLE"
AITER = "VLLM_ROCM_USE_AITER"
AITER_MLA = "VLLM_ROCM_USE_AITER_MLA"
# methods whose draft is drafted for token by token by the shared proposer, with attention of its own
CHAINED = frozenset({"eagle", "eagle3", "mtp", "draft_model"})


def asked_backend(serving: Serving, engine: Engine) -> str | None:
    """The backend that is asked for by name, in whichever way the release takes it; None where none is."""
    nested = serving.flag("attention_config")
    inner = nested.get("backend") if isinstance(nested, dict) else None
    asked = serving.attention_backend or inner
    if asked is None and engine.serve.backend_variable:
        asked = serving.env.get(VARIABLE)
    return None if asked is None or str(asked).lower() == "auto" else str(asked).upper()


def asked_by_flag(serving: Serving, engine: Engine) -> str | None:
    """The flag of the release that asks for a backend; a name that an older one's variable gives is no flag's."""
    flags = known(engine.serve.flags, f"the flags of {engine}")
    nested = serving.flag("attention_config")
    if serving.attention_backend is not None:
        return "attention_backend" if "attention-backend" in flags else None
    return "attention_config" if isinstance(nested, dict) and isinstance(nested.get("backend"), str) else None


def place_of_asked(serving: Serving) -> Location:
    """The option that asks for the backend, where one is asked for."""
    if serving.attention_backend:
        return serving.at("attention_backend")
    return serving.at("attention_config" if serving.flag("attention_config") else VARIABLE)


def is_mla(model: Model) -> bool:
    """Whether a model has multi-head latent attention: a compressed rank of keys and values."""
    found = model.config.find("kv_lora_rank")
    return found is not None and bool(found[1])


def latent_off(serving: Serving) -> bool:
    """Whether a variable has models with latent attention do with ordinary attention."""
    return serving.env.get(MLA_DISABLE, "0") not in {"", "0"}


def uses_mla(target: Target, serving: Serving, engine: Engine) -> bool:
    """Whether the release's own settings take the target for such a model: by its model_type and the key, whatever its
    class is."""
    types = known(engine.methods.mla_types, f"the model types that have latent attention in {engine}")
    return not latent_off(serving) and target.model_type in types and is_mla(target)


def draft_is_mla(target: Target, method: str, draft: Draft | None = None) -> bool:
    """Whether the draft has multi-head latent attention. A built-in draft has what its target has."""
    if draft is None or draft.is_part_of(target):
        if method != "mtp":
            raise NotApplicable(f"{method} has no draft with attention")
        return is_mla(target)
    return is_mla(draft)


def own_backend(engine: Engine, runner: str, method: str) -> bool:
    """Whether the draft's backend is chosen for itself, and not the one that the target was given."""
    own = engine.backends.draft.own
    key = "V1" if runner == "V1" else f"V2.{method}"
    return known(own.get(key), f"which attention backend {engine} gives a {method} draft ({runner} runner)")


def candidates(hardware: Hardware, engine: Engine, serving: Serving, *, mla: bool) -> list[str]:
    """Backends that may be chosen where nobody asks, in the order in which they are tried."""
    on = serving.env.get(AITER, "0").lower() in {"1", "true"}
    values: dict[str, object] = {
        **backend_values(hardware),
        "use_mla": mla,
        "use_sparse": False,
        "rocm_aiter_ops.is_mla_enabled()": on and serving.env.get(AITER_MLA, "1").lower() in {"1", "true"},
    }
    steps = engine.platforms.backends.get(hardware.platform) or ()
    chosen = choose(steps, values).then
    if chosen is not None:
        return list(chosen)
    # whatever the other switches are: all that any of the steps may give
    possible = [step for step in steps if step.holds(values) is not False]
    return list(dict.fromkeys(name for step in possible for name in step.then or ()))


def tried_backends(target: Target, serving: Serving, hardware: Hardware, engine: Engine) -> list[str]:
    """Of a target with ordinary attention alone, the backends that are tried on this GPU where nobody asks, and that do
    not refuse the target itself. Each is then held against what is asked for (``get_valid_backends`` in
    vllm/platforms/cuda.py)."""
    if hardware.platform != "cuda" or asked_backend(serving, engine) is not None:
        raise NotApplicable("only on CUDA is every backend held against what is asked for, where none is asked for")
    name = architecture_of(target, engine)
    if name not in engine.eagle.decoders or is_mla(target):
        raise MissingFact(f"the attention of each layer of {name}")
    values = backend_values(hardware, target)
    tried = candidates(hardware, engine, serving, mla=False)
    left = [one for one in tried if not refusals(one, engine, values, mla=False)]
    return known(left or None, f"the attention backends that {engine} tries")


def backend_values(hardware: Hardware | None, model: Model | None = None, dtype: str | None = None) -> dict[str, Any]:
    """What is known, by the names of the backends' conditions; ``dtype``: that of the model as it is served."""
    values: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    if hardware is not None:
        values["platform"] = hardware.platform
        if hardware.compute_capability is not None:
            values["capability"] = list(hardware.compute_capability)
            values["capability.major"], values["capability.minor"] = hardware.compute_capability
    if model is not None and (size := head_size(model)) is not None:
        values["head_size"] = size
    return values


def head_size(model: Model) -> int | None:
    """Size of an attention head: head_dim, else what hidden_size and the number of heads make it."""
    stated = model.number("head_dim")
    if stated is not None or is_mla(model):
        return stated if not is_mla(model) else None
    heads, hidden = model.number("num_attention_heads"), model.number("hidden_size")
    return hidden // heads if heads and hidden else None


def refusals(name: str, engine: Engine, values: dict[str, Any], *, mla: bool | None) -> list[tuple[str, str]]:
    """Why the backend ``name`` cannot be had: (field, reason in words). What is not known refuses nothing."""
    backend = engine.backends.backends.get(name)
    if backend is None:
        raise MissingFact(f"what the attention backend {name} of {engine} takes")
    found = []
    # a release that asks a backend for its capabilities holds it against the configuration; ROCm's came to that later
    asked = values.get("platform") == "cuda" and backend.capability is not None
    if asked and name == engine.blocks.cpu_backend:
        found.append(("platform", "is for CPUs, and its kernels are in no other build"))
    if backend.capability is not None and "capability" in values and evaluate(backend.capability, values) is False:
        shown = ".".join(map(str, values["capability"]))
        found.append(("capability", f"does not run on compute capability {shown}"))
    if mla is not None and backend.mla is not None and mla is not backend.mla:
        kind = "multi-head latent attention" if backend.mla else "ordinary attention, not multi-head latent attention"
        found.append(("mla", f"is for {kind}"))
    dtype = values.get("dtype")
    if asked and dtype is not None and backend.dtypes is not None and dtype not in backend.dtypes:
        found.append(("dtypes", f"takes models in {', '.join(backend.dtypes)}, not in {dtype}"))
    size = values.get("head_size")
    if size is not None and mla is False and not backend.mla:
        if backend.head_sizes and size not in backend.head_sizes:
            found.append(("head_sizes", f"takes heads of {', '.join(map(str, backend.head_sizes))}, not of {size}"))
        elif (when := backend.conditions.get("head_sizes")) and evaluate(when, values) is False:
            found.append(("head_sizes", f"does not take heads of {size}"))
    return found


def takes_cache(name: str, cache: str, hardware: Hardware, engine: Engine) -> bool:
    """Whether a backend for ordinary attention takes a KV cache of this dtype, as --kv-cache-dtype names it. Raises
    MissingFact where that hangs on what is not known."""
    backend = engine.backends.backends[name]
    if cache in (backend.kv_cache_dtypes or ()):
        return True
    condition = backend.conditions.get(f"kv_cache_dtypes.{cache}")
    if condition is None:
        return False
    needs: set[str] = set()
    found = evaluate(condition, backend_values(hardware), needs)
    if found is None:
        raise MissingFact(f"whether {name} takes a KV cache of {cache}: it hangs on {', '.join(sorted(needs))}")
    return bool(found)
