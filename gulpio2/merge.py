"""Several directories into one, without copying frames where they can be linked."""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.labels import merge_labels, read_label_file, write_label_file
from gulpio2.directory import GulpDirectory
from gulpio2.errors import (
    DuplicateIdError,
    FormatError,
    IngestError,
    IngestSettingError,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.gmeta import load_gmeta
from gulpio2.format.layout import (
    FAILURES_NAME,
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    REMOVALS_NAME,
    data_name,
    list_chunks,
    meta_name,
    partial_name,
)
from gulpio2.format.manifest import (
    Manifest,
    add_run,
    conflicting_runs,
    dump_manifest,
    missing_shares,
    without_complete_shares,
)
from gulpio2.storage.index.keeping import refresh_index
from gulpio2.storage.leftovers import remove_leftovers
from gulpio2.storage.links import copy_file, is_beginning, link_file
from gulpio2.storage.local import new_token, open_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gulpio2.storage.base import Store
    from gulpio2.types import Progress, StrPath

__all__ = ["MergeReport", "merge_directories"]

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
    present: int = 0
    """Chunks that an earlier merge had brought."""
    missing: list[str] = field(default_factory=list)
    """Shares (``3/16``; ``4-9/16``) of which others are in the target and they are
    not."""


@dataclass(slots=True)
class _Part:
    """A directory to be merged."""

    path: Path
    store: Store
    manifest: Manifest
    chunks: dict[int, tuple[str, ...]]
    """Ids by chunk number."""
    numbers: dict[int, int] = field(default_factory=dict)
    """Number in the target by number in the part."""


def merge_directories(
    parts: Sequence[StrPath],
    target: StrPath,
    *,
    link: bool = True,
    progress: Progress | None = None,
) -> MergeReport:
    """Bring the chunks of directories into one, in their order.

    Parameters
    ----------
    parts : sequence of str or path
        Directories; they stay as they are.
    target : str or path
        Made if it is missing; what is in it stays.
    link : bool, optional
        Share data files with the parts by hard links where the file system can. What
        is later appended to one of them, or compacted, is copied first.
    progress : Progress, optional
        Called for every chunk.

    Returns
    -------
    MergeReport
        What came to the target.

    Raises
    ------
    FormatError
        A part is no gulp directory.
    IngestSettingError
        A part is the target, or is given twice.
    IngestError
        A part or the target is unfinished; or a part holds deleted items, or numbers
        its labels otherwise, or is a share of other items than the others, or of other
        chunks.
    DuplicateIdError
        Two items have the same id. Nothing was written.
    LockedError
        Another process writes to one of them.

    Notes
    -----
    The result of merging all shards of a run, in their order, is what the run would
    have given undivided. Where some are missing a warning is logged, and they can be
    merged later. An interrupted merge is finished by merging again.
    """
    seen: set[Path] = set()
    for path in parts:
        place = Path(path).resolve()
        if place in seen:
            raise IngestSettingError(f"{path} is given twice; name each part once")
        seen.add(place)
        if place == Path(target).resolve():
            raise IngestSettingError(
                f"{target} is to be merged into itself; leave it out of the parts: "
                "what is in the target stays"
            )
    token = new_token()
    out = open_store(target)
    with contextlib.ExitStack() as stack:
        found = [_open_part(stack, Path(path)) for path in parts]
        out.make()
        stack.enter_context(out.lock())
        if JOURNAL_NAME in out.names():
            raise IngestError(
                f"the ingest into {target} was not finished, and would go on where the "
                "merged chunks are put. Finish it (gulp2 ingest ... --resume) before "
                "merging"
            )
        remove_leftovers(out)
        report = MergeReport()
        _refuse_other_plans(found, target)
        present = _present_chunks(found, target)
        owners = _refuse_repeats(found, target, present)
        labels = _merged_labels(found, target)
        listing = list_chunks(out.names())
        number = listing.next_number
        for part in found:
            for chunk, ids in part.chunks.items():
                if (part.path, chunk) in present:
                    part.numbers[chunk] = present[part.path, chunk]
                    report.present += 1
                    continue
                # The map first: what another appends to the chunk meanwhile is behind
                # all that it speaks of.
                content, entries = _read_map(part.store, chunk)
                _refuse_taken({*entries}.difference(ids), part, owners)
                end = _end_of(entries)
                free = _brought_before(part, chunk, end, out, listing.data_only)
                if free is None:
                    free, number = number, number + 1
                    _bring_data(part, chunk, end, out, target, free, token, link=link)
                out.write_atomically(meta_name(free), content)  # the commit
                linked = _data_path(out, free).samefile(_data_path(part.store, chunk))
                part.numbers[chunk] = free
                report.linked += linked
                report.copied += not linked
                report.items += len(entries)
                report.chunks.append(free)
                if progress is not None:
                    progress(items=len(entries))
        if labels:
            write_label_file(target, labels)
        report.missing = _write_records(found, out, target)
        refresh_index(target)
    if report.missing:
        _logger.warning(
            "%s lacks shares of what was ingested: %s. Merge them into it too",
            target,
            ", ".join(report.missing),
        )
    return report


def _open_part(stack: contextlib.ExitStack, path: Path) -> _Part:
    """Look at a part, and keep writers away from it."""
    store = open_store(path)
    if path.is_dir():
        stack.enter_context(store.lock())  # or what is seen may be changed at once
    names = set(store.names())
    listing = list_chunks(names)
    if not listing.chunks and MANIFEST_NAME not in names:
        raise FormatError(
            f"{path} is no gulp directory: it holds no chunk. Leave it out, or give "
            "the folder that was ingested into"
        )
    if JOURNAL_NAME in names:
        raise IngestError(
            f"the ingest into {path} was not finished. Finish it (gulp2 ingest ... "
            "--resume) before merging"
        )
    if REMOVALS_NAME in names:
        raise IngestError(
            f"{path} holds deleted items, which a merge would not know of. 'gulp2 "
            "repair' copies a directory without them: merge the copy"
        )
    with GulpDirectory(path) as directory:
        by_chunk: dict[int, list[str]] = {number: [] for number in listing.chunks}
        for id_, number in directory.chunk_lookup.items():
            by_chunk[number].append(id_)
        manifest = directory.manifest
    chunks = {number: tuple(ids) for number, ids in by_chunk.items() if ids}
    return _Part(path, store, manifest, chunks)


def _present_chunks(parts: list[_Part], target: StrPath) -> dict[tuple[Path, int], int]:
    """Find what an earlier merge had brought: there is the same map, byte by byte."""
    out = open_store(target)
    with GulpDirectory(target) as directory:
        lookup = dict(directory.chunk_lookup)
    present = {}
    for part in parts:
        for chunk, ids in part.chunks.items():
            there = lookup.get(ids[0])
            if there is None:
                continue
            content, entries = _read_map(part.store, chunk)
            # Of the data only what the map speaks of was brought.
            if out.read(meta_name(there)) == content and (
                out.size(data_name(there)) >= _end_of(entries)
            ):
                present[part.path, chunk] = there
    return present


def _refuse_repeats(
    parts: list[_Part], target: StrPath, present: dict[tuple[Path, int], int]
) -> dict[str, Path]:
    """Give the directory that each id is in, or refuse where there are two."""
    brought = set(present.values())
    with GulpDirectory(target) as directory:
        owners = {
            id_: Path(target)
            for id_, number in directory.chunk_lookup.items()
            if number not in brought
        }
    for part in parts:
        for ids in part.chunks.values():
            _refuse_taken(ids, part, owners, "Nothing was written. ")
    return owners


def _refuse_taken(
    ids: Iterable[str], part: _Part, owners: dict[str, Path], so_far: str = ""
) -> None:
    for id_ in ids:
        if id_ in owners:
            raise DuplicateIdError(
                f"the id {id_!r} is in {owners[id_]} and in {part.path}. {so_far}"
                "Delete it in one of them (gulp2 delete), or leave a directory out"
            )
        owners[id_] = part.path


def _refuse_other_plans(parts: list[_Part], target: StrPath) -> None:
    """Refuse shares that are not of one whole: items may be in none of them."""
    with GulpDirectory(target) as directory:
        told = [(Path(target), run) for run in directory.manifest.runs]
    told += [(part.path, run) for part in parts for run in part.manifest.runs]
    if found := conflicting_runs([run for _, run in told]):
        one, other = (told[index][0] for index in found)
        raise IngestError(
            f"{one} and {other} hold shares of one source that do not fit together: of "
            "other items, or of chunks of another size, so that items may be in "
            "neither. Nothing was written. Ingest one of them again with the items and "
            "the --videos-per-chunk of the other"
        )


def _merged_labels(parts: list[_Part], target: StrPath) -> dict[str, int]:
    labels = read_label_file(target)
    before = [str(target)]
    for part in parts:
        labels = merge_labels(
            labels,
            read_label_file(part.path),
            where=f"{LABELS_NAME} of {' or '.join(before)}",
            other=f"that of {part.path}",
            advice="ingest one of them anew into a folder that has the other's labels, "
            "or keep them apart",
        )
        before.append(str(part.path))
    return labels


def _read_map(store: Store, chunk: int) -> tuple[bytes, Mapping[str, Any]]:
    name = meta_name(chunk)
    content = store.read(name)
    return content, load_gmeta(content, where=store.path(name))


def _end_of(entries: Mapping[str, Any]) -> int:
    """Give where the last record of a map ends."""
    infos = (info for entry in entries.values() for info in entry["frame_info"])
    return max((offset + length for offset, _, length in infos), default=0)


def _brought_before(
    part: _Part, chunk: int, end: int, out: Store, data_only: Sequence[int]
) -> int | None:
    """Find the number of a chunk whose map a merge that was killed did not bring."""
    source = _data_path(part.store, chunk)
    size = min(end, part.store.size(data_name(chunk)))
    for number in data_only:
        present = _data_path(out, number)
        is_same = present.samefile(source) or is_beginning(present, source, size)
        if is_same and not Path(out.path(meta_name(number))).exists():
            return number
    return None


def _data_path(store: Store, number: int) -> Path:
    return Path(store.path(data_name(number)))


def _bring_data(
    part: _Part,
    chunk: int,
    end: int,
    out: Store,
    target: StrPath,
    number: int,
    token: str,
    *,
    link: bool,
) -> None:
    """Put the frames of a chunk into the target; no reader sees them before its map."""
    source = _data_path(part.store, chunk)
    partial = partial_name(data_name(number), token)
    # One that is longer than its map says is, or was, being appended to.
    can_share = link and part.store.size(data_name(chunk)) <= end
    if not (can_share and link_file(source, out.path(partial))):
        copy_file(source, target, partial, end)
    out.rename(partial, data_name(number))
    out.sync_names()


def _write_records(parts: list[_Part], out: Store, target: StrPath) -> list[str]:
    """Write the list of failures and the manifest; name the shares that it lacks."""
    before = _read(out, FAILURES_NAME).splitlines(keepends=True)
    # Each once: an earlier merge may have brought those of some parts.
    lines = dict.fromkeys(before)
    for part in parts:
        own = _read(part.store, FAILURES_NAME).splitlines(keepends=True)
        lines.update(dict.fromkeys(own))
    if list(lines) != before:
        out.write_atomically(FAILURES_NAME, b"".join(lines))
    with GulpDirectory(target) as directory:
        manifest = directory.manifest
    runs = list(manifest.runs)
    metainfo: dict[str, Any] = dict(manifest.metainfo)
    for part in parts:
        metainfo.update(part.manifest.metainfo)
        for run in part.manifest.runs:
            chunks = (part.numbers[n] for n in run.chunks if n in part.numbers)
            add_run(runs, replace(run, chunks=tuple(sorted(chunks))))
    files = {
        name: f"{crc32_of(data):08x}"
        for name in (LABELS_NAME, FAILURES_NAME)
        if (data := _read(out, name))
    }
    merged = Manifest(without_complete_shares(runs), metainfo, files)
    out.write_atomically(MANIFEST_NAME, dump_manifest(merged))
    return missing_shares(merged.runs)


def _read(store: Store, name: str) -> bytes:
    try:
        return store.read(name)
    except FileNotFoundError:
        return b""
