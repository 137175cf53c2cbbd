"""Names, types and shapes of a folder's tensors, from safetensors headers. No weight is read."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

from specfix.deployment.json_text import (
    INDEX_LIMIT,
    once,
    open_file,
    parse_object,
    read_json_object,
    refuse_heavy,
    show,
)
from specfix.deployment.model import Tensor
from specfix.errors import CannotCheck

INDEX = "model.safetensors.index.json"
HEADER_LIMIT = 25_000_000  # bytes; huggingface_hub's own bound, and far above any real header
FILES_LIMIT = 10_000
NAME_LIMIT = 255  # bytes of a file's name, where file systems end
DIMENSIONS_LIMIT = 64  # of a tensor, as in torch
ELEMENTS_LIMIT = 2**63  # what counts them has 64 bits
# bits of one element, of the types whose size no release of the format has changed
BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64"), 64),
}
LFS_POINTER = b"version https://git-lfs"


def read_tensors(folder: Path, prefix: str | None = None) -> dict[str, Tensor] | None:
    """The tensors that the headers of ``folder`` declare; None where it has no safetensors file, or not all.

    ``prefix`` is what messages put before a file's name, by default its folder. Raises CannotCheck for a damaged header
    or index. Pickled weights (.bin) are never opened.
    """
    prefix = f"{folder}/" if prefix is None else prefix
    files = weight_files(folder, {path.name for path in folder.iterdir()}, prefix)
    if not files or not all((folder / file).is_file() for file in files):
        return None
    tensors: dict[str, Tensor] = {}
    for file in files:
        found = read_header(folder / file, f"{prefix}{file}")
        if found is None:
            return None
        tensors |= found
    return tensors


def weight_files(folder: Path, names: Collection[str], prefix: str) -> list[str]:
    """The safetensors files among the ``names`` of a model's files: those that its index lists, else all.

    The index, where it is among them, is read from ``folder``; messages put ``prefix`` before its name.
    """
    if INDEX in names:
        name = f"{prefix}{INDEX}"
        values, _ = read_json_object(folder / INDEX, name, INDEX_LIMIT, once(name, alike=False))
        return shards(values, name)
    found = sorted(name for name in names if name.endswith(".safetensors") and "/" not in name)
    # Mistral's own format of the same weights, which vLLM leaves out where there are others
    return [name for name in found if not name.startswith("consolidated")] or found


def shards(index: dict[str, Any], name: str) -> list[str]:
    """The files that an index names. Raises CannotCheck for what leads out of the model's own folder."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CannotCheck(f"{name} has no weight_map with the file of each tensor")
    if not all(isinstance(value, str) for value in weight_map.values()):
        raise CannotCheck(f"{name} has a weight_map whose values are no file names")
    files = set(weight_map.values())
    if len(files) > FILES_LIMIT:
        raise CannotCheck(f"{name} names more than {FILES_LIMIT:,} files")
    for file in sorted(files):
        if unsafe(file):
            raise CannotCheck(f"{name} names the file {show(file)}, which is outside the model's folder")
        if any(len(part.encode()) > NAME_LIMIT for part in PurePosixPath(file).parts):
            raise CannotCheck(f"{name} names the file {show(file)}, and no file has so long a name")
    return sorted(files)


def unsafe(file: str) -> bool:
    """Whether a file name from an index could lead out of the folder."""
    path = PurePosixPath(file)
    return not path.name or path.is_absolute() or ".." in path.parts or any(bad in file for bad in "\\:\0")


def read_header(path: Path, name: str) -> dict[str, Tensor] | None:
    """The tensors of one file, which messages call ``name``; None for a Git LFS pointer, which stands where weights
    were not fetched."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8) or b""  # None: see open_file()
            if LFS_POINTER.startswith(start) and (start + file.read(15)) == LFS_POINTER:
                return None
            file.seek(8)
            length = header_length(start, size, name)
            header = file.read(length)
    except OSError as error:
        raise CannotCheck(f"{name} cannot be read: {error.strerror or error}") from None
    return parse_header(header, size - 8 - length, name, path.name)


def header_length(start: bytes, size: int, name: str) -> int:
    """Length of the JSON header, from the first 8 bytes of a file of ``size`` bytes. Raises CannotCheck."""
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > size - 8:
        raise CannotCheck(f"{name} is no safetensors file: its {size:,} bytes end before its header does")
    if length > HEADER_LIMIT:
        raise CannotCheck(f"{name} has a header of {length:,} bytes, more than the {HEADER_LIMIT:,} that are read")
    return length


def parse_header(header: bytes, data_size: int, name: str, file: str) -> dict[str, Tensor]:
    """Tensors of a header, whose data must lie within the ``data_size`` bytes that follow it, each apart from the
    others."""
    refuse_heavy(header, f"the header of {name}")
    try:
        text = header.decode()
    except UnicodeDecodeError:
        raise CannotCheck(f"the header of {name} is not UTF-8 text") from None
    entries = parse_object(text, f"the header of {name}")
    entries.pop("__metadata__", None)
    start = 8 + len(header)
    tensors = {key: tensor(key, entry, data_size, name, file, start) for key, entry in entries.items()}
    if text.count('"data_offsets"') > len(tensors):
        parse_object(text, f"the header of {name}", once(f"the header of {name}", alike=True))
    refuse_overlap(tensors, name)
    return tensors


def refuse_overlap(tensors: Mapping[str, Tensor], name: str) -> None:
    """Raise CannotCheck where two tensors share bytes of the file: the format knows no such thing."""
    filled = sorted((each.begin, each.end, key) for key, each in tensors.items() if each.end > each.begin)
    for (_, end, one), (begin, _, other) in pairwise(filled):
        if begin < end:
            raise CannotCheck(f"the header of {name} gives the tensors {show(one)} and {show(other)} the same bytes")


def tensor(key: str, entry: Any, data_size: int, name: str, file: str, start: int = 0) -> Tensor:
    """One entry of a header; the data of the file begin at ``start``. Raises CannotCheck where it is no tensor, or its
    data is not in the file."""
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(begin), int(end)]} if all(
            type(size) is int and size >= 0 for size in (*shape[: DIMENSIONS_LIMIT + 1], begin, end)
        ):
            if not begin <= end <= data_size:
                raise CannotCheck(
                    f"{name} ends before the data of tensor {show(key)}: it is damaged, or not wholly downloaded"
                )
            elements = (
                math.prod(shape) if len(shape) <= DIMENSIONS_LIMIT and max(shape, default=0) < ELEMENTS_LIMIT else -1
            )
            bits = BITS.get(dtype)
            if 0 <= elements < ELEMENTS_LIMIT and (bits is None or elements * bits == 8 * (end - begin)):
                return Tensor(dtype, tuple(shape), file, start + begin, start + end)
    raise CannotCheck(f"the header of {name} describes tensor {show(key)} as {show(entry, 120)}")
