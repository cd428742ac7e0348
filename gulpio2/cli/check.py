"""``gulp2 check``: damage in a gulp directory."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    json_option,
    limit_option,
    verbosity_options,
)
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import escape, is_quiet, quoted, write_lines
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gulpio2.format.problems import Problem
    from gulpio2.sanity.report import CheckReport

__all__ = ["check"]

# Frames in a row whose faults take two lines, and so do more notes of one kind.
_SHORTEST_RUN = 3
# Items whose faults are told, of those with one kind of fault in one file. A data file
# that was cut or lost has as many faults as items, which would hide all the others.
_FEW = 5

# Codes of what asks for no command.
_NOTHING_TO_DO = {"no-chunks", "partial-file", "stored-damaged"}
# What a killed ingest leaves, and its resumption sets right.
_OF_INTERRUPTED_INGEST = {"changed-file", "data-without-map", "unfinished-ingest"}


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 check gulped",
        "gulp2 check gulped --deep --json",
        "gulp2 check gulped --decode",
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
    "--decode",
    is_flag=True,
    help="Deep, and decode every frame: tells of images that were damaged before they "
    "were stored.",
)
@limit_option("findings")
@json_option("the report as JSON")
@verbosity_options
@click.pass_context
def check(
    ctx: click.Context,
    directory: Path,
    deep: bool,
    decode: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Look for damage in a gulp directory: one line for each finding.

    Frames that follow one another and have the same fault take two lines, and so do
    more than three notes of one kind. Of a kind of fault in a file the first five
    items are told, and the rest is counted; --limit 0 tells all.

    The exit status is 0 if nothing is wrong, 1 if something is, and 2 if DIR is no
    directory.
    """
    from gulpio2.cli.progress import ProgressBar, data_bytes
    from gulpio2.sanity import check_directory

    with ProgressBar(data_bytes(directory), counted="num_bytes") as bar:
        report = check_directory(directory, deep=deep, decode=decode, progress=bar)
    if as_json:
        write_json(report.to_json())
    else:
        lines = list(_lines(report.problems, in_full=not limit))
        shown = lines[: limit or None]
        write_lines(escape(line) for line, _ in shown)
        hidden = [problem for _, run in lines[len(shown) :] for problem in run]
        if hidden:
            click.echo(_more(hidden))
        if not is_quiet():
            write_lines(
                f"note: {escape(remark)}"
                for remark in _remarks(report.notes, in_full=not limit)
            )
            click.echo(
                f"{escape(directory)}: {report}{'' if report.deep else ' (--deep)'}"
            )
            write_lines(_advice(report, directory))
    if not report.ok:
        ctx.exit(1)


def _advice(report: CheckReport, directory: Path) -> Iterator[str]:
    """Say what to do about what was found; several lines for several things."""
    codes = {problem.code for problem in report.problems}
    if codes and any(note.code == "changed-places" for note in report.notes):
        yield (
            "first of all give the data files their names back, as the note of "
            "changed-places says, and check again: what is told of them comes of that"
        )
        return
    if "unknown-version" in codes:
        yield "check it with a newer gulpio2, which knows the format that it has"
        return
    codes -= _NOTHING_TO_DO
    if "unfinished-ingest" in codes:
        yield (
            "if none is at work, `gulp2 ingest` with --resume goes on, or the same "
            "merge; a repair begins anew, in an empty folder"
        )
        codes -= _OF_INTERRUPTED_INGEST
    if "unfinished-compaction" in codes:
        yield f"`gulp2 compact {quoted(directory)}` goes on where it was interrupted"
        codes.remove("unfinished-compaction")
    is_wrong = "bad-index" in codes
    # Of a file that cannot be read the problem says itself what to do.
    if needs_repair := bool(codes - {"bad-index", "unreadable-file"}):
        yield "`gulp2 repair` copies what is undamaged to a new directory"
    if is_wrong:
        # The index may be right where a map is damaged, and a repair takes it from it.
        makes = f"`gulp2 index {quoted(directory)}` makes the index anew from the maps"
        yield f"after that, {makes}" if needs_repair else makes


def _remarks(notes: Sequence[Problem], *, in_full: bool) -> Iterator[str]:
    """Give lines: of many notes of one kind, as of every map, the first and a count."""
    counts = Counter(note.code for note in notes)
    told: set[str] = set()
    for note in notes:
        many = counts[note.code]
        if in_full or many <= _SHORTEST_RUN:
            yield str(note)
        elif note.code not in told:
            told.add(note.code)
            yield str(note)
            more = f"{many - 1:,} more like it"
            yield f"and {more}: --limit 0 or --json gives all of them"


def _lines(
    problems: Iterable[Problem], *, in_full: bool
) -> Iterator[tuple[str, Sequence[Problem]]]:
    """Give lines, and the problems that each is about.

    Of a kind of fault in a file those of the first items are told, and the rest takes
    one line, unless all are told `in_full`.
    """
    from gulpio2.format.problems import runs_of_frames

    told: defaultdict[tuple[str, str], set[object]] = defaultdict(set)
    rest: dict[tuple[str, str], list[Problem]] = {}
    # The rest of a kind stands where it begins, and grows afterwards.
    parts: list[Sequence[Problem]] = []
    for run in runs_of_frames(problems):
        kind = run[0].file, run[0].code
        # What is of no item is told like an item of its own.
        item = len(parts) if run[0].item is None else run[0].item
        if in_full or item in told[kind] or len(told[kind]) < _FEW:
            told[kind].add(item)
            parts.append(run)
        elif kind in rest:
            rest[kind] += run
        else:
            rest[kind] = [*run]
            parts.append(rest[kind])
    for part in parts:
        if part is rest.get((part[0].file, part[0].code)):
            yield _rest_of_kind(part), part
        elif len(part) < _SHORTEST_RUN:
            yield from ((str(problem), [problem]) for problem in part)
        else:
            last = part[-1].frame
            yield str(part[0]), part[:1]
            yield part[0].likewise(last or 0), part[1:]


def _rest_of_kind(hidden: Sequence[Problem]) -> str:
    """Count the problems of one kind in one file that have no line, and their items."""
    items = {problem.item for problem in hidden if problem.item is not None}
    where = f", of {counted(len(items), 'item', spec=',')}" if items else ""
    if where and any(problem.is_count for problem in hidden):
        where += " or more"
    text = _more(hidden, where)
    return str(replace(hidden[0], message=text, item=None, frame=None, offset=None))


def _more(hidden: Sequence[Problem], where: str = "") -> str:
    """Count problems that have no line, and say what gives them one."""
    more = sum(problem.count for problem in hidden)
    listed = sum(not problem.is_count for problem in hidden)
    given = "all" if listed == more else f"{listed:,}"
    text = f": --limit 0 or --json gives {given} of them" if listed else ""
    text += ", the rest is counted only" if 0 < listed < more else ""
    return f"and {more:,} more{where}{text or ', which are counted only'}"
