"""What an ingest would store, how long it would take, and what would go wrong.

`survey` looks at a hundredth of the items, each from its first frame to its last. The
quick look before every long run is `gulpio2.ingest.estimate`.
"""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gulpio2.codecs.jpeg import decode_frame, encode_frame
from gulpio2.codecs.pixels import to_storable
from gulpio2.errors import AdapterContractError, CorruptFrameError
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.records import padded_length
from gulpio2.frame_sources import stored_frames
from gulpio2.ingest.estimate import MAP_BYTES
from gulpio2.ingest.extrapolation import Look, Seen, Varied, take_sample
from gulpio2.ingest.facts import ask, is_utf8, item_ids
from gulpio2.ingest.items import describe_failure, first_item
from gulpio2.ingest.oddities import (
    FrameFacts,
    failure_kind,
    note_odd_lengths,
    note_oddities,
)
from gulpio2.ingest.sample_plan import plan_sample
from gulpio2.ingest.survey_result import ID_TAKEN, NOT_GIVEN, Oddity, Survey, Variant
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.media.scaling import resize_chroma
from gulpio2.types import Adapter, Progress, StoredFrame, YuvFrame, no_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.items import PlacedItem

__all__ = ["survey"]

# Part of an item's frames that is encoded, and part that is encoded as variants too.
_ENCODED, _VARIED = 0.25, 0.0625
# Until the sample has so many frames of the other variants, each frame that is encoded
# is also encoded as these. After that, items of less than four frames take turns.
_VARIED_ANYWAY = 100
# The fractional parts of its multiples are spread over [0, 1) as evenly as can be, and
# without a period: codecs store every n-th frame better than those between.
_GOLDEN = 0.6180339887498949
# The same from item to item, so that it is not always the same frames that are encoded.
_FROM_ITEM_TO_ITEM = 0.7548776662466927
# Of an item of at most so many frames each is encoded, and the first ones of any other.
_FEW = 16
# Frames of the sample at most that are decoded again, to measure the speed of reading.
_READ_FRAMES = 200
# Seconds that this is measured for at least: a small frame takes 10 microseconds.
_READ_SECONDS = 0.05
# Bytes of an item's entry in the map, beside frames and metadata; and those that a
# video adds for its times, beside the facts of the source.
_ENTRY_BYTES, _SOURCE_BYTES = 90, 80
_EXAMPLES = 20  # that are named of each kind of oddity
# Kinds of oddities that cost an item.
_FAILS = frozenset({"unreadable", "no video stream", "no frames", NOT_GIVEN, ID_TAKEN})
# Other settings that are tried: the first two qualities that the run does not have, and
# the sizes below that of the run.
_QUALITIES = (75, 60, 90)
_SHORT_EDGES = (224, 128)
# What adapters call the short edge.
_SIZE_OPTIONS = ("frame_size", "img_size")


