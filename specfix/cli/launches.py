"""Several launches checked one after the other, with a progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specfix.checker.report import Checked, Remark
from specfix.checking import choose
from specfix.cli.servers import all_launches
from specfix.deployment.machines import find_hardware
from specfix.engines.find import find_engine
from specfix.errors import CannotCheck
from specfix.launch.manifests import Found
from specfix.launching import NoSpeculation, from_command, gather_launch


def check_launches(
    files: Sequence[str], command: Sequence[str], engines: Sequence[str | None], **options: Any
) -> tuple[list[list[Checked]], list[Remark]]:
    """A check of each server that the files and the command start, in their order, on each of ``engines``.

    Of several, one that cannot be read is reported and the rest go on. Raises CannotCheck where the only one cannot.
    """
    found: list[Found | Checked | Remark] = [from_command(command)] if command else []
    found += all_launches(files)
    servers = [each for each in found if not isinstance(each, Remark)]
    if len(servers) == 1:
        if isinstance(servers[0], Checked):
            raise CannotCheck(servers[0].problem)
        by_release = [[checked(servers[0], engine=engine, **options)] for engine in engines]
        return by_release, [each for each in found if isinstance(each, Remark)]
    if options.get("target") is not None:
        raise CannotCheck(f"TARGET is given, and {len(servers)} launches: it can stand for the model of one")
    return check_all(found, engines, **options)


def check_all(
    found: Sequence[Found | Checked | Remark], engines: Sequence[str | None], **options: Any
) -> tuple[list[list[Checked]], list[Remark]]:
    """For each of ``engines`` a check of each that could be read, in their order, and what is to be said beside."""
    refuse_for_all(engines, options)
    by_release: list[list[Checked]] = [[] for _ in engines]
    for each in progress([one for one in found if not isinstance(one, Remark)]):
        if isinstance(each, Checked):
            checks: list[Checked | None] = [each] * len(engines)
        else:
            checks = [attempt(each, engine=engine, **options) for engine in engines]
        if any(checks):  # without speculation on every release there is nothing to say
            for row, one in zip(by_release, checks, strict=True):
                row.append(one or Checked(each.name, None, "asks for no speculation there"))
    return by_release, [each for each in found if isinstance(each, Remark)]


def refuse_for_all(engines: Sequence[str | None], options: Mapping[str, Any]) -> None:
    """Raise CannotCheck, once, for what would be said of each launch."""
    choose(options.get("select", ()), options.get("ignore", ()))
    for engine in (*engines, options.get("default_engine")):
        if engine is not None:
            find_engine(engine)
    hardware = options.get("hardware")
    if isinstance(hardware, str):
        find_hardware(hardware)


def attempt(found: Found, **options: Any) -> Checked | None:
    """The check, or why there is none; None for a server without speculation, of which there is nothing to say."""
    try:
        return checked(found, **options)
    except NoSpeculation:
        return None
    except CannotCheck as problem:
        return Checked(found.name, None, str(problem))


def checked(found: Found, **options: Any) -> Checked:
    case = gather_launch(found, **options)
    return Checked(found.name, case.check(case.deployment))


def progress(found: Sequence[Found | Checked]) -> Iterator[Found | Checked]:
    """The same, with a bar on standard error where that is a terminal."""
    if len(found) < 2 or sys.stderr is None or not sys.stderr.isatty():
        yield from found
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(found, description="checking", console=Console(stderr=True), transient=True)
