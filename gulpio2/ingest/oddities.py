"""What a user may want to know of some items before they are ingested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.codecs.frame_sizes import SizeReader, describe_sizes, differ_in_size
from gulpio2.codecs.pixels import is_grey_pil, is_pil_image
from gulpio2.errors import SourceReadError
from gulpio2.format.jpeg_markers import EOI, SOI, START_OF_SCAN
from gulpio2.format.wording import counted
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.images import ImageFrames
from gulpio2.media.tiff import orientation_of
from gulpio2.media.video import VideoFrames
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from gulpio2.codecs.frame_sizes import Size
    from gulpio2.ingest.extrapolation import Look
    from gulpio2.ingest.items import PlacedItem
    from gulpio2.types import StoredFrame

__all__ = [
    "FrameFacts",
    "exif_orientation",
    "failure_kind",
    "note_odd_lengths",
    "note_oddities",
]

# Items that are so many times longer or shorter than the median are odd.
_ODD_LENGTH = 5
# Of a mirrored video, which sides are exchanged, by the rotation in its `source_info`.
_MIRRORED: dict[Any, str] = {-180: "left and right", 0: "top and bottom"}
_MIXED_SIZES = "frames of several sizes, of which no clip or batch can be made"
_GREY_AND_NOT = "frames grey and not, of which clips are made with a colorspace alone"
_SHORT_EXCERPT = "excerpts of which their videos have less than half"
# The share of an excerpt that its video has at least, or somebody should be told: the
# times of a table are rounded, and are often of videos that were cut.
_LEAST_SHARE = 0.5
_NOT_TURNED = "stored as it lies in the file, where EXIF turns it"
# How a picture is to be turned to be shown: Exif 3.0, table 6, tag Orientation.
_SHOWN: Mapping[int, str] = {
    2: "mirrored, left and right",
    3: "by 180 degrees",
    4: "mirrored, top and bottom",
    5: "mirrored at the diagonal from the top left",
    6: "by 90 degrees clockwise",
    7: "mirrored at the diagonal from the top right",
    8: "by 90 degrees counterclockwise",
}
_APP1, _EXIF = 0xE1, b"Exif\0\0"
# Bytes at the beginning of a file that hold the orientation: those of a segment of JFIF
# and of one of Exif, 64 kB at most each.
_HEADER = 2 << 16


class FrameFacts:
    """What the frames of an item are like, as far as oddities go by it."""

    def __init__(self) -> None:
        self.times: list[int | None] = []
        """Presentation time of each."""
        self.turns: list[int | None] = []
        """What `exif_orientation` says of each that came as a JPEG."""
        self.sizes: dict[Size, int] = {}
        """Each size, grey or not, and the first frame that has it."""
        self._reader = SizeReader()

    def add(self, frame: StoredFrame) -> None:
        """Look at a frame."""
        image = frame.image
        is_jpeg = isinstance(image, bytes)
        size = self._reader.size_of(image) if is_jpeg else _size_of(image)
        if size is not None:
            self.sizes.setdefault(size, len(self.times))
        self.times.append(frame.pts)
        self.turns.append(exif_orientation(image) if is_jpeg else None)


def _size_of(image: Any) -> Size | None:
    """Give the size of an image that is no JPEG; None where it is none at all."""
    if isinstance(image, YuvFrame):
        return (*image.y.shape, 3)
    shape: Any = getattr(image, "shape", ())
    is_grey = len(shape) == 2 or shape[2:] == (1,)
    if is_pil_image(image):
        shape, is_grey = image.size[::-1], is_grey_pil(image)
    if len(shape) < 2:
        return None
    return shape[:2] if is_grey else (*shape[:2], 3)


def note_oddities(item: PlacedItem, facts: FrameFacts, look: Look) -> None:
    """Note in a look what is unusual about an item, all of whose frames were taken."""
    name = f"item {item.id_!r}"
    times, turns = facts.times, facts.turns
    if len(facts.sizes) > 1:
        kind = _MIXED_SIZES if differ_in_size(facts.sizes) else _GREY_AND_NOT
        look.note(kind, f"{name}: {describe_sizes(facts.sizes)}")
    known = [tick for tick in _times_of_source(item.frames, times) if tick is not None]
    steps = np.diff(np.array(known, np.int64))
    # A tick more or less is how a constant rate looks in a coarse time base.
    if len(steps) > 1 and steps.max() - steps.min() > max(1, 0.1 * np.median(steps)):
        ticks = f"{steps.min()} to {steps.max()} ticks between frames"
        look.note("variable frame rate", f"{name}: {ticks}")
    if len(steps) and (lack := _lack_of_excerpt(item.frames, known, steps)):
        look.note(_SHORT_EXCERPT, f"{name}: {lack}")
    tell = getattr(item.frames, "source_info", None)
    info = tell() if tell is not None else {}
    rotation = info.get("rotation")
    if info.get("mirrored"):
        how = _MIRRORED.get(rotation, f"and turned by {rotation} degrees")
        look.note("mirrored", f"{name}: {how}")
    elif rotation:
        look.note("rotated", f"{name}: by {rotation} degrees")
    turned = [
        (number, _SHOWN[turn])
        for number, turn in enumerate(_turns_of_source(item.frames, turns))
        if turn is not None and turn in _SHOWN
    ]
    if turned:
        number, how = turned[0]
        more = f", and {len(turned) - 1} more of its frames" if turned[1:] else ""
        look.note(_NOT_TURNED, f"{name}, frame {number}: {how}{more}")


def _source_of(frames: Any) -> Any:
    return frames.found() if isinstance(frames, DeferredFrames) else frames


def _lack_of_excerpt(frames: Any, known: Sequence[int], steps: npt.NDArray[Any]) -> str:
    """Say how much of an excerpt is in its video, where much of it is not."""
    video = _source_of(frames)
    if not isinstance(video, VideoFrames) or video.end is None:
        return ""
    wanted = float(video.end) - float(video.start or 0)
    ticks = known[-1] - known[0] + float(np.median(steps))
    has = ticks * float(video.time_base)
    is_short = 0 < has < _LEAST_SHARE * wanted
    return f"{has:.1f} of {wanted:.1f} seconds" if is_short else ""


def _times_of_source(frames: Any, times: Sequence[int | None]) -> Sequence[int | None]:
    """Give the times of all frames in the file, where another rate was asked for.

    The frames that are left at another rate are at uneven distances in any case.
    """
    video = _source_of(frames)
    if isinstance(video, VideoFrames) and video.frame_rate is not None:
        return video.source_times() or ()
    return times


def _turns_of_source(frames: Any, turns: Sequence[int | None]) -> Iterator[int | None]:
    """Give the orientation of each frame, also of those that were decoded."""
    source = _source_of(frames)
    if not isinstance(source, ImageFrames):
        yield from turns
        return
    # Not strict: a subclass may give other frames than its files.
    for path, turn in zip(source.paths, turns, strict=False):
        yield _turn_of_file(path) if turn is None else turn


def _turn_of_file(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return exif_orientation(file.read(_HEADER))
    except OSError:  # gone since it was read
        return 1


def exif_orientation(jpeg: bytes) -> int:
    """Read from the header of a JPEG how it is to be turned.

    Parameters
    ----------
    jpeg : bytes
        The file or its beginning; anything else too.

    Returns
    -------
    int
        1 to 8, as Exif numbers them; 1, not to be turned, where nothing is said.
    """
    position = len(SOI)
    while jpeg[:2] == SOI and jpeg[position : position + 1] == b"\xff":
        marker = jpeg[position + 1 : position + 2]
        if marker in (b"", EOI[1:], bytes([START_OF_SCAN])):
            break
        if marker == b"\xff":  # fills the room before a marker
            position += 1
            continue
        end = position + 2 + int.from_bytes(jpeg[position + 2 : position + 4], "big")
        body = jpeg[position + 4 : end]
        if marker[0] == _APP1 and body.startswith(_EXIF):
            turn = orientation_of(body[len(_EXIF) :])
            return turn if turn in _SHOWN else 1
        position = end
    return 1


def failure_kind(error: BaseException) -> str:
    """Give the kind of oddity that an item is which raises this."""
    if isinstance(error, SourceReadError) and "no video stream" in str(error):
        return "no video stream"
    return "unreadable"


def note_odd_lengths(looks: Sequence[Look], stand_for: npt.NDArray[np.int64]) -> None:
    """Note items that are much longer or shorter than the median of the run.

    A sample has more than its share of long items, so that each look counts for as
    many items as it stands for.
    """
    lengths = np.array([look.frames for look in looks], np.int64)
    stored = lengths > 0
    if stored.sum() < 3:
        return
    middle = float(np.median(np.repeat(lengths[stored], stand_for[stored])))
    for look in looks:
        usual = middle / _ODD_LENGTH <= look.frames <= middle * _ODD_LENGTH
        if look.frames and not usual:
            length = f"{counted(look.frames, 'frame')}, where {middle:.0f} are usual"
            look.note("odd length", f"item {look.id_!r}: {length}")
