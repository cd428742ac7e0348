"""A look at one item of a run, from its first frame to its last; in any process."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.codecs.jpeg import decode_frame, encode_frame
from gulpio2.codecs.pixels import to_storable
from gulpio2.errors import AdapterContractError, CorruptFrameError
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.records import padded_length
from gulpio2.frame_sources import stored_frames
from gulpio2.ingest.estimate import MAP_BYTES
from gulpio2.ingest.extrapolation import Look, Varied
from gulpio2.ingest.items import describe_failure, first_item
from gulpio2.ingest.oddities import FrameFacts, failure_kind, note_oddities
from gulpio2.ingest.survey_result import NOT_GIVEN
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.media.scaling import resize_chroma
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.items import PlacedItem
    from gulpio2.types import Adapter, Progress, StoredFrame

__all__ = ["LookJob", "LookTask", "Settings", "look_at"]

# Part of an item's frames that is encoded, part that is encoded as variants too, and
# part of which the JPEGs are kept, beside the first of each item.
_ENCODED, _VARIED, _KEPT = 0.25, 0.0625, 0.0156
# Until a process has so many frames of the other variants, each frame that is encoded
# is also encoded as these. After that, items of less than four frames take turns.
_VARIED_ANYWAY = 100
# The fractional parts of its multiples are spread over [0, 1) as evenly as can be, and
# without a period: codecs store every n-th frame better than those between.
_GOLDEN = 0.6180339887498949
# The same from item to item, so that it is not always the same frames that are encoded.
_FROM_ITEM_TO_ITEM = 0.7548776662466927
# Of an item of at most so many frames each is encoded, and the first ones of any other.
_FEW = 16
# Bytes of an item's entry in the map, beside frames and metadata; and those that a
# video adds for its times, beside the facts of the source.
_ENTRY_BYTES, _SOURCE_BYTES = 90, 80


class Settings(NamedTuple):
    """What frames are encoded with."""

    encoder: EncoderSettings
    short_edge: int | None
    """Pixels; None for the size that the adapter gives."""


@dataclass(slots=True)
class LookJob:
    """What all looks of a survey have in common."""

    adapter: Adapter
    variants: tuple[Settings, ...]
    """Those of the run, and others that are tried."""
    num_varied: int = 0
    """Frames that this process has encoded with the others."""


class LookTask(NamedTuple):
    """An item to be looked at."""

    position: int
    """In the adapter."""

    def positions(self) -> list[int]:
        """List it, as those of a task of a run are listed."""
        return [self.position]


def look_at(
    job: LookJob, task: LookTask, _progress: Progress, **_of_a_run: object
) -> Look:
    """Look at an item, or note why it cannot be stored.

    Parameters
    ----------
    job : LookJob
        The survey.
    task : LookTask
        The item.

    Notes
    -----
    It does not tell the progress, as who takes the looks does: those that were under
    way in a process that ended are begun again.
    """
    position = task.position
    look = Look()
    with first_item(job.adapter, position) as item:
        if item is None:
            look.note(NOT_GIVEN, f"position {position}: the adapter gives no item")
        else:
            look = _look_or_note(job, item, position)
    return look


def _look_or_note(job: LookJob, item: PlacedItem, position: int) -> Look:
    look = Look()
    try:
        if item.error is not None:
            raise item.error
        _look_through(item, job, look, phase=position * _FROM_ITEM_TO_ITEM % 1)
    except BaseException as cause:  # noqa: BLE001  # the item boundary
        failure = describe_failure(job.adapter, position, item.id_, cause)
        look = Look(odd=look.odd)
        look.note(failure_kind(cause), str(failure))
        return look
    if look.frames:
        look.id_ = str(item.id_)
    else:
        look.note("no frames", f"item {item.id_!r}")
    return look


def _look_through(item: PlacedItem, job: LookJob, look: Look, *, phase: float) -> None:
    """Decode an item and encode some of its frames."""
    own = job.variants[0]
    encoded = 0
    is_varied = False
    beginning: list[int] = []
    sizes: list[int] = []
    took = aside = 0.0
    facts = FrameFacts()

    began = time.perf_counter()
    for number, frame in enumerate(_frames(item)):
        look.frames += 1
        facts.add(frame)
        place = (phase + number * _GOLDEN) % 1
        if place >= _ENCODED and number >= _FEW:
            continue
        before = time.perf_counter()
        jpeg, _ = _encoded(own, frame.image)
        frame_size = padded_length(len(jpeg))
        after = time.perf_counter()
        encoded += 1
        if place < _KEPT or number == 0:
            look.keep(0, jpeg)
        if number < _FEW:
            beginning.append(frame_size)
        if place < _ENCODED:
            sizes.append(frame_size)
        took += after - before
        vary = partial(_vary, item, number, frame.image, frame_size, job, look)
        is_known = job.num_varied >= _VARIED_ANYWAY
        is_wanted = place < (_VARIED if is_known else _ENCODED)
        if is_wanted or number == int(phase / _ENCODED):
            vary(is_kept=place < _KEPT or not is_varied)
            is_varied = True
            aside += time.perf_counter() - after
    if not encoded:
        return
    decoding = time.perf_counter() - began - took - aside
    if not is_varied and job.num_varied < _VARIED_ANYWAY:
        vary(is_kept=True)
    look.seconds = decoding + took * look.frames / encoded
    plain = plain_metadata(item.meta, f"the metadata of item {item.id_!r}")
    meta = len(json.dumps(plain))
    if look.frames <= _FEW:
        sizes = beginning
    share = len(sizes) / look.frames
    look.frame_bytes = sum(sizes) / share
    look.num_bytes = look.frame_bytes + MAP_BYTES * look.frames
    if share < 1:
        spread = statistics.variance(sizes)
        look.variance = look.frames**2 * spread / len(sizes) * (1 - share)
    look.num_bytes += _ENTRY_BYTES + meta + len(str(item.id_))
    tell = getattr(item.frames, "source_info", None)
    if tell is not None and (info := tell()):
        look.num_bytes += _SOURCE_BYTES + len(json.dumps(info, default=str))
    note_oddities(item, facts, look)


def _vary(
    item: PlacedItem,
    number: int,
    as_given: Any,
    as_asked: int,
    job: LookJob,
    look: Look,
    *,
    is_kept: bool,
) -> None:
    """Encode a frame with other settings too."""
    try:  # a JPEG is copied as it is, even damaged
        image = decode_frame(as_given) if isinstance(as_given, bytes) else as_given
    except CorruptFrameError as error:
        note = f"item {item.id_!r}, frame {number}: {error}"
        look.note("stored as it is, and not readable", note)
        return
    job.num_varied += 1
    for variant, settings in enumerate(job.variants[1:], start=1):
        try:
            jpeg, is_resized = _encoded(settings, image, as_given)
        except ValueError:  # too large a frame at that size
            continue
        size = padded_length(len(jpeg))
        look.others.setdefault(variant, Varied()).add(size, as_asked)
        if is_resized:
            look.resized.add(variant)
        if is_kept:
            look.keep(variant, jpeg)


def _encoded(
    settings: Settings, image: Any, as_given: Any = None
) -> tuple[bytes, bool]:
    """Encode a frame, or copy what was given if it fits; tell if it was resized."""
    resized = _resized(image, settings.short_edge)
    is_resized = resized is not image
    is_copied = not is_resized and as_given is not None
    jpeg = encode_frame(as_given if is_copied else resized, settings.encoder)
    return jpeg, is_resized


def _frames(item: PlacedItem) -> Iterator[StoredFrame]:
    if item.frames is None:
        raise AdapterContractError(
            f"item {item.id_!r} has None for its frames; an adapter gives an iterable "
            "of images"
        )
    return stored_frames(item.frames)


def _resized(image: Any, short_edge: int | None) -> Any:
    """Bring a frame to a short edge, as an adapter does that is asked for it."""
    if short_edge is None:
        return image
    pixels = image if isinstance(image, YuvFrame) else to_storable(image)
    shape = (pixels.y if isinstance(pixels, YuvFrame) else pixels).shape[:2]
    target = resized_shape(shape[0], shape[1], short_edge)
    if target == shape:
        return image
    if not isinstance(pixels, YuvFrame):
        return resize_pixels(pixels, target)
    rows, columns = (
        -(-old // new) for old, new in zip(shape, pixels.u.shape, strict=True)
    )
    chroma = (-(-target[0] // rows), -(-target[1] // columns))
    return YuvFrame(
        resize_pixels(pixels.y, target),
        resize_chroma(pixels.u, shape, target, chroma),
        resize_chroma(pixels.v, shape, target, chroma),
    )
