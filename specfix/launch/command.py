"""Which server a command starts, in which image and with which variables.

Known: ``vllm serve``, ``python -m vllm.entrypoints.openai.api_server``, ``docker run`` (podman, nerdctl) of an image,
``kubectl run``, all of them behind ``env``, ``sudo``, ``sh -c``, ``uv run``, ``srun``, ``ssh`` and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from specfix.launch.devices import Devices
from specfix.launch.devices import of_docker as devices_of
from specfix.launch.script import Command, commands
from specfix.launch.words import ASSIGNMENT, Word
from specfix.record import record

Program = Literal["vllm serve", "api_server"]

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
ENGINES = frozenset({"docker", "podman", "nerdctl"})
API_SERVER = "vllm.entrypoints.openai.api_server"
MODULES = frozenset({"vllm", "vllm.entrypoints.cli.main"})
# programs that start what comes after their own options, with those options that take the next word
BEFORE: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("nohup", "setsid", "dumb-init", "unbuffer", "chronic", "gosu", "su-exec", "taskset"), frozenset()),
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group"}),
    "exec": frozenset({"-a"}),
    "time": frozenset({"-o", "-f"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "tini": frozenset({"-p", "-e"}),
    "timeout": frozenset({"-k", "-s"}),
    "numactl": frozenset(
        {"-N", "-m", "-C", "-i", "-p", "-P"}
        | {"--cpunodebind", "--membind", "--physcpubind", "--interleave", "--preferred", "--preferred-many"}
    ),
}
FIRST_WORD = frozenset({"timeout", "taskset", "gosu", "su-exec"})  # take one more word before the program
# programs that start another one, with options of their own that are many: what they start is looked for
AROUND = frozenset(
    {"uv", "uvx", "conda", "mamba", "micromamba", "pixi", "poetry", "pipenv", "hatch", "pdm", "rye"}
    | {"srun", "mpirun", "mpiexec", "ray", "apptainer", "singularity", "nsys", "ncu", "py-spy", "screen", "tmux"}
    | {"systemd-run", "dotenv", "doppler", "op", "flock"}
)
ELSEWHERE = frozenset({"srun", "mpirun", "mpiexec", "ray", "ssh", "kubectl"})  # on some other machine
FAR = frozenset({"ray", "ssh", "kubectl"})  # of these, one that shares no files with this one
SANDBOXES = frozenset({"apptainer", "singularity"})
SSH_VALUES = re.compile(r"-[bcDEeFIiJLlmOopQRSWw]")
SCRIPT = re.compile(r"\s.*\bvllm\b|\bvllm\b.*\s", re.DOTALL)  # a text of several words that speaks of vLLM
# options of `docker run` that take no value; every other one takes the next word, unless it has its own after "="
BARE = frozenset(
    {"--detach", "--disable-content-trust", "--init", "--interactive", "--no-healthcheck", "--oom-kill-disable"}
    | {"--privileged", "--publish-all", "--quiet", "--read-only", "--replace", "--rm", "--sig-proxy", "--tty", "--help"}
)
BARE_LETTERS = frozenset("ditPq")
OWN_IMAGE = re.compile(r"(?:^|/)vllm(?:-openai|-cpu-release-repo)?(?:[:@]|$)")
STARTS_ITSELF = re.compile(r"(?:docker\.io/)?vllm/vllm-openai(?:[:@].*)?")
SERVER_OPTIONS = ("--model", "--served-model-name", "--max-model-len", "--speculative-config", "--spec-", "-sc")
PYTHON = re.compile(r"python[\d.]*", re.ASCII)
DEPTH = 4  # scripts within scripts
WRAPPERS = 100  # programs, or variables, before a program


@record(frozen=True)
class Mount:
    """A path ``inside`` a container, and what is there: a path ``outside``, None where that is nothing of this machine
    (a volume) or not known."""

    inside: str
    outside: str | None


@record(frozen=True)
class Launch:
    """The start of a server. ``arguments`` are what its program is given; ``image`` what it runs in; ``env`` the
    variables that are set for it, ``env_files`` those of its files that set more, ``env_from`` what else may (a
    ConfigMap). ``mounts`` of a container, None where the server sees the files of its machine; ``elsewhere``: that is
    some other machine. ``devices``: the GPUs that its container is handed, None where that is not said. ``doubled``:
    the words that say again what the image starts by itself. ``lost``: words that stand after the command, and look
    like arguments of it."""

    program: Program
    arguments: tuple[Word, ...]
    env: Mapping[str, Word] = field(default_factory=dict)
    image: Word | None = None
    env_files: tuple[str, ...] = ()
    env_from: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] | None = None
    elsewhere: bool = False
    devices: Devices | None = None
    doubled: tuple[Word, ...] = ()
    lost: tuple[Word, ...] = ()


def launches_of(found: Iterable[Command]) -> Iterator[Launch]:
    """The servers that a script's commands start."""
    for command in found:
        for launch in launches(command.words, command.env):
            yield replace(launch, lost=launch.lost or command.lost)


