"""Values that look like secrets go to no report, no diff and no error message.

Known by the name of what holds them (a variable HF_TOKEN, a flag --api-key), or by themselves: a token of the Hub, the
user and password of a URL. What starts the server must hold them all the same: see specfix.repair.files.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specfix.deployment.serving import COMMON

if TYPE_CHECKING:
    from specfix.checker.report import Checked, Report, Reported
    from specfix.deployment import Serving

NAMES = "TOKEN(?!IZER|S|_ID)|KEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|(?<![A-Z])PASS(?![A-Z])"
SECRET = re.compile(NAMES, re.IGNORECASE)
MASK = "***"
SHORTEST = 4  # a shorter value is put in the place of its name alone: it may be a part of any word
HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
BARE = re.compile(
    r"""(?<=://)(?:[^\s/@"<>]+|[^\s/@:"<>]+:[^\s@"<>]+)(?=@)"""
    r"""|(?<=:/)[^\s/@:"<>]+:[^\s@"<>]+(?=@)"""  # as a path, which has one slash of the two
    r"""|\bhf_[A-Za-z0-9]{16,}|(?<=Bearer )[^\s"']+"""
)
# in the text of a launch: NAME=value, NAME: value, --flag value, and a value below its name in a list of variables
NAMED = rf"""[A-Z0-9_]*(?:{NAMES})[A-Z0-9_]*["']?"""
FLAG = rf"""(?:--[\w.-]*(?i:{NAMES})[\w.-]*|\b(?:hf|api)[-_](?:token|key))["']?"""
# a key of YAML or JSON, at the start of what it is in
KEY = rf"""(?m:^|[{{,])[ ]*-?[ ]*\\?["']?[\w.-]*(?i:{NAMES})[\w.-]*\\?["']?[ ]*:"""
WRITTEN = re.compile(
    rf"""(?P<before>(?:\b{NAMED}[ ]*[=:]|{FLAG}[ ]*[=: ]|{KEY})[ ]*\\?["']?"""
    rf"""|\bname:[ ]*["']?{NAMED},?\s+value:[ ]*["']?)"""
    r"""(?P<value>[^\s"',}$-][^\s"',}]*)"""
)


def masked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Variables or flags, with each text hidden whose name says that it is a secret."""
    return {name: MASK if holds_text(value) and SECRET.search(name) else bared(value) for name, value in values.items()}


def named(value: Any) -> Iterator[Any]:
    """What stands under a name that says that it is a secret, at any depth."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if SECRET.search(str(name)):
                yield each
            yield from named(each)
    elif isinstance(value, list):
        for each in value:
            yield from named(each)


def secret(values: Mapping[str, Any]) -> bool:
    """Whether one of the variables or flags holds a secret."""
    return masked(values) != dict(values)


def holds_text(value: Any) -> bool:
    """A flag may take several; one of the others (true, 512) is no secret."""
    return bool(value) and (isinstance(value, str) or (isinstance(value, list) and all(map(holds_text, value))))


def bared(value: Any) -> Any:
    """A value, or what it holds, without what is known by itself."""
    if isinstance(value, Mapping):
        return masked(value)
    if isinstance(value, list):
        return [bared(each) for each in value]
    return BARE.sub(MASK, value) if isinstance(value, str) else value


def known(serving: Serving) -> tuple[str, ...]:
    """The secrets that are given, as they are and as JSON writes them, the longest first."""
    given = [value for values in (serving.env, serving.flags, serving.speculative) for value in named(values)]
    texts = {
        text
        for value in given
        for text in (value if isinstance(value, list) else [value])
        if text and isinstance(text, str)
    }
    spelt = {spelling for text in texts for spelling in (text, json.dumps(text)[1:-1]) if len(text) >= SHORTEST}
    return tuple(sorted(spelt, key=len, reverse=True))


def hidden(text: str, values: Sequence[str] = ()) -> str:
    """``text`` without these values, the tokens of the Hub that this process has, and what is known by itself."""
    ours = [value for name in HUB_TOKENS if (value := os.environ.get(name, "")) and len(value) >= SHORTEST]
    for value in (*values, *ours):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", MASK, text)
    return BARE.sub(MASK, text)


def hidden_in_launch(text: str, values: Sequence[str] = ()) -> str:
    """The same of a launch file's text, which may set secrets for other programs, too. Its lines stay as many."""
    return WRITTEN.sub(rf"\g<before>{MASK}", hidden(text, values))


def told(report: Report) -> Report:
    """The report as it may be told."""
    deployment = report.deployment
    serving = deployment.serving
    values = known(serving)
    texts: dict[str, Any] = {
        name: hidden(text, values) for name in COMMON if isinstance(text := getattr(serving, name), str)
    }
    serving = replace(
        serving,
        **texts,
        env=masked(serving.env),
        flags=masked(serving.flags),
        speculative=masked(serving.speculative),
        unknown={name: hidden(text, values) for name, text in serving.unknown.items()},
        misfits=tuple(replace(each, message=hidden(each.message, values)) for each in serving.misfits),
    )
    deployment = replace(
        deployment,
        serving=serving,
        assumptions=tuple(hidden(text, values) for text in deployment.assumptions),
        sources={name: hidden_in_launch(text, values) for name, text in deployment.sources.items()},
    )
    return replace(
        report,
        deployment=deployment,
        findings=tuple(found(each, values) for each in report.findings),
        skipped=tuple(replace(each, reason=hidden(each.reason, values)) for each in report.skipped),
        left_out=tuple((found(each, values), why) for each, why in report.left_out),
    )


def found(reported: Reported, values: Sequence[str]) -> Reported:
    """A finding as it may be told."""
    finding = reported.finding
    repair = finding.repair and replace(finding.repair, summary=hidden(finding.repair.summary, values))
    at, *related = (
        replace(place, pointer=hidden(place.pointer, values)) for place in (finding.location, *finding.related)
    )
    message = hidden(finding.message, values)
    finding = replace(finding, message=message, location=at, related=tuple(related), repair=repair)
    return replace(reported, finding=finding)


def told_all(checks: Sequence[Checked]) -> Iterator[Checked]:
    """Each check as it may be told."""
    for each in checks:
        report = each.report and told(each.report)
        yield replace(each, report=report, problem=hidden(each.problem))
