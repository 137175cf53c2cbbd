"""What a repaired engine samples with speculation is what it samples without.

    pytest -m engine -s tests/engine/test_distribution.py          every release; with -k 0.26.0 one of them

The target is a Markov chain (random_pair.py): what follows a token is a draw from a distribution that depends on that
token's class alone and is known exactly. Chi-square holds the draws of all classes against it, and against the draws
of an engine that does not speculate. Two engines must fail the same test: one whose `expand_batch_to_tokens` is as
released, and one that ignores the temperature of draft tokens.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specfix.shim import SCHEMA, shim_files

from .chosen import releases
from .engines import BASES, Engine, engine
from .pairs import HIDDEN, VOCAB, Folders, Pair, write_pair
from .random_pair import CLASSES, DRAFT, TARGET, distribution, entropy, successors, tokens

Counts = Mapping[int, Counter[int]]  # class of a token -> what followed it

LEAST_P = 1e-4
TOO_FEW = 5.0  # draws expected in a cell of chi-square: cells below are taken together
# The prompts of a batch fit into one step: on a CPU a seeded request dies if its prompt is cut in two.
PROMPT_TOKENS = (1, 3)
NEW_TOKENS = (30, 70)  # they differ, so that batches shrink
SAMPLING: dict[str, dict[str, float]] = {
    "plain": {"temperature": 0.8},
    "hot": {"temperature": 1.25},
    "top_k": {"temperature": 0.8, "top_k": 3},
    "top_p": {"temperature": 0.8, "top_p": 0.85},
    "greedy": {"temperature": 0.0},
}
# Requests of each kind. A batch of one kind and a mixed one take different ways through the sampler.
BATCHES = {"alone": {"plain": 256}, "mixed": dict.fromkeys(SAMPLING, 50)}

# Each of them does nothing where the release does not need it.
OTHER_PATCHES = ("cpu_aux_setup", "cpu_stand_ins")
PATCHES = ("cpu_sampling", *OTHER_PATCHES)


@dataclass(frozen=True)
class Run:
    """One engine."""

    patches: tuple[str, ...] = PATCHES
    batches: tuple[str, ...] = ("alone",)
    speculates: bool = True
    speculative: Mapping[str, str] = field(default_factory=dict)
    ignore_temperature: bool = False


RUNS = {
    "without": Run(patches=(), batches=("alone", "mixed"), speculates=False),
    "repaired": Run(batches=("alone", "mixed")),
    "probabilistic": Run(batches=("mixed",), speculative={"draft_sample_method": "probabilistic"}),
    "released": Run(patches=OTHER_PATCHES),
    "ignores temperature": Run(ignore_temperature=True),
}
CONTROLS = ("released", "ignores temperature")


@dataclass(frozen=True)
class Sample:
    """What an engine drew in one batch."""

    counts: Mapping[str, Counts]
    """By kind of request."""
    acceptance: float


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("random")
    return write_pair(Pair(), root / "pair", root / "weights", tokens)


@pytest.mark.engine
@pytest.mark.parametrize("version", releases(BASES, "0.24.0", "0.32.0"))
def test_sampling_is_right(version: str, folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of request, in each batch, is held against its distribution and the engine that does not speculate."""
    results = run_engine(engine(version), folders, tmp_path)
    samples = {name: read(result) for name, result in results.items() if result["outcome"] == "fine"}
    assert {"without", "repaired", "ignores temperature"} <= set(samples), results
    found = {
        (name, batch, kind): p_values(samples, name, batch, kind)
        for name in samples
        for batch in RUNS[name].batches
        for kind in BATCHES[batch]
    }
    step = bits(samples["without"]["alone"].counts["plain"])
    with capsys.disabled():
        print(f"\nvLLM {version}, {step:.2f} bits a step")
        print(*rows(results, samples, found), sep="\n")

    assert step > 1
    assert 0.3 <= samples["repaired"]["alone"].acceptance <= 0.8
    wrong = {key: values for key, values in found.items() if key[0] not in CONTROLS and min(values) < LEAST_P}
    assert not wrong
    if "probabilistic" not in samples:  # older releases have no such setting
        assert "draft_sample_method" in results["probabilistic"]["message"]

    assert results["released"]["outcome"] != "refused"
    missed = [name for name in CONTROLS if name in samples and max(found[name, "alone", "plain"]) >= LEAST_P]
    assert not missed


