"""The speculative config: its keys, and what a release makes of drafts before it loads them."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from specfix.engines.compiled import Condition
from specfix.engines.facts.decisions import Guarded, Step
from specfix.engines.facts.requests import RequestFacts
from specfix.record import record


@record(frozen=True)
class Key:
    """One key of --speculative-config.

    ``type`` is what a value must be, as Python spells it, without None ("int", "list[float]", "LoadConfig"; "Any"), and
    ``nullable`` whether null is taken. ``choices``: the values that it may have, None where any of its type; where
    ``parsed``, a validator of the engine's own sees the value first, and choices are names of an enum in any case, with
    "auto" for none. ``at_least``, ``above``, ``at_most`` and ``below`` bound a number. A value of a key that is not
    ``validated`` is taken as it is.
    """

    type: str | None
    default: Any = None
    nullable: bool = False
    required: bool = False
    choices: tuple[Any, ...] | None = None
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    validated: bool = True
    parsed: bool = False


@record(frozen=True)
class SpeculativeFacts:
    """The fields of ``SpeculativeConfig`` and what its ``__post_init__`` and ``_verify_args`` make of them.

    ``keys``: what a user may set. ``passed``: fields that the engine passes itself, whatever the user gave. ``made``:
    fields that nothing validates and that the engine fills in after that; where the condition in ``read_as_mapping``
    holds, what the user gave for one is read first. ``refuses_others``: a key that is no field ends the start (else it
    is dropped without a word). ``dashes``: keys may be spelled with dashes.

    The names in the conditions below are those of the config's fields, with the values that they have by then: the
    steps of ``methods`` are all taken in order, each of which that holds sets ``method``.

    ``methods``: what becomes of ``method``. ``tokens``: where num_speculative_tokens comes from when it is not given,
    ``then`` is the names of the values of which the first that is there counts. ``multiples``: where ``when`` holds, a
    num_speculative_tokens above the value named ``then`` must be a multiple of it. ``refusals``: each whose ``when``
    holds ends the start, by an error of its own or as a number that is not there cannot be compared; those that hang on
    what cannot be lifted are left out. ``architectures``: what the first that holds makes of the architectures of the
    draft's config, beside the names that EAGLE drafts get (``methods.renamed``); None where that is not understood.
    ``requests``: what is done with what requests ask for.
    """

    keys: dict[str, Key] | None = None
    passed: tuple[str, ...] | None = None
    made: tuple[str, ...] | None = None
    read_as_mapping: dict[str, Condition] = field(default_factory=dict)
    refuses_others: bool | None = None
    dashes: bool | None = None
    methods: tuple[Step, ...] | None = None
    tokens: tuple[Step, ...] | None = None
    multiples: tuple[Step, ...] | None = None
    refusals: tuple[Step, ...] | None = None
    architectures: tuple[Step, ...] | None = None
    requests: RequestFacts = field(default_factory=RequestFacts)

    @cached_property
    def bounds(self) -> tuple[Step, ...]:
        """Each comparison of num_speculative_tokens with something within a refusal, ``then`` being the refusal."""
        asked = ["name", "num_speculative_tokens"]
        steps = [step for step in self.refusals or () if asked[1] in step.names]
        return tuple(Step(part, step, step.line) for step in steps for part in step.parts if part[1:-1] == [asked])

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values that keys have, and not null, where nobody gives them."""
        return {name: key.default for name, key in (self.keys or {}).items() if key.default is not None}

    @cached_property
    def stage(self) -> tuple[tuple[str, Step], ...]:
        """The steps in the order of the source, each with the key that it sets, "" for one that refuses."""
        steps = [("method", step) for step in self.methods or ()]
        steps += [("num_speculative_tokens", step) for step in self.tokens or ()]
        steps += [("", step) for step in self.refusals or ()]
        return tuple(sorted(steps, key=lambda entry: entry[1].line))


@record(frozen=True)
class Count:
    """Where a number comes from: the first of ``keys`` (dotted) that is there and not null, else ``default``; where
    ``required``, a config without the key ends the start."""

    keys: tuple[str, ...] = ()
    default: int | None = None
    required: bool = False


