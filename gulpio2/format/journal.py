"""Lines of a journal: each with its own check, so that a torn one is told.

A line is the CRC-32 of the JSON in eight hexadecimal digits, a blank, the JSON, and a
newline. What follows the first line that is not whole was never written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gulpio2.format.checksum import crc32_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["dump_body", "dump_line", "dump_merge", "load_lines", "parts_of_merge"]

_CHECK_LENGTH = 8
# In the only line of a merge's journal.
_MERGE_KEY = "merge"


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
        check, body = data[position : position + _CHECK_LENGTH], data[position:newline]
        body = body[_CHECK_LENGTH + 1 :]
        if check != b"%08x" % crc32_of(body):
            break
        try:
            values.append(json.loads(body))
        except (ValueError, RecursionError):
            break
        position = newline + 1
        ends.append(position)
    return values, ends


def dump_merge(parts: Iterable[str]) -> bytes:
    """Write the journal of a merge of these parts.

    Examples
    --------
    >>> parts_of_merge(dump_merge(["a", "b"]))
    ['a', 'b']
    """
    return dump_line({_MERGE_KEY: list(parts)})


def parts_of_merge(data: bytes) -> list[str] | None:
    """Give the parts of the merge that a journal is of; None for an ingest's, or none.

    Parameters
    ----------
    data : bytes
        The journal; empty where there is none.
    """
    lines, _ = load_lines(data)
    try:
        return [str(path) for path in lines[0][_MERGE_KEY]]
    except (LookupError, TypeError):
        return None
