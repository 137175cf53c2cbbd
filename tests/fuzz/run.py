"""Feed one target to atheris, which is not among specfix's requirements: ``python -m tests.fuzz.run NAME [-runs=N …]``.

What follows the name are libFuzzer's own options and folders of inputs. The seeds, and their words as a dictionary, are
written to a folder first. An input that breaks something is left where ``-artifact_prefix=`` says; it belongs in
``crashes/NAME/`` once it is mended.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["specfix", "specfix_rules"]):
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS
    from tests.properties.junk import mutated

    for seed in seeds().get(sys.argv[1] if sys.argv[1:] else "", ()):
        TARGETS[sys.argv[1]](seed)  # what is imported only when it is needed

JSON = frozenset({"json_text", "config", "header", "index", "tokenizer", "beside", "hardware", "baseline"})
WORD = re.compile(rb"[\w.-]{2,40}|[^\w\s]{1,3}")
WORDS_LIMIT = 1_000


def mutator(name: str, data: bytes, most: int, seed: int) -> bytes:
    """Another input: half of the time the same JSON with values changed, else what libFuzzer makes of the bytes."""
    numbers = random.Random(seed)
    if numbers.random() < 0.5:
        start, end = json_part(name, data)
        with suppress(ValueError, RecursionError):
            values = json.loads(data[start:end])
            for _ in range(numbers.randint(1, 3) if isinstance(values, dict) else 0):
                values = mutated(numbers.randrange, values)
            text = json.dumps(values, indent=numbers.choice((None, 1))).encode()
            head = len(text).to_bytes(8, "little") if name == "header" else data[:start]
            changed = head + text + data[end:]
            if len(changed) <= most:
                return changed
    made: bytes = atheris.Mutate(data, most)
    return made


def json_part(name: str, data: bytes) -> tuple[int, int]:
    """Where in an input the JSON text is."""
    if name == "header":
        return 8, 8 + int.from_bytes(data[:8], "little")
    return int(name == "beside"), len(data)


def dictionary(name: str) -> bytes:
    """The words of the seeds, as libFuzzer reads them."""
    words = dict.fromkeys(word for data in seeds()[name] for word in WORD.findall(data))
    lines = [b'"' + b"".join(b"\\x%02x" % byte for byte in word) + b'"\n' for word in list(words)[:WORDS_LIMIT]]
    return b"".join(lines)


def main(name: str, options: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="specfix-seeds-") as folder:
        corpus, words = Path(folder) / "corpus", Path(folder) / "words"
        corpus.mkdir()
        for number, data in enumerate(seeds()[name]):
            (corpus / f"{number:03}").write_bytes(data)
        words.write_bytes(dictionary(name))
        own = {"custom_mutator": lambda data, most, seed: mutator(name, data, most, seed)} if name in JSON else {}
        given = [] if name == "pair" else [f"-dict={words}"]
        atheris.Setup([sys.argv[0], *given, *options, str(corpus)], TARGETS[name], **own)
        atheris.Fuzz()


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name one of {', '.join(TARGETS)}")
    main(sys.argv[1], sys.argv[2:])
