"""What an ingest would store, how long it would take, and what would go wrong.

`survey` looks at a hundredth of the items, each from its first frame to its last. The
quick look before every long run is `gulpio2.ingest.estimate`.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.appending import stored_frames
from gulpio2.codecs.jpeg import decode_frame, encode_frame
from gulpio2.errors import AdapterContractError, CorruptFrameError, SourceReadError
from gulpio2.format.records import padded_length
from gulpio2.ingest.estimate import MAP_BYTES
from gulpio2.ingest.items import as_failure, describe_failure, place_items
from gulpio2.ingest.looks import LEAST_LOOKS, Look, Seen, error_of
from gulpio2.ingest.oddities import note_odd_lengths, note_oddities
from gulpio2.ingest.sampled import outsized_places, sample_positions
from gulpio2.ingest.surveyed import Oddity, Survey, Variant
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.types import YuvFrame

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.items import PlacedItem
    from gulpio2.types import Adapter, Progress, StoredFrame

__all__ = ["survey"]

# Parts of an item's frames that are encoded, and also as other variants.
_ENCODED, _VARIED = 0.25, 0.0625
# Multiples of it, less their whole part, are spread over [0, 1) as evenly as can be and
# without a period: codecs store every n-th frame better than those between.
_GOLDEN = 0.6180339887498949
# The same from item to item, so that no place in them is always taken.
_FROM_ITEM_TO_ITEM = 0.7548776662466927
# Of an item of so many frames at most, each is encoded.
_FEW = 16
# Frames of the sample that are decoded again, to measure the speed of reading.
_READ_FRAMES = 200
# Bytes of an item's entry in the map, beside the frames, the metadata and what is said
# of a video; of the times and the names that come with the latter.
_ENTRY_BYTES, _SOURCE_BYTES = 90, 80
_EXAMPLES = 3  # that are named of each kind of oddity
# Where the items differ much, the sample grows to this many times its size, or until
# the standard error of the size is so small.
_AT_MOST, _GOOD_ERROR = 5, 0.04
# Of those that are far larger each says more: they are looked at until the standard
# error of the whole is so small, or for so many seconds at least.
_BETTER_ERROR, _LEAST_SECONDS = 0.02, 5.0
# Kinds of oddities that cost an item.
_FAILS = frozenset({"unreadable", "no video stream", "no frames", "id taken"})
# What else is tried: two qualities, the first that are others, and two sizes.
_QUALITIES = (75, 60, 90)
_SHORT_EDGES = (224, 128)


@dataclass(slots=True)
class _Samples:
    """Frames encoded with one variant's settings."""

    settings: EncoderSettings
    short_edge: int | None
    is_other: bool = False
    num_bytes: int = 0
    as_asked: int = 0
    """Bytes of the same frames with the settings of the run."""
    kept: list[bytes] = field(default_factory=list)

    def add(self, image: Any, as_asked: int = 0) -> int:
        shrunk = _shrunk(image, self.short_edge)
        self.is_other |= shrunk is not image
        jpeg = encode_frame(shrunk, self.settings)
        size = padded_length(len(jpeg))
        self.num_bytes += size
        self.as_asked += as_asked or size
        if len(self.kept) < _READ_FRAMES:
            self.kept.append(jpeg)
        return size

    def read_speed(self) -> float:
        # JPEGs are stored as they are, also those that cannot be decoded.
        sound = [jpeg for jpeg in self.kept if _can_be_decoded(jpeg)]
        if not sound:
            return 0.0
        began = time.perf_counter()
        for jpeg in sound:
            decode_frame(jpeg)
        return len(sound) / (time.perf_counter() - began)


def _can_be_decoded(jpeg: bytes) -> bool:
    try:
        decode_frame(jpeg)
    except CorruptFrameError:
        return False
    return True


