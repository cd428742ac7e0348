"""What is in a gulp directory, in numbers."""

from __future__ import annotations

import errno
import json
import statistics
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.all_items import item_blocks
from gulpio2.codecs.jpeg import read_header
from gulpio2.errors import GulpError, ReadRangeError, StorageError
from gulpio2.tolerant import is_damage
from gulpio2.types import Progress, no_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.directory import GulpDirectory
    from gulpio2.format.times import TimeRuns
    from gulpio2.item import StoredItem

__all__ = ["Summary", "refusal", "spread", "summarize"]

# Frame rates have three decimals: 29.97 and 30 differ, rounding of ticks does not.
_RATE_DIGITS = 3
# What says nothing of the file: the next one would be refused as well.
_OF_THE_PROCESS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@dataclass(slots=True)
class Summary:
    """Counts over all items; sizes from the first frame of some."""

    items: int = 0
    chunks: int = 0
    frames: int = 0
    num_bytes: int = 0
    """Bytes of the records."""
    data_bytes: int = 0
    """Bytes of the data files, as a check counts them: also deleted frames and holes.
    `summarize` leaves it, as it opens none of them."""
    frames_per_item: tuple[int, float, int] = (0, 0.0, 0)
    """Least, median and most."""
    seconds: float = 0.0
    """Duration of the items that have presentation times."""
    timed_items: int = 0
    frame_rates: Counter[str] = field(default_factory=Counter)
    """Frames per second to items; 'variable' where frames are not evenly spaced."""
    frame_sizes: Counter[str] = field(default_factory=Counter)
    """Width, height and colour of the first frame to items, among those looked at.
    No map has the sizes of the others, and to read them all is what a check does."""
    sampled_items: int = 0
    """Items whose first frame was looked at."""
    labels: Counter[str] = field(default_factory=Counter)
    """Label to items."""
    metadata_keys: Counter[str] = field(default_factory=Counter)
    """Key of the metadata to items that have it."""
    unreadable: list[str] = field(default_factory=list)
    """Ids of items whose first frame is no JPEG or missing, of those looked at."""
    refused: dict[str, str] = field(default_factory=dict)
    """Name of each file that cannot be opened or read, of those looked at, to why."""


def summarize(
    directory: GulpDirectory,
    *,
    label_key: str = "label",
    sample: int = 1000,
    progress: Progress = no_progress,
) -> Summary:
    """Count what is in a directory.

    Parameters
    ----------
    directory : GulpDirectory
        Opened.
    label_key : str, optional
        Key of the metadata that holds the label.
    sample : int, optional
        Items, evenly spread, whose first frame is read for its size.
    progress : Progress, optional
        Told of items, of those of an index by the thousand.

    Returns
    -------
    Summary
        The counts.

    Notes
    -----
    Reads the maps or the index, and at most `sample` frames, decoding none.
    """
    summary = Summary(items=len(directory), chunks=directory.num_chunks)
    lengths, labels = [], Counter[Any]()
    for block in item_blocks(directory):
        lengths += block.num_frames
        num_bytes = sum(block.num_bytes)
        summary.num_bytes += num_bytes
        summary.metadata_keys.update(chain.from_iterable(block.metas))
        labels.update(
            _as_key(meta[label_key]) for meta in block.metas if label_key in meta
        )
        for times in block.times:
            if times is not None:
                _add_times(summary, times)
        progress(
            items=len(block.metas), frames=sum(block.num_frames), num_bytes=num_bytes
        )
    summary.frames = sum(lengths)
    written = {json.dumps(key) if isinstance(key, str) else key[0] for key in labels}
    for key, number in labels.items():
        # A text as it is, unless that would be another label: "1" beside 1.
        if isinstance(key, str) and key in written:
            key = (json.dumps(key),)
        summary.labels[key if isinstance(key, str) else key[0]] += number
    if lengths:
        summary.frames_per_item = (
            min(lengths),
            float(statistics.median(lengths)),
            max(lengths),
        )
    places = set(spread(range(len(lengths)), sample))
    for place, id_ in enumerate(directory.merged_meta_dict):
        if place in places:
            _add_frame_size(summary, directory.item(id_))
    return summary


