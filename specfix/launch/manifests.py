"""The servers that a file starts: a serve YAML, a compose file, Kubernetes manifests, a shell script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from specfix.deployment.json_text import show
from specfix.errors import CannotCheck
from specfix.launch import devices
from specfix.launch.command import Launch, Mount, bind, in_image, launches_of, volume
from specfix.launch.script import commands
from specfix.launch.splitter import LIMIT, split
from specfix.launch.words import Span, Word
from specfix.launch.yaml_file import Item, read_text, read_yaml
from specfix.record import record

# where the pod of a kind is
PODS = {
    "Pod": "spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    "LeaderWorkerSet": "spec.leaderWorkerTemplate.leaderTemplate.spec",
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), "spec.template.spec"),
}
WITHOUT_PODS = frozenset({"Service", "ConfigMap", "Secret", "Namespace", "Ingress", "PersistentVolumeClaim"})
MENTION = re.compile(r"vllm|specul|spec[-_](model|method|tokens)", re.IGNORECASE)  # what a file of interest speaks of
SERVE_KEYS = frozenset({"model", "speculative-config", "spec-model"})  # one of them makes a mapping a serve YAML
GPU_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "node.kubernetes.io/instance-gpu",
    "gpu.nvidia.com/class",
)
EXPANSION = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_][\w.-]*)\)", re.ASCII)


LAUNCHES_LIMIT = 200  # servers of a file
ENV_FILES_LIMIT = 100  # of a service
DOCUMENTS_LIMIT = 20  # of flags, in a file of which a server reads one


class NoLaunch(CannotCheck):
    """A file that starts no server."""


@record(frozen=True)
class Found:
    """A server in a file: what the file calls it, its launch, and what the file says of the machine; ``sources`` the
    texts of files, by name."""

    name: str
    launch: Launch
    hardware: Word | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


def read_launches(path: Path) -> list[Found]:
    """The servers that the file starts, in its order. Raises CannotCheck, NoLaunch where it starts none."""
    return launches_in(read_text(path), path)


def launches_in(text: str, path: Path) -> list[Found]:
    """The same, of a file whose text is at hand."""
    name = str(path)
    if is_script(path, text):
        found = [Found(name, launch) for launch in launches_of(commands(text, name, own=True))]
    else:
        documents = read_yaml(text, name)
        found = list(of_yaml(documents, name))
        if not found and MENTION.search(text):
            refuse_kinds(documents, name)
    if not found:
        raise NoLaunch(f"{name} starts no vLLM server that can be recognised")
    if len(found) > LAUNCHES_LIMIT:
        raise CannotCheck(f"{name} starts more than the {LAUNCHES_LIMIT:,} servers that are checked of a file")
    many = len({each.name for each in found}) < len(found)  # two of one name are told apart by their lines
    named = [replace(each, name=f"{each.name}, line {line_of(each)}") if many else each for each in found]
    return [replace(each, sources={name: text}) for each in named]


def line_of(found: Found) -> int | None:
    words = found.launch.arguments
    return words[0].place.line if words else None


def is_script(path: Path, text: str) -> bool:
    return path.suffix in {".sh", ".bash", ".env", ""} or text.startswith("#!")


def of_yaml(documents: list[Item], name: str) -> Iterator[Found]:
    serving = 0
    for document in documents:
        if document.get("services") is not None:
            yield from of_compose(document, name)
        elif document.get("kind") is not None and document.get("apiVersion") is not None:
            for each in resources(document):
                kind = kind_of(each)
                if kind in PODS:
                    yield from of_kubernetes(each, kind, name)
        elif any(key.replace("_", "-") in SERVE_KEYS for key in document.pairs):
            serving += 1
            if serving > DOCUMENTS_LIMIT:
                raise CannotCheck(f"{name} holds more than {DOCUMENTS_LIMIT} documents of flags: a server reads one")
            yield Found(name, Launch("vllm serve", tuple(serve_words(document))))


def resources(document: Item) -> list[Item]:
    """What a manifest holds: itself, or the items of a List."""
    listed = document.get("items")
    return listed.items if kind_of(document) == "List" and listed else [document]


def kind_of(document: Item) -> str:
    kind = document.get("kind")
    return kind.value if kind and isinstance(kind.value, str) else ""


def refuse_kinds(documents: list[Item], name: str) -> None:
    """Raise NoLaunch for a kind whose pods are not known, in a file that speaks of vLLM."""
    for each in (resource for document in documents for resource in resources(document)):
        kind = each.get("kind")
        if kind is not None and kind_of(each) not in {*PODS, *WITHOUT_PODS}:
            raise NoLaunch(
                f"{name}, line {kind.place.line}: kind {show(kind.plain())} is not one whose pods are known "
                f"({', '.join(sorted(PODS))})"
            )


def serve_words(document: Item) -> Iterator[Word]:
    """A serve YAML stands for ``--config``: its keys are read when the release is known."""
    yield Word("--config", document.place)
    yield Word(document.place.file, document.place)


def of_compose(document: Item, name: str) -> Iterator[Found]:
    services = document.get("services")
    for key, service in services.pairs.items() if services else ():
        env = compose_env(service.get("environment"))
        words = [
            *words_of(service.get("entrypoint"), env, shell=True),
            *words_of(service.get("command"), env, shell=True),
        ]
        words = [compose_variable(word) for word in words]
        image = service.get("image")
        itself = service.get("entrypoint") is None
        folder = Path(name).parent
        files = tuple(str(folder / file) for file in names_of(service.get("env_file"), "path"))
        if len(files) > ENV_FILES_LIMIT:
            raise CannotCheck(f"{name}: {key} names more than {ENV_FILES_LIMIT} files of variables")
        mounts = tuple(compose_mounts(service.get("volumes"), str(folder)))
        for launch in in_image(compose_variable(image.word()) if image else None, words, env, mounts, itself):
            handed = launch.devices or devices.of_service(service)
            yield Found(f"{name}: {key}", replace(launch, env_files=files, devices=handed))


def names_of(given: Item | None, *keys: str) -> Iterator[str]:
    """The names in a value: a text, or a list of texts or of mappings that hold one at one of the ``keys``."""
    for item in () if given is None else given.items or [given]:
        found = next((found for key in keys if (found := item.get(key))), None) if item.pairs else item
        if found is not None and found.text:
            yield found.text


def compose_mounts(given: Item | None, folder: str) -> Iterator[Mount]:
    """A service's ``volumes``: HOST:CONTAINER, or a mapping."""
    for item in given.items if given else ():
        inside, outside, kind = item.get("target"), item.get("source"), item.get("type")
        if not item.pairs:
            yield volume(compose_variable(item.word()), folder)
        elif inside is not None:
            named = compose_variable(outside.word()) if outside and kind and kind.text == "bind" else Word("")
            yield bind(named.text, inside.text, named, folder)