@record(frozen=True)
class Override(Guarded):
    """One step of ``SpeculativeConfig.hf_config_override``: what happens where ``when`` holds of the draft's config.

    Steps are tried in order and each sees the config as those before it left it. Names in ``when`` are keys of the
    config (``architectures.0`` is the first of the list); ``initial.`` before one means the config as it came. In all
    names ``text_config?`` is the config's text_config or, where it has none, the config itself; ``get_text_config()``
    what Transformers' method of that name returns. What is not there is None unless ``defaults`` says otherwise; a
    config that has no architectures ends the start where the first of them is asked for.

    The config gets this ``model_type``, these ``architectures`` and this ``n_predict`` (None: left alone); ``keys``
    are others that are written, some of them not in each case. ``becomes``: the part of the config that takes its
    place. Where ``refused``, the start ends; where ``last``, no later step is tried; where ``unread``, what happens is
    not known. ``line`` is the line in the source.
    """

    when: Condition
    model_type: str | None = None
    architectures: tuple[str, ...] | None = None
    n_predict: Count | None = None
    becomes: str | None = None
    keys: tuple[str, ...] = ()
    refused: bool = False
    last: bool = False
    unread: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)
    line: int = 0


@record(frozen=True)
class MtpFacts:
    """Built-in drafts.

    ``model_types``: model types of a draft that mean the method ``method``. ``aliases``: methods that are renamed to
    it. ``overrides``: see :class:`Override`; what a caller's own argument adds to them is left out.
    """

    model_types: tuple[str, ...] | None = None
    method: str | None = None
    aliases: tuple[str, ...] | None = None
    overrides: tuple[Override, ...] | None = None

    @cached_property
    def names(self) -> frozenset[str | None]:
        """All that mean ``method``."""
        return frozenset((self.method, *(self.aliases or ()), *(self.model_types or ())))

    @cached_property
    def reads(self) -> frozenset[str]:
        """Keys at the top of a config that the overrides may look at or write: all parts of all paths, and more."""
        paths = {"model_type", "architectures", "n_predict", "text_config"}
        for override in self.overrides or ():
            paths |= {*override.names, *(override.n_predict or Count()).keys, override.becomes or ""}
        return frozenset(part.rstrip("?") for path in paths for part in path.split("."))


@record(frozen=True)
class Copied:
    """One key of a converted config. Its value is that of the key ``source`` of the speculators config, else
    ``default``; without a ``source`` it is ``default``.

    ``when``: it is made "always", where the source is "given" (not null), or where it is "true" (not empty either).
    ``required``: without the source the start ends. ``change``: what is done to the value: each whole number of the
    list "less one", or "negated".
    """

    source: str | None = None
    default: Any = None
    when: Literal["always", "given", "true"] = "always"
    required: bool = False
    change: Literal["less one", "negated"] | None = None


@record(frozen=True)
class Algorithm:
    """What becomes of a draft of one speculators_model_type.

    ``architectures``: by the model type of its transformer_layer_config, "" for any other; a model type that is not in
    there ends the start. ``model_type``: what counts where the layer config states none. ``kept``: architectures that
    the config may state itself, in the place of those. ``keys``: by dotted key of the converted config, which is the
    layer config with these put in. ``speculative``: keys of the speculative config, "method" among them.
    """

    architectures: dict[str, tuple[str, ...]]
    model_type: str | None = None
    kept: tuple[str, ...] = ()
    keys: dict[str, Copied] = field(default_factory=dict)
    speculative: dict[str, Any] = field(default_factory=dict)


@record(frozen=True)
class SpeculatorsFacts:
    """What a release makes of a config in the speculators library's format.

    ``algorithms``: by speculators_model_type, None for one that could not be read; empty where the release does not
    know the format. ``required``: dotted
    keys without which the start ends. ``tokens`` and ``verifier``: dotted keys of the number of draft tokens and of
    the target that is served when the draft itself is, and ``local_verifier`` whether it may be a path of this host.
    ``tokens_as``: the key that the number becomes. ``user_config``: what becomes of a --speculative-config when a draft
    is served so: it is "dropped", "merged" over what the draft says but for the keys ``locked``, or "kept" in the place
    of all that the draft says.
    """

    algorithms: dict[str, Algorithm | None] | None = None
    required: tuple[str, ...] | None = None
    tokens: str | None = None
    tokens_as: str | None = None
    verifier: str | None = None
    local_verifier: bool | None = None
    user_config: Literal["dropped", "merged", "kept"] | None = None
    locked: tuple[str, ...] = ()
