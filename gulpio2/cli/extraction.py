"""Frames of items as files: what is written where, and whether it can be."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.cli.export import OutputError, file_name, video_path, write_images
from gulpio2.cli.summary import refusal
from gulpio2.cli.terminal import count, escape, is_quiet, note
from gulpio2.cli.video_export import frame_times, write_video
from gulpio2.errors import (
    FormatError,
    FrameIndexError,
    GulpError,
    MetaFileError,
    StorageError,
)
from gulpio2.format.selection import select_frames
from gulpio2.storage.leftovers import missing_folders, remove_empty
from gulpio2.storage.paths import is_there
from gulpio2.storage.refusals import absolute, cannot, local_path
from gulpio2.tolerant import is_damage

if TYPE_CHECKING:
    from pathlib import Path

    from gulpio2.directory import GulpDirectory
    from gulpio2.item import StoredItem
    from gulpio2.types import Progress

__all__ = [
    "Output",
    "Times",
    "foresee",
    "is_of_the_item",
    "output_of_item",
    "write_output",
]

_DEFAULT_RATE = Fraction(25)


class Output(NamedTuple):
    """Frames of an item, and where they go."""

    item: StoredItem
    indices: list[int]
    paths: list[Path]
    """A file for each frame, or one for all."""
    target: Path
    """What is told of: the folder of images, or the video."""


def output_of_item(
    directory: GulpDirectory,
    id_: str,
    *,
    choice: list[int | slice],
    out: Path,
    format_: str,
) -> Output:
    """Say what is to be written of an item.

    Parameters
    ----------
    directory : GulpDirectory
        Where the item is.
    id_ : str
        Which one.
    choice : list of int and slice
        Its frames.
    out : Path
        The folder that all is written to.
    format_ : str
        ``"jpg"``, ``"png"`` or ``"mp4"``.

    Raises
    ------
    FrameIndexError
        The item has none of these frames, or not all that are named one by one.
    ItemNotFoundError
        There is no such item.
    """
    item = directory.item(id_)
    indices = _indices(item, choice)
    if format_ == "mp4":
        path = video_path(out, id_, directory)
        return Output(item, indices, [path], path)
    # A frame that is chosen twice is one file.
    indices = list(dict.fromkeys(indices))
    folder = out / file_name(id_)
    paths = [folder / f"{index:06}.{format_}" for index in indices]
    return Output(item, indices, paths, folder)


def foresee(output: Output, *, overwrite: bool) -> int:
    """Count the files that are there already, and refuse what cannot be written.

    Parameters
    ----------
    output : Output
        What is to be written.
    overwrite : bool
        Files may be replaced.

    Raises
    ------
    StorageError
        A file is there and may not be replaced, a folder is in its place, or the
        folder that it is to be in can be none.
    """
    folder = output.paths[0].parent
    present: list[Path] = []
    if is_there(folder):  # one look for all
        present = [path for path in output.paths if is_there(path)]
    _refuse_folders(present)
    if present and not overwrite:
        more = f", and {len(present) - 1} more" if len(present) > 1 else ""
        them = "them" if more else "it"
        raise StorageError(
            None,
            f"{present[0]} is there already{more}; --overwrite replaces {them}",
        )
    _make_folder(folder, dry_run=True)
    return len(present)


def write_output(
    output: Output, *, times_of: Times, overwrite: bool, progress: Progress
) -> None:
    """Write frames; see `write_images` and `write_video`, which do it.

    Parameters
    ----------
    output : Output
        What is to be written.
    times_of : Times
        When the frames of a video are shown.
    overwrite : bool
        Files that are there are replaced.
    progress : Progress
        Called for each frame.
    """
    item, indices, paths, target = output
    folder = paths[0].parent
    made = missing_folders(folder)
    _make_folder(folder, dry_run=False)
    try:
        if target == paths[0]:
            times = times_of(item, indices)
            write_video(
                item, indices, target, times, overwrite=overwrite, progress=progress
            )
        else:
            write_images(item, indices, paths, overwrite=overwrite, progress=progress)
    except BaseException:
        remove_empty(made)
        raise


def is_of_the_item(item: StoredItem, error: GulpError) -> bool:
    """Tell what is wrong with one item from what the next one would meet as well.

    Parameters
    ----------
    item : StoredItem
        The item that was to be written.
    error : GulpError
        What came of it. That its data file cannot be opened is of the item: others
        may be in other files.
    """
    if isinstance(error, OutputError):
        return False
    return (
        is_damage(error)
        or bool(refusal(item, error))
        or (isinstance(error, FormatError) and not isinstance(error, MetaFileError))
    )


def _refuse_folders(paths: list[Path]) -> None:
    """Refuse to write a file where a folder is, which nothing can replace."""
    for path in paths:
        if path.is_dir():
            raise StorageError(
                None,
                f"{path} is a folder, and a file of this name is to be written. Move "
                "the folder away, or write elsewhere (--out)",
            )


def _indices(item: StoredItem, choice: list[int | slice]) -> list[int]:
    indices: list[int] = []
    for part in choice:
        try:
            indices.extend(select_frames(part, item.num_frames))
        except FrameIndexError as cause:
            raise FrameIndexError(f"item {item.id_!r}: {cause}") from cause
    if not item.num_frames:
        raise FrameIndexError(
            f"item {item.id_!r} has no frames, so there is nothing to extract"
        )
    if not indices:
        raise FrameIndexError(
            f"item {item.id_!r} has {count(item.num_frames, 'frame')}, and none is "
            "chosen. Change --frames"
        )
    return indices


class Times:
    """Gives when frames are shown, and says once where that is not stored.

    Parameters
    ----------
    rate : Fraction or None
        Frames per second, whatever is stored.
    is_one : bool, keyword-only
        Whether there is one item, which needs no name.
    """

    def __init__(self, rate: Fraction | None, *, is_one: bool) -> None:
        self._rate = rate
        self._is_one = is_one
        self._is_told = False

    def __call__(self, item: StoredItem, indices: list[int]) -> list[Fraction]:
        """Give seconds."""
        rate = self._rate
        if rate is None:
            times = frame_times(item, indices)
            if times is not None:
                return times
            rate = _DEFAULT_RATE
            self._tell(item.id_)
        return [k / rate for k in range(len(indices))]

    def _tell(self, id_: str) -> None:
        if self._is_told or is_quiet():
            return
        self._is_told = True
        whose = "" if self._is_one else escape(f" of item {id_!r}")
        others = "" if self._is_one else " for it and for others like it"
        note(
            f"gulp2: the chosen frames{whose} have no ascending times; {_DEFAULT_RATE} "
            f"frames per second are taken{others} (--rate sets it)"
        )


def _make_folder(folder: Path, *, dry_run: bool) -> None:
    """Make it; or only refuse what cannot be one, as a file or what is below a file.

    What cannot be is tried all the same, so that the system says why.
    """
    above = absolute(local_path(folder, "write to"))
    try:
        if dry_run:
            while not above.exists():
                above = above.parent
            if above.is_dir():
                return
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        error = cannot(cause, "make the folder", folder, writing=True)
        raise OutputError.of(error) from cause
