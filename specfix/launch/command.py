"""Which server a command starts, in which image and with which variables.

Known: ``vllm serve``, ``python -m vllm.entrypoints.openai.api_server`` and ``docker run`` (podman, nerdctl) of an
image, behind ``env``, ``sudo``, ``sh -c`` and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal

from specfix.launch.words import ASSIGNMENT, Word, commands

Program = Literal["vllm serve", "api_server"]

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
ENGINES = frozenset({"docker", "podman", "nerdctl"})
API_SERVER = "vllm.entrypoints.openai.api_server"
# programs that start what comes after their own options
BEFORE = frozenset(
    {"env", "sudo", "nohup", "exec", "time", "nice", "numactl", "stdbuf", "setsid", "tini", "dumb-init", "timeout"}
)
# of those options the ones that take the next word
BEFORE_VALUES = frozenset({"-u", "-n", "-C", "-m", "-N", "-g", "-k", "-s", "--user", "--cpunodebind", "--membind"})
# options of `docker run` that take no value; every other one takes the next word, unless it has its own after "="
BARE = frozenset(
    {"--detach", "--disable-content-trust", "--init", "--interactive", "--no-healthcheck", "--oom-kill-disable"}
    | {"--privileged", "--publish-all", "--quiet", "--read-only", "--replace", "--rm", "--sig-proxy", "--tty", "--help"}
)
BARE_LETTERS = frozenset("ditPq")
OWN_IMAGE = re.compile(r"(?:^|/)vllm(?:-openai|-cpu-release-repo)?(?:[:@]|$)")
SERVER_OPTIONS = ("--model", "--served-model-name", "--max-model-len", "--speculative-config", "--spec-", "-sc")
PYTHON = re.compile(r"python[\d.]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Launch:
    """The start of a server. ``arguments`` are what its program is given; ``image`` what it runs in; ``env`` the
    variables that are set for it; ``gpus`` what a container is promised (``all``, a number, ``device=0,1``)."""

    program: Program
    arguments: tuple[Word, ...]
    env: Mapping[str, Word] = field(default_factory=dict)
    image: Word | None = None
    gpus: Word | None = None


def launches(words: Sequence[Word], env: Mapping[str, Word] | None = None) -> Iterator[Launch]:
    """The servers that one command starts; a shell's script may hold several."""
    words, variables = list(words), dict(env or {})
    while words:
        name = PurePosixPath(words[0].text).name
        if match := ASSIGNMENT.fullmatch(words[0].text):
            variables[match["name"]] = words[0].part(match["value"])
            words = words[1:]
        elif name in BEFORE:
            words = after_options(words[1:], named=name)
        else:
            break
    if not words:
        return
    name, rest = PurePosixPath(words[0].text).name, words[1:]
    if name == "vllm" and rest and rest[0].text == "serve":
        yield Launch("vllm serve", tuple(rest[1:]), variables)
    elif PYTHON.fullmatch(name):
        yield from of_python(rest, variables)
    elif name in SHELLS:
        yield from of_shell(rest, variables)
    elif name in ENGINES and rest and rest[0].text in {"run", "create"}:
        yield from of_docker(rest[1:])
    elif name in ENGINES and [word.text for word in rest[:2]] == ["container", "run"]:
        yield from of_docker(rest[2:])


def after_options(words: list[Word], named: str) -> list[Word]:
    """What a program that starts another one starts."""
    while words and words[0].text.startswith("-"):
        taken = 2 if words[0].text in BEFORE_VALUES and "=" not in words[0].text else 1
        words = words[taken:]
    return words[1:] if named == "timeout" else words


def of_python(words: list[Word], env: Mapping[str, Word]) -> Iterator[Launch]:
    """``python [-options] -m vllm.entrypoints.openai.api_server …``, or ``python /…/bin/vllm serve …``."""
    for index, word in enumerate(words):
        if word.text == "-m" and index + 1 < len(words):
            module = words[index + 1].text
            if module == API_SERVER:
                yield Launch("api_server", tuple(words[index + 2 :]), env)
            elif module in {"vllm", "vllm.entrypoints.cli.main"}:
                yield from launches([replace(word, text="vllm"), *words[index + 2 :]], env)
            return
        if not word.text.startswith("-"):
            path = word.text
            if path.endswith("vllm/entrypoints/openai/api_server.py"):
                yield Launch("api_server", tuple(words[index + 1 :]), env)
            elif PurePosixPath(path).name == "vllm":
                yield from launches([word, *words[index + 1 :]], env)
            return


def of_shell(words: list[Word], env: Mapping[str, Word]) -> Iterator[Launch]:
    """``sh -c 'script'``: each command of the script."""
    for index, word in enumerate(words):
        if not word.text.startswith("-"):
            return  # a script of its own, which is not here
        if word.text.endswith("c") and not word.text.startswith("--") and index + 1 < len(words):
            script = words[index + 1]
            known = {name: value.text for name, value in env.items() if value.unknown is None}
            place = script.place
            for command in commands(script.text, place.file, place.line or 1, known):
                placed = tuple(each if place.line is not None else replace(each, place=place) for each in command.words)
                yield from launches(placed, {**env, **command.env})
            return


def of_docker(words: list[Word]) -> Iterator[Launch]:
    """``[options] IMAGE [arguments]``. vLLM's images start the server themselves, so arguments alone will do."""
    env: dict[str, Word] = {}
    entry: Word | None = None
    gpus: Word | None = None
    while words and words[0].text.startswith("-"):
        option, value = option_of(words[0])
        words = words[1:]
        if value is None and not bare(option) and words:
            value, words = words[0], words[1:]
        if option in {"-e", "--env"} and value is not None:
            name, given, text = value.text.partition("=")
            env[name] = value.part(text) if given else replace(value, text=f"${name}", unknown=f"${name}")
        elif option == "--entrypoint":
            entry = value
        elif option == "--gpus":
            gpus = value
    if not words:
        return
    image, rest = words[0], words[1:]
    yield from in_image(image, [entry, *rest] if entry and entry.text else rest, env, gpus)


def in_image(
    image: Word | None, words: Sequence[Word], env: Mapping[str, Word], gpus: Word | None = None
) -> Iterator[Launch]:
    """What a container of ``image`` starts when it is given ``words``, which may be arguments alone."""
    found = list(launches(words, env))
    if not found and image is not None and arguments_alone(words, image):
        program: Program = "api_server" if words and words[0].text.startswith("-") else "vllm serve"
        found = [Launch(program, tuple(words), dict(env))]
    yield from (replace(each, image=each.image or image, gpus=each.gpus or gpus) for each in found)


def arguments_alone(words: Sequence[Word], image: Word) -> bool:
    """Whether these can be the arguments of a server that the image starts by itself: options, or a model before them.
    Of an image that is not vLLM's own, options that only a server of vLLM has."""
    if not words or "vllm" not in image.text.lower():
        return False
    first = words[0].text
    options = first.startswith("-") or ("/" in first and len(words) > 1 and words[1].text.startswith("-"))
    own = OWN_IMAGE.search(image.text) is not None
    return options and (own or any(word.text.startswith(SERVER_OPTIONS) for word in words))


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
