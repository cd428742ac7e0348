"""``gulp2 extract``: frames as image files, or an item as a video."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    dry_run_option,
    open_gulp_directory,
    overwrite_option,
    verbosity_options,
)
from gulpio2.cli.parameter_types import FrameChoice, NamedFolder, ParamType
from gulpio2.cli.terminal import count, escape, is_quiet, note
from gulpio2.errors import FrameIndexError, StorageError

if TYPE_CHECKING:
    from gulpio2.item import StoredItem

__all__ = ["extract"]

_DEFAULT_RATE = Fraction(25)
# What a folder is hardly called.
_SUFFIXES = (".jpeg", ".jpg", ".mp4", ".png")
# No exponent, as in 1e99999999: that would be computed.
_RATE = re.compile(r"\s*[0-9]{0,40}(?:\.[0-9]{0,40}|/[0-9]{1,40})?\s*")
# Frames per second that a video can have; beyond, its ticks have no room in the file.
_SLOWEST, _FASTEST = Fraction(1, 1000), Fraction(1000)


class _Rate(ParamType):
    """Frames per second: 25, 29.97 or 30000/1001."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Give the exact rate."""
        try:
            rate = Fraction(value) if _RATE.fullmatch(value) else Fraction(0)
        except (ValueError, ZeroDivisionError):
            rate = Fraction(0)
        if not _SLOWEST <= rate <= _FASTEST:
            self.fail(
                f"{value!r} is not a frame rate; write 25 or 30000/1001, from "
                f"{_SLOWEST} to {_FASTEST}.",
                param,
                ctx,
            )
        return rate


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 extract gulped item0                    # every frame, as stored",
        "gulp2 extract gulped item0 --frames 0:6:2 --format png --out pictures",
        "gulp2 extract gulped item1 --format mp4 --rate 12",
    ],
)
@directory_argument
@click.argument(
    "id_",
    metavar="ID",
    help="The item; one that begins with - comes last, behind --.",
)
@click.option(
    "--frames",
    "choice",
    type=FrameChoice(),
    default="::",
    help="Which, as in Python: 7, 0:16:2, -1, or 0,5,10:20. Default: all.",
)
@click.option(
    "-o",
    "--out",
    type=NamedFolder(),
    default=Path(),
    help="Where to write; made if it is missing. Default: here.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["jpg", "png", "mp4"]),
    default="jpg",
    show_default=True,
    help="jpg: the stored bytes as they are. png: the decoded pixels. mp4: a video.",
)
@click.option(
    "--rate",
    type=_Rate(),
    help="Frames per second of an mp4. Default: the times of the frames where they are "
    "stored, 25 otherwise.",
)
@overwrite_option
@dry_run_option
@verbosity_options
def extract(
    directory: Path,
    id_: str,
    choice: list[int | slice],
    out: Path,
    format_: str,
    rate: Fraction | None,
    overwrite: bool,
    dry_run: bool,
) -> None:
    """Write frames of an item as image files, or as a video.

    Images are OUT/<ID>/000007.jpg and so on, numbered as in the item; a video is
    OUT/<ID>.mp4. An ID that ends so itself is not given the ending twice, unless the
    video of another item, or a folder, is called so. What cannot stand in a file name
    is written in the ID as %XX.
    """
    if rate is not None and format_ != "mp4":
        raise click.UsageError(
            "--rate applies to --format mp4 only: images have no times. Leave it out, "
            "or add --format mp4."
        )
    if out.suffix.lower() in _SUFFIXES and not out.is_dir():
        raise click.UsageError(
            f"--out is a folder, in which the files get the names of the item, and "
            f"{str(out)!r} is named as a file. Give a folder, which is made if it is "
            "missing"
        )
    from gulpio2.cli.export import file_name, video_path, write_images
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.cli.video_export import write_video
    from gulpio2.storage.local import is_there

    with open_gulp_directory(directory) as opened:
        item = opened.item(id_)
        indices = _indices(item, choice)
        if format_ == "mp4":
            paths = [video_path(out, id_, opened)]
        else:
            # A frame that is chosen twice is one file.
            indices = list(dict.fromkeys(indices))
            folder = out / file_name(id_)
            paths = [folder / f"{index:06}.{format_}" for index in indices]
        present = [path for path in paths if is_there(path)]
        _refuse_folders(present)
        if present and not overwrite:
            more = f", and {len(present) - 1} more" if len(present) > 1 else ""
            them = "them" if more else "it"
            raise StorageError(
                None,
                f"{present[0]} is there already{more}; --overwrite replaces {them}",
            )
        target = paths[0] if format_ == "mp4" else paths[0].parent
        _make_folder(paths[0].parent, dry_run=dry_run)
        if not dry_run:
            if format_ == "mp4":
                times = _times(item, indices, rate)
                write = partial(write_video, path=paths[0], times=times)
            else:
                write = partial(write_images, paths=paths)
            with ProgressBar(len(indices), counted="frames") as bar:
                write(item, indices, overwrite=overwrite, progress=bar)
    if dry_run or not is_quiet():
        would = "would write " if dry_run else ""
        replaced = f", replacing {count(len(present), 'file')}" if present else ""
        click.echo(f"{would}{escape(target)}: {count(len(indices), 'frame')}{replaced}")


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
    from gulpio2.format.selection import select_frames

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


def _times(
    item: StoredItem, indices: list[int], rate: Fraction | None
) -> list[Fraction]:
    from gulpio2.cli.video_export import frame_times

    if rate is None:
        times = frame_times(item, indices)
        if times is not None:
            return times
        rate = _DEFAULT_RATE
        if not is_quiet():
            note(
                f"gulp2: the chosen frames have no ascending times; {rate} frames per "
                "second are taken (--rate sets it)"
            )
    return [k / rate for k in range(len(indices))]


def _make_folder(folder: Path, *, dry_run: bool) -> None:
    """Make it; or only refuse what cannot be one, as a file or what is below a file."""
    from gulpio2.storage.refusals import cannot, local_path

    local_path(folder, "write to")
    try:
        if dry_run:
            while not folder.exists():
                folder = folder.parent
            if folder.is_dir():
                return
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise cannot(cause, "make the folder", folder, writing=True) from cause
