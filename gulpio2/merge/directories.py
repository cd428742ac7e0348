"""Several directories into one, without copying frames where they can be linked."""

from __future__ import annotations

import contextlib
import logging
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.adapters.labels import write_label_file
from gulpio2.arguments import require_choice
from gulpio2.errors import IngestError, IngestSettingError
from gulpio2.format.failures import id_of, is_mended, lines_of
from gulpio2.format.joined_runs import join_runs
from gulpio2.format.layout import (
    FAILURES_NAME,
    JOURNAL_NAME,
    MANIFEST_NAME,
    data_name,
    list_chunks,
)
from gulpio2.format.manifest import (
    Manifest,
    dump_manifest,
    free_number,
    missing_shares,
    without_complete_shares,
)
from gulpio2.merge.data import bring_chunk, read_chunk_map
from gulpio2.merge.items import bring_items, take_brought, untold_chunks
from gulpio2.merge.parts import (
    Part,
    all_taken,
    begin_merge,
    chunks_of_ids,
    data_path,
    merged_labels,
    merged_metainfo,
    open_part,
    present_chunks,
    refuse_deleted,
    refuse_other_plans,
    refuse_repeats,
    refuse_taken,
    warnings_of_settings,
)
from gulpio2.storage.base import checks_of_files, read_if_there, read_manifest
from gulpio2.storage.index.keeping import refresh_index
from gulpio2.storage.leftovers import made_and_locked, remove_partials
from gulpio2.storage.links import is_same_file
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import real_path
from gulpio2.storage.removals_file import (
    read_removals,
    removed_numbers,
    write_removals,
)
from gulpio2.types import no_progress
from gulpio2.unfinished import unfinished_copying

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gulpio2.format.journal import Copying
    from gulpio2.storage.base import Store
    from gulpio2.types import Progress, StrPath

__all__ = ["MergeReport", "OnDuplicate", "merge_directories"]

OnDuplicate = Literal["raise", "skip"]

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class MergeReport:
    """What a merge did."""

    items: int = 0
    """Items that came to the target."""
    chunks: list[int] = field(default_factory=list)
    """Numbers of their chunks in the target."""
    linked: int = 0
    """Data files that are shared with a part."""
    copied: int = 0
    """Data files that had to be copied."""
    skipped: int = 0
    """Items left out because their id was taken."""
    skipped_ids: list[str] = field(default_factory=list)
    """Their ids, in the order of the parts."""
    present: int = 0
    """Chunks that an earlier merge had brought."""
    missing: list[str] = field(default_factory=list)
    """Shares (``3/16``; ``4-9/16``) of which others are in the target and they are
    not."""
    left_out: list[str] = field(default_factory=list)
    """Parts of an interrupted merge that this one was not given: it is unfinished."""
    failed: int = 0
    """Items that the ingests of the parts could not store, told in failures.jsonl."""


