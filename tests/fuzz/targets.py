"""What reads bytes that come from anywhere. Each target takes some, and either gets through or refuses them in one
sentence (CannotCheck); any other exception is a fault of specfix.

``run.py`` feeds them to a fuzzer, and the plain test run feeds them what fuzzers found before.
"""

from __future__ import annotations

import atexit
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import specfix
from specfix.checker.report import Report
from specfix.deployment.config import Config
from specfix.deployment.headers import INDEX, read_tensors
from specfix.deployment.json_text import read_json_object
from specfix.deployment.kinds import draft_kind
from specfix.deployment.load import load_deployment, load_model
from specfix.deployment.machines import load_hardware_file
from specfix.deployment.model import Draft, Target
from specfix.deployment.serving import Serving
from specfix.engines.find import find_engine
from specfix.engines.images import parse_image
from specfix.errors import CannotCheck, MissingFact
from specfix.facts.class_defaults import with_class_defaults
from specfix.facts.tokens import token_map
from specfix.gate.baseline import read_baseline
from specfix.gate.settings import OWN, find_settings
from specfix.launch.env_file import variables
from specfix.launch.manifests import launches_in
from specfix.launch.splitter import split
from specfix.launching import from_command, stated
from specfix.repair.edit.launch_file import Edit, Flag, Key, LaunchFile, Model, PathEntry, Variable
from specfix.repair.edit.written import CannotEdit
from tests.properties.drawing import Choose, from_bytes, one
from tests.properties.json_places import check_places
from tests.properties.junk import ROOT
from tests.properties.pairs import ENGINES, any_pair, shown

EXAMPLES = ROOT / "examples"
TARGET, DRAFT = EXAMPLES / "llama-3.1-8b-instruct", EXAMPLES / "eagle3-llama-3.1-8b"
LONGEST = 2_000  # characters of a refusal: what it quotes is cut short

Run = Callable[[bytes], None]


