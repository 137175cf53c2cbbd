"""Where in the user's own input something stands."""

from __future__ import annotations

from specfix.record import record


@record(frozen=True)
class Location:
    """A place in what the user gave.

    ``file`` is a path, or ``command line`` / ``environment`` / ``hardware`` for what is in no file;
    ``pointer`` is an RFC 6901 JSON pointer (``/max_position_embeddings``) or an option (``--block-size``);
    ``line`` counts from 1, and is None where the key is absent or there is no file.
    """

    file: str
    pointer: str = ""
    line: int | None = None