COMPOSE = re.compile(r"\$\$|\$\{[^}]*\}|\$[A-Za-z_]\w*", re.ASCII)


def compose_variable(word: Word) -> Word:
    """``$NAME`` and ``${NAME:-default}`` come from the environment of whoever starts it; ``$$`` is a dollar."""
    unknown = [match[0] for match in COMPOSE.finditer(word.text) if match[0] != "$$"]
    return undoubled(word, word.text.replace("$$", "$")).knowing(word.unknowns or unknown)


def undoubled(word: Word, text: str) -> Word:
    """The word as ``text``, in which each doubled dollar is one."""
    span = word.span and Span(0, len(word.text), "$$", word)
    return word if text == word.text else replace(word, text=text, span=span)


def compose_env(given: Item | None) -> dict[str, Word]:
    """A mapping, or a list of NAME=VALUE."""
    if given is None:
        return {}
    env = {key: compose_variable(item.word()) for key, item in given.pairs.items()}
    for item in given.items:
        name, equals, _ = item.text.partition("=")
        word = compose_variable(item.word())
        env[name] = word.part(word.text.partition("=")[2]) if equals else word.knowing([f"${name}"])
    return env


def words_of(given: Item | None, env: Mapping[str, Word], shell: bool = False) -> list[Word]:
    """A command: a list of words, or a text that is split as a shell splits it."""
    if given is None or given.value is None:
        return []
    if isinstance(given.value, list):
        return [item.word() for item in given.items]
    if not shell:
        return [given.word()]
    return split(given.text, given.place.file, given.place.line or 1, given.word())


