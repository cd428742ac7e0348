"""Matroska and WebM, walked element by element without reading what they hold.

FFmpeg passes over what it does not understand in the middle of a file: an element that
it does not know, or, without an error as well, all of a cluster that comes behind a
block it cannot place. So what it would pass over is looked for here.

The walk is strict where FFmpeg loses frames, and lets pass what a later version of the
format may add.
"""

from __future__ import annotations

from collections import defaultdict
from typing import IO, TYPE_CHECKING

from gulpio2.media.cut import Blocks, Damage, Found, cut, read_at
from gulpio2.media.ebml import (
    LACE_HEADER,
    LACING,
    LONGEST_NUMBER,
    Element,
    Inside,
    are_laces_inside,
    element_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EBML", "walk_matroska"]

# RFC 8794 and RFC 9559, elements by id.
EBML = 0x1A45DFA3
_SEGMENT = 0x18538067
_CLUSTER = 0x1F43B675
_TRACKS = 0x1654AE6B
_IN_SEGMENT = frozenset(
    {
        _CLUSTER,
        _TRACKS,
        0x114D9B74,  # SeekHead
        0x1549A966,  # Info
        0x1C53BB6B,  # Cues
        0x1941A469,  # Attachments
        0x1043A770,  # Chapters
        0x1254C367,  # Tags
    }
)
_ANYWHERE = frozenset({0xEC, 0xBF})  # Void, CRC-32
_SIMPLE_BLOCK, _BLOCK_GROUP, _BLOCK = 0xA3, 0xA0, 0xA1
_TIMESTAMP = 0xE7
_NUMBERS_IN_CLUSTER = frozenset({_TIMESTAMP, 0xA7, 0xAB})  # Position, PrevSize
_IN_CLUSTER = (
    _ANYWHERE
    | _NUMBERS_IN_CLUSTER
    | {_SIMPLE_BLOCK, _BLOCK_GROUP, 0x5854, 0xAF}  # SilentTracks, EncryptedBlock
)
# BlockAdditions, each BlockMore in it.
_MASTERS_IN_GROUP = frozenset({0x75A1, 0xA6})
# BlockDuration, ReferencePriority, ReferenceBlock, ReferenceVirtual, DiscardPadding,
# BlockAddID.
_NUMBERS_IN_GROUP = frozenset({0x9B, 0xFA, 0xFB, 0xFD, 0x75A2, 0xEE})
_IN_GROUP = (
    _ANYWHERE
    | _MASTERS_IN_GROUP
    | _NUMBERS_IN_GROUP
    # BlockVirtual, CodecState, Slices, ReferenceFrame, BlockAdditional.
    | {_BLOCK, 0xA2, 0xA4, 0x8E, 0xC8, 0xA5}
)
_TRACK_ENTRY, _TRACK_NUMBER, _TRACK_TYPE, _MAY_LACE = 0xAE, 0xD7, 0x83, 0x9C
_VIDEO = 1
# Video, Audio, TrackOperation, Colour and what is in it, Projection,
# BlockAdditionMapping, ContentEncodings and what is in them.
_MASTERS_IN_TRACK = frozenset(
    {0xE0, 0xE1, 0xE2, 0x55B0, 0x55D0, 0x7670, 0x41E4, 0x6D80, 0x6240, 0x5034, 0x5035}
)
# Numbers and flags of a track, of its pictures and of its sound.
_NUMBERS_IN_TRACK = frozenset(
    {_TRACK_NUMBER, _TRACK_TYPE, _MAY_LACE, 0x73C5, 0xB9, 0x88, 0x55AA, 0x6DE7, 0x6DF8}
    | {0x55EE, 0x56AA, 0x56BB, 0x23E383, 0x234E7A, 0x23314F}
    | {0xB0, 0xBA, 0x54AA, 0x54BB, 0x54CC, 0x54DD, 0x54B0, 0x54BA, 0x54B2, 0x53B8}
    | {0x53C0, 0x9A, 0x9D, 0xB5, 0x78B5, 0x9F, 0x6264}
)
_DEEPEST = 8  # elements in each other; it takes four
_LEAST_LEVEL_1 = 0x10000000  # ids of the elements of a segment have four bytes


class _DamageError(Exception):
    """Ends the walk."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage)
        self.damage = damage


def walk_matroska(file: IO[bytes], size: int) -> Found:
    """Look at all blocks of all clusters, also of files that were joined as by cat."""
    walk = _Walk(file, size)
    try:
        damage = _through_segments(walk, file, size)
        walk.check_tracks()
    except _DamageError as found:
        damage = found.damage
    return Found(damage, walk.blocks_of_videos())


def _through_segments(walk: _Walk, file: IO[bytes], size: int) -> Damage | None:
    position = 0
    while position < size:
        header = element_at(file, position)
        if position and (header is None or header.id_ != EBML):
            break  # what follows the last segment
        segment = header and element_at(file, header.end or 0)
        while segment and segment.id_ in _ANYWHERE and segment.end:
            segment = element_at(file, segment.end)
        if segment is None or segment.id_ != _SEGMENT:
            return Damage("is cut off or damaged: it has no Matroska segment")
        if segment.end is not None and segment.end > size:
            return cut("its segment", segment.end, size)
        position = walk.through_segment(segment)
    return None


class _Walk:
    """Goes through the elements of a segment; raises at the first that is damaged."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size
        # Numbers of the tracks, and of those whose blocks hold one frame each.
        self._tracks: set[int] = set()
        self._unlaced: set[int] = set()
        # Numbers of tracks -> the first block of each, and the first of several frames.
        # Looked at last, as the tracks may be told of behind the clusters.
        self._blocks: dict[int, int] = {}
        self._laced: dict[int, int] = {}
        # Of the videos, in the order of the file, the numbers of their tracks; and of
        # each track where what is in its first block begins, and how many blocks hold
        # something.
        self._videos: list[int] = []
        self._starts: dict[int, int] = {}
        self._counts: defaultdict[int, int] = defaultdict(int)

    def through_segment(self, segment: Element) -> int:
        """Walk through all that is in a segment; gives where it ends."""
        end = self._size if segment.end is None else segment.end
        position = segment.start
        while position < end:
            element = element_at(self._file, position)
            if element is None:
                raise _broken(position)
            if segment.end is None and element.id_ == EBML:
                break
            if element.end is not None and element.end > end:
                raise _DamageError(cut("an element", element.end, self._size))
            if element.id_ == _CLUSTER:
                position = self._through_cluster(element, end)
                continue
            if element.end is None or self._is_hidden_cluster(element):
                raise _broken(position)
            if element.id_ == _TRACKS:
                self._see_tracks(element)
            position = element.end
        return position

    def _is_hidden_cluster(self, element: Element) -> bool:
        """Tell whether an id is a damaged one of a cluster, or one of its elements."""
        if element.id_ in _IN_SEGMENT or element.id_ in _ANYWHERE:
            return False
        if element.id_ < _LEAST_LEVEL_1:
            return True
        alone = _Walk(self._file, self._size)
        try:
            alone._through_cluster(element, self._size)
        except _DamageError:
            return False
        return bool(alone._blocks)

    def _through_cluster(self, cluster: Element, end: int) -> int:
        """Walk through the blocks of a cluster; gives where it ends."""
        limit = end if cluster.end is None else cluster.end
        position = cluster.start
        while position < limit:
            element = element_at(self._file, position)
            if element is None:
                raise _broken(position)
            id_, _, start, element_end, head = element
            if cluster.end is None and (id_ in _IN_SEGMENT or id_ == EBML):
                break
            # A program that edits live recordings may give the first cluster a size
            # that takes in those behind it, as mkvpropedit does. FFmpeg goes on here;
            # one that has a size itself it would pass over.
            if id_ == _CLUSTER and element_end is None:
                break
            if id_ not in _IN_CLUSTER or element_end is None:
                raise _broken(position)
            if element_end > limit:
                raise _DamageError(cut("a block", element_end, end))
            if id_ == _SIMPLE_BLOCK:
                self._see_block(position, start, element_end, head)
            elif id_ == _BLOCK_GROUP:
                self._through_group(position, start, element_end)
            elif id_ in _NUMBERS_IN_CLUSTER:
                # A block whose id was damaged looks like a number that is too long, or
                # by the track it begins with, like terabytes. Times may be as large.
                length = element_end - start
                is_large = length > 4 and b"\x80" <= head[:1] < b"\xff"
                if length > LONGEST_NUMBER or (is_large and id_ != _TIMESTAMP):
                    raise _broken(position)
            position = element_end
        return position

    def _through_group(self, position: int, start: int, end: int) -> None:
        """Walk through a block and what is told of it."""
        has_block = False
        for child in self._inside(start, end):
            self._check_in_group(child)
            if child.id_ == _BLOCK:
                has_block = True
                self._see_block(child.position, child.start, child.end, child.head)
        if not has_block:
            raise _DamageError(
                Damage(f"is damaged: there is no block in the group at byte {position}")
            )

    def _check_in_group(self, child: Inside, depth: int = 0) -> None:
        id_ = child.id_
        if id_ in _MASTERS_IN_GROUP and depth < _DEEPEST:
            # FFmpeg leaves out the rest of the cluster behind one that is damaged.
            for below in self._inside(child.start, child.end):
                self._check_in_group(below, depth + 1)
        elif id_ in _NUMBERS_IN_GROUP:
            if child.end - child.start > LONGEST_NUMBER:
                raise _broken(child.position)
        elif id_ not in _IN_GROUP and id_ < 1 << 8:
            # New elements have longer ids; content that is taken for an element, since
            # a size was damaged, has mostly one of these.
            raise _broken(child.position)

    def _inside(self, start: int, end: int) -> Iterator[Inside]:
        """Read the headers of the elements that fill another."""
        position = start
        while position < end:
            element = element_at(self._file, position)
            if element is None or element.end is None or element.end > end:
                raise _broken(position)
            yield Inside(
                element.id_, position, element.start, element.end, element.head
            )
            position = element.end

    def _see_block(self, position: int, start: int, end: int, head: bytes) -> None:
        """Note to which track a block belongs."""
        first = head[0] if head else 0
        length = 9 - first.bit_length()
        flags_at = length + 2
        if length > LONGEST_NUMBER or flags_at >= min(len(head), end - start):
            raise _broken(position, "block")
        if length == 1:
            number = first & 0x7F
        else:
            number = int.from_bytes(head[:length], "big") & ((1 << (7 * length)) - 1)
        if number not in self._blocks:
            self._blocks[number] = position
        if flags_at + 1 < end - start:
            self._counts[number] += 1
            if number not in self._starts:
                self._starts[number] = start
        if lacing := head[flags_at] & LACING:
            self._laced.setdefault(number, position)
            data_at = start + flags_at + 1
            data = read_at(self._file, data_at, min(end - data_at, LACE_HEADER))
            if not are_laces_inside(lacing, data, end - data_at):
                raise _broken(position, "block")

    def _see_tracks(self, tracks: Element) -> None:
        for entry in self._inside(tracks.start, tracks.end or tracks.start):
            if entry.id_ != _TRACK_ENTRY:
                continue
            numbers = {
                child.id_: int.from_bytes(child.head[: child.end - child.start], "big")
                for child in self._in_track(entry)
            }
            if number := numbers.get(_TRACK_NUMBER):
                if numbers.get(_TRACK_TYPE) == _VIDEO and number not in self._tracks:
                    self._videos.append(number)
                self._tracks.add(number)
                if numbers.get(_TRACK_TYPE) == _VIDEO and numbers.get(_MAY_LACE) == 0:
                    self._unlaced.add(number)

    def _in_track(self, master: Inside, depth: int = 0) -> Iterator[Inside]:
        """Read what is told of a track, at all depths.

        FFmpeg leaves out the tracks behind one that is damaged, and then their blocks.
        """
        for child in self._inside(master.start, master.end):
            if child.id_ in _MASTERS_IN_TRACK and depth < _DEEPEST:
                yield from self._in_track(child, depth + 1)
            elif child.id_ in _NUMBERS_IN_TRACK:
                if child.end - child.start > LONGEST_NUMBER:
                    raise _broken(child.position)
                yield child

    def blocks_of_videos(self) -> tuple[Blocks | None, ...]:
        """Tell of the blocks of all videos; nothing of one that has several in each."""
        return tuple(
            Blocks(self._starts[number], self._counts[number])
            if number in self._starts and number not in self._laced
            else None
            for number in self._videos
        )

    def check_tracks(self) -> None:
        """See whether all blocks are of tracks that the file tells of, if it does."""
        for number, position in self._blocks.items():
            if self._tracks and number not in self._tracks:
                raise _DamageError(
                    Damage(
                        f"is damaged: the block at byte {position} is of track "
                        f"{number}, which it does not have"
                    )
                )
        for number, position in self._laced.items():
            if number in self._unlaced:
                raise _broken(position, "block")


def _broken(position: int, what: str = "element") -> _DamageError:
    return _DamageError(
        Damage(f"is damaged: there is no Matroska {what} at byte {position}")
    )
