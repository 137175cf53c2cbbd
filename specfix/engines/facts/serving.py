"""What `vllm serve` takes: flags, YAML, environment variables."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from specfix.engines.facts.requests import Range
from specfix.record import record


@record(frozen=True)
class Flag:
    """One flag of `vllm serve`, by its first long spelling.

    ``kind`` is what a value is read as (None: unknown):

    ================  ====================================================================
    ``switch``        takes none
    ``int``, ``float``, ``str``
    ``size``          an int, or one with a suffix of ``ServeFacts.sizes``
    ``json``          JSON text
    ``json_or_str``   JSON text where it stands in braces, else the text itself
    ``config``        a JSON object with the fields of the config class ``config``
    ``bool``          any text is True, but for the empty one
    ``comma_list``    a list, its parts divided by commas
    ================  ====================================================================

    ``aliases``: other spellings, with their dashes. ``negation``: each long spelling ``--x`` has a ``--no-x`` that
    turns it off; ``inverses`` do too (long, without dashes). ``none``: an empty text or "None" is no value.
    ``words``: texts with a meaning of their own, and what they mean (of a config: its fields). ``folds``: upper case
    and dashes of the value are taken as lower case and underscores.
    ``nargs``, ``choices`` and ``const`` as argparse has them; a None among the choices is for ``none``. ``appends``:
    given again it adds another value. ``default``: as JSON; a config that is made of nothing is ``{}``, an enum's
    member its name; None also where the flag sets nothing unless it is given. ``dest``: the field that it sets, where
    that is not the flag's name. ``deprecated``: the release marks it so.
    """

    kind: str | None = "str"
    aliases: tuple[str, ...] = ()
    negation: bool = False
    inverses: tuple[str, ...] = ()
    none: bool = False
    words: dict[str, Any] = field(default_factory=dict)
    folds: bool = False
    nargs: int | str | None = None
    const: Any = None
    choices: tuple[Any, ...] | None = None
    appends: bool = False
    default: Any = None
    dest: str | None = None
    config: str | None = None
    deprecated: bool = False


@record(frozen=True)
class ConfigClass:
    """What a JSON flag of kind ``config`` takes: the ``keys`` of its class, of which those in ``nested`` hold another
    class's. ``refuses_others``: a key that is none of them ends the start (else it is dropped without a word); None
    where that could not be read."""

    keys: tuple[str, ...]
    nested: dict[str, str] = field(default_factory=dict)
    refuses_others: bool | None = None


@record(frozen=True)
class ServeFacts:
    """What `vllm serve` takes.

    ``yaml_nested``: in a ``--config`` YAML a mapping may stand where a flag takes JSON (else only JSON text).
    ``yaml_false``: ``key: false`` there becomes ``--no-key`` (else it is dropped without a word). ``flags``: all of
    them, by their first long spelling without dashes. ``backend_variable``: VLLM_ATTENTION_BACKEND is heeded.
    ``method_words``: (word, method): a draft whose path, parent folders included, holds the word gets that method,
    the first one that is in it, unless the method asked for is one of ``method_kept``.

    How a command is read: ``positional``: the name of the argument without a flag (the model). ``abbreviations``: the
    beginning of a flag will do where only one flag begins so. ``underscores``: ``--a_b`` is ``--a-b``. ``dotted``:
    ``--flag.a.b x`` is ``--flag '{"a": {"b": x}}'``, and ``dotted_lists``: ``--flag.a+ x`` adds to a list there.
    ``dotted_sizes`` and ``json_sizes``: a number with a suffix may stand in those, and in the JSON of a config.
    ``level_flag``: the flag that ``-O3`` is read as. ``model_flag``: ``--model x`` will do for the positional.
    ``model_first``: beside ``--served-model-name`` no other option may stand before the positional.
    ``sizes``: suffix to factor; ``size_fractions``: the suffixes that may follow a fraction (1.5k).

    ``config_classes``: the classes of the flags of kind ``config`` and those nested in them; None for one whose keys
    could not be read. ``bounds``: flag to the numbers that its value must lie between, where there are any.
    """

    yaml_nested: bool | None = None
    yaml_false: bool | None = None
    flags: dict[str, Flag] | None = None
    backend_variable: bool = False
    method_words: tuple[tuple[str, str], ...] | None = None
    method_kept: tuple[str, ...] = ()
    positional: str | None = None
    abbreviations: bool | None = None
    underscores: bool | None = None
    dotted: bool | None = None
    dotted_lists: bool | None = None
    dotted_sizes: bool | None = None
    json_sizes: bool | None = None
    level_flag: str | None = None
    model_flag: bool | None = None
    model_first: bool | None = None
    sizes: dict[str, int] | None = None
    size_fractions: str | None = None
    config_classes: dict[str, ConfigClass | None] | None = None
    bounds: dict[str, Range] = field(default_factory=dict)


@record(frozen=True)
class Variable:
    """One environment variable that the engine reads.

    ``kind``: what its text is read as: ``str``, ``path`` (a leading ``~`` is the home folder), ``int``, ``float``,
    ``bool``, ``list`` (parts divided by commas), ``json``; None where that is unknown. ``on`` and ``off`` of a
    ``bool``: which of the texts 1, 0, true and false turn it on and off; one in neither is refused, or is as if
    nothing were set. ``choices``: the only texts (of a list: parts) that are taken. ``default``: its value where no
    variable at all is set.
    """

    kind: str | None = "str"
    default: Any = None
    choices: tuple[str, ...] | None = None
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


@record(frozen=True)
class VariableFacts:
    """``variables``: name to what the engine makes of it. None where the table could not be read."""

    variables: dict[str, Variable] | None = None


@record(frozen=True)
class RequirementFacts:
    """Version ranges that the distribution requires, as PEP 440 specifiers (">=4.56.0,<5"), "" where it takes any;
    None where the distribution's metadata are not at hand."""

    python: str | None = None
    torch: str | None = None
    transformers: str | None = None