@dataclass(slots=True)
class _Samples:
    """Frames encoded with one variant's settings."""

    settings: EncoderSettings
    short_edge: int | None
    is_other: bool = False
    """Whether any frame got another size."""
    kept: list[bytes] = field(default_factory=list)
    """Some of the frames, evenly spread over the sample."""
    at_first: int = 0
    """How many frames are added before they are added less often; see `_VARIED`."""
    added: int = 0
    step: int = 1

    def add(self, image: Any, as_given: Any = None) -> int:
        """Encode a frame, or copy what was given if it fits; give the bytes stored."""
        resized = _resized(image, self.short_edge)
        self.is_other |= resized is not image
        is_copied = resized is image and as_given is not None
        jpeg = encode_frame(as_given if is_copied else resized, self.settings)
        if self.added % self.step == 0:
            self.kept.append(jpeg)
        self.added += 1
        if self.added == self.at_first:
            self.kept = self.kept[:: round(_ENCODED / _VARIED)]
        if len(self.kept) == _READ_FRAMES:
            del self.kept[1::2]
            self.step *= 2
        return padded_length(len(jpeg))

    def read_speed(self) -> float:
        # JPEGs are stored as they are, also those that cannot be decoded.
        sound = [jpeg for jpeg in self.kept if _can_be_decoded(jpeg)]
        if not sound:
            return 0.0
        began, num_frames, took = time.perf_counter(), 0, 0.0
        while took < _READ_SECONDS:
            for jpeg in sound:
                decode_frame(jpeg)
            num_frames += len(sound)
            took = time.perf_counter() - began
        return num_frames / took


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
    progress: Progress = no_progress,
    expect: Callable[[int], object] | None = None,
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
        Part of the items to look at.
    least : int, optional
        Items to look at if the share is smaller; all of them if there are fewer.
    progress : Progress, optional
        Called for every item.
    expect : callable, optional
        Called with the number of items that will be looked at, and again where the
        first did not tell enough.

    Returns
    -------
    Survey
        Estimates for the whole run.

    Notes
    -----
    Every item of the sample is decoded as a whole, and a quarter of its frames is
    encoded, or all if they are few, so that the survey takes about as long as a
    hundredth of the run. Where that tells too little, up to five times as many items
    are looked at. Where the adapter tells the files of the items, each item is taken to
    be like the one of the sample whose file is nearest in size, in proportion; and more
    large items are looked at than small ones, see `gulpio2.ingest.sample_plan`.
    """
    wanted = range(len(adapter)) if positions is None else positions
    others = [other for other in _QUALITIES if other != encoder.quality][:2]
    # From frames that were made smaller, larger ones cannot be made.
    edges = [edge for edge in _SHORT_EDGES if edge < _edge_asked_for(adapter)]
    samples = [
        _Samples(encoder, None),
        *(_Samples(replace(encoder, quality=other), None) for other in others),
        *(_Samples(encoder, short_edge) for short_edge in edges),
    ]
    for sample in samples[1:]:
        sample.at_first = _VARIED_ANYWAY
    met = {*stored}
    is_listed = item_ids(adapter) is not None

    def look(place: int) -> Look:
        found = _look_or_note(adapter, wanted[place], samples)
        if not (is_listed or found.id_ is None or is_utf8(found.id_)):
            found.note("id that is no text in UTF-8", f"item {found.id_!r}")
        if found.id_ in met:
            found.note(ID_TAKEN, f"item {found.id_!r}")
            found = Look(odd=found.odd)
        elif found.id_ is not None:
            met.add(found.id_)
        progress(items=1)
        return found

    plan = plan_sample(adapter, wanted, share=share, least=least)
    seen = take_sample(plan, look, expect=expect)
    looks, size = seen.looks, seen.total("num_bytes")
    note_odd_lengths(looks, seen.stand_for())
    return Survey(
        items=len(wanted),
        sampled=len(looks),
        frames=round(seen.total("frames").value),
        num_bytes=round(size.value),
        error=size.error,
        seconds=seen.total("seconds").value,
        variants=tuple(_variants(samples, seen)),
        oddities=tuple(_oddities(seen)),
        unmet=seen.unmet(),
    )


def _edge_asked_for(adapter: Adapter) -> float:
    """Give the short edge that the adapter was told to make; infinity for none."""
    options = ask(adapter, "describe")
    given = options if isinstance(options, Mapping) else {}
    sizes = [given.get(name) for name in _SIZE_OPTIONS]
    asked = (size for size in sizes if isinstance(size, int | float) and size >= 1)
    return min(asked, default=math.inf)


def _variants(samples: list[_Samples], seen: Seen) -> Iterator[Variant]:
    """Give what the settings of the run, and the others, would store."""
    for number, sample in enumerate(samples):
        asked = seen.total("num_bytes").value
        found = seen.varied_total(number) if number else asked
        is_known = found is not None and sample.is_other
        if sample.short_edge is None or is_known:
            yield Variant(
                quality=sample.settings.quality,
                short_edge=sample.short_edge,
                num_bytes=round(found or 0),
                read_frames_per_second=sample.read_speed(),
            )


def _oddities(seen: Seen) -> Iterator[Oddity]:
    told = sorted(
        zip(seen.places, seen.stand_for(), seen.looks, strict=True),
        key=lambda each: each[0],
    )
    for kind in sorted({kind for _, _, look in told for kind in look.odd}):
        those = [(number, look) for _, number, look in told if kind in look.odd]
        notes = [note for _, look in those for note in look.odd[kind]]
        yield Oddity(
            kind=kind,
            sampled=len(those),
            expected=round(sum(number for number, _ in those) / seen.share()),
            fails=kind in _FAILS,
            examples=tuple(notes[:_EXAMPLES]),
        )


def _look_or_note(adapter: Adapter, position: int, samples: list[_Samples]) -> Look:
    """Look at the item at a position, or note why it cannot be stored."""
    look = Look()
    with first_item(adapter, position) as item:
        if item is None:
            look.note(NOT_GIVEN, f"position {position}: the adapter gives no item")
            return look
        try:
            if item.error is not None:
                raise item.error
            _look_at(item, samples, look, phase=position * _FROM_ITEM_TO_ITEM % 1)
        except BaseException as cause:  # noqa: BLE001  # the item boundary
            failure = describe_failure(adapter, position, item.id_, cause)
            look = Look(odd=look.odd)
            look.note(failure_kind(cause), str(failure))
            return look
        if look.frames:
            look.id_ = str(item.id_)
        else:
            look.note("no frames", f"item {item.id_!r}")
    return look


def _look_at(
    item: PlacedItem, samples: list[_Samples], look: Look, *, phase: float
) -> None:
    """Decode an item and encode some of its frames."""
    base, *others = samples
    encoded = 0
    is_varied = False
    beginning: list[int] = []
    sizes: list[int] = []
    took = aside = 0.0
    facts = FrameFacts()

    def is_known() -> bool:
        return others[0].added >= _VARIED_ANYWAY

    began = time.perf_counter()
    for number, frame in enumerate(_frames(item)):
        look.frames += 1
        facts.add(frame)
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
        spare = partial(_vary, item, number, frame.image, frame_size)
        is_wanted = place < (_VARIED if is_known() else _ENCODED)
        if is_wanted or number == int(phase / _ENCODED):
            spare(others, look)
            is_varied = True
            aside += time.perf_counter() - after
    if not encoded:
        return
    decoding = time.perf_counter() - began - took - aside
    if not is_varied and not is_known():
        spare(others, look)
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
    others: list[_Samples],
    look: Look,
) -> None:
    """Encode a frame with other settings too."""
    try:  # a JPEG is copied as it is, even damaged
        image = decode_frame(as_given) if isinstance(as_given, bytes) else as_given
    except CorruptFrameError as error:
        note = f"item {item.id_!r}, frame {number}: {error}"
        look.note("stored as it is, and not readable", note)
        return
    for number, sample in enumerate(others, start=1):
        try:
            size = sample.add(image, as_given)
        except ValueError:  # too large a frame at that size
            continue
        look.others.setdefault(number, Varied()).add(size, as_asked)


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
