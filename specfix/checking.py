"""check(): from what the user says to a report. The command line and the library come in by this door."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specfix.checker.registry import load_rules
from specfix.checker.run import Chosen, check_codes, run
from specfix.deployment import Serving
from specfix.deployment.expected import LIMIT
from specfix.deployment.json_text import show
from specfix.deployment.load import load_deployment
from specfix.deployment.serving import AUTO, AUTO_LENGTH, COMMON, COUNTS
from specfix.engines.find import BY_TAG, SHIPPED, find_engine
from specfix.engines.runner import ENVIRONMENT
from specfix.errors import CannotCheck
from specfix.facts import PROVIDERS
from specfix.facts.class_defaults import with_class_defaults
from specfix.record import record
from specfix.report.secrets import MASK, SECRET

if TYPE_CHECKING:
    from specfix.checker.report import Report
    from specfix.deployment import Deployment, Hardware
    from specfix.engines import Engine
    from specfix.engines.facts.serving import Flag

VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
NAMES = ("dtype", "kv_cache_dtype", "attention_backend")
NAME = re.compile(r"\w[\w.-]*", re.ASCII)
SPECULATIVE = ("method", "num_speculative_tokens")  # keys of the speculative config that are options too
OWN = frozenset({"model", "speculative_config"})  # flags of the engine that are said otherwise here


def check(
    target: str | os.PathLike[str],
    draft: str | os.PathLike[str] | None = None,
    *,
    method: str | None = None,
    num_speculative_tokens: int | None = None,
    max_model_len: int | None = None,
    max_num_seqs: int | None = None,
    tensor_parallel_size: int = 1,
    pipeline_parallel_size: int = 1,
    dtype: str | None = None,
    block_size: int | None = None,
    attention_backend: str | None = None,
    kv_cache_dtype: str | None = None,
    enforce_eager: bool = False,
    greedy: bool = False,
    flags: Mapping[str, Any] | None = None,
    speculative_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    engine: str | None = None,
    engine_python: str | os.PathLike[str] | None = None,
    hardware: Hardware | str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Report:
    """Check a pair, as ``specfix check`` does; options are named as there.

    ``flags`` holds any other flag of the engine by its name, ``speculative_config`` keys of the speculative config.

    ``engine`` is ``vllm==0.26.0``, an image with a release's tag, or a folder, wheel or interpreter that holds one;
    ``engine_python`` is an interpreter that is run to ask which it would import. By default it is the installed one,
    else the newest known. ``hardware`` is a preset (``h200``) or a saved file; by default what is found here.
    ``select`` and ``ignore`` hold codes or prefixes. Raises CannotCheck for what cannot be checked at all.
    """
    case = gather(**locals())
    return case.check(case.deployment)


@record(frozen=True)
class Case:
    """What is to be checked, and by what."""

    deployment: Deployment
    engine: Engine
    chosen: Chosen

    def check(self, deployment: Deployment) -> Report:
        """The report on ``deployment``: the given one, or what was made of it."""
        resolved = with_class_defaults(deployment, self.engine)
        return run(resolved, self.engine, self.chosen, PROVIDERS)


def gather(
    target: str | os.PathLike[str],
    draft: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    speculative_config: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    engine: str | None = None,
    engine_python: str | os.PathLike[str] | None = None,
    hardware: Hardware | str | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    **options: Any,
) -> Case:
    """Find and read all that :func:`check` needs, which says what the options are. Raises CannotCheck."""
    if not isinstance(speculative_config, Mapping | None) or not isinstance(flags, Mapping | None):
        raise CannotCheck("flags and speculative_config are mappings of names to values")
    speculative = dict(speculative_config or {})
    as_served = bool({"model", "method"} & set(speculative))
    draft = once("model", draft, speculative.pop("model", None))
    for name in SPECULATIVE:
        options[name] = once(name, options.get(name), speculative.pop(name, None))
    serving = Serving(**options, env=dict(env or {}), flags=named(flags or {}), speculative=speculative)
    if serving.max_model_len == AUTO_LENGTH:
        serving = replace(serving, max_model_len=None, unknown={"max_model_len": AUTO})
    check_counts(serving)
    check_names(serving)
    check_variables(serving)
    chosen = choose(select, ignore)
    release = find_engine(engine, None if engine_python is None else os.fspath(engine_python))
    check_flags(serving.flags, release)
    if serving.method is not None:
        check_method(serving.method, release)  # the loader would take an unknown one for one without a draft
    deployment = load_deployment(os.fspath(target), None if draft is None else os.fspath(draft), serving, hardware)
    # a config that is still to be written will name it; a draft without marks of its own is left to the release
    names_method = deployment.method_given or not (as_served or deployment.serving.method == "draft_model")
    deployment = replace(deployment, config_given=as_served, method_given=names_method)
    why = None
    if engine is None and engine_python is None:
        why = origin(release)
    elif release.source == BY_TAG:
        why = "as the image's tag says"
    if why is not None:
        assumptions = (f"engine {release}: {why}", *deployment.assumptions)
        deployment = replace(deployment, assumptions=assumptions)
    return Case(deployment, release, chosen)


def choose(select: Iterable[str], ignore: Iterable[str]) -> Chosen:
    """The rules, and which of them are asked for. Raises CannotCheck for a code that no rule bears."""
    asked = Chosen(load_rules(), codes(select), codes(ignore))
    check_codes([*asked.select, *asked.ignore], asked.rules)
    return asked


def origin(engine: Engine) -> str:
    """Where an engine that nobody named comes from."""
    return "the newest known" if engine.source == SHIPPED else engine.source


def once(name: str, option: Any, key: Any) -> Any:
    """What is given as an option or as a key of the speculative config. Raises CannotCheck where both are."""
    if option is not None and key is not None:
        raise CannotCheck(f"{name} is given twice: {option} and, in the speculative config, {show(key)}")
    if key is not None and not isinstance(key, int if name in COUNTS else str):
        raise CannotCheck(f"the speculative config's {name} is {show(key)}")
    return key if option is None else option


def named(flags: Mapping[str, Any]) -> dict[str, Any]:
    """``flags`` by their names with underscores. Raises CannotCheck for one that has an option of its own."""
    found = {str(name).removeprefix("--").replace("-", "_"): value for name, value in flags.items()}
    for name in found:
        if name in COMMON or name in OWN:
            raise CannotCheck(f"{name.replace('_', '-')} has an option of its own: --{name.replace('_', '-')}")
    return found


def check_flags(flags: Mapping[str, Any], engine: Engine) -> None:
    """Raise CannotCheck for a flag that the release does not have."""
    known = engine.serve.flags
    for name in flags:
        flag = name.replace("_", "-")
        if known and flag not in known:
            import difflib

            near = difflib.get_close_matches(flag, known, 1)
            raise CannotCheck(f"{engine} has no --{flag}" + (f"; it has --{near[0]}" if near else ""))
        if known:
            check_kind(flag, flags[name], known[flag], engine)


def check_kind(name: str, value: Any, flag: Flag, engine: Engine) -> None:
    """Raise CannotCheck for a value of another kind than the flag takes: no rule could make anything of it."""
    kinds: dict[str, tuple[type, ...]] = {
        **dict.fromkeys(("int", "size"), (int,)),
        "float": (int, float),
        **dict.fromkeys(("switch", "bool"), (bool,)),
        **dict.fromkeys(("json", "config"), (dict, list)),
        "json_or_str": (dict, str),
    }
    wanted = kinds.get(flag.kind or "")
    several = flag.nargs is not None and isinstance(value, list)
    for each in value if several else [value]:
        good = wanted is None or (isinstance(each, wanted) and (bool in wanted or not isinstance(each, bool)))
        if each is None or (isinstance(each, str) and each in flag.words):
            continue
        if not good or (flag.choices and isinstance(each, str) and each not in flag.choices):
            told = MASK if SECRET.search(name) else show(value)
            raise CannotCheck(f"--flag {name}: {engine} does not take {told} there")


def check_variables(serving: Serving) -> None:
    """Raise CannotCheck for what no environment holds, and for a variable whose value the engine would die of."""
    for name in serving.env:
        if not VARIABLE_NAME.fullmatch(name):
            raise CannotCheck(f"--env: {name!r} is no name of a variable")
    value = serving.env.get(ENVIRONMENT)
    if value is not None and not value.strip().isdigit():
        raise CannotCheck(f"--env {ENVIRONMENT}={value}: the engine takes a number there, 0 or 1")


def check_counts(serving: Serving) -> None:
    """Raise CannotCheck for a number below one, or beyond all reason: every one of these counts something."""
    for name in COUNTS:
        value = getattr(serving, name)
        if value is not None and type(value) is not int:
            raise CannotCheck(f"--{name.replace('_', '-')} takes a whole number, not {show(value)}")
        if value is not None and not 1 <= value <= LIMIT:
            bound = "at least 1" if value < 1 else f"at most {LIMIT}"
            raise CannotCheck(f"--{name.replace('_', '-')} must be {bound}, not {value}")


def check_names(serving: Serving) -> None:
    """Raise CannotCheck for what is no name: which names a release takes is not known."""
    for option in NAMES:
        value = getattr(serving, option)
        if value is not None and not (isinstance(value, str) and NAME.fullmatch(value)):
            raise CannotCheck(f"--{option.replace('_', '-')} takes a name, not {value!r}")


def check_method(method: str, engine: Engine) -> None:
    """Raise CannotCheck for a method that the release does not know."""
    known = engine.methods.methods
    if known and method not in known:
        raise CannotCheck(f"{engine} knows no method {method!r}; it knows {', '.join(sorted(known))}")


def codes(given: Iterable[str]) -> tuple[str, ...]:
    """Codes in capitals. One string may hold several with commas between, as on the command line.

    Raises CannotCheck where something is given and no code is in it: it would choose all.
    """
    parts = [given] if isinstance(given, str) else list(given)
    found = tuple(code.strip().upper() for part in parts for code in part.split(",") if code.strip())
    if parts and not found:
        raise CannotCheck(f"no rule's code is in {', '.join(map(repr, parts))}; `specfix rules` lists them")
    return found
