"""Every frame of one video stream, or an error: decoding that never ends early."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import av
from av.stream import Discard

from gulpio2.errors import SourceReadError
from gulpio2.media import counting, theora, threaded
from gulpio2.media.clock import Clock, Shown
from gulpio2.media.container_colour import in_declared_colours
from gulpio2.media.cut import GET_WHOLE, WRITE_ANEW
from gulpio2.media.demuxing import packet_times, packets_of
from gulpio2.media.edit_lists import tell_of_odd_edits
from gulpio2.media.frame_rate import ConstantRate
from gulpio2.media.limits import MAX_VIDEO_PIXELS
from gulpio2.media.mp4_boxes import tell_of_further_index
from gulpio2.media.opening import found_in, open_container
from gulpio2.media.streams import choose_stream, declared_size, has_times, start_of
from gulpio2.media.transport import JOINT, missing_packets, tell_of_other_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from fractions import Fraction

    from gulpio2.media.cut import Found

__all__ = ["OpenVideo", "open_video"]

# Containers that are recorded and cut anywhere, so that they may begin between two key
# frames: what cannot be decoded before the first of them is no damage.
_JOINED_MIDWAY = frozenset({"mpegts", "mpeg"})
# Decoders that notice damage but tell of it only when asked to stop there. The others
# mark the frame, which is enough and does not refuse what they only remark on.
_STOPPED_BY_DAMAGE = frozenset({"mjpeg"})
# AVFMT_FLAG_GENPTS, which PyAV sets: presentation times made up from the order of
# decoding, wrong where frames are reordered. `Clock` does without.
_GENERATE_PTS = 1
_OTHER_TIMES = (
    "Ogg files of different rates follow each other here, as by cat",
    "Take them apart, as with oggz rip, or encode it anew",
)


class OpenVideo:
    """One stream of a video file that is open; `open_video` makes it.

    Parameters
    ----------
    path : str
        For messages.
    container, stream
        Of PyAV.
    found : Found
        What is known of the file; what is missing from it may not matter.
    max_pixels : int
        Larger frames are refused.
    threads : int
        That decode, at most.
    """

    def __init__(
        self,
        path: str,
        container: Any,
        stream: Any,
        *,
        found: Found,
        max_pixels: int,
        threads: int,
    ) -> None:
        self.stream = stream
        self.threads = threads
        self.time_base: Fraction = stream.time_base
        # Whether the file has no other stream, of whatever kind.
        self.is_alone = len(container.streams) == 1
        self.path = path
        # Of an excerpt, the first frame of all: later ones need not say how they are
        # turned.
        self.first_frame: Any = None
        self._container = container
        self._damage = found.damage
        self._max_pixels = max_pixels
        codec = stream.codec.canonical_name
        self._is_theora = (container.format.name, codec) == ("ogg", "theora")
        # Before anything is decoded: decoders forget it.
        self._matrix = int(stream.codec_context.colorspace)
        self._is_reordered = stream.codec_context.reorder_depth > 0
        self._num_frames = self._num_packets = self._num_unshown = 0
        self._lost = counting.LostBeginning()
        # Whether each packet has to give a frame, which no decoder sees to.
        self.is_frame_each = counting.is_frame_each(path, container, stream)
        is_strict = threads > 1 or self.is_frame_each
        self.due = counting.due_frames(stream, are_wanted=is_strict)
        self.promise = counting.promise_of(
            path, container, stream, max_pixels=max_pixels, blocks=found.blocks
        )
        is_indexed = self.format == counting.MOV
        num_indexed = len(stream.index_entries)
        self._lacks_packets = is_indexed and self.promise.num_frames > num_indexed

    @property
    def format(self) -> str:
        """What FFmpeg calls the container."""
        return str(self._container.format.name)

    @property
    def is_doubtful(self) -> bool:
        """Whether something may be missing, which the end of the file would tell."""
        is_lacking = self.promise.is_astray or self._lacks_packets
        return self._damage is not None or self.due.is_overdue or is_lacking

    @property
    def start(self) -> int:
        """Where the file starts for this stream, in its ticks."""
        return start_of(self._container, self.stream)

    @property
    def frame_rate(self) -> Fraction | None:
        """Frames per second as FFmpeg finds them; the average of variable ones."""
        return self.stream.average_rate or self.stream.guessed_rate or None

    def clock(self) -> Clock:
        """Give what tells when frames are shown, of all or from a key frame on."""
        return Clock(
            self.time_base,
            rate=self.stream.guessed_rate or None,
            has_times=has_times(self._container),
            has_durations=self.format != counting.MOV or not self._is_reordered,
        )

    def grid(self, rate: Fraction, *, start: int | None = None) -> ConstantRate:
        """Give the grid of a rate; it begins where the file does, or at a tick."""
        return ConstantRate(
            rate,
            time_base=self.time_base,
            start=self.start if start is None else start,
            is_alone=self.is_alone,
        )

    def coloured(self, frames: Iterator[Any]) -> Iterator[Any]:
        """Give decoded frames with the matrix that only the container declares."""
        return in_declared_colours(frames, self._matrix)

    def seek(self, tick: int) -> None:
        """Go to a key frame, by the index at or before a time; packets go on there.

        Raises
        ------
        av.FFmpegError
            The container knows of none.
        """
        self._container.seek(tick, stream=self.stream)
        self.promise.restart()
        self.due = counting.DueFrames(are_wanted=self.is_frame_each)

    def packet_times(self) -> list[Shown] | None:
        """Read when all frames are shown without decoding them; see `packet_times`."""
        if not has_times(self._container):
            return None
        return packet_times(self.packets(), self.clock())

    def frames(
        self, *, dropped: Collection[int] = frozenset()
    ) -> Iterator[tuple[Any, Shown]]:
        """Decode all frames, in the order in which they are shown.

        Parameters
        ----------
        dropped : collection of int
            Times of frames that may be left out, where the codec predicts no other
            from them.

        Yields
        ------
        frame : av.VideoFrame
            On the CPU. Its memory is its own: it stays valid, but the decoder may
            still predict from it, so it must not be written to.
        shown : Shown
            When it is shown.

        Raises
        ------
        SourceReadError
            The file is damaged or cut off, or has no frame; the message gives the
            file, the frame reached and the cause.

        Notes
        -----
        Frames that the decoder itself marks as damaged are errors too: H.264, MPEG-1,
        -2 and -4 and their like, AV1, ProRes, Motion JPEG. So are packets of AV1, HEVC
        and MPEG-2 that give no frame, in MP4 and Matroska; of HEVC also in MPEG-TS.
        Bits that flip inside of VP8, VP9, HEVC or FFV1 frames are mostly not noticed
        by FFmpeg, and are stored as it shows them.
        """
        tell = self.clock().tell
        frames = self.coloured(self._sound_frames(dropped))
        if self.threads > 1:
            frames = threaded.held_back(frames)
        for frame in frames:
            yield frame, tell(frame.pts, frame.dts, frame.duration or 0)

    def _sound_frames(self, dropped: Collection[int]) -> Iterator[Any]:
        """Decode all frames, and raise where one of them is damaged or missing."""
        for frame in self._decoded(dropped):
            if frame.is_corrupt:
                raise self._error("the decoder marks it as damaged")
            if not self.is_allowed(frame):
                raise self._too_large(frame.width, frame.height)
            if not self._num_frames:
                self._lost.see_first_frame(frame.pts)
            self._num_frames += 1
            self.due.see_frame(frame.pts)
            yield frame
        self._check_end()

    def _decoded(self, dropped: Collection[int]) -> Iterator[Any]:
        codec = self.stream.codec_context
        joined = self.format not in _JOINED_MIDWAY
        # A cut is in the last, and errors of the last are lost.
        held = max(self.threads - 1, 1) if self.threads > 1 or dropped else 0
        packets = self.packets(with_headers=True)
        for packet, is_last in threaded.with_last(packets, held):
            joined = joined or packet.is_keyframe
            pts = packet.pts
            is_dropped = pts in dropped
            is_frame = not packet.is_discard and not self._is_header(packet)
            if is_frame and not is_dropped:
                self._lost.see_packet(pts)
            may_skip = is_dropped and not is_last
            if is_frame and not may_skip:
                self.due.see_packet(pts)
            if dropped:
                codec.skip_frame = "NONREF" if may_skip else "DEFAULT"
            try:
                decoded = codec.decode(packet)
            except av.InvalidDataError as cause:
                if not joined:
                    continue
                raise self._error(cause.strerror) from cause
            except (av.FFmpegError, ValueError) as cause:
                raise self._error(str(cause)) from cause
            yield from decoded
        try:
            rest = codec.decode(None)
        except (av.FFmpegError, ValueError) as cause:
            raise self._error(str(cause)) from cause
        yield from rest

    def packets(self, *, with_headers: bool = False) -> Iterator[Any]:
        """Read the packets that hold something; headers of the video if asked to."""
        try:
            for packet in packets_of(self._container, self.stream):
                if packet.size == 0:  # repeats a frame, or is PyAV's mark of the end
                    self._num_packets += packet.dts is not None
                    continue
                if self._is_header(packet):
                    if theora.differs(packet, self.stream.codec_context.extradata):
                        raise self._error(*_OTHER_TIMES)
                    if with_headers and not theora.is_comment(packet):
                        yield packet
                    continue
                if packet.is_corrupt:
                    joint = JOINT if self.format == "mpegts" else ""
                    raise self._error(f"a packet is damaged or cut off{joint}")
                self._num_packets += 1
                self._num_unshown += packet.is_discard
                self.promise.see_packet(packet.pos)
                yield packet
        except av.FFmpegError as cause:
            raise self._error(cause.strerror or str(cause)) from cause
        except counting.PassedOverError as cause:
            raise self._error(str(cause), WRITE_ANEW) from cause

    def _is_header(self, packet: Any) -> bool:
        return self._is_theora and theora.is_header(packet)

    def _check_end(self) -> None:
        """Compare what was read with what the container promised."""
        if self._damage and not 0 < self.promise.num_frames <= self._num_packets:
            raise self._error(f"the file {self._damage.message}", self._damage.advice)
        of_file = self.path, self._container, self.stream
        in_fragments = counting.promised_by_fragments(*of_file)
        self.promise.raise_to(in_fragments)
        if missing := self.promise.missing(self._num_packets):
            raise self._error(*missing)
        if self._num_frames == 0:
            raise SourceReadError(
                f"Video {self.path!r} has no frame in stream {self.stream.index}. "
                "Leave it out."
            )
        if self.due.number:
            raise self._error(*self.due.describe())
        if self.format == "mpegts":
            if lost := missing_packets(self.path, self.stream.id):
                raise self._error(lost)
            tell_of_other_parts(*of_file)
        is_usual = self.format in _JOINED_MIDWAY
        self._lost.tell(self.path, self._num_packets, is_usual=is_usual)
        num_shown = self._num_packets - self._num_unshown
        counting.tell_of_fragments(self.path, in_fragments - num_shown)
        if self.format == counting.MOV:
            with contextlib.suppress(OSError):
                tell_of_odd_edits(self.path, self.stream.id)
                tell_of_further_index(self.path)

    def is_allowed(self, frame: Any) -> bool:
        """Tell whether a frame is not above the limit."""
        return bool(frame.width * frame.height <= self._max_pixels)

    def _too_large(self, width: int, height: int) -> SourceReadError:
        cause = f"it has {width}x{height} pixels, above the limit of {self._max_pixels}"
        advice = "Raise max_pixels, or set GULPIO2_MAX_PIXELS, if it is to be so large"
        return self._error(cause, advice)

    def check_size(self) -> None:
        """Refuse a stream whose header declares frames above the limit.

        Raises
        ------
        SourceReadError
            The message gives size and limit.
        """
        width, height = declared_size(self.path, self._container, self.stream)
        if width * height > self._max_pixels:
            raise self._too_large(width, height)

    def _error(self, cause: str | None, advice: str = GET_WHOLE) -> SourceReadError:
        return SourceReadError(
            f"Video {self.path!r} cannot be read at frame {self._num_frames}: "
            f"{cause or 'FFmpeg does not say why'}. {advice}."
        )


@contextlib.contextmanager
def open_video(
    path: str | os.PathLike[str],
    *,
    stream: int | None = None,
    threads: int = 1,
    max_pixels: int = MAX_VIDEO_PIXELS,
    cached_damage: bool = False,
) -> Iterator[OpenVideo]:
    """Open one stream of a video file.

    Parameters
    ----------
    path : str or path object
        A file; never taken for a URL.
    stream : int, optional
        Number of the stream in the file. Default: FFmpeg's best video stream.
    threads : int
        Threads of the decoder; 0 for as many as there are cores.
    max_pixels : int
        Larger frames are refused.
    cached_damage : bool
        Whether an earlier look for what is missing will do; see `found_in`.

    Yields
    ------
    OpenVideo
        Closed at the end of the block.

    Raises
    ------
    SourceReadError
        There is no such file, it is no video, it is cut off, or it has no such stream.
    """
    name = os.fspath(path)
    found = found_in(name, cached=cached_damage)
    damage = found.damage
    options = {"max_pixels": str(max_pixels)}
    container = open_container(name, damage, options)
    with container:
        if damage is not None and not damage.excusable:
            raise SourceReadError(
                f"Video {name!r} cannot be read: it {damage.message}. {damage.advice}."
            )
        chosen = choose_stream(container, name, stream)
        codec = chosen.codec_context
        if chosen.codec.canonical_name in _STOPPED_BY_DAMAGE:
            options = {**options, "err_detect": "explode"}
        codec.options = options
        # Or a crop's left edge is moved outwards (AV_FRAME_CROP_UNALIGNED).
        codec.flags |= av.codec.context.Flags.unaligned
        threads = threaded.set_threads(codec, threads)
        container.flags &= ~_GENERATE_PTS
        for other in container.streams:
            if other is not chosen:
                other.discard = Discard.all
        video = OpenVideo(
            name, container, chosen, found=found, max_pixels=max_pixels, threads=threads
        )
        video.check_size()
        with threaded.awaited(codec, threads):
            yield video
