"""What of a TIFF file OpenCV would read otherwise than other images.

It multiplies colours by their transparency and turns the image; both are told by one
number in the file each, so both are prevented there. It gives the first of several
pages, and the values of Lab as if they were others: such files are refused.
"""

from __future__ import annotations

from typing import NamedTuple

from gulpio2.errors import AdapterContractError

__all__ = ["as_stored"]

_SHORT = 3
# Tags of TIFF 6.0.
_SUBFILE, _PHOTOMETRIC, _ORIENTATION, _EXTRA = 254, 262, 274, 338
_REDUCED_OR_MASK = 0b101
_LAB = frozenset({8, 9, 10})
_UNASSOCIATED, _ASSOCIATED = 2, 1
_MOST_PAGES = 10_000


class _Entry(NamedTuple):
    num_values: int
    kind: int
    place: int
    """Of the value, where it has room in the entry."""


def as_stored(data: bytes) -> bytes:
    """Give a TIFF file such that OpenCV reads its values as they are stored.

    Parameters
    ----------
    data : bytes
        Any file; what is no TIFF comes back.

    Returns
    -------
    bytes
        Colours that transparency is not multiplied into, and an upright image.

    Raises
    ------
    AdapterContractError
        It has several pages, or Lab colours.
    """
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return data
    little = data[:1] == b"I"

    def number(place: int, length: int) -> int:
        return int.from_bytes(
            data[place : place + length], "little" if little else "big"
        )

    def value(entry: _Entry | None) -> int:
        if entry is None or entry.num_values < 1:
            return 0
        return number(entry.place, 2 if entry.kind == _SHORT else 4)

    first: dict[int, _Entry] | None = None
    num_pages = 0
    start = number(4, 4)
    seen: set[int] = set()
    while 8 <= start < len(data) and start not in seen and len(seen) < _MOST_PAGES:
        seen.add(start)
        num_entries = number(start, 2)
        end = start + 2 + 12 * num_entries
        entries = {
            number(at, 2): _Entry(number(at + 4, 4), number(at + 2, 2), at + 8)
            for at in range(start + 2, min(end, len(data)), 12)
        }
        first = entries if first is None else first
        num_pages += not value(entries.get(_SUBFILE)) & _REDUCED_OR_MASK
        start = number(end, 4)
    if num_pages > 1:
        raise AdapterContractError(
            f"it is a TIFF of {num_pages} pages, and a frame is one; write each into a "
            "file of its own"
        )
    if first is None:
        return data
    if value(first.get(_PHOTOMETRIC)) in _LAB:
        raise AdapterContractError("it is a TIFF of Lab colours; convert it to RGB")
    changed = bytearray(data)
    for tag, wrong, right in (
        (_EXTRA, {_UNASSOCIATED}, _ASSOCIATED),
        (_ORIENTATION, set(range(2, 9)), 1),
    ):
        entry = first.get(tag)
        if entry is not None and entry.kind == _SHORT and value(entry) in wrong:
            if entry.num_values > 2:  # the values are elsewhere
                continue
            changed[entry.place : entry.place + 2] = right.to_bytes(
                2, "little" if little else "big"
            )
    return bytes(changed)
