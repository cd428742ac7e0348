"""``gulp2 extract``: frames of items as image files, or items as videos."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.conditions import (
    note_none,
    open_and_ask,
    require_ids_or_condition,
    where_option,
)
from gulpio2.cli.options import (
    directory_argument,
    dry_run_option,
    given_once,
    limit_option,
    overwrite_option,
    verbosity_options,
)
from gulpio2.cli.parameter_types import FrameChoice, NamedFolder, ParamType
from gulpio2.cli.terminal import count, escape, is_quiet, note, one_line, write_some
from gulpio2.errors import GulpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.cli.extraction import Output
    from gulpio2.directory import GulpDirectory

__all__ = ["extract"]

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
        'gulp2 extract gulped --where "number >= 2 and num_frames > 1" --out pictures',
    ],
)
@directory_argument
@click.argument(
    "ids",
    metavar="[ID...]",
    nargs=-1,
    help="The items; such as begin with - come last, behind --.",
)
@where_option
@click.option(
    "--frames",
    "choice",
    type=FrameChoice(),
    multiple=True,
    callback=given_once,
    default=["::"],
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
@limit_option("items")
@verbosity_options
@click.pass_context
def extract(
    ctx: click.Context,
    directory: Path,
    ids: tuple[str, ...],
    where: str | None,
    choice: list[int | slice],
    out: Path,
    format_: str,
    rate: Fraction | None,
    overwrite: bool,
    dry_run: bool,
    limit: int,
) -> None:
    """Write frames of items as image files, or each item as a video.

    Images are OUT/<ID>/000007.jpg and so on, numbered as in the item; a video is
    OUT/<ID>.mp4. An ID that ends so itself is not given the ending twice, unless the
    video of another item, or a folder, is called so. What cannot stand in a file name
    is written in the ID as %XX.

    With --where the items are those that meet the condition, which is as for `gulp2
    ls`; of the IDs, where there are some, those that do. The exit status is 1 if no
    item does. Nothing is written where a file is there already and may not be replaced,
    or where an item has none of the frames. An item among several that is damaged is
    named, the others are written, and the exit status is 1.
    """
    require_ids_or_condition(ids, where)
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
    from gulpio2.cli.extraction import (
        Times,
        foresee,
        is_of_the_item,
        output_of_item,
        write_output,
    )
    from gulpio2.cli.progress import ProgressBar

    opened, met = open_and_ask(directory, where)
    with opened:
        wanted = _wanted(opened, ids, None if where is None else met)
        if not wanted:
            asked = ["has one of these ids"] if ids else []
            note_none(directory, [*asked, "meets the condition"])
            ctx.exit(1)
        output_of = partial(
            output_of_item, opened, choice=choice, out=out, format_=format_
        )
        lines, num_frames = {}, 0
        for id_ in wanted:
            output = output_of(id_)
            lines[id_] = _line(output, foresee(output, overwrite=overwrite))
            num_frames += len(output.indices)
        failed = 0
        if not dry_run:
            write = partial(
                write_output,
                times_of=Times(rate, is_one=len(wanted) == 1),
                overwrite=overwrite,
            )
            with ProgressBar(num_frames, counted="frames") as bar:
                for id_ in wanted:
                    output = output_of(id_)
                    try:
                        write(output, progress=bar)
                    except GulpError as error:
                        if len(wanted) == 1 or not is_of_the_item(output.item, error):
                            raise
                        del lines[id_]
                        failed += 1
                        if not limit or failed <= limit:
                            why = one_line(error)
                            named = "" if repr(id_) in str(error) else f"item {id_!r}: "
                            note(f"gulp2: error: {escape(named)}{why}")
    if dry_run or not is_quiet():
        would = "would write " if dry_run else ""
        written = (f"{would}{line}" for line in lines.values())
        write_some(written, limit, ways="--limit 0")
    if failed:
        some = f"{failed:,} of {count(len(wanted), 'item')}"
        note(f"gulp2: {some} could not be written")
        ctx.exit(1)


def _line(output: Output, present: int) -> str:
    replaced = f", replacing {count(present, 'file')}" if present else ""
    return f"{escape(output.target)}: {count(len(output.indices), 'frame')}{replaced}"


def _wanted(
    directory: GulpDirectory, ids: Sequence[str], met: Iterable[str] | None
) -> list[str]:
    """Give the items to extract, each once.

    Raises
    ------
    ItemNotFoundError
        One of the ids is not there.
    """
    for id_ in ids:
        directory.item(id_)
    if met is None:
        return list(dict.fromkeys(ids))
    chosen = dict.fromkeys(met)
    return [id_ for id_ in dict.fromkeys(ids) if id_ in chosen] if ids else [*chosen]
