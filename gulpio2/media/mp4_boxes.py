"""Whether the boxes of an MP4 or MOV lead to all that is in it.

FFmpeg passes over a box of a name that it does not know, as it has to, and stops where
there is none. So where one bit of a name or of a length is another, all that such a box
holds, or all that is behind it, would be missing without a word.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from gulpio2.media.cut import Damage, cut, read_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "BOXES",
    "boxes_at",
    "check_boxes",
    "content_of",
    "count_in_fragments",
    "tell_of_further_index",
]

_log = logging.getLogger(__name__)

# ISO/IEC 14496-12: boxes at the top of a file. What begins with another is none.
_INDEX_BOXES = frozenset({b"moov", b"moof"})
BOXES = _INDEX_BOXES | {
    b"ftyp", b"styp", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid", b"udta",
    b"meta", b"mfra", b"sidx", b"ssix", b"prft", b"emsg", b"pdin",
}  # fmt: skip
# With what every fragment begins, whatever its own name became; and what may be behind
# all of them.
_OF_FRAGMENTS = re.compile(rb"\0\0\0\x10mfhd|mfra.{4}tfra", re.DOTALL)
_LONGEST_FOUND = 12
_SEARCHED = 1 << 20  # bytes that are looked through at a time

# Boxes by what they are in, of which FFmpeg needs to know. There may be others.
_INSIDE = {
    b"moof": frozenset({b"mfhd", b"traf"}),
    b"traf": frozenset({b"tfhd", b"tfdt", b"trun"}),
    b"moov": frozenset({b"mvhd", b"trak", b"mvex"}),
    b"mvex": frozenset({b"trex"}),
    b"trak": frozenset({b"tkhd", b"edts", b"mdia"}),
    b"edts": frozenset({b"elst"}),
    b"mdia": frozenset({b"mdhd", b"hdlr", b"minf"}),
    b"minf": frozenset({b"stbl"}),
    b"stbl": frozenset(
        {b"stsd", b"stts", b"ctts", b"stsc", b"stsz", b"stz2", b"stco", b"co64"}
        | {b"stss"}
    ),
}
# Others that are in use there, and a bit away from one of those.
_ALSO_INSIDE = frozenset({b"trep", b"stps", b"stsg", b"stsl"})
# Those that there must be, in fragments and in tracks. `stts` and `stsc` are each a bit
# away from another name of the same place, so there must not be two of them either.
_NEEDED: dict[bytes, tuple[frozenset[bytes], ...]] = {
    b"moof": (frozenset({b"mfhd"}),),
    b"traf": (frozenset({b"tfhd"}),),
    b"trak": (frozenset({b"mdia"}),),
    b"mdia": (frozenset({b"hdlr"}),),
}
_NEEDED_OF_VIDEO: dict[bytes, tuple[frozenset[bytes], ...]] = {
    b"mdia": (frozenset({b"mdhd"}), frozenset({b"minf"})),
    b"minf": (frozenset({b"stbl"}),),
    b"stbl": (
        *(frozenset({name}) for name in (b"stsd", b"stts", b"stsc")),
        frozenset({b"stsz", b"stz2"}),
        frozenset({b"stco", b"co64"}),
    ),
}
_SINGLE = frozenset({b"stts", b"stsc"})
_TRACK = (b"trak", b"mdia", b"minf", b"stbl")
_VIDEO, _HANDLER_AT = b"vide", 8

# 8.8.7 and 8.8.8: flags of what follows them, and the bytes of that.
_OF_TFHD = {0x1: 8, 0x2: 4, 0x8: 4, 0x10: 4, 0x20: 4}
_OF_TRUN = {0x1: 4, 0x4: 4}
_OF_SAMPLE = {0x100: 4, 0x200: 4, 0x400: 4, 0x800: 4}


class _Box(NamedTuple):
    """A box, by its header."""

    name: bytes
    position: int
    start: int
    """Where its content begins."""
    end: int
    """Behind which it is not, whatever else it says; at its `position` for nowhere."""


def check_boxes(file: IO[bytes], size: int) -> Damage | None:
    """Look at the boxes at the top, and at those that lead to the frames.

    Parameters
    ----------
    file : file object
        That begins with one of `BOXES`.
    size : int
        Its bytes.

    Returns
    -------
    Damage or None
        None where nothing is missing.

    Notes
    -----
    Reads headers only, but looks through what is behind the last box for a fragment.
    """
    position = 0
    # Before this place, if it is of a fragment: it may be longer than it was.
    mdat: _Box | None = None
    seen: set[bytes] = set()
    while position + 8 <= size:
        box = _box(file, position, size)
        if box.end == position or not _is_name(box.name):
            return _check_rest(file, size, position, mdat)
        damage: Damage | None = None
        if box.name in BOXES:
            if box.end > size:
                what = f"its {box.name.decode()!r} box"
                return cut(what, box.end, size, excusable=box.name not in _INDEX_BOXES)
            if box.name == b"moof":
                damage = _check_fragment(file, box)
        elif box.end > size:
            return _check_rest(file, size, position, mdat)
        if box.name != b"moof" and read_at(file, box.start + 4, 4) == b"mfhd":
            damage = _broken(box, "a fragment")
        elif box.name == b"moov" and b"moov" not in seen:
            damage = _check_movie(file, box)
        if damage is not None:
            return damage
        mdat = box if box.name == b"mdat" and b"moof" in seen else None
        seen.add(box.name)
        position = box.end
    return None


def count_in_fragments(path: str, track: int) -> int:
    """Count the samples that the fragments of a file have of a track.

    Parameters
    ----------
    path : str
        A file in which `check_boxes` finds nothing.
    track : int
        Its number in the file.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with Path(path).open("rb", buffering=4096) as file:
        return sum(
            int.from_bytes(read_at(file, run.start + 4, 4), "big")
            for traf in boxes_at(file, b"moof", b"traf")
            for run in _runs(file, traf, track)
        )