def launches(words: Sequence[Word], env: Mapping[str, Word] | None = None, depth: int = 0) -> Iterator[Launch]:
    """The servers that one command starts; a shell's script may hold several. ``depth``: how many scripts it is in."""
    words, variables, elsewhere, far, image = list(words), dict(env or {}), False, False, None
    for _ in range(WRAPPERS):
        if not words:
            return
        name = PurePosixPath(words[0].text).name
        elsewhere, far = elsewhere or name in ELSEWHERE, far or name in FAR
        if (match := ASSIGNMENT.fullmatch(words[0].text)) and not match["added"]:
            variables[match["name"]] = words[0].part(match["value"])
            words = words[1:]
        elif name in BEFORE:
            words = after_options(words[1:], BEFORE[name], 1 if name in FIRST_WORD else 0)
        elif name in AROUND:
            rest = words[2:] if words[1:] and words[1].text in {"exec", "run"} else words[1:]
            at = next((index for index in range(len(rest)) if starts(rest, index)), len(rest))
            if name in SANDBOXES:
                image = next((word for word in reversed(rest[:at]) if re.search(r"\.sif$|://", word.text)), None)
            words = rest[at:]
        else:
            break
    else:
        return
    image = image and replace(image, text=image.text.removeprefix("docker://"))
    for launch in started(words, variables, depth):
        mounts = () if far else launch.mounts
        yield replace(launch, elsewhere=elsewhere or launch.elsewhere, image=launch.image or image, mounts=mounts)


def started(words: list[Word], env: Mapping[str, Word], depth: int) -> Iterator[Launch]:
    """The servers that a program starts."""
    name, rest = PurePosixPath(words[0].text).name, words[1:]
    variable = words[0].unknown is not None
    first = rest[0].text if rest else ""
    if first == "serve" and (is_vllm(name) or (variable and "vllm" in words[0].text.lower())):
        yield Launch("vllm serve", tuple(rest[1:]), env)
    elif PYTHON.fullmatch(name) or (variable and first.startswith("-")):
        yield from of_python(rest, env)
    elif name in SHELLS:
        yield from of_shell(rest, env, depth)
    elif name == "eval":
        yield from of_text(rest, env, depth)
    elif name == "ssh":
        yield from of_text(after_options(rest, SSH_VALUES, 1), {}, depth)
    elif name == "kubectl":
        yield from of_kubectl(rest, depth)
    elif name in ENGINES and first in {"run", "create"}:
        yield from of_docker(rest[1:], depth)
    elif name in ENGINES and [word.text for word in rest[:2]] == ["container", "run"]:
        yield from of_docker(rest[2:], depth)
    elif name in ENGINES and first == "exec":
        yield from in_container(rest[1:], depth)
    elif SCRIPT.search(words[0].text):  # tmux new -d 'vllm serve …'
        yield from of_text(words[:1], env, depth)


def is_vllm(name: str) -> bool:
    return name.partition("@")[0] == "vllm"  # uvx vllm@0.26.0 serve


def starts(words: Sequence[Word], at: int) -> bool:
    """Whether a program that may start a server is named here, after another program's options."""
    name = PurePosixPath(words[at].text).name
    following = words[at + 1].text if at + 1 < len(words) else ""
    if is_vllm(name):
        return following == "serve"
    if PYTHON.fullmatch(name) or name in SHELLS:
        return following.startswith("-") or PurePosixPath(following).name == "vllm"
    return name in BEFORE or name in AROUND or name == "eval" or SCRIPT.search(words[at].text) is not None


def after_options(words: list[Word], values: frozenset[str] | re.Pattern[str], more: int = 0) -> list[Word]:
    """What comes after a program's own options, of which ``values`` take the next word, and after ``more`` words."""
    at = 0
    while at < len(words) and (text := words[at].text).startswith("-"):
        at += 2 if (text in values if isinstance(values, frozenset) else values.fullmatch(text)) else 1
        if text == "--":
            break
    return words[at + more :]


