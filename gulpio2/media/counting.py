"""How many packets a container promises, and how many of them gave no frame."""

from __future__ import annotations

import bisect
import logging
from typing import TYPE_CHECKING, Any

import av

from gulpio2.format.wording import counted
from gulpio2.media.cut import GET_WHOLE, WRITE_ANEW
from gulpio2.media.edit_lists import has_several_parts
from gulpio2.media.mp4_boxes import count_in_fragments
from gulpio2.media.streams import videos_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.media.cut import Blocks

__all__ = [
    "AVI",
    "AVI_HEADER",
    "MATROSKA",
    "MOV",
    "DueFrames",
    "LostBeginning",
    "PassedOverError",
    "Promise",
    "due_frames",
    "is_frame_each",
    "promise_of",
    "promised_by_fragments",
    "tell_of_fragments",
]

_log = logging.getLogger(__name__)

MOV = "mov,mp4,m4a,3gp,3g2,mj2"
AVI = "avi"
MATROSKA = "matroska,webm"
# Bytes of a chunk's header in AVI, which is what its index leads to.
AVI_HEADER = 8
# Containers that count their frames: there, fewer packets than that are too few.
_COUNTED = frozenset({MOV, AVI})
# Of these FFmpeg makes packets of its own from what is in an AVI.
_PACKED_ANEW = frozenset({"H265", "VSSH"})
# Where each packet is a frame that is shown, and has its time: in a transport stream
# the parser of HEVC sees to that, while that of MPEG-2 makes up times. Not NUT:
# FFmpeg goes on behind its index, and what is there may be of others.
_FRAMES = frozenset({MOV, MATROSKA})
_FRAMES_OF_HEVC = frozenset({*_FRAMES, "mpegts"})
# Decoders that pass over what they do not know without a word: of one packet that was
# overwritten with zeros, its frame was missing in each of 28 files, and nothing said.
# Of HEVC one bit of a packet's header has cost all that came after it.
_LEADING_UNKNOWN = frozenset({"mpeg1video", "mpeg2video"})
_SILENT = _LEADING_UNKNOWN | {"av1", "hevc"}


class PassedOverError(Exception):
    """A clause for an error: FFmpeg leaves out something of a file that is whole."""


class Promise:
    """How much a container says that it holds of a stream.

    Parameters
    ----------
    num_frames : int
        0 for unknown.
    places : iterable of int, optional
        Where the packets are by the index of an AVI, whose number of frames counts
        those too that are shown again.
    blocks : Blocks, optional
        That Matroska has: FFmpeg leaves out the first cluster of some whole files.

    Examples
    --------
    >>> promise = Promise(4, [100, 200, 400])
    >>> promise.see_packet(100 + 8)
    >>> promise.see_packet(400 + 8)
    >>> promise.is_astray
    True
    >>> promise.missing(2)[0]
    'the container promises 3 frames and has 2'
    """

    def __init__(
        self,
        num_frames: int,
        places: Iterable[int] | None = None,
        *,
        blocks: Blocks | None = None,
    ) -> None:
        self.num_frames = num_frames
        self._blocks = blocks
        self._is_at_start = True
        # Several entries may be of one place.
        self._places = sorted(set(places or ()))
        self._num_packets = num_frames if places is None else len(self._places)
        self._next: int | None = 0
        self.is_astray = False

    def restart(self) -> None:
        """Expect the packets from any of them on."""
        self._next, self.is_astray = None, False
        self._is_at_start = False

    def see_packet(self, pos: int | None) -> None:
        """Take the place of a packet; whether one was left out is in `is_astray`.

        Raises
        ------
        PassedOverError
            This is the first one, and others are before it.
        """
        if self._is_at_start and self._blocks and (pos or 0) > self._blocks.start:
            raise PassedOverError(
                f"FFmpeg passes over its packets before byte {pos}, the first of which "
                f"is at byte {self._blocks.start}"
            )
        self._is_at_start = False
        if not self._places:
            return
        place = (pos or 0) - AVI_HEADER
        if self._next is None:
            self._next = bisect.bisect_left(self._places, place)
        if self._next < len(self._places):
            self.is_astray |= self._places[self._next] != place
        self._next += 1

    def raise_to(self, num_packets: int) -> None:
        """Expect so many packets at least."""
        self._num_packets = max(self._num_packets, num_packets)

    @property
    def is_open(self) -> bool:
        """Whether there is a place of which no packet has come."""
        return (self._next or 0) < len(self._places)

    def missing(self, num_packets: int) -> tuple[str, str] | None:
        """Say what is wrong if so many packets are all, and what to do, or None."""
        if self._blocks and num_packets < self._blocks.num_blocks:
            has = counted(self._blocks.num_blocks, "packet")
            lost = self._blocks.num_blocks - num_packets
            return f"it has {has}, and FFmpeg passes over {lost} of them", WRITE_ANEW
        if num_packets >= self._num_packets:
            return None
        promised = counted(self._num_packets, "frame")
        return f"the container promises {promised} and has {num_packets}", GET_WHOLE


