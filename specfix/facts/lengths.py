"""How many positions are served, and how many the draft can follow, each by the release's own formula.

Sources: ``_get_and_verify_max_len`` (vllm/config/model.py), ``_maybe_override_draft_max_position_embeddings``
(vllm/config/speculative.py), ``get_rope`` (vllm/model_executor/layers/rotary_embedding).
"""

from __future__ import annotations

from specfix.deployment import Draft, Model, Serving, Target
from specfix.deployment.expected import is_count
from specfix.engines import Engine
from specfix.errors import MissingFact, known

# RoPE types for which max_position_embeddings only sizes the table, so that raising it leaves every frequency as it
# is. yarn and deepseek size the table from original_max_position_embeddings; dynamic and longrope derive frequencies
# from it.
SIZE_ONLY_ROPE_TYPES = frozenset({"default", "linear", "llama3", "ntk", "proportional"})


def served_length(target: Target, serving: Serving, engine: Engine) -> int:
    """Tokens that a request may have, prompt and answer together: --max-model-len, else the target's derived length."""
    if serving.max_model_len is not None:
        return serving.max_model_len
    return known(derived_length(target, engine), f"max_position_embeddings in {target.config.file}")


def draft_length(draft: Draft, served_length: int, method: str, engine: Engine, serving: Serving) -> int:
    """The draft's max_model_len: as the speculative config gives it, else its derived one, which is never more than
    what is served, and that where the release raises it together with the positions."""
    given = own_length(serving)
    if given is not None:
        return given
    if engine.lengths.raise_also_lifts_length and raises_positions(draft, method, engine):
        return served_length
    return min(known(derived_length(draft, engine), f"max_position_embeddings in {draft.config.file}"), served_length)


def own_length(serving: Serving) -> int | None:
    """max_model_len of the speculative config: the draft's alone."""
    given = serving.speculative.get("max_model_len")
    if given is not None and not is_count(given):
        raise MissingFact("a whole number for max_model_len of the speculative config")
    return None if given is None else int(given)


def draft_rows(draft: Draft, served_length: int, method: str, engine: Engine) -> int:
    """Rows of the smallest rotary table of the draft, after what the release's config stage raises."""
    positions = draft.integer("max_position_embeddings")
    if positions < served_length and raises_positions(draft, method, engine):
        positions = served_length
    return min(table_rows(draft, positions, engine))


def raises_positions(draft: Draft, method: str, engine: Engine) -> bool:
    """Whether the release raises this draft's max_position_embeddings to the served length by itself."""
    methods = known(engine.lengths.raised_methods, f"whether {engine} raises a draft's max_position_embeddings")
    types = engine.lengths.raised_rope_types
    return method in methods and (types is None or all(rope.rope_type in types for rope in draft.ropes))


def size_only(model: Model) -> bool:
    """Whether raising max_position_embeddings merely adds rows to each rotary table of ``model``."""
    return all(rope.rope_type in SIZE_ONLY_ROPE_TYPES for rope in model.ropes)


def derived_length(model: Model, engine: Engine) -> int | None:
    """max_model_len as the release derives it from a config when nobody gives one; None where the config has none."""
    facts = engine.lengths
    types = {rope.rope_type for rope in model.ropes}
    if "longrope" in types and known(facts.longrope_from_original, f"how {engine} derives a longrope length"):
        original = model.config.values.get("original_max_position_embeddings")
        if original is not None:
            return int(original)
    length = longest(model, engine)
    return None if length is None else int(length)


def longest(model: Model, engine: Engine) -> float | None:
    """What the release holds a length that is asked for against; None where the config has none."""
    facts = engine.lengths
    length = stated_length(model, engine)
    unscaled_models = known(facts.unscaled_model_types, f"the model types that {engine} does not scale")
    if length is None or any(part in (model.model_type or "") for part in unscaled_models):
        return length
    unscaled = known(facts.unscaled_rope_types, f"the RoPE types whose factor {engine} does not apply")
    factor = 1.0
    for rope in model.ropes:
        if rope.rope_type in unscaled:
            continue
        factor = rope.factor or factor
        if rope.rope_type == "yarn" and known(facts.yarn_from_original, f"how {engine} derives a yarn length"):
            length = known(
                rope.original_max_position_embeddings, f"original_max_position_embeddings in {model.config.file}"
            )
    return length * factor


def may_pass(asked: int, model: Model, serving: Serving, engine: Engine) -> bool:
    """Whether the release takes a length above the one that it derives of ``model``."""
    facts = engine.lengths
    excuse = facts.longer_excused_by and model.number(facts.longer_excused_by)
    if not known(facts.refuses_longer, f"what {engine} makes of a longer --max-model-len") or asked <= (excuse or 0):
        return True
    name = facts.longer_allowed_by
    text = serving.env.get(name) if name else None
    if name is None or text is None:
        return False
    variable = (engine.variables.variables or {}).get(name)
    if variable is None or variable.kind is None:
        raise MissingFact(f"what {engine} makes of {name}={text}")
    return text.strip().lower() in variable.on


def stated_length(model: Model, engine: Engine) -> int | None:
    """The smallest of the lengths that a config states, or the one that wins over all; None where it states none."""
    keys = known(engine.lengths.keys, f"the keys from which {engine} derives a length")
    overriding = engine.lengths.overriding_key and model.number(engine.lengths.overriding_key)
    if overriding:
        return overriding
    return min((length for key in keys if (length := model.number(key)) is not None), default=None)


def table_rows(model: Model, positions: int, engine: Engine) -> list[int]:
    """Rows of each rotary table of ``model``, were its max_position_embeddings ``positions``."""
    rules = known(engine.rope.rows, f"how {engine} sizes rotary tables")
    tables = []
    for rope in model.ropes:
        joined = [f"{rope.rope_type}+{key}" for key, value in rope.parameters.items() if value]
        rule = next((rules[key] for key in joined if key in rules), rules.get(rope.rope_type, "other"))
        start, *factors = rule.split("*")
        rows = positions if start == "max_position" else rope.original_max_position_embeddings
        if start == "other" or rows is None:
            raise MissingFact(f"how {engine} sizes the rotary table of rope_type {rope.rope_type}")
        for factor in factors:
            rows = int(rows * ((rope.factor or 1.0) if factor == "factor" else int(factor)))
        tables.append(rows)
    return tables
