"""``gulp2 index``: the file by which a large directory is opened at once."""

from __future__ import annotations

from contextlib import contextmanager
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
from gulpio2.cli.terminal import (
    count,
    escape,
    is_quiet,
    note,
    one_line,
    quoted,
    size,
    write_some,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["index"]


@click.command(
    cls=DocumentedCommand,
    short_help="Make or check the index of a gulp directory.",
    examples=[
        "gulp2 index gulped",
        "gulp2 index gulped --json",
        "gulp2 index gulped --remove",
    ],
)
@directory_argument
@click.option(
    "--check",
    is_flag=True,
    help="Compare the index with every map, and write nothing.",
)
@click.option("--remove", is_flag=True, help="Remove the index.")
@limit_option("differences")
@json_option("what was done as one JSON object")
@verbosity_options
def index(
    directory: Path, check: bool, remove: bool, limit: int, as_json: bool
) -> None:
    """Make the index of a gulp directory, or bring it up to date.

    The file index.arrow is derived from the maps: with it a directory of a hundred
    million frames opens in milliseconds. An ingest makes it at its end, and whoever
    opens a large directory where it is missing or stale; this command compares it with
    the checksum of every map, and not only with sizes and times. Maps that have not
    changed are not parsed again. It is refused where the index has entries as they were
    written and a map has rotted since, or is lost: `gulp2 repair` takes them from it,
    and --remove does without. The exit status is 1 if --check finds a difference.
    """
    from gulpio2.storage.index.keeping import remove_index
    from gulpio2.storage.local import open_store

    if check and remove:
        raise click.UsageError("--check and --remove do not go together.")
    if check:
        _check(directory, limit=limit, as_json=as_json)
        return
    with open_store(directory).lock():
        if not remove:
            _build(directory, as_json=as_json)
            return
        removed = remove_index(directory)
    if as_json:
        write_json({"directory": str(directory), "removed": removed})
    elif not is_quiet():
        click.echo("removed" if removed else "there was no index")


def _build(directory: Path, *, as_json: bool) -> None:
    from gulpio2.cli.options import open_gulp_directory
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.storage.index.keeping import build_index, map_bytes

    with (
        ProgressBar(map_bytes(directory), counted="num_bytes") as bar,
        _unusual_maps_explained(),
    ):
        summary = build_index(directory, thorough=True, progress=bar)
    if summary is None:
        open_gulp_directory(directory).close()  # or it says what is wrong
        if as_json:
            names = ("items", "frames", "chunks", "parsed", "num_bytes")
            nothing = {"directory": str(directory), "path": None}
            write_json({**nothing, **dict.fromkeys(names, 0)})
        note(f"gulp2: nothing to index: there are no items in {escape(directory)}")
        return
    if as_json:
        write_json({"directory": str(directory), **asdict(summary)})
    elif not is_quiet():
        parts = [
            count(summary.items, "item"),
            count(summary.frames, "frame"),
            size(summary.num_bytes),
            f"{count(summary.parsed, 'map')} of {summary.chunks:,} parsed",
        ]
        click.echo(escape(f"{summary.path}: {', '.join(parts)}"))


@contextmanager
def _unusual_maps_explained() -> Iterator[None]:
    """Say what can be done where a map cannot be put into columns."""
    from gulpio2.errors import FormatError
    from gulpio2.format.scan import UnusualMapError

    try:
        yield
    except UnusualMapError as cause:
        raise FormatError(
            f"{cause}. Such a directory can be opened, but has no index. Where only "
            "the form of a map is another than ours, opening its chunk with "
            "GulpChunk.open('ab') rewrites it"
        ) from cause


def _check(directory: Path, *, limit: int, as_json: bool) -> None:
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.errors import StorageError
    from gulpio2.format.layout import list_chunks
    from gulpio2.storage.index.keeping import check_index, index_state, map_bytes
    from gulpio2.storage.local import open_store

    require_gulp_directory(directory)
    store = open_store(directory)
    list_chunks(store.names()).require_data(store.path)  # as for making one
    with (
        ProgressBar(map_bytes(directory), counted="num_bytes") as bar,
        _unusual_maps_explained(),
    ):
        faults = check_index(directory, bar)
    state = index_state(directory)
    if state.is_unread:  # since then
        raise StorageError(None, state.fault)
    if as_json:
        told = asdict(state)
        del told["is_unread"]
        write_json({"directory": str(directory), **told, "faults": faults})
    else:
        write_some((escape(fault) for fault in faults), limit)
        if not faults and not is_quiet():
            there = "says what the maps say" if state.num_bytes else "is not needed"
            click.echo(f"the index {there}")
    if faults:
        if not as_json:
            note(f"gulp2: {_advice(directory)}")
        click.get_current_context().exit(1)


def _advice(directory: Path) -> str:
    """Say what mends an index with faults, as a sentence."""
    from gulpio2.errors import GulpError
    from gulpio2.storage.index.replacing import foresee_index

    try:
        with _unusual_maps_explained():
            foresee_index(directory)
    except GulpError as error:
        return f"gulp2 index is refused here: {one_line(error)}"
    return (
        f"run gulp2 index without --check to mend it: gulp2 index {quoted(directory)}"
    )
