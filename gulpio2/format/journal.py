"""Lines of a journal: each with its own check, so that a torn one is told.

A line is the CRC-32 of the JSON in eight hexadecimal digits, a blank, the JSON, and a
newline. What follows the first line that is not whole was never written.
"""

from __future__ import annotations

import json
from typing import Any

from gulpio2.format.checksum import crc32_of

__all__ = ["dump_body", "dump_line", "load_lines"]

_CHECK_LENGTH = 8


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
