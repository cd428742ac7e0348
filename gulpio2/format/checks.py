"""What the checker knows of names, spans and records: sizes and bytes in, problems out.

`gulpio2.sanity` reads a directory and asks these functions and those of `map_checks`.
Each fault has a code that stays the same, so that a program may act on it.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.format.jpeg_markers import EOI, SOI, START_OF_FRAME, START_OF_SCAN
from gulpio2.format.layout import (
    JOURNAL_NAME,
    Listing,
    data_name,
    describe_shares,
    meta_name,
)
from gulpio2.format.problems import Problem, Tally
from gulpio2.format.records import ALIGNMENT, pad_length

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = [
    "AGAIN",
    "HEAD_BYTES",
    "Record",
    "check_checksum",
    "check_head",
    "check_ids",
    "check_names",
    "check_spans",
    "check_tail",
    "note_gaps",
    "undecodable",
]

# Bytes. Where a JPEG's size is declared: behind at most the tables and, in pictures of
# cameras, metadata, which may be longer; `check_head` then says nothing.
HEAD_BYTES = 1024

AGAIN = ". `gulp2 delete` the item and ingest it again"
"""What to do about an item that is damaged, at the end of a message."""

# Problems of one kind that the spans of a file may have before they are counted only.
_MOST = 500
# Gaps between the numbers of chunks that are listed.
_MOST_GAPS = 20


class Record(NamedTuple):
    """One record as its map describes it."""

    loc: int
    """Offset in the data file."""
    pad: int
    """Bytes of padding at its end."""
    length: int
    """Bytes, padding included."""
    item: str
    """Id of the item."""
    frame: int
    """Index of the frame in the item."""
    crc32: int | None = None
    """Checksum of the JPEG; None where none was stored."""


# --- names --------------------------------------------------------------------------


def check_names(listing: Listing) -> list[Problem]:
    """Check which files a directory has."""
    problems = [
        Problem(
            "data-without-map",
            f"has no {meta_name(number)} and is passed over: it is being stored, was "
            "never committed, or the map is lost. If no writer is at work, put the map "
            "back, salvage its frames with `gulp2 repair`, or ingest its items again "
            "and remove this file",
            data_name(number),
        )
        for number in listing.data_only
    ]
    problems += [
        Problem(
            "map-without-data",
            f"has no {data_name(number)}: its frames are missing, and the directory "
            "cannot be opened. Put the data file back, or remove the map and ingest "
            "its items again",
            meta_name(number),
        )
        for number in listing.meta_only
    ]
    ending = "The next ingest removes it, and so may you, once its writer is gone"
    if JOURNAL_NAME in listing.names:
        ending = "The same ingest with --resume goes on with it, another one removes it"
    problems += [
        Problem(
            "partial-file",
            "was not finished: its writer is at work still, or was killed. It is "
            f"passed over. {ending}",
            name,
        )
        for name in listing.partials
    ]
    problems += [
        Problem(
            "stray-name",
            "is named almost like a file of a chunk and is passed over. The names are "
            "data_N.gulp and meta_N.gmeta, N of at most 18 digits and without leading "
            "zeros: rename it if it belongs to the directory, or else move it away",
            name,
        )
        for name in listing.strays
    ]
    if JOURNAL_NAME in listing.names:
        text = (
            "an ingest, a merge or a repair is at work here, or was interrupted: go on "
            "with it (ingest with --resume, merge again, repair into an empty folder), "
            "so that what is missing comes in"
        )
        problems.append(Problem("unfinished-ingest", text, JOURNAL_NAME))
    if not listing.chunks:
        text = "holds no complete chunk: nothing can be read"
        if shares := describe_shares(listing.names):
            text += f". {shares}"
        problems.append(Problem("no-chunks", text, "."))
    return problems


def note_gaps(numbers: Iterable[int]) -> list[Problem]:
    """Note which numbers of chunks are left out, as nothing else may tell of them.

    Parameters
    ----------
    numbers : iterable of int
        Those of which there is a file.
    """
    gaps = []
    expected = 0
    for number in sorted(numbers):
        if number > expected:
            last = number - 1
            gaps.append(f"{expected} to {last}" if last > expected else f"{last}")
        expected = number + 1
    if not gaps:
        return []
    more = f" and {len(gaps) - _MOST_GAPS} more gaps" if len(gaps) > _MOST_GAPS else ""
    text = (
        f"there is no chunk {', '.join(gaps[:_MOST_GAPS])}{more}, and there are later "
        "ones: was it removed or renamed, or not copied? An ingest leaves out only "
        "numbers of chunks of which it could store no item"
    )
    return [Problem("number-gap", text, ".")]


def check_ids(ids_by_chunk: Mapping[int, Sequence[str]]) -> list[Problem]:
    """Check that no id is in two chunks.

    Parameters
    ----------
    ids_by_chunk : mapping
        Chunk number to the ids in it, in numeric order.
    """
    problems = []
    first: dict[str, int] = {}
    for number, ids in ids_by_chunk.items():
        problems += [
            Problem(
                "duplicate-id",
                f"is in {meta_name(first[id_])} as well, so that the directory cannot "
                f"be opened. `gulp2 delete DIR ID --chunk {number}` takes it away here",
                meta_name(number),
                item=id_,
            )
            for id_ in dict.fromkeys(ids)
            if first.setdefault(id_, number) != number
        ]
    return problems


# --- spans --------------------------------------------------------------------------


def check_spans(
    records: Iterable[Record],
    size: int,
    file: str,
    erased: Collection[tuple[int, int]] = (),
) -> tuple[list[Record], list[Problem]]:
    """Check that the records of a chunk fill its data file, each byte once.

    Parameters
    ----------
    records : iterable of Record
        As the map has them.
    size : int
        Bytes of the data file.
    file : str
        Its name.
    erased : collection of (int, int)
        Start and stop of spans between records that hold zeros, because the frames
        there were deleted.

    Returns
    -------
    inside : list of Record
        By offset, those that lie in the file and can hold a JPEG.
    problems : list of Problem
    """
    inside: list[Record] = []
    problems: list[Problem] = []
    tally = Tally(_MOST)

    def add(found: list[Problem]) -> None:
        problems.extend(tally.admit(found))

    holes = frozenset(erased)  # one for each item that was deleted, at most
    needed = end = 0
    owner: Record | None = None
    for record in sorted(records, key=itemgetter(0, 2)):
        stop = record.loc + record.length
        needed = max(needed, stop)
        add(_check_shape(record, file))
        if stop > size:
            text = f"ends at byte {stop} of a file of {size} bytes: the frame is lost"
            add([_at(record, "span-outside-file", text, file)])
            continue
        if record.length - record.pad < len(SOI + EOI):
            continue
        inside.append(record)
        if record.loc < end and owner is not None:
            text = (
                f"shares bytes {record.loc} to {min(end, stop)} with frame "
                f"{owner.frame} of item {owner.item!r}: one of the two is not what "
                "was stored"
            )
            add([_at(record, "overlap", text, file)])
        elif record.loc > end and (end, record.loc) not in holes:
            add([_unreferenced(end, record.loc, file)])
        if stop > end:
            end, owner = stop, record
    problems += tally.rest()
    if needed > size:
        problems.insert(0, _too_short(size, needed, file))
    elif size > end:
        problems.append(
            Problem(
                "data-too-long",
                f"holds {size} bytes, of which the map knows {end}: an append goes on "
                "or was cut short, a program has taken frames out of the map, or "
                "another file was put in its place. Frames that the map knows are not "
                "concerned, and `gulp2 repair` leaves the rest behind",
                file,
                offset=end,
            )
        )
    return inside, problems


def _check_shape(record: Record, file: str) -> list[Problem]:
    """Check the numbers of one record against each other."""
    num_bytes = record.length - record.pad
    problems = []
    if num_bytes < len(SOI + EOI):
        text = f"{num_bytes} bytes are too few for a JPEG"
        problems.append(_at(record, "not-jpeg", text, file))
    if record.pad != pad_length(num_bytes):
        text = f"{num_bytes} bytes need {pad_length(num_bytes)} of padding and have "
        problems.append(_at(record, "bad-pad", f"{text}{record.pad}", file))
    if record.loc % ALIGNMENT:
        text = f"does not begin at a multiple of {ALIGNMENT}"
        problems.append(_at(record, "misaligned", text, file))
    return problems


def _too_short(size: int, needed: int, file: str) -> Problem:
    restore = "Put the whole file back, or ingest its items again"
    if size == 0:
        text = f"is empty, and the map speaks of {needed} bytes. {restore}"
        return Problem("empty-data-file", text, file, offset=0)
    text = f"holds {size} bytes, and the map speaks of {needed}: it was cut. {restore}"
    return Problem("data-too-short", text, file, offset=size)


def _unreferenced(start: int, stop: int, file: str) -> Problem:
    text = (
        f"{stop - start} bytes that belong to no frame of the map: an append goes on "
        "or was cut short, or a program has taken frames out of the map. Other frames "
        "are not concerned, and `gulp2 repair` leaves such bytes behind"
    )
    return Problem("unreferenced-bytes", text, file, offset=start)


def _at(record: Record, code: str, message: str, file: str) -> Problem:
    return Problem(code, message, file, record.item, record.frame, record.loc)


# --- records ------------------------------------------------------------------------


def check_head(record: Record, head: bytes | memoryview, file: str) -> list[Problem]:
    """Check how a record begins.

    Parameters
    ----------
    record : Record
        The record.
    head : bytes-like
        Its first `HEAD_BYTES`, or all of its JPEG where that is shorter.
    file : str
        Name of the data file.
    """
    complete = len(head) >= record.length - record.pad
    fault = _header_fault(bytes(head), complete=complete)
    return [] if fault is None else [_at(record, "not-jpeg", fault, file)]


def _header_fault(head: bytes, *, complete: bool) -> str | None:
    """Walk the markers of a JPEG up to its size; None where nothing is wrong."""
    if head[:2] != SOI:
        return f"is no JPEG: it begins with {head[:2].hex(' ')} and not with ff d8"
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return f"is no JPEG: no marker at its byte {at}"
        marker = head[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker in START_OF_FRAME:
            height = int.from_bytes(head[at + 5 : at + 7], "big")
            width = int.from_bytes(head[at + 7 : at + 9], "big")
            if height and width:
                return None
            return f"is a JPEG of {width}x{height} pixels"
        length = int.from_bytes(head[at + 2 : at + 4], "big")
        if marker == START_OF_SCAN or marker < 0xC0 or length < 2:
            return f"is a JPEG without a size: marker ff {marker:02x} at its byte {at}"
        at += 2 + length
    return "is a JPEG without a size" if complete else None


def check_tail(record: Record, tail: bytes | memoryview, file: str) -> list[Problem]:
    """Check how a record ends.

    Parameters
    ----------
    record : Record
        The record.
    tail : bytes-like
        Its last two bytes before the padding, and the padding.
    file : str
        Name of the data file.
    """
    problems = []
    end, padding = bytes(tail[:2]), bytes(tail[2:])
    if end != EOI:
        text = f"is cut or damaged: it ends with {end.hex(' ')} and not with ff d9"
        problems.append(_at(record, "not-jpeg", text, file))
    if any(padding):
        text = f"its padding is {padding.hex(' ')} and not zero; that harms no frame"
        offset = record.loc + record.length - record.pad
        problems.append(
            Problem("pad-not-zero", text, file, record.item, record.frame, offset)
        )
    return problems


def check_checksum(record: Record, crc32: int, file: str) -> list[Problem]:
    """Compare the checksum of a record's JPEG with the one that was stored."""
    if record.crc32 is None or crc32 == record.crc32:
        return []
    text = (
        f"its checksum is {crc32:08x}, and {record.crc32:08x} was stored: bytes have "
        f"changed since{AGAIN}"
    )
    return [_at(record, "crc-mismatch", text, file)]


def undecodable(record: Record, cause: str, file: str) -> Problem:
    """Make the problem of a frame that cannot be decoded, and whose checksum holds."""
    text = f"cannot be decoded: {cause}"
    if record.crc32 is None:
        return _at(record, "not-decodable", text, file)
    text += f"; it was damaged before it was stored: mend its source{AGAIN}"
    return _at(record, "stored-damaged", text, file)