def _as_key(label: Any) -> Any:
    """Give what counts a label: a text itself, anything else by its JSON."""
    return label if isinstance(label, str) else (json.dumps(label),)


def spread(values: Sequence[Any], number: int) -> list[Any]:
    """Choose some values evenly spread over all, the first among them.

    Examples
    --------
    >>> spread("abcdefghij", 4)
    ['a', 'c', 'f', 'h']
    """
    if number >= len(values):
        return list(values)
    return [values[k * len(values) // number] for k in range(number)]


def refusal(item: StoredItem, error: GulpError) -> str:
    """Say why the data file of an item cannot be opened or read, after it failed.

    Parameters
    ----------
    item : StoredItem
        The item.
    error : GulpError
        What reading it raised.

    Returns
    -------
    str
        Empty where the file is not to blame, also as this process can open no file,
        and where it was cut, which is damage.
    """
    if not isinstance(error, StorageError) or error.errno in _OF_THE_PROCESS:
        return ""
    said = str(error.strerror)
    # Not asked again: what passes would be called damage of the item.
    if str(item.data_path) in said and not isinstance(error, ReadRangeError):
        return said
    try:
        item.read_at(0, 0)
    except StorageError as cause:
        return str(cause.strerror)
    return ""


def _add_times(summary: Summary, times: TimeRuns) -> None:
    if len(times.runs) == 1:  # as those of most items
        ((_, step, num_frames),) = times.runs
        span, least, most = abs(step) * (num_frames - 1), step, step
    else:
        ends, steps, num_frames = times.ends, times.steps, times.num_frames
        span, least, most = max(ends) - min(ends), min(steps), max(steps)
    if num_frames < 2 or span <= 0:
        return
    numerator, denominator = times.time_base
    summary.timed_items += 1
    summary.seconds += times.ticks_shown * numerator / denominator
    # Ticks too coarse for the rate make steps that differ by one.
    if most - least > 1:
        summary.frame_rates["variable"] += 1
        return
    said: tuple[int, int] | None = None
    match times.source.get("frame_rate"):
        case [int(frames), int(seconds)] if frames > 0 and seconds > 0:
            said = frames, seconds
    rate = _rate(span, num_frames - 1, numerator, denominator, said)
    summary.frame_rates[rate] += 1


@lru_cache(maxsize=4096)  # of many items in a dataset, it is of the same
def _rate(
    span: int,
    steps: int,
    numerator: int,
    denominator: int,
    said: tuple[int, int] | None,
) -> str:
    """Write frames per second: what the source says, where its times agree.

    A container with coarse ticks (WebM: a thousandth of a second) rounds every time by
    up to half of one, so the times alone make 29.996 out of 30.
    """
    time_base = Fraction(numerator, denominator)
    rate = measured = steps / (span * time_base)
    if (
        said is not None
        and abs(steps / Fraction(*said) - steps / measured) <= time_base
    ):
        rate = Fraction(*said)
    return f"{round(float(rate), _RATE_DIGITS):g}"


def _add_frame_size(summary: Summary, item: StoredItem) -> None:
    if not item.num_frames:
        return
    summary.sampled_items += 1
    try:
        header = read_header(item.read_jpegs([0])[0])
    except GulpError as error:
        if refused := refusal(item, error):
            summary.refused[Path(item.data_path).name] = refused
        elif is_damage(error):
            summary.unreadable.append(item.id_)
        else:
            raise
        return
    colour = "grey" if header.colorspace == "Gray" else _chroma(header.subsampling)
    summary.frame_sizes[f"{header.width}x{header.height} {colour}"] += 1


def _chroma(subsampling: str) -> str:
    return ":".join(subsampling)
