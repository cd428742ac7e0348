"""``gulp2 info``: what is in a gulp directory."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    json_option,
    number_option,
    open_gulp_directory,
    verbosity_options,
)
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, note, size, write_lines
from gulpio2.format.manifest import missing_shares

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from gulpio2.cli.summary import Summary
    from gulpio2.format.manifest import Run
    from gulpio2.storage.index.keeping import IndexState

__all__ = ["info"]

# Kinds that are named before the rest is counted.
_NAMED = 8
# Keys that are named: items may have each their own, a million in all.
_KEYS = 50
# Options of adapters that are accepted for old callers and do nothing.
_WITHOUT_EFFECT = {"shm_dir_path"}


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 info gulped",
        "gulp2 info gulped --json",
        "gulp2 info gulped --label-key number --sample 100",
    ],
)
@directory_argument
@click.option(
    "--label-key",
    default="label",
    show_default=True,
    help="Key of the metadata to count items by.",
)
@number_option(
    "--sample",
    least=0,
    default=1000,
    help="Look at the first frame of so many items, evenly spread, for its size.",
)
@json_option("it as one JSON object")
@verbosity_options
@click.pass_context
def info(
    ctx: click.Context, directory: Path, label_key: str, sample: int, as_json: bool
) -> None:
    """Say what is in a gulp directory, and how it was made.

    Reads the maps and the first frame of some items, so it is quick and no check:
    that is gulp2 check. A data file that cannot be opened or read, and a link that
    leads to nothing, are named beside what the rest holds, and the exit status is 1.
    Chunks and shares that gulp.json tells of and that are not there are named as well.

    Sizes are of first frames: that later ones of an item have another is told by
    gulp2 check --deep, which reads all.

    Its bytes are those of the frames of items. Data files may hold more: frames of
    deleted items, and holes where such were. gulp2 check counts the data files, whose
    bytes are told here where they differ, and are data_bytes in --json.
    """
    from gulpio2.cli.progress import ProgressBar, data_bytes
    from gulpio2.cli.summary import summarize
    from gulpio2.errors import MetaFileError, StorageNotFoundError
    from gulpio2.format.layout import JOURNAL_NAME, MANIFEST_NAME, list_chunks
    from gulpio2.storage.index.keeping import index_state
    from gulpio2.storage.local import open_store
    from gulpio2.storage.paths import is_there
    from gulpio2.unfinished import lost_chunks

    index = index_state(directory, thorough=True)  # before opening, which may write one
    with open_gulp_directory(directory) as opened:
        with ProgressBar(len(opened)) as bar:
            summary = summarize(
                opened, label_key=label_key, sample=sample, progress=bar
            )
        summary.data_bytes = data_bytes(directory)
        summary.refused |= _broken_links(directory)
        warning = ""
        try:
            manifest = opened.manifest
        except (MetaFileError, StorageNotFoundError) as error:
            unknown = "gulp.json cannot be read"
            if MANIFEST_NAME in summary.refused:
                unknown = "gulp.json is a link to what is not there"
            else:
                warning = f"gulp2: warning: {escape(error)}"
            runs: tuple[Run, ...] = ()
            metainfo: dict[str, Any] = {}
        else:
            unknown = "there is no gulp.json; GulpIO2 0.0.4 writes none"
            if manifest.runs:
                unknown = (
                    "gulp.json does not tell: GulpIO2 0.0.4 writes none, and an ingest "
                    "that was interrupted and given up, nothing into it"
                )
            elif is_there(directory / MANIFEST_NAME):
                unknown = "gulp.json has no run that stored something"
            runs, metainfo = manifest.runs, dict(manifest.metainfo)
        store = open_store(directory)
        lost = lost_chunks(store, runs)
        told = {number for run in runs for number in run.chunks}
        untold = sorted(set(list_chunks(store.names()).chunks) - told)
    if as_json:
        write_json(_to_json(directory, summary, runs, lost, untold, metainfo, index))
    else:
        if is_there(directory / JOURNAL_NAME):
            unknown = (
                "an ingest, a merge or a repair is at work here, or was interrupted"
            )
        lines = _to_lines(directory, summary, metainfo, label_key, index)
        write_lines((*lines, *_made_by(runs, lost, untold, unknown)))
    if warning and not is_quiet():
        note(warning)
    if summary.refused:
        ctx.exit(1)


def _broken_links(directory: Path) -> dict[str, str]:
    """Find files of the directory that are links leading to nothing, and say where."""
    from gulpio2.format.layout import (
        MANIFEST_NAME,
        REMOVALS_NAME,
        data_name,
        list_chunks,
    )
    from gulpio2.format.manifest import CHECKED_FILES
    from gulpio2.storage.local import open_store
    from gulpio2.storage.refusals import broken_link

    names = open_store(directory).names()
    listing = list_chunks(names)
    files = [data_name(number) for number in (*listing.chunks, *listing.data_only)]
    small = (MANIFEST_NAME, *CHECKED_FILES, REMOVALS_NAME)
    files += [name for name in small if name in names]
    return {
        name: f"is a link to {target}, which is not there"
        for name in files
        if (target := broken_link(directory / name))
    }


def _to_json(
    directory: Path,
    summary: Summary,
    runs: tuple[Run, ...],
    lost: list[int],
    untold: list[int],
    metainfo: dict[str, Any],
    index: IndexState,
) -> dict[str, Any]:
    least, median, most = summary.frames_per_item
    return {
        "directory": str(directory),
        "items": summary.items,
        "chunks": summary.chunks,
        "frames": summary.frames,
        "frames_per_item": {"min": least, "median": median, "max": most},
        "bytes": summary.num_bytes,
        "data_bytes": summary.data_bytes,
        "seconds": summary.seconds,
        "timed_items": summary.timed_items,
        "frame_rates": dict(summary.frame_rates.most_common()),
        "frame_sizes": dict(summary.frame_sizes.most_common()),
        "sampled_items": summary.sampled_items,
        "unreadable": summary.unreadable,
        "refused": summary.refused,
        "labels": dict(summary.labels.most_common()),
        "metadata_keys": dict(summary.metadata_keys),
        "runs": [
            {
                "adapter": run.adapter,
                "options": run.options,
                "encoder": run.encoder,
                "package": run.package,
                "chunks": list(run.chunks),
            }
            for run in runs
        ],
        "chunks_of_no_run": untold,
        "missing_chunks": lost,
        "missing_shares": missing_shares(runs),
        "metainfo": metainfo,
        "index": {
            "bytes": index.num_bytes,
            "fresh": index.is_fresh,
            "stale": list(index.stale),
            "fault": index.fault,
        },
    }


def _to_lines(
    directory: Path,
    summary: Summary,
    metainfo: dict[str, Any],
    label_key: str,
    index: IndexState,
) -> Iterator[str]:
    yield escape(directory)
    yield f"  items      {summary.items:,} in {count(summary.chunks, 'chunk')}"
    least, median, most = summary.frames_per_item
    per_item = f" (an item: {least:,} to {most:,}, median {median:,.10g})"
    yield f"  frames     {summary.frames:,}{per_item if summary.items else ''}"
    per_frame = f" ({size(summary.num_bytes / max(summary.frames, 1))} a frame)"
    told, in_files = size(summary.num_bytes), size(summary.data_bytes)
    files = f", {in_files} in the data files" if told != in_files else ""
    yield f"  bytes      {told}{per_frame if summary.frames else ''}{files}"
    if summary.timed_items:
        yield (
            f"  duration   {_duration(summary.seconds)}"
            f" ({summary.timed_items:,} of {count(summary.items, 'item')} have times)"
        )
        yield f"  frames/s   {_histogram(summary.frame_rates)}"
    sampled = ""
    if summary.sampled_items < summary.items:
        sampled = f" (of {count(summary.sampled_items, 'item')} looked at)"
    yield f"  sizes      {_histogram(summary.frame_sizes) or 'none'}{sampled}"
    if summary.unreadable:
        yield (
            f"  damaged    {count(len(summary.unreadable), 'first frame')}: "
            f"{escape(', '.join(summary.unreadable[:_NAMED]))}; see gulp2 check"
        )
    for name, why in list(summary.refused.items())[:_NAMED]:
        yield f"  unreadable {escape(name)}: {escape(why)}"
    if (more := len(summary.refused) - _NAMED) > 0:
        yield f"  unreadable {count(more, 'file')} more; see gulp2 check"
    if summary.labels:
        kinds = len(summary.labels)
        yield f"  labels     {kinds:,} by {label_key!r}: {_histogram(summary.labels)}"
    elif summary.items and label_key != "label":  # which most would not miss
        yield f"  labels     none: no item has the key {escape(repr(label_key))}"
    if summary.metadata_keys:
        yield f"  metadata   {_keys(summary.metadata_keys)}"
    if metainfo:
        yield f"  metainfo   {_keys(metainfo)}"
    yield f"  index      {_index_text(index)}"


def _made_by(
    runs: tuple[Run, ...], lost: list[int], untold: list[int], unknown: str
) -> Iterator[str]:
    if not runs:
        yield f"  made by    unknown: {unknown}"
    alike: dict[str, list[Run]] = {}
    for run in runs:
        made = (run.adapter, run.package, run.encoder, run.options)
        alike.setdefault(repr(made), []).append(run)
    for group in alike.values():
        yield from _run_lines(group)
    if runs and untold:
        yield f"  made by    unknown, {count(len(untold), 'chunk')}: {unknown}"
    if lost:
        named = ", ".join(map(str, lost[:_NAMED]))
        more = f" and {len(lost) - _NAMED:,} more" if lost[_NAMED:] else ""
        yield f"  lacks      chunks that were stored: {named}{more}; see gulp2 check"
    if missing := missing_shares(runs):
        yield f"  lacks      shares of its ingest: {', '.join(missing)}"


def _index_text(index: IndexState) -> str:
    if index.is_unread:
        return escape(f"unknown: {index.fault}")
    if index.fault is not None:
        return escape(f"not usable: {index.fault}; gulp2 index makes it anew")
    if not index.num_bytes:
        return "none; gulp2 index makes one, which a small directory does not need"
    if index.stale:
        changed = f"{count(len(index.stale), 'map')} changed since"
        return f"{size(index.num_bytes)}, stale: {changed}; see gulp2 index"
    return f"{size(index.num_bytes)}, up to date"


def _run_lines(runs: list[Run]) -> Iterator[str]:
    """Describe runs that were made alike, as those that add what came meanwhile."""
    run, chunks = runs[0], sum(len(run.chunks) for run in runs)
    times = f" in {count(len(runs), 'run')}" if len(runs) > 1 else ""
    encoder = ", ".join(f"{key} {value}" for key, value in run.encoder.items())
    yield escape(
        f"  made by    {run.adapter}, gulpio2 {run.package}, "
        f"{count(chunks, 'chunk')}{times} ({encoder})"
    )
    for key, value in run.options.items():
        if key in _WITHOUT_EFFECT:
            continue
        yield escape(f"             {key} = {json.dumps(value, ensure_ascii=False)}")


def _keys(keys: Collection[str]) -> str:
    more = f", and {len(keys) - _KEYS:,} more" if len(keys) > _KEYS else ""
    return escape(", ".join(islice(keys, _KEYS))) + more


def _histogram(counts: Counter[str]) -> str:
    parts = [
        f"{escape(kind)}: {number:,}" for kind, number in counts.most_common(_NAMED)
    ]
    if len(counts) > _NAMED:
        parts.append(f"and {len(counts) - _NAMED:,} more")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