def survey(
    adapter: Adapter,
    encoder: EncoderSettings,
    *,
    positions: Sequence[int] | None = None,
    stored: Collection[str] = (),
    share: float = 0.01,
    least: int = 20,
    progress: Progress | None = None,
) -> Survey:
    """Look at a sample of the items that an ingest would store.

    Parameters
    ----------
    adapter : Adapter
        Where they come from. It is asked for single positions.
    encoder : EncoderSettings
        As for the ingest.
    positions : sequence of int, optional
        Of the items that are to be stored. Default: all.
    stored : collection of str, optional
        Ids that are in the directory, where the adapter lists none: they are noted.
    share : float, optional
        Part of the items to look at, spread evenly.
    least : int, optional
        Items to look at if the share is smaller; all of them if there are fewer.
    progress : Progress, optional
        Called for every item.

    Returns
    -------
    Survey
        Estimates for the whole run.

    Notes
    -----
    Every item of the sample is decoded as a whole, and a quarter of its frames
    is encoded, or all of a few, so that it takes about as long as a hundredth of the
    run. Where items differ much in size, up to five times as many are looked at. Of up
    to 10,000 items whose files the adapter tells, those that are far larger are
    sampled by their size, most where most is uncertain; that takes no longer than the
    others did, or than five seconds.
    """
    wanted = range(len(adapter)) if positions is None else positions
    others = [other for other in _QUALITIES if other != encoder.quality][:2]
    samples = [
        _Samples(encoder, None),
        *(_Samples(replace(encoder, quality=other), None) for other in others),
        *(_Samples(encoder, short_edge) for short_edge in _SHORT_EDGES),
    ]
    outsized = outsized_places(adapter, wanted)
    apart = {place for sizes in outsized for place in sizes}
    usual = [place for place in range(len(wanted)) if place not in apart]
    seen, *far = parts = [Seen(len(usual)), *(Seen(len(sizes)) for sizes in outsized)]
    met = {*stored}

    def look(place: int, at: Seen) -> None:
        at.count += 1
        found = _look_or_note(adapter, wanted[place], samples, at.odd)
        if found is not None:
            if found[0] in met:
                at.odd.setdefault("id taken", []).append(f"item {found[0]!r}")
            met.add(found[0])
            at.looks[found[0]] = found[1]
        if progress is not None:
            progress(items=1)

    began = time.monotonic()
    first = sample_positions(len(usual), share=share, least=least)
    more = sample_positions(
        len(usual), share=_AT_MOST * share, least=_AT_MOST * len(first)
    )
    # In an order by chance, so that stopping anywhere leaves a fair sample.
    rng = np.random.default_rng(1)
    for index in (*first, *rng.permutation(sorted({*more} - {*first}))):
        if seen.count >= len(first) and seen.error() <= _GOOD_ERROR:
            break
        look(usual[index], seen)
    took = time.monotonic() - began
    seen.share = seen.count / max(len(usual), 1)
    waiting = [
        (part, sizes, [*rng.permutation(sorted(sizes))])
        for part, sizes in zip(far, outsized, strict=True)
    ]
    while waiting := [these for these in waiting if these[2]]:
        part, sizes, places = max(waiting, key=lambda these: these[0].uncertainty())
        # As long as for all others, for they may be as much work.
        is_late = time.monotonic() - began > max(2 * took, _LEAST_SECONDS)
        if part.count >= LEAST_LOOKS and (is_late or error_of(parts) <= _BETTER_ERROR):
            break
        place = int(places.pop())
        look(place, part)
        part.source_bytes.append(sizes[place])
        part.share = sum(part.source_bytes) / sum(sizes.values())
    for part in parts:
        lengths = {name: n for each in parts for name, n in each.lengths().items()}
        note_odd_lengths(lengths, part.odd, of=part.looks)
    total = sum(part.total("num_bytes") for part in parts)
    return Survey(
        items=len(wanted),
        sampled=sum(part.count for part in parts),
        frames=round(sum(part.total("frames") for part in parts)),
        num_bytes=round(total),
        error=error_of(parts),
        seconds=sum(part.total("seconds") for part in parts),
        variants=tuple(
            Variant(
                quality=sample.settings.quality,
                short_edge=sample.short_edge,
                num_bytes=round(total * sample.num_bytes / max(sample.as_asked, 1)),
                read_frames_per_second=sample.read_speed(),
            )
            for sample in samples
            if sample.short_edge is None or sample.is_other
        ),
        oddities=tuple(_oddities(*parts)),
    )


def _oddities(*parts: Seen) -> Iterator[Oddity]:
    for kind in sorted({kind for part in parts for kind in part.odd}):
        notes = [note for part in parts for note in part.odd.get(kind, ())]
        expected = sum(
            len(part.odd.get(kind, ())) * part.num_items / max(part.count, 1)
            for part in parts
        )
        yield Oddity(
            kind=kind,
            sampled=len(notes),
            expected=round(expected),
            fails=kind in _FAILS,
            examples=tuple(notes[:_EXAMPLES]),
        )