def rows(
    results: Mapping[str, Mapping[str, Any]],
    samples: Mapping[str, Mapping[str, Sample]],
    found: Mapping[tuple[str, str, str], tuple[float, float]],
) -> Iterator[str]:
    """The table: what came of each engine, then its draws, a line a kind of request."""
    for name, result in results.items():
        words = ": ".join(result[key] for key in ("moment", "message") if key in result)
        yield f"{name}: {result['outcome']} {words[:150]} ({result['seconds']} s)"
    for (name, batch, kind), (exact, without) in found.items():
        sample = samples[name][batch]
        drawn = f"{name:<19} {batch:<5} {kind:<6} {size(sample.counts[kind]):>6} draws"
        yield f"{drawn}, p {exact:.1e}, against without {without:.1e}, accepted {sample.acceptance:.2f}"


def test_the_pair_is_what_it_is_said_to_be() -> None:
    """The logits are exact, and so little else is likely that it will not be drawn."""
    pair = tokens()
    for token in range(VOCAB):
        of = token % CLASSES
        logits = [sum(map(operator.mul, row, pair.embedding[token])) for row in pair.target_head]
        assert [logits[after] for after in successors(of)] == list(TARGET[of % 2])
        assert sum(map(bool, logits)) == len(DRAFT)
        assert sum(x * x for x in pair.embedding[token]) == HIDDEN
    for of in range(CLASSES):
        likely = distribution(of, 0.8)
        assert sum(likely.values()) == pytest.approx(1)
        assert entropy(list(likely.values())) > 1
        assert list(distribution(of, 0.8, top_k=3)) == successors(of)[:3]
        assert len(distribution(of, 0.8, top_p=0.85)) == (3 if of % 2 else 2)


def test_chi_square_tells_right_from_wrong() -> None:
    def draw(temperature: float, seed: int) -> Counts:
        numbers = random.Random(seed)
        likely = {of: distribution(of, temperature) for of in range(CLASSES)}
        return {of: Counter(numbers.choices(list(p), list(p.values()), k=500)) for of, p in likely.items()}

    right, again, wrong = draw(0.8, 1), draw(0.8, 2), draw(1.0, 3)
    assert chi_square([right], lambda of: distribution(of, 0.8)) > 0.01
    assert chi_square([right, again]) > 0.01
    assert chi_square([wrong], lambda of: distribution(of, 0.8)) < LEAST_P
    assert chi_square([wrong, right]) < LEAST_P
    assert chi_square([right], lambda of: distribution(of, 0.8, top_k=3)) == 0

    # of 300 such pairs of samples, each p-value is as likely as any other
    low = sum(chi_square([draw(0.8, seed), draw(0.8, -1 - seed)]) < 0.1 for seed in range(1000, 1300))
    assert 15 <= low <= 45


@pytest.mark.parametrize(
    ("statistic", "freedom", "p"),
    [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (18.307038, 10, 0.05), (149.449253, 100, 0.001), (11.344867, 3, 0.01)],
)
def test_upper_tail(statistic: float, freedom: int, p: float) -> None:
    """Against the quantiles that are tabulated everywhere."""
    assert upper_tail(statistic, freedom) == pytest.approx(p, rel=1e-5)


def p_values(samples: Mapping[str, Mapping[str, Sample]], name: str, batch: str, kind: str) -> tuple[float, float]:
    """Of this kind of request: against the exact distribution, and against the engine that does not speculate."""
    counts = samples[name][batch].counts[kind]
    reference = samples["without"][batch].counts[kind]
    sampling: dict[str, Any] = SAMPLING[kind]
    return chi_square([counts], lambda of: distribution(of, **sampling)), chi_square([counts, reference])


def requests(batch: str, seed: int = 0) -> tuple[list[str], list[dict[str, Any]]]:
    """The kind of each request of a batch, and the request. Half of each kind have a seed of their own."""
    order = [
        kind for _, kind in sorted((place, kind) for kind, number in BATCHES[batch].items() for place in range(number))
    ]
    numbers = random.Random(0)
    return order, [
        {
            "prompt": [numbers.randrange(3, VOCAB) for _ in range(numbers.randint(*PROMPT_TOKENS))],
            "sampling": SAMPLING[kind]
            | {"max_tokens": numbers.randint(*NEW_TOKENS), "seed": seed + place if place % 2 else None},
        }
        for place, kind in enumerate(order)
    ]


