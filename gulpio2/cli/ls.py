"""``gulp2 ls``: the items of a gulp directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.conditions import note_none, open_and_ask, where_option
from gulpio2.cli.options import (
    directory_argument,
    ids_like,
    json_option,
    pattern_argument,
    verbosity_options,
)
from gulpio2.cli.sorting import sort_ids
from gulpio2.cli.strict_json import json_text
from gulpio2.cli.terminal import (
    escape,
    is_quiet,
    note,
    size,
    write_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gulpio2.directory import GulpDirectory

__all__ = ["ls"]

# With other arguments than its defaults, json.dumps makes one for each call.
_encode = json.JSONEncoder(ensure_ascii=False).encode


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 ls gulped",
        "gulp2 ls gulped 'item*' --long",
        'gulp2 ls gulped --where "number >= 2 and num_frames > 1"',
        "gulp2 ls gulped --long --sort num_frames --reverse",
        "gulp2 ls gulped --json",
    ],
)
@directory_argument
@pattern_argument
@where_option
@click.option(
    "-l",
    "--long",
    "in_detail",
    is_flag=True,
    help="With frames, size on disk, chunk and metadata.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    help="By id, num_frames, chunk, bytes or a key of the metadata, the smallest first "
    "and items without it last.",
)
@click.option("--reverse", is_flag=True, help="With --sort: the largest first.")
@json_option("one JSON object a line, with everything")
@verbosity_options
@click.pass_context
def ls(
    ctx: click.Context,
    directory: Path,
    pattern: str | None,
    where: str | None,
    in_detail: bool,
    sort: str | None,
    reverse: bool,
    as_json: bool,
) -> None:
    """List the ids in a gulp directory, in its order or a sorted one.

    Characters that a terminal would obey are shown as escapes; --json has them as they
    are. A condition knows == != < <= > >=, in and not in a list, is None, and, or, not,
    parentheses, and label.startswith('x'), .endswith, .contains; a key that is no plain
    name stands in backticks. The exit status is 1 if nothing is like PATTERN, or meets
    the condition.
    """
    from gulpio2.unfinished import say_what_is_missing

    if reverse and sort is None:
        raise click.UsageError("--reverse is for --sort: name a column.")
    opened, chosen = open_and_ask(directory, where)
    with opened:
        ids = ids_like(chosen, pattern)
        if sort is not None:
            ids = sort_ids(opened, ids, sort, reverse=reverse)
        if as_json:
            write_lines(json_text(_row(opened, id_)) for id_ in ids)
        elif in_detail:
            write_lines(_table(opened, ids))
        else:
            write_lines(escape(id_) for id_ in ids)
        if not is_quiet():
            for reason in say_what_is_missing(opened):
                note(f"gulp2: {escape(reason)}")
    if not ids and (pattern is not None or where is not None):
        wanted = [] if pattern is None else [f"is like {pattern!r}"]
        wanted += [] if where is None else ["meets the condition"]
        note_none(directory, wanted)
        ctx.exit(1)


def _row(directory: GulpDirectory, id_: str) -> dict[str, Any]:
    item = directory.item(id_)
    return {
        "id": id_,
        "frames": item.num_frames,
        "bytes": item.num_bytes,
        "chunk": directory.chunk_lookup[id_],
        "meta": item.meta,
    }


def _table(directory: GulpDirectory, ids: list[str]) -> Iterator[str]:
    if not ids:
        return
    yield f"{'frames':>8} {'size':>9} {'chunk':>6}  id  metadata"
    for id_ in ids:
        row = _row(directory, id_)
        numbers = f"{row['frames']:>8} {size(row['bytes']):>9} {row['chunk']:>6}"
        meta = _encode(row["meta"])
        yield escape(f"{numbers}  {id_}  {meta}")
