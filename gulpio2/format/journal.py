"""Lines of a journal: each with its own check, so that a torn one is told.

A line is the CRC-32 of the JSON in eight hexadecimal digits, a blank, the JSON, and a
newline. What follows the first line that is not whole was never written.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gulpio2.format.checksum import crc32_of

__all__ = ["Copying", "dump_body", "dump_line", "load_copying", "load_lines"]

_CHECK_LENGTH = len("3594fa95 ")
# What fills a folder out of others, and what to do where it was interrupted.
_ADVICE = {
    "merge": "Finish it (gulp2 merge with the same parts)",
    "repair": "Repair its source again, into an empty folder (gulp2 repair),",
}


def dump_line(value: Any) -> bytes:
    """Write one line.

    Examples
    --------
    >>> dump_line({"task": 3}).decode().strip()
    '3594fa95 {"task": 3}'
    """
    return dump_body(json.dumps(value))


def dump_body(text: str) -> bytes:
    """Write one line of what is JSON already, in ASCII."""
    body = text.encode("ascii")
    return b"%08x %s\n" % (crc32_of(body), body)


def load_lines(data: bytes) -> tuple[list[Any], list[int]]:
    """Read lines up to the first one that is torn or damaged.

    Returns
    -------
    values : list
        What each line says.
    ends : list of int
        Offset in `data` of the end of each line, in bytes.
    """
    values: list[Any] = []
    ends: list[int] = []
    position = 0
    while (newline := data.find(b"\n", position)) >= 0:
        body = data[position + _CHECK_LENGTH : newline]
        if data[position : position + _CHECK_LENGTH] != b"%08x " % crc32_of(body):
            break
        try:
            values.append(json.loads(body))
        except (ValueError, RecursionError):
            break
        position = newline + 1
        ends.append(position)
    return values, ends


class Copying(NamedTuple):
    """What fills a folder out of others: it is the only line of its journal.

    Examples
    --------
    >>> load_copying(Copying("merge", ("a", "b")).dump())
    Copying(verb='merge', sources=('a', 'b'))
    """

    verb: str
    """"merge" or "repair"."""
    sources: tuple[str, ...]
    """The folders that it copies from."""

    def dump(self) -> bytes:
        """Write the journal."""
        return dump_line({self.verb: self.sources})

    @property
    def advice(self) -> str:
        """What to do where it was interrupted; goes on with "before ..."."""
        return _ADVICE[self.verb]


def load_copying(data: bytes) -> Copying | None:
    """Give what a journal is of; None for an ingest's, or none.

    Parameters
    ----------
    data : bytes
        The journal; empty where there is none.
    """
    lines, _ = load_lines(data)
    if lines and isinstance(lines[0], dict):
        for verb in _ADVICE:
            if isinstance(sources := lines[0].get(verb), list):
                return Copying(verb, tuple(map(str, sources)))
    return None
