"""A wheel file as an engine: only what is read of it is unpacked, since most of a wheel is kernels."""

from __future__ import annotations

import lzma
import re
import struct
import zipfile
import zlib
from pathlib import Path

from specfix.engines.place import NAME
from specfix.engines.source.tree import MAX_FILE
from specfix.errors import CannotCheck

MOST = 512 << 20  # bytes of Python in a wheel; a release has 45 MB

# what zipfile and its decompressors raise for a damaged archive
DAMAGED = (
    ValueError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
_READ = re.compile(rf"{NAME}/.+\.py|{NAME}[^/]*\.dist-info/(?:METADATA|RECORD)")


class Wheel:
    """The wheel ``file``. CannotCheck where it is damaged, or holds no vLLM."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
        except (OSError, *DAMAGED) as error:
            raise CannotCheck(f"{file} is no readable wheel: {error}") from None
        self._entries = [entry for entry in entries if _READ.fullmatch(entry.filename) and entry.file_size <= MAX_FILE]
        if f"{NAME}/__init__.py" not in {entry.filename for entry in self._entries}:
            raise CannotCheck(f"there is no {NAME} package in {file}: {NAME}/__init__.py is missing")
        if sum(entry.file_size for entry in self._entries) > MOST:
            raise CannotCheck(f"{file} holds more than {MOST >> 20} MiB of Python: that is no wheel of {NAME}")

    def contents(self) -> str:
        """Names, sizes and checksums of what is read: another text for other contents."""
        return repr(sorted((entry.filename, entry.file_size, entry.CRC) for entry in self._entries))

    @property
    def version(self) -> str | None:
        """As the name of its metadata's folder says."""
        folders = (entry.filename.partition(".dist-info/") for entry in self._entries)
        return next((folder.partition("-")[2] for folder, metadata, _ in folders if metadata), None)

    def unpack(self, folder: Path) -> None:
        """Unpack what is read into ``folder``. OSError where that cannot be written."""
        try:
            with zipfile.ZipFile(self.file) as archive:
                for entry in self._entries:
                    archive.extract(entry, folder)
        except (OSError, *DAMAGED) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the folder; a damaged bz2 stream has none
            raise CannotCheck(f"{self.file} is no readable wheel: {error}") from None
