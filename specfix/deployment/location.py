"""Where in the user's own input something stands."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from specfix.deployment.json_text import line_of
from specfix.record import record


@record(frozen=True)
class Location:
    """A place in what the user gave.

    ``file`` is a path, or ``command line`` / ``environment`` / ``hardware`` for what is in no file;
    ``pointer`` is an RFC 6901 JSON pointer (``/max_position_embeddings``) or an option (``--block-size``);
    ``line`` counts from 1, and is None where the key is absent or there is no file: it is ``start`` where that was
    known, else it is looked up in ``text``, the file's, when somebody asks.
    """

    file: str
    pointer: str = ""
    start: int | None = None
    text: str = field(default="", repr=False, compare=False)

    @cached_property
    def line(self) -> int | None:
        return self.start if self.start is not None or not self.text else line_of(self.text, self.pointer)
