"""Write what the documentation says of the code: docs/rules.md, docs/reports.md, and the numbers in the README.

    python docs/index.py            writes them
    python docs/index.py --check    names those that say something else, and ends with 1 where there is one

docs/rules.md comes from the rules. docs/reports.md comes from the cases on their pages that name a report, from
docs/reports-asked.txt (the public reports on vLLM whose cause is known with confidence) and from
docs/reports-undecided.tsv (those of them that are no case, with the fact that is missing). The README's numbers count
these, and tests/good_pairs/pairs.tsv.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from specfix.checker.registry import load_rules
from specfix.checker.rule import Rule
from specfix.testing import Case, cases

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ASKED, UNDECIDED = DOCS / "reports-asked.txt", DOCS / "reports-undecided.tsv"
PAIRS = ROOT / "tests" / "good_pairs" / "pairs.tsv"
MATRIX = ROOT / "tests" / "agreement" / "matrix.tsv"
BEGIN, END = "<!-- numbers: written by docs/index.py -->\n", "<!-- end of numbers -->\n"
MADE = "<!-- Written by docs/index.py. -->\n"
SKIPPED = "skipped "


@dataclass(frozen=True, slots=True)
class Reported:
    """A case that is a public report."""

    ref: str
    rule: Rule
    case: Case

    @property
    def fires(self) -> bool:
        return any(not line.startswith(SKIPPED) for line in self.case.expected)

    @property
    def method(self) -> str:
        return str(self.case.given.get("serve", {}).get("method", "as the draft says"))


# the project's own rules, and what their pages hold


def own_rules() -> list[Rule]:
    return [rule for rule in load_rules() if rule.predicate.__module__.startswith("specfix_rules.")]


def reported(rules: Iterable[Rule]) -> list[Reported]:
    """The cases of the rules' pages that name a report, by thread."""
    found = [Reported(case.given["report"], rule, case) for rule in rules for case in cases(rule.page)
             if case.given.get("report")]  # fmt: skip
    return sorted(found, key=lambda one: (thread_order(one.ref), one.rule.code, one.case.line))


def asked() -> list[str]:
    return ASKED.read_text("utf-8").split()


def undecided() -> dict[str, str]:
    """Missing fact by report."""
    _, *rows = (line.split("\t") for line in UNDECIDED.read_text("utf-8").splitlines())
    return dict(row[:2] for row in rows)


def thread_order(ref: str) -> tuple[bool, str, int]:
    """The engine's own threads first."""
    place, number = ref.split("#")
    return place != "vllm-project/vllm", place.lower(), int(number)


def thread(ref: str) -> str:
    place, number = ref.split("#")
    return f"[{ref}](https://github.com/{place}/issues/{number})"


# the pages


def rules_page(rules: Sequence[Rule]) -> str:
    lines = ["# Rules", "", MADE.strip(), ""]
    lines += [f"{len(rules)} rules. `specfix rules` lists them, `specfix explain CODE` prints the page of one.", ""]
    for family, members in families(rules).items():
        lines += [f"## {family}", "", "| code | name | severity | |", "|---|---|---|---|"]
        for rule in members:
            page = Path("..") / rule.page.relative_to(ROOT)
            lines.append(f"| [{rule.code}]({page.as_posix()}) | {rule.name} | {rule.severity} | {cell(rule.summary)} |")
        lines.append("")
    crashed = Path("..") / "specfix" / "checker" / "rule_crashed.md"
    lines += [f"A rule that fails itself is [INT001]({crashed.as_posix()}).", ""]
    return "\n".join(lines)


def families(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    """The rules by the letters of their codes, with what their folder says of itself."""
    found: dict[str, list[Rule]] = {}
    for rule in sorted(rules, key=lambda rule: rule.code):
        package = import_module(rule.predicate.__module__.rpartition(".")[0])
        about = (package.__doc__ or "").strip().rstrip(".")
        found.setdefault(f"{rule.code[:3]}: {about}", []).append(rule)
    return found


def reports_page(found: Sequence[Reported], missing: Mapping[str, str], wanted: Sequence[str]) -> str:
    named = {one.ref for one in found}
    lines = ["# Reports", "", MADE.strip(), ""]
    lines += [
        "A public report is a case on a rule's page, run with every test, where its release, its method and the fact",
        "that decides it are stated. Of a range of releases the case names one whose source shows the fault.",
        "",
        f"Of {len(wanted)} reports on vLLM whose cause is known with confidence, {len(named & set(wanted))} are cases.",
        "",
        "## Cases",
        "",
        "| thread | release | method | rule | what is said |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        rule = f"[{one.rule.code}]({(Path('..') / one.rule.page.relative_to(ROOT)).as_posix()})"
        said = "<br>".join(f"`{cell(line)}`" for line in one.case.expected) or "nothing"
        release = one.case.given["engine"].removeprefix("vllm ")
        lines.append(f"| {thread(one.ref)} | {release} | {one.method} | {rule} | {said} |")
    lines += ["", "## No case", "", "| thread | the fact that is missing |", "|---|---|"]
    lines += [f"| {thread(ref)} | {cell(missing[ref])} |" for ref in sorted(missing, key=thread_order)]
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


# the README's numbers


def numbers(rules: Sequence[Rule], found: Sequence[Reported], wanted: Sequence[str]) -> str:
    rows = [
        ("rules", f"{len(rules)}, in {len(families(rules))} families ([list](docs/rules.md))"),
        ("public reports on vLLM whose cause is known", reports_row(found, wanted)),
        *pairs_rows(),
        *agreement_rows(),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows), ""])