def _look_or_note(
    adapter: Adapter,
    position: int,
    samples: list[_Samples],
    odd: dict[str, list[str]],
) -> tuple[str, Look] | None:
    """Look at the item at a position, or note why it cannot be stored."""
    for item in list(place_items(adapter, position, position + 1))[:1]:
        try:
            if item.error is not None:
                raise item.error
            phase = position * _FROM_ITEM_TO_ITEM % 1
            look = _look_at(item, samples, odd, phase=phase)
        except (Exception, SystemExit) as cause:  # noqa: BLE001  # the item boundary
            error = as_failure(cause)
            failure = describe_failure(adapter, position, item.id_, error)
            odd.setdefault(_kind_of(error), []).append(str(failure))
            return None
        if look.frames:
            return str(item.id_), look
        odd.setdefault("no frames", []).append(f"item {item.id_!r}")
    return None


def _look_at(
    item: PlacedItem,
    samples: list[_Samples],
    odd: dict[str, list[str]],
    *,
    phase: float,
) -> Look:
    """Decode an item and encode some of its frames."""
    base, *others = samples
    look = Look()
    encoded = 0
    beginning: list[int] = []
    sizes: list[int] = []
    took = aside = 0.0
    times: list[int | None] = []
    began = time.perf_counter()
    for number, frame in enumerate(_frames(item)):
        look.frames += 1
        times.append(frame.pts)
        place = (phase + number * _GOLDEN) % 1
        if place >= _ENCODED and number >= _FEW:
            continue
        before = time.perf_counter()
        frame_size = base.add(frame.image)
        encoded += 1
        if number < _FEW:
            beginning.append(frame_size)
        if place < _ENCODED:
            sizes.append(frame_size)
        after = time.perf_counter()
        took += after - before
        if place < _VARIED or number == int(phase / _ENCODED) or not others[0].kept:
            image: Any = frame.image
            if isinstance(image, bytes):  # a JPEG that is copied as it is, even damaged
                try:
                    image = decode_frame(image)
                except CorruptFrameError as error:
                    note = f"item {item.id_!r}, frame {number}: {error}"
                    odd.setdefault("stored as it is, and not readable", []).append(note)
                    image = None
            for sample in others if image is not None else ():
                sample.add(image, frame_size)
            aside += time.perf_counter() - after
    if not encoded:
        return look
    decoding = time.perf_counter() - began - took - aside
    look.seconds = decoding + took * look.frames / encoded
    meta = len(json.dumps(item.meta, default=str))
    if look.frames <= _FEW:
        sizes = beginning
    share = len(sizes) / look.frames
    look.num_bytes = sum(sizes) / share + MAP_BYTES * look.frames
    if share < 1:
        spread = statistics.variance(sizes)
        look.variance = look.frames**2 * spread / len(sizes) * (1 - share)
    look.num_bytes += _ENTRY_BYTES + meta + len(str(item.id_))
    tell = getattr(item.frames, "source_info", None)
    if tell is not None and (info := tell()):
        look.num_bytes += _SOURCE_BYTES + len(json.dumps(info, default=str))
    note_oddities(item, times, odd)
    return look


def _frames(item: PlacedItem) -> Iterator[StoredFrame]:
    if item.frames is None:
        raise AdapterContractError(
            f"item {item.id_!r} has None for its frames; an adapter gives an iterable "
            "of images"
        )
    return stored_frames(item.frames)


def _shrunk(image: Any, short_edge: int | None) -> Any:
    """Make a frame smaller whose short edge is longer."""
    if short_edge is None:
        return image
    shape = (image.y if isinstance(image, YuvFrame) else np.asarray(image)).shape[:2]
    if min(shape) <= short_edge:
        return image
    height, width = resized_shape(shape[0], shape[1], short_edge)
    if not isinstance(image, YuvFrame):
        return resize_pixels(np.asarray(image), (height, width))
    rows, columns = (
        -(-old // new) for old, new in zip(shape, image.u.shape, strict=True)
    )
    chroma = (-(-height // rows), -(-width // columns))
    return YuvFrame(
        resize_pixels(image.y, (height, width)),
        resize_pixels(image.u, chroma),
        resize_pixels(image.v, chroma),
    )


def _kind_of(error: Exception) -> str:
    if isinstance(error, SourceReadError) and "no video stream" in str(error):
        return "no video stream"
    return "unreadable"