def promise_of(
    path: str,
    container: Any,
    stream: Any,
    *,
    max_pixels: int,
    blocks: Sequence[Blocks | None],
) -> Promise:
    """Tell what a stream must have, as it was opened; `blocks` are of all videos."""
    if blocks:
        videos = videos_of(container)
        is_known = len(videos) == len(blocks) and stream in videos
        return Promise(0, blocks=blocks[videos.index(stream)] if is_known else None)
    num_frames = _promised_frames(path, container, stream, max_pixels=max_pixels)
    if container.format.name != AVI:
        return Promise(num_frames)
    if stream.codec_context.codec_tag in _PACKED_ANEW:
        return Promise(num_frames, ())
    # Where a file has no index, these are of what FFmpeg has read of it so far. Frames
    # that were dropped have no entry, or one of no size.
    entries = stream.index_entries
    return Promise(num_frames, [entry.pos for entry in entries if entry.size > 0])


def _promised_frames(path: str, container: Any, stream: Any, *, max_pixels: int) -> int:
    """Count the frames that a container promises.

    An edit list leaves out samples that MP4 and MOV count. What is missing from the
    index for it is none of the promise; what is missing for anything else is.
    """
    name = str(container.format.name)
    # Fragmented files raise their count as they are read.
    promised = int(stream.frames) if name in _COUNTED else 0
    indexed = len(stream.index_entries)
    if name != MOV or not 0 < indexed < promised:
        return promised
    options = {"max_pixels": str(max_pixels)}
    whole = {"format_whitelist": name, "ignore_editlist": "1"}
    try:
        with av.open(
            f"file:{path}", options=options, container_options=whole
        ) as unedited:
            complete = len(unedited.streams[stream.index].index_entries) == promised
    except (av.FFmpegError, ValueError, IndexError):
        return promised
    return indexed if complete else promised


def promised_by_fragments(path: str, container: Any, stream: Any) -> int:
    """Count the packets that the fragments of a file have of a stream; 0 for none.

    FFmpeg leaves out some of those whose times go back, and all behind one that is said
    to lie behind the end of the file.
    """
    if container.format.name != MOV:
        return 0
    try:
        return count_in_fragments(path, stream.id)
    except OSError:
        return 0


def tell_of_fragments(path: str, count: int) -> None:
    """Log how many packets of fragments FFmpeg leaves out; nothing of none.

    It may be damage, or recordings that were joined and each begin anew.
    """
    if count > 0:
        _log.warning(
            "the times of video %r go back from one fragment to the next: %d of its "
            "packets are left out",
            path,
            count,
        )