def tell_of_further_index(path: str) -> None:
    """Log where an index is that FFmpeg passes over, as players do; nothing of none.

    Parameters
    ----------
    path : str
        A file that FFmpeg takes for MP4 or MOV.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with Path(path).open("rb", buffering=4096) as file:
        found = list(boxes_at(file, b"moov"))
        for moov in found[1:]:
            # That of fragments may be repeated, and so may another be as it is.
            if not any(boxes_at(file, b"mvex", parent=moov)) and (
                content_of(file, moov) != content_of(file, found[0])
            ):
                _log.warning(
                    "video %r has another index at byte %d, as where files were joined "
                    "as by cat: the frames that it leads to are left out. Join them "
                    "with ffmpeg -f concat -c copy instead",
                    path,
                    moov.position,
                )
                return


def boxes_at(
    file: IO[bytes], name: bytes, *names: bytes, parent: _Box | None = None
) -> Iterator[_Box]:
    """Give the boxes of the last name, each in one of the name before it."""
    for box in _parts(file, parent or _Box(b"", 0, 0, file.seek(0, 2)))[0]:
        if box.name == name:
            yield from boxes_at(file, *names, parent=box) if names else (box,)


def content_of(file: IO[bytes], box: _Box) -> bytes:
    """Read what is in a box."""
    return read_at(file, box.start, max(box.end - box.start, 0))


def _runs(file: IO[bytes], traf: _Box, track: int) -> list[_Box]:
    parts = _parts(file, traf)[0]
    numbers = (
        int.from_bytes(read_at(file, part.start + 4, 4), "big")
        for part in parts
        if part.name == b"tfhd"
    )
    if next(numbers, None) != track:
        return []
    return [part for part in parts if part.name == b"trun"]


def _box(file: IO[bytes], position: int, end: int) -> _Box:
    header = read_at(file, position, 16)
    length, name = int.from_bytes(header[:4], "big"), header[4:8]
    start = position + 8
    if length == 1:
        length, start = int.from_bytes(header[8:], "big"), position + 16
    elif length == 0:  # up to the end
        length = max(end - position, 0)
    return _Box(name, position, start, position + length * (length >= start - position))


def _is_name(name: bytes) -> bool:
    # What Apple adds begins with a copyright sign.
    return all(32 <= letter < 127 or letter == 0xA9 for letter in name)


def _check_rest(
    file: IO[bytes], size: int, position: int, mdat: _Box | None
) -> Damage | None:
    """See whether what is no box is behind the last one, as it may be."""
    start = position if mdat is None else mdat.start
    kept = b""
    while start < size:
        data = kept + read_at(file, start, _SEARCHED)
        # Asked first, since the pattern takes its time with zeros.
        may_be = b"mfhd" in data or b"mfra" in data
        if may_be and _OF_FRAGMENTS.search(data):
            return Damage(
                f"is damaged: there is no box at byte {position}, and fragments that "
                "no box leads to"
            )
        kept = data[-_LONGEST_FOUND:]
        start += _SEARCHED
    return None


def _parts(file: IO[bytes], parent: _Box) -> tuple[list[_Box], bool]:
    """List the boxes in a box, and tell whether they are all that is in it."""
    found: list[_Box] = []
    position = parent.start
    while position + 8 <= parent.end:
        box = _box(file, position, parent.end)
        if box.end == position:
            return found, False
        position = box.end
        if position > parent.end:  # FFmpeg takes it for shorter than it says, too
            box = box._replace(end=parent.end)
        found.append(box)
    return found, position == parent.end


def _check_fragment(file: IO[bytes], moof: _Box) -> Damage | None:
    """Look at the boxes of a fragment, and at the lengths of its tables."""
    of_tracks = [box for box in _parts(file, moof)[0] if box.name == b"traf"]
    for box in (moof, *of_tracks):
        parts, is_filled = _parts(file, box)
        if not is_filled or not _are_right(parts, box.name, _NEEDED):
            return _broken(moof, "a fragment")
        if not all(_is_as_long_as_it_says(file, part) for part in parts):
            return _broken(moof, "a fragment")
    return None


def _is_as_long_as_it_says(file: IO[bytes], box: _Box) -> bool:
    length = box.end - box.start
    start = read_at(file, box.start, 8).ljust(8, b"\0")
    version = start[0]
    flags, count = (int.from_bytes(start[at : at + 4], "big") for at in (0, 4))
    needed = {
        b"mfhd": 8,
        b"tfhd": 8 + _bytes_of(flags, _OF_TFHD),
        b"tfdt": 12 if version else 8,
        b"trun": 8 + _bytes_of(flags, _OF_TRUN) + count * _bytes_of(flags, _OF_SAMPLE),
    }
    return length == needed.get(box.name, length) and _is_name(box.name)


def _bytes_of(flags: int, lengths: dict[int, int]) -> int:
    return sum(length for flag, length in lengths.items() if flags & flag)


def _check_movie(file: IO[bytes], moov: _Box) -> Damage | None:
    """Look at the boxes that lead to the tables of each track."""
    parts, _ = _parts(file, moov)
    if not _are_right(parts, b"moov", _NEEDED):
        return _broken(moov, "an index")
    for box in parts:
        if box.name == b"mvex" and not _are_right(
            _parts(file, box)[0], b"mvex", _NEEDED
        ):
            return _broken(box, "an index")
        if box.name == b"trak" and not _is_track_right(file, box):
            return _broken(box, "a track")
    return None


def _is_track_right(file: IO[bytes], trak: _Box) -> bool:
    box: _Box | None = trak
    is_video = False
    for name, following in zip(_TRACK, (*_TRACK[1:], b""), strict=True):
        if box is None:  # of a track that is no video
            return True
        every, _ = _parts(file, box)
        parts = {part.name: part for part in every}
        if not _are_right(every, name, _NEEDED):
            return False
        edits = parts.get(b"edts")
        if edits and not _are_right(_parts(file, edits)[0], b"edts", _NEEDED):
            return False
        if name == b"mdia":
            kind = read_at(file, parts[b"hdlr"].start + _HANDLER_AT, 4)
            is_video = bool(kind == _VIDEO)
        if is_video and not _are_right(every, name, _NEEDED_OF_VIDEO):
            return False
        box = parts.get(following)
    return True


def _are_right(
    boxes: Iterable[_Box],
    parent: bytes,
    needed: dict[bytes, tuple[frozenset[bytes], ...]],
) -> bool:
    """Tell whether those are there that must be, and no name has a bit flipped."""
    names = [box.name for box in boxes]
    for single in _SINGLE:
        if names.count(single) > 1:
            return False
    if any(not set(names) & set(any_of) for any_of in needed.get(parent, ())):
        return False
    known = _INSIDE[parent]
    others = set(names) - known - _ALSO_INSIDE
    return not any(_is_a_bit_off(name, known) for name in others)


def _is_a_bit_off(name: bytes, known: Iterable[bytes]) -> bool:
    number = int.from_bytes(name, "big")
    return any(
        (number ^ int.from_bytes(other, "big")).bit_count() == 1 for other in known
    )


def _broken(box: _Box, what: str) -> Damage:
    return Damage(f"is damaged: the boxes of {what} at byte {box.position} are not")