def run_engine(release: Engine, folders: Folders, folder: Path) -> dict[str, dict[str, Any]]:
    """What came of each of RUNS. Each has seeds of its own, so that what two of them draw is independent."""
    jobs = [
        {
            "name": name,
            "target": str(folders.target),
            "draft": str(folders.draft) if run.speculates else None,
            "speculative": run.speculative,
            "shim": write_shim(run.patches, folder / name) if run.patches else None,
            "ignore_temperature": run.ignore_temperature,
            "seed": seed,
            "batches": {batch: requests(batch, seed)[1] for batch in run.batches},
        }
        for seed, (name, run) in zip(itertools.count(step=1000), RUNS.items(), strict=False)
    ]
    lines = release.run("run_random.py", jobs, folder)
    return dict(zip(RUNS, lines[1:], strict=True))


def write_shim(patches: Sequence[str], folder: Path) -> str:
    """The shim with these patches, as a folder for PYTHONPATH."""
    for name, content in shim_files({"schema": SCHEMA, "patches": {patch: {} for patch in patches}}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return str(folder)


def read(result: Mapping[str, Any]) -> dict[str, Sample]:
    """What an engine drew, by batch."""
    samples = {}
    for batch, drawn in result["batches"].items():
        counts = {kind: {of: Counter[int]() for of in range(CLASSES)} for kind in BATCHES[batch]}
        for kind, request, generated in zip(*requests(batch), drawn["tokens"], strict=True):
            assert len(generated) == request["sampling"]["max_tokens"]
            for before, after in itertools.pairwise([request["prompt"][-1], *generated]):
                counts[kind][before % CLASSES][after] += 1
        samples[batch] = Sample(counts, drawn["accepted"] / max(1, drawn["drafted"]))
    return samples


def size(counts: Counts) -> int:
    return sum(of.total() for of in counts.values())


def bits(counts: Counts) -> float:
    """Entropy of a step, as drawn."""
    drawn = [(of.total(), entropy([count / of.total() for count in of.values()])) for of in counts.values()]
    return sum(number * each for number, each in drawn) / size(counts)


def chi_square(samples: Sequence[Counts], exact: Callable[[int], Mapping[int, float]] | None = None) -> float:
    """The p-value of all classes together: of one sample and a distribution, or of two samples having the same.

    It is 0 if something was drawn that the distribution does not hold.
    """
    statistic, freedom = 0.0, 0
    for of in range(CLASSES):
        drawn = [sample[of] for sample in samples]
        sizes = [each.total() for each in drawn]
        together = sum(drawn, Counter[int]())
        probabilities = exact(of) if exact else {token: n / sum(sizes) for token, n in together.items()}
        if together.keys() - probabilities.keys():
            return 0.0
        cells = []  # (probability, draws in each sample)
        probability, counts = 0.0, [0] * len(drawn)
        for token in sorted(probabilities, key=lambda token: probabilities[token]):
            probability += probabilities[token]
            counts = [count + each[token] for count, each in zip(counts, drawn, strict=True)]
            if probability * min(sizes) >= TOO_FEW:
                cells.append((probability, counts))
                probability, counts = 0.0, [0] * len(drawn)
        for probability, counts in cells:
            for number, count in zip(sizes, counts, strict=True):
                statistic += (count - number * probability) ** 2 / (number * probability)
        freedom += max(0, len(cells) - 1)
    return upper_tail(statistic, freedom)


def upper_tail(statistic: float, freedom: int) -> float:
    """The probability that chi-square of this many degrees of freedom is at least as great.

    It is Q(freedom / 2, statistic / 2), the regularised incomplete gamma function, by its recurrence in the first
    argument: Q(a + 1, x) = Q(a, x) + x^a e^-x / gamma(a + 1).
    """
    if freedom == 0 or statistic == 0:
        return 1.0
    x = statistic / 2
    a, p = (0.5, math.erfc(math.sqrt(x))) if freedom % 2 else (1.0, math.exp(-x))
    while a < freedom / 2:
        p += math.exp(a * math.log(x) - x - math.lgamma(a + 1))
        a += 1
    return min(p, 1.0)