def of_python(words: list[Word], env: Mapping[str, Word]) -> Iterator[Launch]:
    """``python [-options] -m vllm.entrypoints.openai.api_server …``, or ``python /…/bin/vllm serve …``."""
    for index, word in enumerate(words):
        following = words[index + 1 :]
        if word.text == "-m" and following:
            module = following[0].text
            if module == API_SERVER:
                yield Launch("api_server", tuple(following[1:]), env)
            elif module in MODULES and len(following) > 1 and following[1].text == "serve":
                yield Launch("vllm serve", tuple(following[2:]), env)
            return
        if not word.text.startswith("-"):
            if word.text.endswith("vllm/entrypoints/openai/api_server.py"):
                yield Launch("api_server", tuple(following), env)
            elif PurePosixPath(word.text).name == "vllm" and following and following[0].text == "serve":
                yield Launch("vllm serve", tuple(following[1:]), env)
            return


def of_shell(words: list[Word], env: Mapping[str, Word], depth: int) -> Iterator[Launch]:
    """``sh -c 'script'``: each command of the script."""
    for index, word in enumerate(words):
        if not word.text.startswith("-"):
            return  # a script of its own, which is not here
        if word.text.endswith("c") and not word.text.startswith("--") and index + 1 < len(words):
            yield from of_text([words[index + 1]], env, depth)
            return


def of_text(words: Sequence[Word], env: Mapping[str, Word], depth: int) -> Iterator[Launch]:
    """A script in a word, or in several that are joined."""
    if not words or depth == DEPTH:
        return
    script = words[0] if len(words) == 1 else Word(" ".join(word.text for word in words), words[0].place)
    # what is put in may ask for more to be put in, without end: so only in the outermost script
    known = {} if depth else {name: value.text for name, value in env.items() if value.unknown is None}
    place = script.place
    home = script if script.span or script.lines else None
    for command in commands(script.text, place.file, place.line or 1, known, home):
        found = placed(command.words, script)
        for launch in launches(found, {**env, **command.env}, depth + 1):
            yield replace(launch, lost=launch.lost or placed(command.lost, script))


def placed(words: Sequence[Word], script: Word) -> tuple[Word, ...]:
    """Words of a script where the script stands, which on a command line is no line."""
    known = script.place.line is not None
    return tuple(each if known else replace(each, place=script.place) for each in words)


def of_docker(words: list[Word], depth: int) -> Iterator[Launch]:
    """``[options] IMAGE [arguments]``. vLLM's images start the server themselves, so arguments alone will do."""
    env: dict[str, Word] = {}
    entry: Word | None = None
    files: list[str] = []
    mounts: list[Mount] = []
    given_options, words = options(words)
    for option, value in given_options:
        if value is None:
            continue
        if option in {"-e", "--env"}:
            name, given, text = value.text.partition("=")
            env[name] = value.part(text) if given else replace(value, text=f"${name}").knowing([f"${name}"])
        elif option == "--env-file":
            files.append(value.text)
        elif option in {"-v", "--volume"}:
            mounts.append(volume(value))
        elif option == "--mount":
            mounts += mount(value)
        elif option == "--entrypoint":
            entry = value
    if not words:
        return
    image, rest = words[0], words[1:]
    program = [entry] if entry is not None and entry.text else []
    for launch in in_image(image, [*program, *rest], env, tuple(mounts), entry is None, depth):
        handed = launch.devices or devices_of(given_options)
        yield replace(launch, env_files=(*files, *launch.env_files), devices=handed)


def in_container(words: list[Word], depth: int) -> Iterator[Launch]:
    """``docker exec [options] CONTAINER command``: which image that is, and what it sees, is not said."""
    _, words = options(words)
    for launch in launches(words[1:], None, depth):
        yield replace(launch, mounts=launch.mounts or (), env_from=("the container", *launch.env_from))


def of_kubectl(words: list[Word], depth: int) -> Iterator[Launch]:
    """``kubectl run NAME --image=X [--command] -- arguments``, ``kubectl exec POD -- command``."""
    at = next((index for index, word in enumerate(words) if word.text == "--"), None)
    if at is None or not words or words[0].text not in {"run", "exec"}:
        return
    env: dict[str, Word] = {}
    image: Word | None = None
    own = True
    for word, following in pairwise(words[: at + 1]):
        option, value = option_of(word)
        value = following if value is None else value
        if option == "--image":
            image = value
        elif option == "--command":
            own = word.text == "--command=false"
        elif option == "--env":
            name, _, text = value.text.partition("=")
            env[name] = value.part(text)
    if words[0].text == "run":
        yield from in_image(image, words[at + 1 :], env, itself=own, depth=depth)
    else:
        for launch in launches(words[at + 1 :], None, depth):
            yield replace(launch, mounts=launch.mounts or (), env_from=("the pod", *launch.env_from))


