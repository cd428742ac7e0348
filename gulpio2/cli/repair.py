"""``gulp2 repair``: what is whole of a damaged directory, into a clean one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    dry_run_option,
    json_option,
    limit_option,
    verbosity_options,
)
from gulpio2.cli.parameter_types import InputFolder, OutputFolder
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import escape, is_quiet, write_some

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["repair"]


@click.command(
    cls=DocumentedCommand,
    short_help="Salvage what is undamaged into a new directory.",
    examples=[
        "gulp2 repair gulped mended --dry-run",
        "gulp2 repair gulped mended --json",
    ],
)
@click.argument(
    "source",
    metavar="SOURCE",
    type=InputFolder(),
    help="A gulp directory in any state. It is not changed.",
)
@click.argument(
    "target",
    metavar="TARGET",
    type=OutputFolder(),
    help="Where to write: a folder that is missing or empty.",
)
@dry_run_option
@limit_option("each kind")
@json_option("the report as JSON")
@verbosity_options
@click.pass_context
def repair(
    ctx: click.Context,
    source: Path,
    target: Path,
    dry_run: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Salvage every undamaged item of a directory into a new, clean one.

    Frames whose item is unknown or incomplete are kept under ids of the form
    salvaged_CHUNK_OFFSET; their metadata says where they come from. What a damaged or
    missing map said is taken from index.arrow, where there is one. Frames that are not
    where their map says, since data files were changed or renamed, are found by their
    checksums. Deleted items stay deleted. What is lost is listed; what could not be
    read may be readable another time, so keep the source then. The exit status is 1 if
    anything is lost, or is under such an id.
    """
    from gulpio2.cli.interrupts import saying_how_to_go_on
    from gulpio2.cli.progress import ProgressBar, data_bytes
    from gulpio2.format.layout import JOURNAL_NAME
    from gulpio2.repair import repair_directory

    total = data_bytes(source, orphans=True)
    if not dry_run:
        total *= 2  # what is looked at is written, but for what is lost or deleted
    advice = f"{escape(target)} is unfinished: remove it, and give the command again"
    with (
        ProgressBar(total, counted="num_bytes") as bar,
        saying_how_to_go_on(advice, where=target / JOURNAL_NAME),
    ):
        report = repair_directory(source, target, dry_run=dry_run, progress=bar)
        bar.settle()  # padding, and what is nobody's, is not told of
    if as_json:
        write_json(report.to_json())
    else:
        _write("lost", report.lost, limit)
        _write("salvaged", report.salvaged, limit)
        if dry_run or not is_quiet():  # of a dry run this is the result
            _write("note", report.notes, limit)
            click.echo(f"{escape(target)}: {report}")
    if not report.ok:
        ctx.exit(1)


def _write(kind: str, told: Iterable[object], limit: int) -> None:
    lines = (f"{kind}: {escape(each)}" for each in told)
    write_some(lines, limit, kind=f"{kind}: ")
