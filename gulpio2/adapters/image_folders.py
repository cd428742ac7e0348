"""The images of a folder as the frames of one item: which ones, in which order, when.

A missing folder must cost its own item only, so it is listed when the frames are asked
for.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.adapters.naming import (
    numbers_of,
    warn_of_folder,
    warn_of_late_beginning,
    warn_of_no_numbers,
    warn_of_numbers,
    warn_of_several_series,
)
from gulpio2.adapters.settings import checked_frame_rate
from gulpio2.adapters.sources import IMAGE_FORMATS, OTHER_IMAGE_FORMATS, image_frames
from gulpio2.arguments import whole_number
from gulpio2.errors import IngestSettingError, SourceReadError
from gulpio2.format.rates import parse_frame_rate
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.folders import find_files, find_images_in_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.format.rates import FrameRate
    from gulpio2.types import FrameSource, StrPath

__all__ = ["NO_TIMES", "ImageTimes", "folder_frames"]

# A number in a name, but not the decimals of one: 1.25 comes before 1.5. Where two
# would be the same number so, as 1.1 and 1.10, or where they go on from 9 to 10, they
# count: 1.2 comes before 1.10.
_NUMBER = re.compile(r"(?<![0-9])(?<![0-9]\.)[0-9]+")
_ANY_NUMBER = re.compile("[0-9]+")
_DECIMAL = re.compile(r"(?<=[0-9])(\.[0-9]*?)0+(?![0-9])")
_LAST_DECIMALS = re.compile(r"(?<=[0-9])\.([0-9]{1,18})(\D*)$")
_DIGITS = 32


class ImageTimes(NamedTuple):
    """When images are shown, by the numbers in their names."""

    rate: FrameRate | None = None
    """Images a second; None, or 0, where they have no times."""
    first_number: int | None = None
    """That of the image at 0 seconds; None for the first image of each item."""

    @classmethod
    def checked(
        cls,
        rate: FrameRate | None,
        first_number: int | None,
        *,
        by_item: bool = False,
    ) -> ImageTimes:
        """Make it of what an adapter was given; `by_item`, each item has its rate.

        Raises
        ------
        IngestSettingError
            It is no rate; or there is a number without a rate.
        """
        rate = checked_frame_rate(rate, "image_rate")
        if first_number is None:
            return cls(rate)
        if parse_frame_rate(rate) is None and not by_item:
            raise IngestSettingError(
                f"first_number is {first_number!r}, and without image_rate images have "
                "no times: give both (on the command line --image-rate, "
                "--first-number)"
            )
        return cls(rate, whole_number("first_number", first_number))


NO_TIMES = ImageTimes()


def folder_frames(
    folder: StrPath,
    *,
    formats: Iterable[str] = ("jpg",),
    prefix: str = "",
    frame_size: int = -1,
    times: ImageTimes = NO_TIMES,
) -> FrameSource:
    """Give the images in a folder as frames, sorted by name, listed when needed.

    Parameters
    ----------
    folder : str or path object
        Holds at least one image; otherwise iteration raises `SourceReadError`.
    formats : iterable of str
        Endings without their dot, case-sensitive.
    prefix : str
        What the names begin with, where there are other images as well.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    times : ImageTimes
        When they are shown: by their numbers where they have one each, else by their
        places. Default: they have no times.

    Notes
    -----
    Numbers in the names count as numbers: ``2.jpg`` comes before ``10.jpg``.
    """
    return DeferredFrames(
        partial(_listed_frames, folder, tuple(formats), prefix, frame_size, times)
    )


def _listed_frames(
    folder: StrPath,
    formats: tuple[str, ...],
    prefix: str,
    frame_size: int,
    times: ImageTimes,
) -> FrameSource:
    paths = _in_order(
        path
        for path in find_images_in_folder(folder, formats)
        if path.rpartition("/")[2].startswith(prefix)
    )
    others = _other_images(folder, paths, prefix)
    if not paths:
        what = " or ".join(f"{prefix}*.{ending}" for ending in formats)
        missing = f" (but {_counted(others)})" if others else ""
        if not Path(folder).is_dir():
            missing = " (there is no such folder)"
        raise SourceReadError(
            f"{str(folder)!r} holds no {what}{missing}. Put the frames of the item "
            "there, or take it out of the list of items."
        )
    # Not of a mask.png beside each item's *.jpg, which nobody takes for a frame.
    kinds = {_kind_of(ending) for ending in formats}
    lost = {
        ending: number
        for ending, number in others.items()
        if ending.lower() in OTHER_IMAGE_FORMATS or _kind_of(ending) in kinds
    }
    if lost:
        warn_of_folder(
            folder,
            "files are left out for their endings",
            "files in %s are left out for their endings: %s. Rename or convert them, "
            "or take them out of the folder",
            _counted(lost),
        )
    names = [path.rpartition("/")[2] for path in paths]
    warn_of_several_series(folder, names)
    rate = parse_frame_rate(times.rate, "image_rate")
    warn_of_numbers(folder, names, is_timed=rate is not None)
    if rate is None:
        return image_frames(paths, frame_size=frame_size)
    pts = _ticks(folder, names, times.first_number)
    return image_frames(paths, frame_size=frame_size, pts=pts, time_base=1 / rate)


def _ticks(
    folder: StrPath, names: Sequence[str], first_number: int | None
) -> list[int]:
    """Give when each image is shown, in images from the one at 0 seconds."""
    numbers = numbers_of(names)
    if first_number is not None:
        if numbers is None:
            raise SourceReadError(
                f"the images in {str(folder)!r} have no number each, in ascending "
                "order, that would say when they are shown: first_number is "
                f"{first_number}. Rename them, or leave it out."
            )
        return [number - first_number for number in numbers]
    if numbers is None:
        if len(names) > 1:
            warn_of_no_numbers(folder)
        return list(range(len(names)))
    warn_of_late_beginning(folder, numbers)
    return [number - numbers[0] for number in numbers]


def _other_images(folder: StrPath, paths: list[str], prefix: str) -> dict[str, int]:
    """Count the images of a folder that are none of these, by their endings."""
    if not Path(folder).is_dir():
        return {}
    # By name, for a format may be a pattern, or an ending of several parts.
    taken = {path.rpartition("/")[2] for path in paths}
    there = {name for _, name in find_files(folder, max_depth=0)}
    names = {name for name in there - taken if name.startswith(prefix)}
    endings = Counter(Path(name).suffix[1:] for name in names)
    known = IMAGE_FORMATS | OTHER_IMAGE_FORMATS
    return {
        ending: number for ending, number in endings.items() if ending.lower() in known
    }


def _kind_of(ending: str) -> str:
    """Give one ending for all that files of a kind have."""
    return {"jpeg": "jpg", "jpe": "jpg", "tiff": "tif"}.get(
        ending.lower(), ending.lower()
    )


def _counted(endings: dict[str, int]) -> str:
    return ", ".join(f".{ending} ({n})" for ending, n in sorted(endings.items()))


def _in_order(paths: Iterable[str]) -> list[str]:
    """Sort the files of a folder as if all numbers had as many digits."""
    names = {path: path.rpartition("/")[2] for path in paths}
    # What is the same without the zeros at the end of decimals.
    numbers = Counter(_DECIMAL.sub(r"\1", name) for name in names.values())
    is_count = max(numbers.values(), default=1) > 1 or _count_on(names.values())
    number = _ANY_NUMBER if is_count else _NUMBER
    return sorted(
        names,
        key=lambda path: (
            number.sub(lambda found: found[0].zfill(_DIGITS), names[path]),
            names[path],
        ),
    )


def _count_on(names: Iterable[str]) -> bool:
    """Tell whether what could be decimals are numbers in a row, from 9 to 10 and on."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name in names:
        stem, _, ending = name.rpartition(".")
        if found := _LAST_DECIMALS.search(stem):
            row = rows.setdefault((stem[: found.start()], found[2] + ending), [])
            row.append(found[1])
    return any(
        len({*map(len, row)}) > 1
        and not any(digits != "0" and digits.startswith("0") for digits in row)
        and max(map(int, row)) - min(map(int, row)) == len(row) - 1
        for row in rows.values()
    )
