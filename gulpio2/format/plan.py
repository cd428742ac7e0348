"""Which bytes to read together, and which items to write together."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.errors import IngestSettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Read",
    "calculate_chunk_slices",
    "cover_neighbours",
    "first_empty",
    "plan_apart",
    "plan_reads",
]

# Bytes. Reading over a gap this large costs less than a read of its own: a warm read
# moves some 10 GB/s, and with its overhead each one takes ten microseconds. Every
# second frame of a clip comes in one read so.
DEFAULT_MAX_GAP = 64 * 1024
# Bytes. One read never asks for more than this, so that the buffer of a whole item
# stays bounded; far above a clip of ordinary frames.
DEFAULT_MAX_READ = 64 * 1024 * 1024


class Read(NamedTuple):
    """One positional read, and which of the spans asked for it holds."""

    offset: int
    """First byte in the file."""
    length: int
    """Bytes to read."""
    members: Sequence[int]
    """Positions, in the list of spans given to `plan_reads`, that lie inside."""


def plan_reads(
    spans: Sequence[tuple[int, int]],
    *,
    max_gap: int = DEFAULT_MAX_GAP,
    max_read: int = DEFAULT_MAX_READ,
) -> list[Read]:
    """Cover byte spans with few reads.

    Parameters
    ----------
    spans : sequence of (int, int)
        Offset and length of each, in bytes, in any order, repeats and overlaps
        allowed. Spans of length 0 need no read and are in none.
    max_gap : int, optional
        Spans at most this many bytes apart are fetched by one read.
    max_read : int, optional
        No read is longer, unless a single span is.

    Returns
    -------
    list of Read
        By ascending offset.

    Examples
    --------
    >>> [(read.offset, read.length) for read in plan_reads([(0, 8), (8, 4)])]
    [(0, 12)]
    """
    if (whole := cover_neighbours(spans, max_gap, max_read)) is not None:
        return [Read(*whole, range(len(spans)))]
    return plan_apart(spans, max_gap=max_gap, max_read=max_read)


def plan_apart(
    spans: Sequence[tuple[int, int]],
    *,
    max_gap: int = DEFAULT_MAX_GAP,
    max_read: int = DEFAULT_MAX_READ,
) -> list[Read]:
    """Do what `plan_reads` does, where it is known that one read will not do."""
    if (reads := _in_order(spans, max_gap, max_read)) is not None:
        return reads
    order = sorted(range(len(spans)), key=lambda index: spans[index])
    reads = []
    start = end = 0
    members: list[int] = []
    for index in order:
        offset, length = spans[index]
        if length == 0:
            continue
        new_end = max(end, offset + length)
        if members and offset - end <= max_gap and new_end - start <= max_read:
            members.append(index)
            end = new_end
            continue
        if members:
            reads.append(Read(start, end - start, tuple(members)))
        start, end, members = offset, offset + length, [index]
    if members:
        reads.append(Read(start, end - start, tuple(members)))
    return reads


def cover_neighbours(
    spans: Sequence[tuple[int, int]],
    max_gap: int = DEFAULT_MAX_GAP,
    max_read: int = DEFAULT_MAX_READ,
) -> tuple[int, int] | None:
    """Cover neighbours, the common case; in order, the most common, in one pass.

    Parameters
    ----------
    spans, max_gap, max_read
        As in `plan_reads`.

    Returns
    -------
    tuple of int or None
        Offset and length of one read that holds all. None where there are gaps that
        are larger in all than one may be, where spans lie on one another, and where
        one is empty.
    """
    if not spans:
        return None
    start = end = spans[0][0]
    num_bytes = 0
    for offset, length in spans:
        if offset < end or not length:
            break
        num_bytes += length
        end = offset + length
    else:
        if end - start <= min(num_bytes + max_gap, max_read):
            return start, end - start
        return None
    if len({*spans}) < len(spans):
        return None  # counted twice, they would make up for a gap
    offsets, lengths = zip(*spans, strict=True)
    start, num_bytes = min(offsets), sum(lengths)
    whole: int = max(map(add, offsets, lengths)) - start
    if num_bytes <= whole <= min(num_bytes + max_gap, max_read) and 0 not in lengths:
        return start, whole
    return None


def first_empty(spans: Sequence[tuple[int, int]]) -> int:
    """Find the first record without bytes, which no read covers; there is one."""
    return next(number for number, span in enumerate(spans) if not span[1])


def _in_order(
    spans: Sequence[tuple[int, int]], max_gap: int, max_read: int
) -> list[Read] | None:
    """Cover spans that are in order, the common case; None where they are not."""
    reads: list[Read] = []
    if not spans:
        return reads
    start = end = spans[0][0]
    first = place = 0
    for place, (offset, length) in enumerate(spans):
        if offset < end or not length:
            return None
        if (offset - end > max_gap or offset + length - start > max_read) and (
            place > first
        ):
            reads.append(Read(start, end - start, tuple(range(first, place))))
            start, first = offset, place
        end = offset + length
    reads.append(Read(start, end - start, tuple(range(first, place + 1))))
    return reads


def calculate_chunk_slices(items_per_chunk: int, num_items: int) -> list[slice]:
    """Cut a sequence of items into chunks.

    Parameters
    ----------
    items_per_chunk, num_items : int
        Both at least 1.

    Returns
    -------
    list of slice
        Consecutive, covering every item once; the last may be shorter.

    Raises
    ------
    IngestSettingError
        One of them is less than 1.

    Examples
    --------
    >>> calculate_chunk_slices(2, 3)
    [slice(0, 2, None), slice(2, 3, None)]
    """
    if items_per_chunk <= 0:
        raise IngestSettingError(
            f"a chunk must hold at least 1 item, not {items_per_chunk}"
        )
    if num_items <= 0:
        raise IngestSettingError(
            "there are no items to ingest: the adapter found none. Check the folder "
            "or the list that it was given"
        )
    starts = range(0, num_items, items_per_chunk)  # whose bounds are Python's integers
    return [slice(start, min(start + starts.step, starts.stop)) for start in starts]
