"""``gulp2 delete``: hide items of a gulp directory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    json_option,
    require_gulp_directory,
    verbosity_options,
)
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, quoted, size, write_lines

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["delete"]


@click.command(
    cls=DocumentedCommand,
    short_help="Hide items of a directory, until compact erases them.",
    examples=[
        "gulp2 delete gulped item1 --dry-run",
        "gulp2 delete gulped item1",
    ],
)
@directory_argument
@click.argument(
    "ids",
    metavar="ID...",
    nargs=-1,
    required=True,
    help="Items to delete; such as begin with - come last, behind --.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@json_option("what was deleted as JSON")
@verbosity_options
def delete(directory: Path, ids: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Hide items: whoever opens the directory from now on does not see them.

    All IDs must be there, or nothing is done; those that an interrupted run has deleted
    are passed over. The frames stay in the data files until `gulp2 compact` erases
    them.
    """
    from gulpio2.cli.progress import ProgressBar, indexed_bytes
    from gulpio2.format.layout import data_name
    from gulpio2.removal import delete_items

    require_gulp_directory(directory)
    # Maps are gone through twice where there is an index.
    total = indexed_bytes(directory) * (1 if dry_run else 2)
    with ProgressBar(total, counted="num_bytes") as bar:
        deletions = delete_items(directory, ids, dry_run=dry_run, progress=bar)
        bar.settle()
    if as_json:
        write_json([asdict(deletion) for deletion in deletions])
        return
    if is_quiet() and not dry_run:  # of a dry run this is the result
        return
    done = "would delete" if dry_run else "deleted"
    write_lines(
        f"{done} {escape(item.id)}: {count(item.frames, 'frame')}, "
        f"{size(item.num_bytes)} in {data_name(item.chunk)}"
        for item in deletions
    )
    if not dry_run:
        click.echo(f"The frames are erased by: gulp2 compact {quoted(directory)}")
