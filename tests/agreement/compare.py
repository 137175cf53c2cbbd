"""Hold what `check` says of each mutated pair against what the engine did with it.

    python -m tests.agreement.compare [RUN...] [--all]

Prints a confusion matrix for each run of an engine, and every disagreement that explained.json does not explain (--all:
those too). What counts as what:

refused   An engine that raises an error, or ends, before it is ready: while it reads configs, loads, or warms up. A
          report with an error of phase config, load or warmup. Neither side says at which of the three moments, since
          nobody who deploys cares. A check that ends with "cannot check" (exit status 2) counts too: nothing is
          served before its complaint is met.
dies      The engine is ready, and an error ends it while it generates. A report with an error of phase runtime.
loses     It generates, and at some length a draft token is not accepted, or none is drafted. A report with an error
          of phase silent. Where some tokens are accepted at every length, a warning of that phase said it, too: it
          means that less is gained.
fine      Every draft token is accepted at every length. A report with no error.

The first of these that a report has an error for is what it foretells: an engine comes no further.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specfix.checker.report import Report
from specfix.checking import check
from specfix.deployment import Hardware
from specfix.deployment.serving import COMMON
from specfix.errors import CannotCheck

from . import gpu_cases
from .bases import Case
from .bench import plain_folder, write
from .collect import HERE, results
from .mutations import drawn

OUTCOMES = ("refused", "dies", "loses", "fine")
FORETOLD = {"config": "refused", "load": "refused", "warmup": "refused", "runtime": "dies", "silent": "loses"}
EXPLAINED = HERE / "explained.json"
MATRIX = HERE / "matrix.tsv"
# on which the engines ran, as far as rules ask: no Triton that counts, AVX-512 and no AMX among the CPU's flags (a KV
# cache in fp8 was served), and vLLM alone
FLAGS = ("avx2", "avx512f")
HOST = Hardware("the bench's host", "cpu", cpu_flags=FLAGS, triton_installed=False, triton_drivers=0, packages=())
H200 = Hardware(
    "h200",
    "cuda",
    device="NVIDIA H200",
    devices=1,
    memory_gib=140.4,
    compute_capability=(9, 0),
    cpu_arch="x86_64",
    triton_installed=True,
    triton_drivers=1,
    packages=(),
)
HEAD = "release\tengine\tcheck\tagreement\tmutations"


@cache
def mutated() -> dict[str, Case]:
    """The committed mutations; nobody changes one."""
    return {name: mutation.case() for name, mutation in drawn().items()}


@dataclass(frozen=True)
class Run:
    """An engine, what it ran on, and what it was given; ``unrun`` of these ended for want of a package there."""

    release: str
    host: Hardware = HOST
    cases: Callable[[], dict[str, Case]] = mutated
    unrun: int = 0


RUNS = {
    "0.26.0": Run("0.26.0"),
    "0.32.0": Run("0.32.0"),
    "0.26.0 on an H200": Run("0.26.0", H200, gpu_cases.cases, unrun=9),
}


@dataclass(frozen=True)
class Verdict:
    """One mutated pair on one release: what the engine did, and what the report foretold."""

    name: str
    release: str
    outcome: str
    foretold: str
    said: str
    """Codes of the errors, with their phases, or why nothing could be checked."""
    words: str
    """The engine's own."""
    lessened: bool = False
    """Some tokens are accepted at every length, and the report warns that less will be."""

    @property
    def agrees(self) -> bool:
        return self.outcome == self.foretold or (self.lessened and self.foretold == "fine")

    @property
    def line(self) -> str:
        return f"{self.outcome:<7} foretold {self.foretold:<7} {self.name}\n          {self.said or 'no error'}" + (
            f"\n          {self.words}" if self.words else ""
        )


def verdicts(
    name_of_run: str, cases: Mapping[str, Case], outcomes: Mapping[str, Mapping[str, Any]]
) -> Iterator[Verdict]:
    """Of every case that has an outcome."""
    run = RUNS[name_of_run]
    with plain_folder() as folder:
        for number, (name, case) in enumerate(cases.items()):
            if name in outcomes:
                result = outcomes[name]
                job = write(name, case, folder / str(number), folder / "weights")
                foretold, said, warned = predict(run, job)
                words = " ".join(str(result[key]) for key in ("moment", "error", "message", "where") if result.get(key))
                some = result["outcome"] == "loses" and all(accepted for _, accepted in result["lengths"].values())
                yield Verdict(name, name_of_run, result["outcome"], foretold, said, words[:400], some and warned)


