"""``gulp2 delete``: hide items of a gulp directory."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

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
    json_option,
    limit_option,
    number_option,
    require_gulp_directory,
    verbosity_options,
)
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, quoted, size, write_some
from gulpio2.errors import GulpError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["delete"]


@click.command(
    cls=DocumentedCommand,
    short_help="Hide items of a directory, until compact erases them.",
    examples=[
        "gulp2 delete gulped item1 --dry-run",
        "gulp2 delete gulped item1",
        'gulp2 delete gulped --where "number >= 2 and num_frames > 1" --dry-run',
        "gulp2 delete gulped item1 --chunk 0 --dry-run",
    ],
)
@directory_argument
@click.argument(
    "ids",
    metavar="[ID...]",
    nargs=-1,
    help="Items to delete; such as begin with - come last, behind --.",
)
@where_option
@number_option(
    "--chunk",
    "chunks",
    least=0,
    multiple=True,
    help="Delete the IDs in data_N.gulp alone, where they are in others as well; may "
    "be given again.",
)
@click.option(
    "--all",
    "may_be_all",
    is_flag=True,
    help="Delete also where every item of DIR meets the condition.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be deleted.")
@limit_option("items")
@json_option("what was deleted as JSON")
@verbosity_options
@click.pass_context
def delete(
    ctx: click.Context,
    directory: Path,
    ids: tuple[str, ...],
    where: str | None,
    chunks: tuple[int, ...],
    may_be_all: bool,
    dry_run: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Hide items: whoever opens the directory from now on does not see them.

    All IDs must be there, or nothing is done; those that an interrupted run has deleted
    are passed over. The frames stay in the data files until `gulp2 compact` erases
    them.

    With --where the items are those that meet the condition, which is as for `gulp2
    ls`; of the IDs, where there are some, those that do. Where no item does, or where
    all of the directory do and neither IDs nor --all are given, nothing is deleted and
    the exit status is 1.

    An id that was added to a second chunk keeps the directory from being opened. With
    --chunk one of the two goes, and the other stays.
    """
    from gulpio2.cli.interrupts import saying_how_to_go_on
    from gulpio2.cli.progress import ProgressBar, indexed_bytes
    from gulpio2.format.layout import REMOVALS_NAME, data_name
    from gulpio2.removal import delete_items

    require_ids_or_condition(ids, where)
    if may_be_all and where is None:
        raise click.UsageError("--all is for --where, and there is none.")
    if chunks and where is not None:
        raise click.UsageError(
            "--chunk goes with IDs alone. A condition has the column chunk, as in "
            f"--where 'chunk == {chunks[0]}'."
        )
    if where is None:
        require_gulp_directory(directory)
    elif not (met := _ids_that_meet(directory, ids, where, may_be_all=may_be_all)):
        if as_json:
            write_json([])
        wanted = ["has one of these ids"] if ids else []
        wanted += ["meets the condition"]
        note_none(directory, wanted, "nothing was deleted")
        ctx.exit(1)
    else:
        ids = met
    # Maps are gone through twice where there is an index.
    total = indexed_bytes(directory) * (1 if dry_run else 2)
    advice = "some of the items may be hidden already; the same command goes on"
    with (
        ProgressBar(total, counted="num_bytes") as bar,
        nullcontext()
        if dry_run
        else saying_how_to_go_on(advice, where=directory / REMOVALS_NAME),
    ):
        deletions = delete_items(
            directory, ids, chunks=chunks or None, dry_run=dry_run, progress=bar
        )
        bar.settle()
    if as_json:
        write_json([asdict(deletion) for deletion in deletions])
        return
    if is_quiet() and not dry_run:  # of a dry run this is the result
        return
    done = "would delete" if dry_run else "deleted"
    lines = (
        f"{done} {escape(item.id)}: {count(item.frames, 'frame')}, "
        f"{size(item.num_bytes)} in {data_name(item.chunk)}"
        for item in deletions
    )
    # Of what is deleted already the same command can give no more.
    ways = {} if dry_run else {"ways": f"{escape(directory / REMOVALS_NAME)}"}
    write_some(lines, limit, **ways)
    if not dry_run:
        click.echo(f"The frames are erased by: gulp2 compact {quoted(directory)}")


def _ids_that_meet(
    directory: Path, ids: tuple[str, ...], where: str, *, may_be_all: bool
) -> tuple[str, ...]:
    """Give what is to be deleted: of some ids, where there are any.

    Raises
    ------
    GulpError
        It is everything, which nobody has asked for.
    """
    opened, chosen = open_and_ask(directory, where)
    with opened:
        met = dict.fromkeys(chosen)
        if ids:
            # What is not there is told of by who deletes.
            return tuple(id_ for id_ in ids if id_ in met or id_ not in opened)
        if met and len(met) == len(opened) and not may_be_all:
            raise GulpError(
                f"every item of {directory} ({len(met):,}) meets the condition, and "
                "nothing was deleted. If all of them are meant, add --all"
            )
    return tuple(met)
