"""From a launch command, as it stands somewhere, to a case: what it serves, on which release, with which options."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specfix.checking import Case, choose, origin
from specfix.deployment import Misfit, Serving
from specfix.deployment.json_text import show
from specfix.deployment.load import load_deployment
from specfix.deployment.presets import PRESETS
from specfix.deployment.serving import ANY_FLAG, COMMON
from specfix.deployment.shim import PATH, find_shim
from specfix.engines.find import find_engine
from specfix.engines.images import parse_image
from specfix.errors import CannotCheck
from specfix.launch.arguments import CONFIG, Arguments, read_arguments, spot
from specfix.launch.command import Launch, launches, launches_of, outside
from specfix.launch.manifests import Found, read_launches
from specfix.launch.script import commands
from specfix.launch.served_draft import draft_config, with_verifier
from specfix.launch.stated import SPECULATIVE_FLAGS, Options, one_key, options_of, placed, variables
from specfix.launch.words import COMMAND_LINE, Word

if TYPE_CHECKING:
    from specfix.deployment import Hardware
    from specfix.engines import Engine

# flags of releases before those known, which had no speculative config
LEGACY = {"speculative_model": "model", "num_speculative_tokens": "num_speculative_tokens"}
SPECULATION = re.compile(r"specul|--spec|-sc\b")


class NoSpeculation(CannotCheck):
    """A launch without speculative decoding."""


def from_command(command: str | Sequence[str]) -> Found:
    """The one server that a command line starts: a shell's text, or the words that it made of it.

    Raises CannotCheck where it starts none, or more.
    """
    if isinstance(command, str):
        found = list(launches_of(commands(command, COMMAND_LINE)))
    else:
        found = list(launches([Word(text) for text in command]))
    if len(found) != 1:
        what = "several vLLM servers" if found else "no vLLM server that can be recognised"
        raise CannotCheck(f"the command after -- starts {what}: vllm serve …, python -m …api_server …, docker run …")
    return Found(COMMAND_LINE, found[0])


def gather_launch(
    found: Found,
    *,
    target: str | os.PathLike[str] | None = None,
    draft: str | os.PathLike[str] | None = None,
    engine: str | None = None,
    engine_python: str | os.PathLike[str] | None = None,
    default_engine: str | None = None,
    hardware: Hardware | str | None = None,
    greedy: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> Case:
    """Read all that a check of this launch needs. ``target`` and ``draft`` say where the models that it names are here;
    ``default_engine`` is the release where the launch does not say.

    Raises CannotCheck where the launch names a model that cannot be read, or none.
    """
    chosen = choose(select, ignore)
    found = replace(found, launch=with_env_files(found.launch))
    release, notes = release_of(found.launch.image, engine, engine_python, default_engine)
    arguments, options = stated(found, release)
    options.values["greedy"] = greedy
    if target is None:
        arguments = paired(arguments, options, found, release)
        refuse_without_speculation(found, arguments, options)
    served = target if target is not None else model_of(arguments, found)
    named = options.speculative.pop("model", None)
    drafting = draft if draft is not None or named is None else here(str(named), "draft", found)
    if draft is None and "speculative.model" in options.unknown:
        raise CannotCheck(not_here("draft", options.unknown["speculative.model"], found))
    for word in arguments.open:  # it may hold any option, and the last one counts
        options.unknown = {**dict.fromkeys(COMMON - {"greedy", *options.values}, word.text), **options.unknown}
        options.unknown.setdefault(ANY_FLAG, word.text)
    machine, said = machine_of(found, hardware)
    handed = found.launch.devices
    if handed is not None:
        options.places["devices"] = handed.place
    serving = Serving(
        **options.values,
        env={name: word.text for name, word in found.launch.env.items()},
        flags=options.flags,
        speculative=options.speculative,
        devices=None if handed is None else handed.count,
        places=options.places,
        unknown=options.unknown,
        misfits=(*arguments.misfits, *options.misfits),
    )
    notes += options.said + said + [f"what {word.text} adds is known only where it runs" for word in arguments.open]
    notes += [f"the script takes the way that adds {word.text}" for word in arguments.assumed]
    if found.launch.env_from:
        notes.append(f"variables that {', '.join(found.launch.env_from)} may set are known only where it runs")
    if "hf_overrides" in options.unknown:
        notes.append(f"--hf-overrides, {options.unknown['hf_overrides']}, change nothing that counts here")
    deployment = load_deployment(os.fspath(served), None if drafting is None else os.fspath(drafting), serving, machine)
    assumptions = (*notes, *deployment.assumptions)
    deployment = replace(deployment, assumptions=assumptions, config_given=True, sources=found.sources)
    if PATH in serving.env and found.launch.mounts:
        seen = [outside(folder, found.launch.mounts) or folder for folder in serving.env[PATH].split(":")]
        deployment = replace(deployment, shim=find_shim({**serving.env, PATH: ":".join(seen)}))
    return Case(deployment, release, chosen)


def stated(found: Found, release: Engine) -> tuple[Arguments, Options]:
    """What the launch says, as the release reads it. Raises CannotCheck."""
    launch = with_env_files(found.launch)
    arguments = read_arguments(seen_from_here(launch), release, launch.program, found.sources)
    options = options_of(arguments, release)
    options.misfits += beside_the_command(launch)
    for flag, key in LEGACY.items():
        if flag in arguments.strangers and key not in {*options.values, *options.speculative}:
            legacy = arguments.strangers[flag]
            place = placed(legacy.word, legacy.word.text.partition("=")[0])
            value = int(legacy.value) if legacy.value.isdigit() else legacy.value
            one_key(key, value, legacy.unknown, place, options, release)
    variables(launch, options, release)
    return arguments, options


def paired(arguments: Arguments, options: Options, found: Found, release: Engine) -> Arguments:
    """The arguments as they are read where the model is a draft that is served by itself. Raises CannotCheck."""
    if arguments.model is None or arguments.model.unknown is not None or arguments.open:
        return arguments
    try:
        model = model_of(arguments, found)
    except CannotCheck:  # a place that is none of this machine's: whoever needs the model says so
        return arguments
    config = draft_config(model)
    return arguments if config is None else with_verifier(arguments, options, model, config, release)


def with_env_files(launch: Launch) -> Launch:
    """The launch with the variables in its files; what cannot be read here may set any."""
    if not launch.env_files:
        return launch
    from specfix.launch.env_file import read_env_file

    read = {name: None if launch.elsewhere else read_env_file(name) for name in launch.env_files}
    env = {name: word for found in read.values() for name, word in (found or {}).items()}
    missing = [name for name, found in read.items() if found is None]
    return replace(launch, env={**env, **launch.env}, env_files=(), env_from=(*missing, *launch.env_from))


def seen_from_here(launch: Launch) -> list[Word]:
    """The arguments, with the config file where it is on this machine; unknown where that cannot be told."""
    words = list(launch.arguments)
    for at, word in enumerate(words[:-1]):
        named = words[at + 1]
        if launch.mounts is not None and word.text == CONFIG and named.unknown is None:
            path = outside(named.text, launch.mounts)
            text = path or f"{named.text} in the container"
            words[at + 1] = replace(named, text=text, span=None).knowing([] if path else [text])
    return words


def beside_the_command(launch: Launch) -> list[Misfit]:
    """Words that are meant for the server, and stand before its arguments or after them."""
    misfits = []
    if launch.doubled and launch.image is not None:
        told = " ".join(word.text for word in launch.doubled)
        message = f"{launch.image} starts the server itself, and takes {show(told)} for arguments, which it refuses"
        misfits.append(Misfit(message, spot(launch.doubled[0])))
    if launch.lost:
        flags = [word for word in launch.lost if word.text.startswith("-")]
        told = ", ".join(word.text.partition("=")[0] for word in flags)
        message = f"{told}: no part of the command, which ends before (at a comment, or for want of a backslash)"
        repair = (
            "end each line of the command but the last in a backslash, with nothing behind it and no comment between"
        )
        misfits.append(Misfit(message, spot(flags[0]), ignored=True, repair=repair))
    return misfits


def find_launch(path: Path, **options: Any) -> tuple[Found, int]:
    """The one launch of a file that asks for speculation, and its number there. Raises CannotCheck."""
    every = read_launches(path)
    asking = [(found, index) for index, found in enumerate(every) if len(every) == 1 or asks(found, **options)]
    if len(asking) > 1:
        names = "; ".join(found.name for found, _ in asking)
        raise CannotCheck(f"{path} holds several launches with speculation, and fix takes a file with one: {names}")
    if not asking:
        raise CannotCheck(f"{path}: none of its launches asks for speculation")
    return asking[0]


def refuse_lone_draft(
    found: Found, engine: str | None = None, engine_python: str | None = None, **_options: Any
) -> None:
    """Raise CannotCheck for a launch that names its draft alone: it says too little to be changed."""
    release, _ = release_of(found.launch.image, engine, engine_python)
    arguments, options = stated(found, release)
    paired(arguments, options, found, release)
    if options.said:
        raise CannotCheck(
            f"{found.name}: {options.said[0]}; fix takes a launch that names both, by --speculative-config"
        )


def asks(found: Found, engine: str | None = None, engine_python: str | None = None, **_options: Any) -> bool:
    """Whether a launch asks for speculation; one that cannot be read may."""
    try:
        release, _ = release_of(found.launch.image, engine, engine_python)
        arguments, options = stated(found, release)
        refuse_without_speculation(found, paired(arguments, options, found, release), options)
    except NoSpeculation:
        return False
    except CannotCheck:
        return True
    return True


def refuse_without_speculation(found: Found, arguments: Arguments, options: Options) -> None:
    """Raise NoSpeculation where the launch asks for none, CannotCheck where that cannot be told."""
    asked = (
        options.speculative
        or "method" in options.values
        or any(name in options.places for name in ("speculative_config", *SPECULATIVE_FLAGS))
    )
    if "speculative_config" in options.unknown:
        raise CannotCheck(not_here("speculative config", options.unknown["speculative_config"], found))
    if asked:
        whole = options.places.get("speculative_config")
        wrong = [misfit for misfit in options.misfits if misfit.location == whole]
        if wrong and not options.speculative and "method" not in options.values:
            raise CannotCheck(f"{found.name}: {wrong[0].message}")
        return
    for misfit in arguments.misfits:
        if SPECULATION.search(misfit.location.pointer) and not misfit.ignored:
            raise CannotCheck(f"{found.name}: {misfit.message}")
    if any(SPECULATION.search(word.text) for word in found.launch.lost):
        raise CannotCheck(f"{found.name}: {beside_the_command(found.launch)[-1].message}")
    words = [word.text for word in arguments.open]
    if words and any(SPECULATION.search(text) for text in found.sources.values()):
        raise CannotCheck(f"{found.name}: whether {' '.join(words)} asks for speculation is known only where it runs")
    raise NoSpeculation(f"{found.name} asks for no speculation: it has no --speculative-config")


def release_of(
    image: Word | None,
    engine: str | None,
    engine_python: str | os.PathLike[str] | None,
    default: str | None = None,
) -> tuple[Engine, list[str]]:
    """The release that will serve, and how that is known where nobody said it: ``engine``, else the image's tag, else
    ``default``. Raises CannotCheck where the tag states a release that is not known."""
    stated, why = None, ""
    if image is not None and image.unknown is None:
        try:
            parsed = parse_image(image.text)
            stated = parsed.release() if parsed else None
        except CannotCheck as refused:
            why = f", since {refused}"
    elif image is not None:
        why = f", since the image is {image.text}"
    if engine is not None or engine_python is not None:
        release = find_engine(engine, None if engine_python is None else os.fspath(engine_python))
        told = [f"engine {release}, though {image} says {stated}"] if stated not in (None, release.version) else []
        return release, told
    if stated is not None and image is not None:
        release = find_engine(image.text)
        return release, [f"engine {release}: as the image's tag says"]
    if default is not None:
        return find_engine(default), []
    release = find_engine()
    return release, [f"engine {release}: {origin(release)}{why}"]


def model_of(arguments: Arguments, found: Found) -> str:
    """The model that the launch names."""
    model = arguments.model
    unknown = model.unknown if model else next((word.text for word in arguments.open), None)
    if unknown is not None:
        raise CannotCheck(not_here("target", unknown, found))
    if model is None:
        raise CannotCheck(f"{found.name} names no model to serve")
    return here(str(model.value), "target", found)


def here(path: str, side: str, found: Found) -> str:
    """Where a model is on this machine. Raises CannotCheck for a path in a container that cannot be told here."""
    if found.launch.mounts is None or not path.startswith(("/", ".", "~")):
        return path
    there = outside(path, found.launch.mounts)
    if there is None:
        raise CannotCheck(not_here(side, f"{path} in a container", found))
    return there


def not_here(what: str, text: str, found: Found) -> str:
    return f"the {what} of {found.name} is {text}, which is known only where it runs: give TARGET and DRAFT too"


def machine_of(found: Found, hardware: Hardware | str | None) -> tuple[Hardware | str | None, list[str]]:
    """The hardware: as given, as the manifest's labels say, unknown where the launch is for some other machine."""
    if hardware is not None:
        return hardware, []
    if found.hardware is not None and found.hardware.unknown is None:
        preset = preset_of(found.hardware.text)
        if preset is not None:
            return preset, [f"hardware {preset}: {found.hardware.text} in {found.name}"]
    if found.launch.image is not None or found.launch.elsewhere or found.name != COMMAND_LINE:
        return "unknown", [f"the hardware that {found.name} will run on is not known"]
    return None, []


def preset_of(label: str) -> str | None:
    """The preset that a node's label names (NVIDIA-A100-SXM4-40GB); None for a slice of a device."""
    words = re.findall(r"[a-z0-9]+", label.lower())
    if "mig" in words:
        return None
    joined = {"".join(words[start : start + count]) for count in (1, 2, 3) for start in range(len(words))}
    named = [name for name in PRESETS if name.replace("-", "") in joined or set(name.split("-")) <= set(words)]
    return max(named, key=len, default=None)