def merge_directories(
    parts: Iterable[StrPath],
    target: StrPath,
    *,
    link: bool = True,
    on_duplicate: OnDuplicate = "raise",
    progress: Progress | None = None,
) -> MergeReport:
    """Bring the chunks of directories into one, in their order.

    Parameters
    ----------
    parts : iterable of str or path
        Directories; they stay as they are.
    target : str or path
        Made if it is missing; what is in it stays.
    link : bool, optional
        Share data files with the parts by hard links where the file system can. What
        is later appended to one of them, or compacted, is copied first.
    on_duplicate : {"raise", "skip"}, optional
        What to do about items whose id the target has, or a part before: refuse, or
        leave them out, whatever they hold. A chunk that has other items too is not
        linked then: their frames are copied.
    progress : Progress, optional
        Called for every chunk, with the bytes of its data file, and where an index is
        made, once more for every chunk of the target with those of its map.

    Returns
    -------
    MergeReport
        What came to the target.

    Raises
    ------
    FormatError
        A part is no gulp directory, or has lost a chunk or the end of a data file.
    IngestSettingError
        A part is the target, or is given twice; or `parts` is a single path.
    ChunkMismatchError
        A chunk of a part is written anew meanwhile. Merging again finishes the merge.
    IngestError
        A part or the target is unfinished; or a part holds deleted items that were
        not erased, or an item that was deleted in the target; or it
        numbers its labels otherwise, or has another value of a key of metainfo, or is
        a share of other items than the others, or of other chunks.
    DuplicateIdError
        Two items have the same id, and are not skipped. Nothing was written.
    MetaFileError
        An item whose frames are copied has an entry that is altered.
    LockedError
        Another process writes to one of them.

    Notes
    -----
    The result of merging all shards of a run, in their order, is what the run would
    have given undivided. Where some are missing a warning is logged, and they can be
    merged later. Another one tells of a part that was ingested with other settings
    (quality, size or rate of frames) than what comes before it. An interrupted merge is
    finished by merging again; until then it has a journal, as an ingest has, and a
    check tells of it.
    """
    if isinstance(parts, str | os.PathLike):
        raise IngestSettingError(
            f"parts is {str(parts)!r}; give a list of directories: [{str(parts)!r}]"
        )
    require_choice("on_duplicate", on_duplicate, OnDuplicate, error=IngestSettingError)
    parts = list(parts)
    seen: set[Path] = set()
    for path in parts:
        place = real_path(path)
        if place in seen:
            raise IngestSettingError(f"{path} is given twice; name each part once")
        seen.add(place)
        if place == real_path(target):
            raise IngestSettingError(
                f"{target} is to be merged into itself; leave it out of the parts: "
                "what is in the target stays"
            )
    tell = progress or no_progress
    out = open_store(target)
    with contextlib.ExitStack() as stack:
        found = [open_part(stack, path) for path in parts]
        hold = stack.enter_context(made_and_locked(out, target))
        interrupted = _interrupted_merge(out, target)
        remove_partials(out)
        report = MergeReport()
        # What an earlier merge was to bring, and this one is.
        given = {str(place) for place in seen}
        brought = sorted(given.union(interrupted.sources if interrupted else ()))
        manifest = read_manifest(out)
        manifests = [(Path(target), manifest)]
        manifests += [(part.path, part.manifest) for part in found]
        refuse_other_plans(manifests)
        lookup = chunks_of_ids(target)
        present = present_chunks(found, out, lookup)
        skips = on_duplicate == "skip"
        untold: dict[int, set[str]] = {}
        if not skips:
            owners = refuse_repeats(found, target, lookup, present)
        else:
            owners = dict.fromkeys(lookup, Path(target))
            if interrupted is not None:
                told = {number for run in manifest.runs for number in run.chunks}
                untold = untold_chunks(lookup, told.union(present.values()))
        refuse_deleted(found, target, present, lookup)
        labels = merged_labels(found, target)
        metainfo = merged_metainfo(manifests)
        stay = present.keys() | (all_taken(found, lookup) if skips else set())
        for text in warnings_of_settings(found, target, manifest.runs, stay):
            _logger.warning("%s", text)
        names = out.names()
        listing, removed = list_chunks(names), removed_numbers(out, names)
        free = free_number(listing, manifest.runs, removed)

        def begin() -> None:
            begin_merge(out, brought)
            if labels:  # the chunks rely on them
                write_label_file(target, labels)
            hold()

        for part in found:
            for chunk, ids in part.chunks.items():
                size = part.store.size(data_name(chunk))
                if (part.path, chunk) in present:
                    part.numbers[chunk] = present[part.path, chunk]
                    report.present += 1
                    tell(items=len(ids), num_bytes=size)
                    continue
                read = read_chunk_map(part, chunk)
                kept = list(read.entries)
                if skips:
                    left_out = [id_ for id_ in kept if id_ in owners]
                    kept = [id_ for id_ in kept if id_ not in owners]
                    owners.update(dict.fromkeys(kept, part.path))
                    report.skipped += len(left_out)
                    report.skipped_ids += left_out
                else:
                    refuse_taken({*kept}.difference(ids), part, owners)
                is_whole = len(kept) == len(read.entries)
                if not is_whole:
                    part.erased.pop(chunk, None)  # its holes do not come
                if not kept:
                    was = take_brought(read, out, lookup, untold)
                    if was is not None:
                        part.numbers[chunk] = was
                    tell(items=len(ids), num_bytes=size)
                    continue
                if not report.chunks:
                    begin()
                if is_whole:
                    number = bring_chunk(read, out, free, listing.data_only, link=link)
                else:
                    number = bring_items(read, kept, out, free, listing.data_only)
                free = max(free, number)
                linked = is_same_file(
                    data_path(out, number), data_path(part.store, chunk)
                )
                part.numbers[chunk] = number
                report.linked += linked
                report.copied += not linked
                report.items += len(kept)
                report.chunks.append(number)
                frames = sum(len(read.entries[id_]["frame_info"]) for id_ in kept)
                tell(items=len(read.entries), frames=frames, num_bytes=size)
        if not report.chunks:
            begin()
        _note_erased(found, out, {*report.chunks}, goes_on=interrupted is not None)
        report.failed = _write_failures(found, out, owners)
        report.missing = _write_manifest(found, out, manifest, metainfo)
        refresh_index(target, progress=tell)
        report.left_out = sorted({*brought} - given)
        if report.left_out:
            begin_merge(out, report.left_out)  # it is not finished without them
        else:
            out.remove(JOURNAL_NAME)
    _tell_what_is_missing(report, out, target)
    return report