@cache
def workplace() -> Path:
    """A folder for what can only be read from a file."""
    folder = tempfile.TemporaryDirectory(prefix="specfix-fuzz-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def place(name: str, data: bytes) -> Path:
    """A file with these bytes."""
    file = workplace() / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def refusing(target: Run) -> Run:
    """The target, of which a refusal is one sentence."""

    def run(data: bytes) -> None:
        try:
            target(data)
        except CannotCheck as problem:
            check_sentence(str(problem))

    return run


def check_sentence(message: str) -> None:
    assert message.strip(), "a refusal without words"
    assert len(message) <= LONGEST, f"a refusal of {len(message)} characters: {message[:200]}"
    assert "bug of specfix" not in message, message


def text_of(data: bytes) -> str:
    """Text for what is given as text; bytes that are none become halves of surrogate pairs, as in a command line."""
    return data.decode("utf-8", "surrogateescape")


def json_text(data: bytes) -> None:
    values, text = read_json_object(data, "f.json")
    check_places(values, text)


def config(data: bytes) -> None:
    """The config.json of a target, and of a draft."""
    for number, side in enumerate(("target", "draft")):
        folder = place("model/config.json", data).parent
        with suppress(CannotCheck):
            model = load_model(str(folder), "target") if number == 0 else load_model(str(folder), "draft")
            assert model.ropes is not None and model.at("hidden_size")
        target, draft = (folder, DRAFT) if side == "target" else (TARGET, folder)
        with suppress(CannotCheck):
            deployment = load_deployment(str(target), str(draft), Serving(), "h200")
            with_class_defaults(deployment, find_engine(ENGINES[0]))
    load_deployment(str(folder), None, Serving(), "h200")


def header(data: bytes) -> None:
    """A file of weights."""
    folder = place("weights/model.safetensors", data).parent
    tensors = read_tensors(folder)
    values, text = read_json_object(DRAFT / "config.json", "config.json")
    draft = Draft("d", Config(values, "config.json", text), folder, tensors)
    draft_kind(draft.config, tensors)
    for tensor in (tensors or {}).values():
        with suppress(MissingFact):
            draft.integers(tensor)


def index(data: bytes) -> None:
    """The list of a model's files of weights."""
    read_tensors(place(f"shards/{INDEX}", data).parent)


def tokenizer(data: bytes) -> None:
    file = place("tokenizer/tokenizer.json", data)
    values, text = read_json_object(TARGET / "config.json", "config.json")
    model = Target("t", Config(values, "config.json", text), file.parent, tokenizer_files=(str(file),))
    with suppress(MissingFact):
        token_map(model)


def beside(data: bytes) -> None:
    """What lies beside a config.json; the first byte says which file."""
    names = ("generation_config.json", "hf_quant_config.json", "tokenizer_config.json", "tokenizer.json")
    name = names[data[0] % len(names)] if data else names[0]
    folder = place("beside/config.json", (DRAFT / "config.json").read_bytes()).parent
    file = place(f"beside/{name}", data[1:])
    try:
        judge(specfix.check(TARGET, folder, method="eagle3", engine=ENGINES[0], hardware="h200"))
    finally:
        file.unlink()


def judge(report: Report) -> None:
    """Raise AssertionError where a rule failed."""
    failed = [found.finding.message for found in report.findings if found.code.startswith("INT")]
    assert not failed, failed


def launch(data: bytes, name: str) -> None:
    """The servers of a file, as the release that the first byte says reads them."""
    engine = find_engine(ENGINES[data[0] % len(ENGINES)] if data else ENGINES[0])
    text = data[1:].decode("utf-8-sig", "replace")
    for found in launches_in(text, workplace() / name):
        with suppress(CannotCheck):
            stated(found, engine)


def yaml(data: bytes) -> None:
    launch(data, "f.yaml")


def shell(data: bytes) -> None:
    launch(data, "f.sh")


def command(data: bytes) -> None:
    """A command line as one text, and as its words."""
    engine, text = find_engine(ENGINES[0]), text_of(data)
    for given in (text, text.split("\n")):
        with suppress(CannotCheck):
            stated(from_command(given), engine)
    split(text, "f")


def env_file(data: bytes) -> None:
    dict(variables(data.decode("utf-8", "replace"), "f.env"))


def settings(data: bytes) -> None:
    place(f"project/{OWN}", data)
    find_settings(workplace() / "project")


def hardware(data: bytes) -> None:
    load_hardware_file(place("hardware.json", data))


def baseline(data: bytes) -> None:
    read_baseline(place("baseline.json", data))


def engine(data: bytes) -> None:
    """The name of an engine; no path, which any text may be."""
    text = text_of(data)
    image = parse_image(text)
    with suppress(CannotCheck):
        if image:
            image.release()
    if not set("/~.\0") & set(text[:1]) and not Path(text[:100]).exists():
        find_engine(text)


def pair(data: bytes) -> None:
    """The bytes are choices: an example of a rule's page with values changed, judged by every rule."""
    given = any_pair(from_bytes(data))
    with tempfile.TemporaryDirectory(dir=workplace()) as folder:
        models, options = given.written(Path(folder))
        try:
            judge(specfix.check(*models, **options))
        except CannotCheck as problem:
            check_sentence(str(problem).replace(folder, ""))
        except Exception as fault:
            raise AssertionError(shown(given.given)) from fault


EDITS: tuple[Edit, ...] = (
    Key("speculative-config", "/model", "/o/draft"),
    Key("speculative-config", "/num_speculative_tokens", 3),
    Key("speculative-config", "/method", None),
    Key("hf-overrides", "/rope_scaling/factor", 2.0),
    Flag("max-model-len", 4096),
    Flag("enforce-eager", None),
    Flag("enforce-eager", False),
    Flag("max-num-seqs", 8),
    Model("/o/target"),
    Variable("VLLM_USE_V1", "1"),
    Variable("VLLM_USE_V1", None),
    PathEntry("/o/shim"),
)


def edit(data: bytes) -> None:
    """A launch file in which something is changed: the first bytes say what, and how the file is called."""
    choose = from_bytes(data[:3])
    text = data[3:].decode("utf-8-sig", "replace")
    name, wanted = one(choose, ("f.yaml", "f.sh")), edits_of(choose)
    for number, found in enumerate(launches_in(text, Path(name))):
        file = LaunchFile(Path(name), text, number, find_engine(ENGINES[0]), stated)
        with suppress(CannotCheck):
            stated(found, file.engine)
            with suppress(CannotEdit):
                after = file.edited(wanted)
                assert after.edited(wanted).text == after.text, "made twice is not made once"


def edits_of(choose: Choose) -> list[Edit]:
    first = choose(len(EDITS))
    return [EDITS[first], *([EDITS[(first + 5) % len(EDITS)]] if choose(2) else [])]


TARGETS: dict[str, Run] = {
    each.__name__: refusing(each)
    for each in (
        *(json_text, config, header, index, tokenizer, beside, yaml, shell, command, env_file),
        *(settings, hardware, baseline, engine, pair, edit),
    )
}


def describe(name: str, data: bytes) -> str:
    """An input in words."""
    return json.dumps(any_pair(from_bytes(data)).given, default=str) if name == "pair" else repr(data)
