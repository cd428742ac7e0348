"""``gulp2 sheet``: a picture of what is in a gulp directory."""

from __future__ import annotations

import errno
from pathlib import Path

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.conditions import open_and_ask, where_option
from gulpio2.cli.options import (
    directory_argument,
    dry_run_option,
    ids_like,
    number_option,
    overwrite_option,
    pattern_argument,
    verbosity_options,
)
from gulpio2.cli.terminal import count, escape, is_quiet, note
from gulpio2.errors import GulpLookupError, StorageError

__all__ = ["sheet"]


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 sheet gulped",
        "gulp2 sheet gulped 'item*' --items 20 --frames 8 --out items.png",
        'gulp2 sheet gulped --where "number >= 2" --out later.png',
    ],
)
@directory_argument
@pattern_argument
@where_option
@number_option(
    "--items",
    "num_items",
    most=200,
    default=8,
    help="Rows; the items are evenly spread.",
)
@number_option(
    "--frames",
    "num_frames",
    most=50,
    default=6,
    help="Frames to a row, evenly spread over the item.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("contact_sheet.png"),
    show_default=True,
    help="The picture.",
)
@overwrite_option
@dry_run_option
@verbosity_options
@click.pass_context
def sheet(
    ctx: click.Context,
    directory: Path,
    pattern: str | None,
    where: str | None,
    num_items: int,
    num_frames: int,
    out: Path,
    overwrite: bool,
    dry_run: bool,
) -> None:
    """Draw frames of some items: a contact sheet, as a PNG.

    Each item is a row, below its id. A frame that cannot be decoded is a crossed box.
    So are those that cannot be read, or whose data file cannot be opened: it is named,
    and the exit status is 1. Where that is so of all data files that are asked for, no
    picture is written.
    """
    from gulpio2.cli.contact_sheet import draw_contact_sheet
    from gulpio2.cli.export import encode_image, write_file
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.cli.summary import spread
    from gulpio2.storage.paths import is_there
    from gulpio2.storage.refusals import absolute, local_path

    if out.suffix.lower() != ".png":
        raise click.BadParameter(
            f"{str(out)!r} must end with .png, for the picture is a PNG.",
            param_hint="'--out'",
        )
    opened, met = open_and_ask(directory, where)
    with opened:
        ids = ids_like(met, pattern)
        if not ids:
            what = "has no items" if pattern is None else f"has no id like {pattern!r}"
            if where is not None:
                what = "has no item that meets the condition"
                what += "" if pattern is None else f" and is like {pattern!r}"
            raise GulpLookupError(f"{directory} {what}; gulp2 ls lists what it has")
        is_replaced = is_there(out)
        if not overwrite and is_replaced:
            raise StorageError(None, f"{out} is there already; --overwrite replaces it")
        if not absolute(out).parent.is_dir():
            local_path(out, "write to")
            raise StorageError(
                errno.ENOENT,
                f"there is no folder {out.parent} to write {out.name} to: make it, or "
                "give another (--out)",
            )
        chosen = spread(ids, num_items)
        refused: dict[str, str] = {}
        if not dry_run:
            items = [opened.item(id_) for id_ in chosen]
            with ProgressBar(len(items)) as bar:
                picture = draw_contact_sheet(
                    items, num_frames=num_frames, refused=refused, progress=bar
                )
            if refused.keys() >= {Path(item.data_path).name for item in items}:
                raise StorageError(None, "; ".join(refused.values()))
            write_file(out, encode_image(picture, ".png"), overwrite=overwrite)
    if dry_run or not is_quiet():
        would = "would write " if dry_run else ""
        of_all = f" of {len(ids):,}" if len(ids) > len(chosen) else ""
        replaced = ", replacing the file" if is_replaced else ""
        drawn = f"{count(len(chosen), 'item')}{of_all}{replaced}"
        click.echo(f"{would}{escape(out)}: {drawn}")
    for why in refused.values():
        note(f"gulp2: error: {escape(why)}")
    if refused:
        ctx.exit(1)
