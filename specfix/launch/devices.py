"""How many GPUs a launch hands to its container."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from specfix.deployment import Location
from specfix.launch.words import Word
from specfix.launch.yaml_file import Item
from specfix.record import record

RESOURCE = "nvidia.com/gpu"
NUMBER = re.compile(r"\d{1,6}", re.ASCII)
LISTED = re.compile(r'"?device=([\w.:-]+(?:,[\w.:-]+)*)"?', re.ASCII)  # docker wants the inner quotes for several


@record(frozen=True)
class Devices:
    """So many GPUs, and where that stands."""

    count: int
    place: Location


def of_docker(options: Iterable[tuple[str, Word | None]]) -> Devices | None:
    """``--gpus 2``, ``--gpus '"device=0,1"'``, or one ``--device nvidia.com/gpu=0`` each; None where it is not told."""
    named: list[Word] = []
    for option, value in options:
        if value is None:
            continue
        if option == "--gpus":
            listed = LISTED.fullmatch(value.text)
            text = value.text.removeprefix("count=")
            count = len(set(listed[1].split(","))) if listed else number(text)
            return told(count, value, option)
        if option == "--device" and value.text.startswith(f"{RESOURCE}="):
            named.append(value)
    if not named or any(word.text.endswith("=all") for word in named):
        return None
    known = all(word.unknown is None for word in named)
    return told(len({word.text for word in named}) if known else None, named[0], "--device")


def of_service(service: Item) -> Devices | None:
    """Of a compose file: ``deploy.resources.reservations.devices``, or ``gpus``; None where that does not tell."""
    given = service.at("deploy.resources.reservations.devices") or service.get("gpus")
    total = 0
    places: list[Location] = []
    for item in given.items if given else ():
        driver, ids, count = item.get("driver"), item.get("device_ids"), item.get("count")
        wanted = [each.text for each in (item.get("capabilities") or item).items]
        if (driver and driver.text not in ("nvidia", "")) or (driver is None and "gpu" not in wanted):
            continue
        stated = ids or count
        if stated is None or stated.unknowns() or "$" in stated.text + "".join(each.text for each in stated.items):
            return None
        several = len({each.text for each in ids.items}) if ids else number(stated.text)
        if several is None:
            return None
        total, places = total + several, [*places, stated.place]
    return Devices(total, replace(places[0], pointer="devices")) if places else None


def of_container(container: Item) -> Devices | None:
    """Of a pod's container: its limit of ``nvidia.com/gpu``; None where that does not tell."""
    for kind in ("limits", "requests"):
        stated = container.at(f"resources.{kind}")
        found = stated.get(RESOURCE) if stated else None
        if found is not None:
            return told(number(found.text), found.word(), RESOURCE)
    return None


def number(text: str) -> int | None:
    return int(text) if NUMBER.fullmatch(text) else None


def told(count: int | None, word: Word, pointer: str) -> Devices | None:
    return Devices(count, replace(word.place, pointer=pointer)) if count and word.unknown is None else None