def agreement_rows() -> Iterator[tuple[str, str]]:
    """What the check foretold of mutated pairs, beside what engines did with them."""
    with MATRIX.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for release in sorted({row["release"] for row in rows}):
        of = [(row, int(row["mutations"])) for row in rows if row["release"] == release]
        whole = sum(number for _, number in of)
        agree = sum(number for row, number in of if row["agreement"] == "agrees")
        alarms = sum(number for row, number in of if row["engine"] == "fine" and row["agreement"] == "disagrees")
        yield (
            f"mutated pairs run on vLLM {release}",
            f"{whole}: of {agree} ({agree / whole:.1%}) the check foretells what the engine does (refuses, dies, loses "
            f"acceptance, or is fine); of the rest {alarms} are alarms where the engine was fine "
            "([each is explained](tests/agreement/explained.json))",
        )


def reports_row(found: Sequence[Reported], wanted: Sequence[str]) -> str:
    fires = {one.ref for one in found if one.fires} & set(wanted)
    quiet = {one.ref for one in found if not one.case.expected} & set(wanted) - fires
    lacking = {one.ref for one in found} & set(wanted) - fires - quiet
    said = f"{len(fires)} of {len(wanted)} are cases that fire"
    if quiet:
        said += f", {len(quiet)} more are no fault, and nothing is said"
    if lacking:
        said += f", {len(lacking)} more cannot be told without a fact that is asked for"
    return f"{said} ([list](docs/reports.md))"


def pairs_rows() -> Iterator[tuple[str, str]]:
    with PAIRS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["meant"] == "good"]
    for name, some in (
        ("real pairs", [row for row in rows if row["draft"]]),
        ("real targets that draft with layers of their own", [row for row in rows if not row["draft"]]),
    ):
        taken = [loudest(row["says"]) for row in some if row["reference"] == "accepted"]
        refused = [row["says"] for row in some if row["reference"] != "accepted"]
        named = sum(says.startswith("refused") for says in refused)  # by specfix too, before any rule is asked
        yield (
            f"{name}, {len(taken)} of which vLLM 0.32.0's config stage takes",
            f"{taken.count('quiet')} silent, {taken.count('warning')} with a warning, {taken.count('error')} with an "
            "error; what is said is shown in that release's source ([list](tests/good_pairs/pairs.tsv))",
        )
        said = [loudest(says) for says in refused].count("error")
        unknown = f", {named} of them for a method that the release does not know" if named else ""
        several = "there may be several, and the engine stops at the first that it meets"
        yield f"and {len(refused)} of which it refuses", f"{said} with an error{unknown} ({several})"


def loudest(says: str) -> str:
    return next((severity for severity in ("error", "warning") if f" {severity}" in says), "quiet")


def readme(text: str, made: str) -> str:
    """The README with its numbers replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the README needs one {BEGIN.strip()} and one {END.strip()}")
    return re.sub(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", lambda _: made, text, flags=re.DOTALL)


def documents() -> dict[Path, str]:
    """Every file that this writes, as it should be."""
    rules = own_rules()
    found, wanted = reported(rules), asked()
    file = ROOT / "README.md"
    return {
        DOCS / "rules.md": rules_page(rules),
        DOCS / "reports.md": reports_page(found, undecided(), wanted),
        file: readme(file.read_text("utf-8"), numbers(rules, found, wanted)),
    }


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    stale = [file for file, text in documents().items() if not file.is_file() or file.read_text("utf-8") != text]
    for file in stale:
        if check:
            print(f"{file.relative_to(ROOT)} is not what `python docs/index.py` writes", file=sys.stderr)
        else:
            file.write_text(documents()[file], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
