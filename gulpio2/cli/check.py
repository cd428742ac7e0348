"""``gulp2 check``: damage in a gulp directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import directory_argument, json_option, verbosity_options
from gulpio2.cli.terminal import escape, is_quiet, write_lines

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["check"]


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 check gulped",
        "gulp2 check gulped --deep --json",
    ],
)
@directory_argument
@click.option(
    "--deep",
    is_flag=True,
    help="Read every byte: compare the checksum of each frame, or decode the frame "
    "where it has none.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Findings to print at most; 0 for all of them.",
)
@json_option("the report as JSON")
@verbosity_options
@click.pass_context
def check(
    ctx: click.Context, directory: Path, deep: bool, limit: int, as_json: bool
) -> None:
    """Look for damage in a gulp directory: one line for each finding.

    The exit status is 0 if nothing is wrong, 1 if something is, and 2 if DIR is no
    directory.
    """
    from gulpio2.cli.progress import ProgressBar, total_size
    from gulpio2.format.layout import data_name, list_chunks
    from gulpio2.sanity import check_directory
    from gulpio2.storage.local import open_store

    store = open_store(directory)
    chunks = list_chunks(store.names()).chunks
    total = total_size(store, map(data_name, chunks))
    with ProgressBar(total, counted="num_bytes") as bar:
        report = check_directory(directory, deep=deep, progress=bar)
    if as_json:
        click.echo(json.dumps(report.to_json()))
    else:
        shown = report.problems[: limit or None]
        write_lines(escape(problem) for problem in shown)
        if more := len(report.problems) - len(shown):
            click.echo(f"and {more:,} more: --limit 0 or --json gives all of them")
        if not is_quiet():
            write_lines(f"note: {escape(remark)}" for remark in report.notes)
            click.echo(f"{escape(directory)}: {report}")
    if not report.ok:
        ctx.exit(1)
