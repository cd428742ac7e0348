"""``gulp2 compact``: erase the frames of deleted items."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    json_option,
    limit_option,
    require_gulp_directory,
    verbosity_options,
)
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, is_quiet, note, size, write_some

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["compact"]


@click.command(
    cls=DocumentedCommand,
    short_help="Erase the frames of deleted items.",
    examples=["gulp2 compact gulped --dry-run", "gulp2 compact gulped"],
)
@directory_argument
@click.option("--dry-run", is_flag=True, help="Only say what would be erased.")
@limit_option("chunks")
@json_option("what was erased as JSON")
@verbosity_options
def compact(directory: Path, dry_run: bool, limit: int, as_json: bool) -> None:
    """Erase the frames of deleted items, rewriting only the chunks that hold some.

    Frames that stay keep their places in the data file. The room between and behind
    them becomes holes, which take no space where the file system knows sparse files. A
    data file that has other names by hard links, as after a merge, is left as it is
    under those, and a warning tells of it.
    """
    from gulpio2.cli.interrupts import saying_how_to_go_on
    from gulpio2.cli.progress import ProgressBar, indexed_bytes
    from gulpio2.format.layout import REMOVALS_NAME, data_name
    from gulpio2.removal import compact_directory
    from gulpio2.storage.local import open_store

    require_gulp_directory(directory)
    store = open_store(directory)
    planned = compact_directory(directory, dry_run=True)
    total = sum(store.size(data_name(item.chunk)) for item in planned)
    total += indexed_bytes(directory)
    advice = "what is not erased yet is as it was; the same command goes on"
    with (
        ProgressBar(0 if dry_run else total, counted="num_bytes") as bar,
        saying_how_to_go_on(advice, where=directory / REMOVALS_NAME),
    ):
        done = planned if dry_run else compact_directory(directory, progress=bar)
        bar.settle()
    if as_json:
        write_json([asdict(item) for item in done])
    elif dry_run or not is_quiet():  # of a dry run this is the result
        verb = "would erase" if dry_run else "erased"
        lines = (
            f"{verb} {size(item.num_bytes)} of "
            f"{count(item.items, 'deleted item')} in {data_name(item.chunk)}"
            for item in done
        )
        if dry_run:
            write_some(lines, limit)
        else:  # what is erased, the same command does not find again
            write_some(lines, limit, ways=None)
        if not done:
            click.echo("nothing to erase: no item was deleted since the last time")
    linked = [data_name(item.chunk) for item in done if item.other_names]
    if linked and not is_quiet():
        more = f" and {len(linked) - 1} more" if len(linked) > 1 else ""
        have = "have" if more else "has"
        stay = "would stay" if dry_run else "are still"
        note(
            f"gulp2: warning: {linked[0]}{more} {have} other names (hard links), as "
            f"those of merged directories and of backups: the frames {stay} there. "
            "Remove those as well, or delete and compact in their directories"
        )