def predict(run: Run, job: Mapping[str, Any]) -> tuple[str, str, bool]:
    """What the check foretells of the very files and flags that the engine gets; by which errors; and whether it warns
    that less will be accepted."""
    given = dict(job["serve"])
    options = {name: given.pop(name) for name in list(given) if name in COMMON}
    try:
        report = check(
            job["target"],
            job["draft"],
            **options,
            greedy=True,
            flags=given,
            speculative_config=job["speculative"],
            env=job["env"],
            engine=f"vllm=={run.release}",
            hardware=run.host,
        )
    except CannotCheck as error:
        return "refused", f"cannot check: {str(error).replace(str(Path(job['target']).parent), '')}", False
    return foretold(report)


def foretold(report: Report) -> tuple[str, str, bool]:
    errors = [one for one in report.findings if one.severity == "error"]
    phases = {one.finding.phase for one in errors}
    said = " ".join(sorted({f"{one.code}({one.finding.phase})" for one in errors}))
    warned = any(one.severity == "warning" and one.finding.phase == "silent" for one in report.findings)
    return next((means for phase, means in FORETOLD.items() if phase in phases), "fine"), said, warned


def explained() -> dict[str, dict[str, str]]:
    """Disagreements that are known, and why, by run and name. None of them counts as agreement."""
    found: dict[str, dict[str, str]] = {name: {} for name in RUNS}
    for group in json.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.exists() else []:
        for name in group["runs"]:
            found[name] |= dict.fromkeys(group["names"], group["why"])
    return found


def agreement(judged: Sequence[Verdict]) -> float:
    """The part of all mutations on which both agree."""
    return sum(verdict.agrees for verdict in judged) / len(judged)


def matrix(judged: Sequence[Verdict]) -> Iterator[str]:
    """Rows are what the engine did, columns what was foretold."""
    count = Counter((verdict.outcome, verdict.foretold) for verdict in judged)
    yield f"{'engine / check':<16}" + "".join(f"{foretold:>9}" for foretold in OUTCOMES)
    for outcome in OUTCOMES:
        yield f"{outcome:<16}" + "".join(f"{count[outcome, foretold]:>9}" for foretold in OUTCOMES)


def report_on(release: str, judged: Sequence[Verdict], known: Mapping[str, str], show_known: bool) -> Iterator[str]:
    refused = sum(verdict.outcome == "refused" for verdict in judged)
    yield f"\nvLLM {release}: {len(judged)} mutations, {refused / len(judged):.0%} refused at start"
    yield from matrix(judged)
    wrong = [verdict for verdict in judged if not verdict.agrees]
    number = sum(verdict.name in known for verdict in wrong)
    yield f"agreement {agreement(judged):.1%}; {len(wrong)} disagree, {number} explained"
    for verdict in wrong:
        if show_known or verdict.name not in known:
            yield verdict.line
            if verdict.name in known:
                yield f"          explained: {known[verdict.name]}"


def counted(release: str, judged: Sequence[Verdict]) -> Iterator[str]:
    """Rows of matrix.tsv."""
    count = Counter((one.outcome, one.foretold, "agrees" if one.agrees else "disagrees") for one in judged)
    for (outcome, foretold, agrees), number in sorted(count.items()):
        yield f"{release}\t{outcome}\t{foretold}\t{agrees}\t{number}"


def main() -> None:
    parser = argparse.ArgumentParser(description="What the check foretells, against what engines did.")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}")
    parser.add_argument("--all", action="store_true", help="show explained disagreements too")
    parser.add_argument("--write", action="store_true", help=f"write {MATRIX.name}, for the README")
    given = parser.parse_args()
    rows = [HEAD]
    known = explained()
    for name in given.runs or RUNS:
        judged = list(verdicts(name, RUNS[name].cases(), results(name)))
        print(*report_on(name, judged, known[name], given.all), sep="\n", flush=True)
        rows += counted(name, judged)
    if given.write:
        MATRIX.write_text("\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