def in_image(
    image: Word | None,
    words: Sequence[Word],
    env: Mapping[str, Word],
    mounts: tuple[Mount, ...] = (),
    itself: bool = True,
    depth: int = 0,
) -> Iterator[Launch]:
    """What a container of ``image`` starts when it is given ``words``, which may be arguments alone: where ``itself``,
    the image's own program gets them, and else they begin with the program."""
    found = list(launches(words, env, depth))
    own = itself and image is not None and image.unknown is None and STARTS_ITSELF.fullmatch(image.text) is not None
    if found and own:  # the image's program takes these words for arguments
        found = [replace(each, doubled=said_again(words, each.arguments)) for each in found]
    elif own and len(words) > 1 and words[0].text == "serve":
        found = [Launch("vllm serve", tuple(words[1:]), dict(env), doubled=tuple(words[:1]))]
    elif not found and image is not None and arguments_alone(words, image):
        program: Program = "api_server" if words and words[0].text.startswith("-") else "vllm serve"
        found = [Launch(program, tuple(words), dict(env))]
    for each in found:
        inside = each.mounts if each.mounts is not None else mounts
        yield replace(each, image=each.image or image, mounts=inside)


def said_again(words: Sequence[Word], arguments: Sequence[Word]) -> tuple[Word, ...]:
    """The words before the arguments, where they are the end of these."""
    before = words[: len(words) - len(arguments)]
    return tuple(before if tuple(words[len(before) :]) == tuple(arguments) else words[:1])


def arguments_alone(words: Sequence[Word], image: Word) -> bool:
    """Whether these can be the arguments of a server that the image starts by itself: options, or a model before them.
    Of an image that is not vLLM's own, options that only a server of vLLM has."""
    if not words or "vllm" not in image.text.lower():
        return False
    first = words[0].text
    options = first.startswith("-") or ("/" in first and len(words) > 1 and words[1].text.startswith("-"))
    own = OWN_IMAGE.search(image.text) is not None
    return options and (own or any(word.text.startswith(SERVER_OPTIONS) for word in words))


def volume(word: Word, home: str | None = None) -> Mount:
    """``HOST:CONTAINER[:options]``; a HOST that is no path is the name of a volume, or a path below ``home``."""
    outside, _, rest = word.text.partition(":")
    return bind(outside, rest.partition(":")[0] or outside, word, home)


def bind(outside: str, inside: str, word: Word, home: str | None = None) -> Mount:
    known = word.unknown is None and outside.startswith(("/", ".", "~"))
    path = outside if home is None or outside.startswith(("/", "~")) else f"{home}/{outside}"
    return Mount(inside, path if known else None)


def mount(word: Word) -> Iterator[Mount]:
    """``type=bind,source=HOST,target=CONTAINER``."""
    given = dict(part.partition("=")[::2] for part in word.text.split(","))
    inside = given.get("target") or given.get("dst") or given.get("destination")
    outside = given.get("source") or given.get("src") or ""
    if inside:
        yield bind(outside if given.get("type") == "bind" else "", inside, word)


def outside(path: str, mounts: Sequence[Mount]) -> str | None:
    """Where a path inside a container is on its machine; None where that cannot be told."""
    parts = PurePosixPath(path).parts
    best, found = 0, None
    for each in mounts:
        above = PurePosixPath(each.inside).parts
        if parts[: len(above)] == above and len(above) > best and ".." not in parts:
            best, found = len(above), each.outside and str(PurePosixPath(each.outside, *parts[len(above) :]))
    return found


def options(words: Sequence[Word]) -> tuple[list[tuple[str, Word | None]], list[Word]]:
    """The options of ``docker run`` or ``exec``, each with its value, and the words behind them."""
    found: list[tuple[str, Word | None]] = []
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        option, value = option_of(words[at])
        at += 1
        if value is None and not bare(option) and at < len(words):
            value, at = words[at], at + 1
        found.append((option, value))
    return found, list(words[at:])


def option_of(word: Word) -> tuple[str, Word | None]:
    """An option of ``docker run`` and the value in the same word: ``--env=A=1``, ``-eA=1``."""
    if word.text.startswith("--"):
        option, equals, value = word.text.partition("=")
        return option, word.part(value) if equals else None
    if len(word.text) > 2 and word.text[1] not in BARE_LETTERS:
        return word.text[:2], word.part(word.text[2:].removeprefix("="))
    return word.text, None


def bare(option: str) -> bool:
    """Whether an option of ``docker run`` takes no value."""
    if option.startswith("--"):
        return option in BARE
    return set(option[1:]) <= BARE_LETTERS
