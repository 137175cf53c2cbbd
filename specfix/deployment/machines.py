"""The hardware that a name, a file or this machine stands for."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from specfix.deployment.expected import LIMIT
from specfix.deployment.hardware import Hardware
from specfix.deployment.json_text import once, read_json_object, show
from specfix.deployment.presets import PRESETS
from specfix.errors import CannotCheck
from specfix.whole import write_whole

UNKNOWN = "unknown"  # for a check that runs elsewhere than the server: rules that need the hardware are skipped


def find_hardware(spec: str | None) -> Hardware | None:
    """The hardware that ``spec`` names: a preset or a file; None is this machine, and "unknown" is None.

    Raises CannotCheck for what is neither.
    """
    if spec is None:
        from specfix.deployment.probe import probe

        return probe()
    if spec.lower() == UNKNOWN:
        return None
    if spec.lower() in PRESETS:
        return PRESETS[spec.lower()]
    if spec.endswith(".json") or os.sep in spec or Path(spec).is_file():
        return load_hardware_file(Path(spec))
    import difflib

    names = (*PRESETS, UNKNOWN)
    near = difflib.get_close_matches(spec.lower(), names, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise CannotCheck(f"no hardware is called {show(spec)}: {hint}known are {', '.join(names)}, or a JSON file")


def load_hardware_file(path: Path) -> Hardware:
    """The hardware in a file that :func:`save` wrote, or that someone wrote by hand. Raises CannotCheck."""
    from pydantic import TypeAdapter, ValidationError

    values, _ = read_json_object(path, str(path), pairs=once(str(path), alike=False))
    known = [field.name for field in fields(Hardware)]
    for key in values:
        if key not in known:
            raise CannotCheck(f"{path}: /{key} is no fact of hardware; known are {', '.join(known)}")
    try:
        hardware = TypeAdapter(Hardware).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        if first["type"] == "missing":
            raise CannotCheck(f"{path}: {pointer} is missing") from None
        raise CannotCheck(f"{path}: {pointer} is {show(first['input'])}: {first['msg']}") from None
    for key in ("devices", "memory_gib", "triton_drivers"):
        value = getattr(hardware, key)
        if value is not None and not 0 <= value <= LIMIT:
            raise CannotCheck(f"{path}: /{key} is {show(value)}, which is no number from 0 to 2^40")
    if not hardware.name.strip():
        raise CannotCheck(f"{path}: /name is empty")
    return replace(hardware, source=str(path))


def save(hardware: Hardware, path: Path) -> None:
    """Write ``hardware`` to ``path``, all or nothing. Raises CannotCheck where that fails."""
    facts: dict[str, Any] = {key: value for key, value in asdict(hardware).items() if value is not None}
    write_whole(path, json.dumps(facts, indent=2) + "\n", mark='"platform"')
