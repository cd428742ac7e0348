"""What an ingest would store, how long it would take, and what would go wrong.

`survey` looks at a hundredth of the items, each from its first frame to its last. The
quick look before every long run is `gulpio2.ingest.estimate`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError
from gulpio2.ingest.extrapolation import Look, Seen, take_sample
from gulpio2.ingest.facts import ask, is_utf8, item_ids
from gulpio2.ingest.lookers import Lookers
from gulpio2.ingest.looking import LookJob, Settings
from gulpio2.ingest.oddities import note_odd_lengths
from gulpio2.ingest.sample_plan import plan_sample
from gulpio2.ingest.survey_result import ID_TAKEN, NOT_GIVEN, Oddity, Survey, Variant
from gulpio2.threads import usable_cores
from gulpio2.types import Adapter, Progress, no_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from gulpio2.codecs.jpeg import EncoderSettings

__all__ = ["survey"]

# Frames of the sample at most that are decoded again, to measure the speed of reading.
_READ_FRAMES = 200
# Seconds that this is measured for at least: a small frame takes 10 microseconds.
_READ_SECONDS = 0.05
# Kinds of oddities that cost an item.
_FAILS = frozenset({"unreadable", "no video stream", "no frames", NOT_GIVEN, ID_TAKEN})
# Other settings that are tried: the first two qualities that the run does not have, and
# the sizes below that of the run.
_QUALITIES = (75, 60, 90)
_SHORT_EDGES = (224, 128)
# What adapters call the short edge.
_SIZE_OPTIONS = ("frame_size", "img_size")


class _Kept:
    """Some JPEGs of a sample, evenly spread over it."""

    def __init__(self) -> None:
        self._jpegs: list[bytes] = []
        self._added = 0
        self._step = 1

    def add(self, jpegs: Iterable[bytes]) -> None:
        """Add those of another item."""
        for jpeg in jpegs:
            if self._added % self._step == 0:
                self._jpegs.append(jpeg)
            self._added += 1
            if len(self._jpegs) == _READ_FRAMES:
                del self._jpegs[1::2]
                self._step *= 2

    def read_speed(self) -> float:
        """Measure how many frames a second one thread decodes."""
        # JPEGs are stored as they are, also those that cannot be decoded.
        sound = [jpeg for jpeg in self._jpegs if _can_be_decoded(jpeg)]
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
    num_workers: int = 1,
    apart: bool = False,
    progress: Progress = no_progress,
    expect: Callable[[int], object] | None = None,
    keep_interrupted: bool = False,
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
    num_workers : int, optional
        Processes that look, as far as there are cores; 1 is this one.
    apart : bool, optional
        One is not this process, where another one costs nothing: an item that ends it
        is noted as one that will fail.
    progress : Progress, optional
        Called for every item.
    expect : callable, optional
        Called with the number of items that will be looked at, and again where the
        first did not tell enough.
    keep_interrupted : bool, optional
        An interrupt (Ctrl-C) among the looks is not raised: what they have found until
        then is given, as `Survey.unfinished`.

    Returns
    -------
    Survey
        Estimates for the whole run.

    Raises
    ------
    IngestError
        Processes cannot be started.
    AdapterContractError
        The adapter cannot be sent to them, as it could not be for the run.

    Notes
    -----
    Every item of the sample is decoded as a whole, and a quarter of its frames is
    encoded, or all if they are few, so that the survey takes about as long as a
    hundredth of the run. Where that tells too little, up to five times as many items
    are looked at. Where the adapter tells the files of the items, each item is taken to
    be like the one of the sample whose file is nearest in size, in proportion; and more
    large items are looked at than small ones, see `gulpio2.ingest.sample_plan`. With
    more processes more frames are tried with other settings.
    """
    wanted = range(len(adapter)) if positions is None else positions
    others = [other for other in _QUALITIES if other != encoder.quality][:2]
    # From frames that were made smaller, larger ones cannot be made.
    edges = [edge for edge in _SHORT_EDGES if edge < _edge_asked_for(adapter)]
    variants = (
        Settings(encoder, None),
        *(Settings(replace(encoder, quality=other), None) for other in others),
        *(Settings(encoder, short_edge) for short_edge in edges),
    )
    kept = [_Kept() for _ in variants]
    met = {*stored}
    is_listed = item_ids(adapter) is not None

    def looks_at(places: Sequence[int]) -> Iterator[Look]:
        for found in lookers.look([wanted[place] for place in places]):
            for number, jpegs in found.kept.items():
                kept[number].add(jpegs)
            found.kept = {}
            progress(items=1)
            if not (is_listed or found.id_ is None or is_utf8(found.id_)):
                found.note("id that is no text in UTF-8", f"item {found.id_!r}")
            if found.id_ in met:
                found.note(ID_TAKEN, f"item {found.id_!r}")
                yield Look(odd=found.odd)
                continue
            if found.id_ is not None:
                met.add(found.id_)
            yield found

    plan = plan_sample(adapter, wanted, share=share, least=least)
    num_workers = min(num_workers, usable_cores(), max(plan.first, 1))
    seen, is_interrupted = Seen(plan), False
    try:
        job = LookJob(adapter, variants)
        with Lookers(job, num_workers, apart=apart) as lookers:
            take_sample(plan, looks_at, expect=expect, seen=seen)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        is_interrupted = True
    looks, size = seen.looks, seen.total("num_bytes")
    note_odd_lengths(looks, seen.stand_for())
    return Survey(
        items=len(wanted),
        sampled=len(looks),
        frames=round(seen.total("frames").value),
        num_bytes=round(size.value),
        error=size.error,
        seconds=seen.total("seconds").value,
        variants=tuple(_variants(variants, kept, seen)),
        oddities=tuple(_oddities(seen)),
        unmet=seen.unmet(),
        unfinished=is_interrupted,
    )


def _edge_asked_for(adapter: Adapter) -> float:
    """Give the short edge that the adapter was told to make; infinity for none."""
    options = ask(adapter, "describe")
    given = options if isinstance(options, Mapping) else {}
    sizes = [given.get(name) for name in _SIZE_OPTIONS]
    asked = (size for size in sizes if isinstance(size, int | float) and size >= 1)
    return min(asked, default=math.inf)


def _variants(
    variants: Sequence[Settings], kept: Sequence[_Kept], seen: Seen
) -> Iterator[Variant]:
    """Give what the settings of the run, and the others, would store."""
    for number, settings in enumerate(variants):
        asked = seen.total("num_bytes").value
        found = seen.varied_total(number) if number else asked
        is_known = any(number in look.resized for look in seen.looks)
        if settings.short_edge is None or is_known:
            yield Variant(
                quality=settings.encoder.quality,
                short_edge=settings.short_edge,
                num_bytes=round(found or 0),
                read_frames_per_second=kept[number].read_speed(),
            )


def _oddities(seen: Seen) -> Iterator[Oddity]:
    told = sorted(
        zip(seen.places, seen.stand_for(), seen.looks, strict=True),
        key=lambda each: each[0],
    )
    for kind in sorted({kind for _, _, look in told for kind in look.odd}):
        those = [(number, look) for _, number, look in told if kind in look.odd]
        yield Oddity(
            kind=kind,
            sampled=len(those),
            expected=round(sum(number for number, _ in those) / seen.share()),
            fails=kind in _FAILS,
            examples=tuple(note for _, look in those for note in look.odd[kind]),
        )