def _interrupted_merge(out: Store, target: StrPath) -> Copying | None:
    """Give what is known of a merge that was killed, or refuse what else was."""
    interrupted = unfinished_copying(out)
    if interrupted is not None and interrupted.verb != "merge":
        raise IngestError(
            f"the {interrupted.verb} into {target} was not finished. "
            f"{interrupted.advice} before merging into it"
        )
    if interrupted is None and JOURNAL_NAME in out.names():
        raise IngestError(
            f"the ingest into {target} was not finished, and would go on where the "
            "merged chunks are put. Finish it (gulp2 ingest ... --resume) before "
            "merging"
        )
    return interrupted


def _tell_what_is_missing(report: MergeReport, out: Store, target: StrPath) -> None:
    """Warn of parts that an interrupted merge was given, and of shares."""
    for path in report.left_out:
        _logger.warning(
            "%s was being merged into %s when that was interrupted, and is not among "
            "the parts now: %s may lack items of it, and is not finished until it is "
            "merged too. To leave it so, remove %s",
            path,
            target,
            target,
            out.path(JOURNAL_NAME),
        )
    if report.missing:
        _logger.warning(
            "%s lacks shares of what was ingested: %s. Merge them into it too",
            target,
            ", ".join(report.missing),
        )


def _note_erased(
    parts: list[Part], out: Store, brought: Collection[int], *, goes_on: bool
) -> None:
    """Note the holes that chunks came with: a check would take them for damage.

    This comes after the maps, since a number is that of no chunk before. If a merge is
    killed between, it leaves its journal, and the next one (`goes_on`) notes the holes.
    Else only those of the chunks that were brought now are noted: from others, items
    may have been deleted here whose frames are not erased.
    """
    removals = read_removals(out)
    noted = {*removals.deleted, *removals.erased}
    came = {
        part.numbers[chunk]: spans
        for part in parts
        for chunk, spans in part.erased.items()
        if chunk in part.numbers
    }
    new = {
        number: spans
        for number, spans in came.items()
        if number not in noted and (goes_on or number in brought)
    }
    if new:
        removals.erased.update(new)
        write_removals(out, removals)


def _write_failures(parts: list[Part], out: Store, stored: Collection[str]) -> int:
    """Add the failures of the parts, and leave out items that are `stored` by now.

    Gives how many of the parts are told.
    """
    before = _lines_of_failures(out)
    own = [line for part in parts for line in _lines_of_failures(part.store)]
    # What failed again, as with another option, is told by the line of that ingest.
    again = {id_ for line in own if (id_ := id_of(line)) is not None}
    told = {*own}
    lines = [line for line in before if line in told or not is_mended(line, again)]
    # Each once: an earlier merge may have brought those of some parts.
    lines = [line for line in dict.fromkeys(lines + own) if not is_mended(line, stored)]
    if lines and lines != before:
        out.write_atomically(FAILURES_NAME, b"".join(lines))
    elif not lines and before:
        out.remove(FAILURES_NAME)
    return len(told.intersection(lines))


def _lines_of_failures(store: Store) -> list[bytes]:
    """Give the lines of `failures.jsonl`, each with its end."""
    return lines_of(read_if_there(store, FAILURES_NAME) or b"")


def _write_manifest(
    parts: list[Part], out: Store, before: Manifest, metainfo: dict[str, Any]
) -> list[str]:
    """Write the manifest; name the shares that it lacks."""
    came = []
    for part in parts:
        skipped = part.chunks.keys() - part.numbers.keys()
        for run in part.manifest.runs:
            chunks = [part.numbers[n] for n in run.chunks if n in part.numbers]
            # Not one of which everything was there already, under the ids of others;
            # but one of which everything was deleted: the target has none of it by
            # right, and not because it was lost.
            if chunks or skipped.isdisjoint(run.chunks) or run.shares is not None:
                came.append(replace(run, chunks=tuple(sorted(chunks))))
    runs = join_runs(before.runs, came)
    files = checks_of_files(out)
    merged = Manifest(without_complete_shares(runs), metainfo, files)
    out.write_atomically(MANIFEST_NAME, dump_manifest(merged))
    return missing_shares(merged.runs)