class LostBeginning:
    """Packets that are to be shown before the first frame that was decoded.

    They are those of a video that was cut between two key frames without encoding it:
    the decoder passes over what it cannot decode, and says nothing.

    Examples
    --------
    >>> lost = LostBeginning()
    >>> lost.see_packet(0)
    >>> lost.see_first_frame(2)
    >>> lost.see_packet(1)
    >>> lost.count
    2
    """

    def __init__(self) -> None:
        self.count = 0
        self._first: int | None = None
        self._waiting: list[int] = []
        self._is_unknown = False

    def see_packet(self, pts: int | None) -> None:
        """Take a packet that is to be shown, before it is decoded."""
        if pts is None or self._is_unknown:
            return
        if self._first is None:
            self._waiting.append(pts)
        elif pts < self._first:
            self.count += 1

    def see_first_frame(self, pts: int | None) -> None:
        """Take the first frame that was decoded."""
        if pts is None:
            self._is_unknown = True
            return
        self._first = pts
        self.count = sum(waiting < pts for waiting in self._waiting)
        self._waiting.clear()

    def tell(self, path: str, num_packets: int, *, is_usual: bool) -> None:
        """Log how many there are, of all packets; nothing of none.

        Where files usually begin so, as recordings of broadcasts, it is no warning,
        unless most of the video is lost.
        """
        if not self.count:
            return
        is_usual = is_usual and 2 * self.count <= num_packets
        _log.log(
            logging.INFO if is_usual else logging.WARNING,
            "video %r begins between two key frames: %d of its %d packets come "
            "before the first frame that can be decoded, and are left out",
            path,
            self.count,
            num_packets,
        )


def is_frame_each(path: str, container: Any, stream: Any) -> bool:
    """Tell whether each packet has to give a frame, and it is for us to see to that.

    Not where an edit list joins parts: those that are predicted from what comes before
    a part are not decoded.
    """
    codec = stream.codec_context.codec.canonical_name
    name = str(container.format.name)
    return (
        codec in _SILENT
        and name in (_FRAMES_OF_HEVC if codec == "hevc" else _FRAMES)
        and not (name == MOV and has_several_parts(path))
    )


def due_frames(stream: Any, *, are_wanted: bool) -> DueFrames:
    """Make what counts the frames that have to come of a stream."""
    codec = stream.codec_context.codec.canonical_name
    return DueFrames(are_wanted=are_wanted, from_first=codec in _LEADING_UNKNOWN)


class DueFrames:
    """Packets that have to give a frame, by the times of both.

    Of those before the first frame `LostBeginning` tells.

    Parameters
    ----------
    are_wanted : bool, optional
        False where nothing is due: a packet of other codecs may give no frame.
    from_first : bool, optional
        Wait for no packet that comes before a frame does: in MPEG-1 and -2 that are
        taken out of a program stream, those that lean on what was cut away before the
        first key frame may have times behind it.

    Attributes
    ----------
    latest : int
        The number of the packet that the latest frame is of.

    Examples
    --------
    >>> due = DueFrames()
    >>> for pts in (0, 2, 1):
    ...     due.see_packet(pts)
    >>> for pts in (0, 2):
    ...     due.see_frame(pts)
    >>> due.is_overdue, due.number
    (True, 1)
    """

    def __init__(self, *, are_wanted: bool = True, from_first: bool = False) -> None:
        self._are_wanted = are_wanted
        self._from_first = from_first
        # The times of packets, and how many there were up to each.
        self._due: dict[int, int] = {}
        self._num_packets = 0
        self.latest = 0
        self._last: int | None = None

    def see_packet(self, pts: int | None) -> None:
        """Take a packet of which a frame has to come."""
        is_early = self._from_first and self._last is None
        self._num_packets += 1
        if pts is not None and not is_early:
            self._due[pts] = self._num_packets

    def see_frame(self, pts: int | None) -> None:
        """Take a frame."""
        if pts is None:
            return
        self.latest = self._due.pop(pts, self.latest)
        if self._last is None or not self._are_wanted:
            later = ((due, number) for due, number in self._due.items() if due > pts)
            self._due = dict(later)
        self._last = pts

    @property
    def is_overdue(self) -> bool:
        """Whether a frame has not come that is to be shown before the last one.

        It may still come where the times are wrong, as of MP4 with times of decoding.
        """
        last = self._last
        return last is not None and min(self._due, default=last) < last

    @property
    def number(self) -> int:
        """Frames that have not come."""
        return len(self._due) if self._are_wanted else 0

    def is_awaited(self, number: int) -> bool:
        """Tell whether a frame is to come yet of which one may be predicted.

        That is one of a packet before the one with this number.
        """
        return any(each < number for each in self._due.values())

    def describe(self) -> tuple[str, str]:
        """Say how many have not come, and what to do."""
        return f"{self.number} of its packets gave no frame", (
            "Get a whole copy of it, encode it anew if it was joined of parts between "
            "whose key frames others lean on what is gone, or leave it out"
        )
