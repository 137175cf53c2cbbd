"""What is known of releases: one line each, or all of one. What differs between two is in ``engine_diff``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from specfix.engines.compare import backends, eagle3_targets, runner_words
from specfix.engines.engine import SCHEMA
from specfix.engines.find import BY_TAG, SHIPPED
from specfix.engines.fixes import FIXES, Fix, State, states
from specfix.engines.place import INSTALLED
from specfix.engines.serial import as_json
from specfix.report.listing import table
from specfix.report.terminal import Terminal, printable
from specfix.report.words import count

if TYPE_CHECKING:
    from specfix.engines import Engine

LIST_SCHEMA = "specfix/engines-v1"
SHOWN = 8  # names of a long list, unless all are asked for
STYLES: dict[State, str] = {"in": "good", "not in": "warning", "not needed": "quiet", "not known": "note"}
NOT_KNOWN = "not known"
SOURCES = {
    SHIPPED: "shipped with specfix, read from the release's own wheel",
    BY_TAG: "shipped with specfix, taken for the image by its tag",
    INSTALLED: "read here, from the vLLM of this environment",
}


def list_text(engines: Iterable[Engine], installed: str | None, terminal: Terminal) -> str:
    """The releases to choose from, oldest first."""
    rows = [("release", "model runner", "EAGLE3 targets", "fixes", NOT_KNOWN)]
    for line in map(summary, engines):
        targets, fixes = line["eagle3_targets"], line["fixes"]
        rows.append(
            (
                line["version"],
                line["runner"] or NOT_KNOWN,
                NOT_KNOWN if targets is None else str(targets),
                f"{fixes['in']} of {sum(fixes.values()) - fixes['not needed']}",
                str(line["unknown"]),
            )
        )
    head, _, body = table(rows, replace(terminal, color=False)).partition("\n")
    notes = (
        f"installed here: {installed or 'none'}",
        "fixes: those that are in, of the upstream fixes that verdicts hang on and that the release needs",
        "more: specfix engine RELEASE; what differs for speculative decoding: specfix engine OLD NEW",
    )
    told = [line for note in notes for line in terminal.wrap(note, "  ", "")]
    return f"{terminal.paint('quiet', head)}\n{body}\n" + "".join(f"{line}\n" for line in told)


def list_json(engines: Iterable[Engine], installed: str | None) -> str:
    document = {"schema": LIST_SCHEMA, "installed": installed, "engines": [summary(engine) for engine in engines]}
    return json.dumps(document, indent=2) + "\n"


def summary(engine: Engine) -> dict[str, Any]:
    """One release in a few numbers."""
    found = list(states(engine).values())
    return {
        "name": engine.name,
        "version": engine.version,
        "source": engine.source,
        "runner": runner_words(engine),
        "eagle3_targets": None if "eagle.support" in engine.unknown else targets(engine),
        "fixes": {state: found.count(state) for state in STYLES},
        "unknown": len(engine.unknown),
    }


def targets(engine: Engine) -> int:
    return sum(1 for holds in eagle3_targets(engine).values() if holds)


def engine_json(engine: Engine) -> str:
    """All facts, as they are shipped, and the state of each fix."""
    return json.dumps({"schema": SCHEMA, **as_json(engine), "fixes": states(engine)}, indent=2) + "\n"


def engine_text(engine: Engine, terminal: Terminal, *, everything: bool = False) -> str:
    """What is known of one release. ``everything``: no list is shortened."""
    limit = None if everything else SHOWN
    parts = [f"{terminal.paint('strong', str(engine))}: {how_known(engine)}\n"]
    for title, rows in (
        ("drafting", drafting(engine, limit)),
        ("model runner and hardware", hardware(engine, limit)),
        ("vllm serve", serving(engine)),
    ):
        parts.append(heading(title, terminal) + table(rows, terminal, "  "))
    parts.append(fixes_text(engine, terminal))
    if engine.unknown:
        parts.append(unknown_text(engine.unknown, terminal, limit))
    return "\n".join(parts)


def how_known(engine: Engine) -> str:
    return SOURCES.get(engine.source) or f"read here, from {printable(engine.source)}"


def heading(text: str, terminal: Terminal) -> str:
    return terminal.paint("frame", text) + "\n"


def drafting(engine: Engine, limit: int | None) -> list[tuple[str, str]]:
    unknown, eagle = engine.unknown, engine.eagle
    unread = sum(holds is None for holds in eagle3_targets(engine).values())
    gate = eagle.config_stage
    if "eagle.support" in unknown:
        supported = NOT_KNOWN
    else:
        supported = f"{targets(engine)} architectures" + (f", {unread} more not known" if unread else "")
        supported += "" if gate is None else f"; of model types with {names(gate, limit)} only"
    algorithms = engine.speculators.algorithms
    return [
        ("methods", methods(engine.methods.methods) if "methods.methods" not in unknown else NOT_KNOWN),
        ("config keys", counted(engine.speculative.keys, "key", limit)),
        ("EAGLE3 targets", supported),
        *aux(engine),
        ("MTP", counted(engine.mtp.model_types, "model type", limit)),
        ("speculators", NOT_KNOWN if algorithms is None else names(sorted(algorithms), limit)),
        ("draft positions", positions(engine)),
        ("V1 drafting", f"stops at the draft's own length: {answer(engine.lengths.v1_guard)}"),
        ("served length", f"lowered to the draft's own: {answer(engine.lengths.limits_target)}"),
    ]


def hardware(engine: Engine, limit: int | None) -> list[tuple[str, str]]:
    found = backends(engine)
    parallel = [name for name, backend in found.items() if backend.get("non_causal")]
    attention = f"{count(len(found), 'backend')}; non-causal: {names(parallel, limit)}"
    units = {"the proposer's": engine.blocks.proposer, "its table's": engine.blocks.table}
    requirements = engine.requirements
    wanted = (
        ("Python", requirements.python),
        ("torch", requirements.torch),
        ("transformers", requirements.transformers),
    )
    return [
        ("runner", runners(engine)),
        ("attention", attention if found else NOT_KNOWN),
        ("KV block unit", ", ".join(f"{whose}: {unit or NOT_KNOWN}" for whose, unit in units.items())),
        ("on a CPU", cpu(engine)),
        ("requires", "; ".join(f"{name} {NOT_KNOWN if spec is None else spec or 'any'}" for name, spec in wanted)),
    ]


def serving(engine: Engine) -> list[tuple[str, str]]:
    serve, variables = engine.serve, engine.variables.variables
    return [
        ("flags", NOT_KNOWN if serve.flags is None else str(len(serve.flags))),
        ("variables", NOT_KNOWN if variables is None else str(len(variables))),
        ("architectures", str(len(engine.methods.architectures))),
        ("config classes", NOT_KNOWN if engine.configs.types is None else str(len(engine.configs.types))),
        (
            "--config YAML",
            f"takes mappings: {answer(serve.yaml_nested)}; heeds `key: false`: {answer(serve.yaml_false)}",
        ),
    ]


def fixes_text(engine: Engine, terminal: Terminal) -> str:
    """Each upstream fix under its state."""
    found = states(engine)
    tally = [f"{list(found.values()).count(state)} {state}" for state in STYLES if state in found.values()]
    width = max(len(fix.name) for fix in FIXES)
    text = heading(f"upstream fixes that verdicts hang on: {', '.join(tally)}", terminal)
    for state, style in STYLES.items():
        rows = [(fix.name.ljust(width), mended(fix, engine, state)) for fix in FIXES if found[fix.name] == state]
        if rows:
            text += f"  {terminal.paint(style, state)}\n" + table(rows, terminal, "    ")
    return text


def mended(fix: Fix, engine: Engine, state: State) -> str:
    reason = fix.reason(engine) if state == NOT_KNOWN else None
    return "".join([fix.mends, f": {reason}" if reason else "", f" ({fix.thread})" if fix.thread else ""])


def unknown_text(unknown: Mapping[str, str], terminal: Terminal, limit: int | None) -> str:
    """The facts that could not be read, by reason; entries of one fact together."""
    reasons: dict[str, list[str]] = {}
    for path, reason in unknown.items():
        reasons.setdefault(reason, []).append(path)
    rows = [
        (str(len(paths)), f"{reason}: {'; '.join(grouped(paths, limit))}")
        for reason, paths in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    left = 0 if limit is None else max(0, len(rows) - limit)
    if left:
        rows[limit:] = [("…", f"{count(left, 'more reason')}: --all shows them")]
    return heading(f"not known: {count(len(unknown), 'fact')}", terminal) + table(rows, terminal, "  ")


def grouped(paths: Iterable[str], limit: int | None) -> list[str]:
    """``eagle.support of A, B``: entries under their facts."""
    facts: dict[str, list[str]] = {}
    for path in paths:
        section, _, rest = path.partition(".")
        fact, _, entry = rest.partition(".")
        facts.setdefault(f"{section}.{fact}".rstrip("."), []).extend([entry] if entry else [])
    return [f"{fact} of {names(entries, limit)}" if entries else fact for fact, entries in facts.items()]


def names(items: Iterable[object], limit: int | None) -> str:
    """Names in a row, "none", or the first of them and how many more there are."""
    shown = list(map(str, items))
    more = 0 if limit is None else len(shown) - limit
    if more > 1:
        shown[limit:] = [f"{more} more"]
    return ", ".join(shown) or "none"


def counted(items: Iterable[object] | None, noun: str, limit: int | None) -> str:
    if items is None:
        return NOT_KNOWN
    found = list(items)
    return f"{count(len(found), noun)}: {names(found, limit)}" if found else "none"


def methods(found: Sequence[str]) -> str:
    """Names of methods; the many older names of MTP are counted only."""
    plain = [name for name in found if not name.endswith("_mtp")]
    aliases = len(found) - len(plain)
    return names([*plain, *([f"{count(aliases, 'older name')} of mtp"] if aliases else [])], None)


def runners(engine: Engine) -> str:
    words = runner_words(engine)
    if words is None or words == "V1":
        return words or NOT_KNOWN
    steps = count(len(engine.runner.steps), "condition")
    return f"{words}: {steps}, and {count(len(engine.runner.unsupported), 'feature')} that V2 lacks"


def aux(engine: Engine) -> list[tuple[str, str]]:
    """Where each runner looks for the layer ids."""
    places = engine.eagle.aux_places
    if not places:
        return [("aux layers", NOT_KNOWN if places is None else "no runner takes any")]
    return [
        (f"aux layers, {runner}", ", ".join(key for key, _ in keys) or "guessed") for runner, keys in places.items()
    ]


def positions(engine: Engine) -> str:
    raised, types = engine.lengths.raised_methods, engine.lengths.raised_rope_types
    if not raised:
        return NOT_KNOWN if raised is None else "stay as the draft's config says"
    only = f", where rope_type is {', '.join(types)}" if types else ""
    return f"raised to max_model_len for {methods(raised)}{only}"


def cpu(engine: Engine) -> str:
    if "cpu.refuses" in engine.unknown:
        return NOT_KNOWN
    if engine.cpu.refuses:
        return f"refuses speculation: {engine.cpu.refuses}"
    broken = sorted({stand_in.kernel for stand_in in engine.cpu.stand_ins})
    return f"calls that fail: {', '.join(broken)}" if broken else "speculation is let through"


def answer(fact: bool | None) -> str:
    return NOT_KNOWN if fact is None else "yes" if fact else "no"
