"""``gulp2 merge``: several gulp directories into one."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import json_option, verbosity_options
from gulpio2.cli.parameter_types import InputFolder, OutputFolder
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, note

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["merge"]

_logger = logging.getLogger(__name__)
# Items that are named where some are left out.
_NAMED = 10


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 merge gulped/shard_1_of_2 gulped/shard_2_of_2 gulped",
        "gulp2 merge --copy old new both",
        "gulp2 merge --on-duplicate skip new old",
    ],
)
@click.argument(
    "parts",
    metavar="PART...",
    nargs=-1,
    required=True,
    type=InputFolder(),
    help="Gulp directories, in the order that their items are to have.",
)
@click.argument(
    "target",
    metavar="TARGET",
    type=OutputFolder(),
    help="The gulp directory that gets their chunks; made if it is missing.",
)
@click.option(
    "--copy",
    is_flag=True,
    help="Copy data files also where they could be shared by hard links.",
)
@click.option(
    "--on-duplicate",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="What to do about ids that TARGET has, or a part before: merge nothing, or "
    "leave the item out. Frames of a chunk that has other items too are copied then.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Exit with 0 even if shares of an ingest are missing.",
)
@json_option("what was done as JSON")
@verbosity_options
@click.pass_context
def merge(
    ctx: click.Context,
    parts: tuple[Path, ...],
    target: Path,
    copy: bool,
    on_duplicate: str,
    partial: bool,
    as_json: bool,
) -> None:
    """Bring the chunks of several directories into one.

    Of all shards of an ingest (--shard) it makes what an undivided ingest would have
    made. Data files are shared with the parts where the file system has hard links, so
    that nothing is copied: remove the parts afterwards, or append to them no more. A
    merge that was interrupted is finished by the same command.

    Labels are joined into one label2idx.json, each with the number that it has; where
    two directories give a label two numbers, or two labels one, nothing is merged. Nor
    is it where they have another value each under the same key of metainfo.

    Items that failed in the ingests of the parts are counted; TARGET/failures.jsonl
    lists them. Items that are skipped are named with -v, and all of them with --json.

    Where shares of an ingest are missing, those that are there are merged, the missing
    ones are named, and the exit status is 1. They can be merged into TARGET later.
    """
    from gulpio2.cli.interrupts import saying_how_to_go_on
    from gulpio2.cli.progress import ProgressBar, data_bytes, indexed_bytes
    from gulpio2.format.layout import FAILURES_NAME, JOURNAL_NAME
    from gulpio2.format.wording import some_of
    from gulpio2.merge import merge_directories

    total = sum(map(data_bytes, parts)) + indexed_bytes(*parts, target)
    advice = "the parts are as they were; the same command goes on"
    with (
        ProgressBar(total, counted="num_bytes") as bar,
        saying_how_to_go_on(advice, where=target / JOURNAL_NAME),
    ):
        report = merge_directories(
            parts,
            target,
            link=not copy,
            on_duplicate=on_duplicate,  # type: ignore[arg-type]  # click checked it
            progress=bar,
        )
        bar.settle()
    if as_json:
        write_json({"target": str(target), **asdict(report)})
    elif not is_quiet():
        before = f", {report.present} there already" if report.present else ""
        skipped = f", {report.skipped} skipped" if report.skipped else ""
        click.echo(
            f"{escape(target)}: {count(report.items, 'item')} in "
            f"{count(len(report.chunks), 'chunk')} ({report.linked} linked, "
            f"{report.copied} copied{before}){skipped}"
        )
    if report.skipped:
        _logger.info(
            "left out, as items of these ids come before them (--json names all): %s",
            some_of([*map(repr, report.skipped_ids)], _NAMED),
        )
    if report.failed and not is_quiet():
        failed = count(report.failed, "item")
        them = "it" if report.failed == 1 else "them"
        note(
            f"gulp2: {failed} failed in the ingests of the parts; "
            f"{escape(target / FAILURES_NAME)} lists {them}"
        )
    if report.left_out or (report.missing and not partial):
        ctx.exit(1)