def of_kubernetes(document: Item, kind: str, name: str) -> Iterator[Found]:
    pod = document.at(PODS[kind])
    if pod is None:
        return
    called = document.at("metadata.name")
    label = f"{name}: {kind} {called.text}" if called else f"{name}: {kind}"
    hardware = hardware_of(pod)
    containers = pod.get("containers")
    for container in containers.items if containers else ():
        env = pod_env(container.get("env"))
        command = [expanded(word, env) for word in words_of(container.get("command"), env)]
        arguments = [expanded(word, env) for word in words_of(container.get("args"), env)]
        image = container.get("image")
        itself = container.get("command") is None
        sources = tuple(env_sources(container.get("envFrom")))
        for launch in in_image(image.word() if image else None, [*command, *arguments], env, itself=itself):
            handed = launch.devices or devices.of_container(container)
            yield Found(label, replace(launch, env_from=sources, devices=handed), hardware)


def env_sources(given: Item | None) -> Iterator[str]:
    """What a container's ``envFrom`` names."""
    for item in given.items if given else ():
        for kind, source in item.pairs.items():
            called = source.get("name")
            if called is not None:
                yield f"{kind} {called.text}"


def pod_env(given: Item | None) -> dict[str, Word]:
    """Values that stand in the manifest; of a ConfigMap, a Secret or a field the value is not here."""
    env: dict[str, Word] = {}
    for item in given.items if given else ():
        name, value = item.get("name"), item.get("value")
        if name is None:
            continue
        if value is not None:
            env[name.text] = expanded(value.word(), env)
        else:
            source = item.get("valueFrom")
            where = next(iter(source.pairs), "valueFrom") if source else "valueFrom"
            env[name.text] = Word(f"$({name.text})", item.place, f"$({name.text}) from a {where}")
    return env


def expanded(word: Word, env: Mapping[str, Word]) -> Word:
    """``$(NAME)`` of a variable in the manifest is its value."""
    unknown, through = [*word.unknowns], False

    def value(match: re.Match[str]) -> str:
        nonlocal through
        if match["name"] is None:
            return "$"
        through = True
        found = env.get(match["name"])
        if found is None or found.unknown:
            unknown.extend(found.unknowns if found else [match[0]])
            return found.text if found else match[0]
        return found.text

    text = EXPANSION.sub(value, word.text)
    if len(text) > LIMIT:
        raise CannotCheck(f"{word.place.file}: a variable stands for more than {LIMIT:,} characters")
    found = undoubled(word, text).knowing(unknown)
    return replace(found, span=None) if through and text != word.text else found


def hardware_of(pod: Item) -> Word | None:
    """The device that the pod's nodes are chosen by."""
    selector = pod.get("nodeSelector")
    for label in GPU_LABELS:
        found = selector.get(label) if selector else None
        if found is not None:
            return found.word()
    terms = pod.at("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    for term in terms.items if terms else ():
        expressions = term.get("matchExpressions")
        for each in expressions.items if expressions else ():
            key, values = each.get("key"), each.get("values")
            if key and key.text in GPU_LABELS and values and len(values.items) == 1:
                return values.items[0].word()
    return None
