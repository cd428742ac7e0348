"""The directories that are merged, and the reasons to refuse them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.labels import (
    merge_labels,
    read_label_file,
    refuse_lost_labels,
    stored_labels,
)
from gulpio2.errors import DuplicateIdError, FormatError, IngestError
from gulpio2.format.gmeta import end_of
from gulpio2.format.journal import Copying
from gulpio2.format.layout import (
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    data_name,
    describe_shares,
    meta_name,
)
from gulpio2.format.manifest import Manifest, conflicting_runs
from gulpio2.format.other_settings import KnownSettings, warning_of_part
from gulpio2.storage.base import require_failures_file
from gulpio2.storage.beside_writers import read_settled_map, settled_listing
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import is_folder
from gulpio2.storage.removals_file import read_removals
from gulpio2.unfinished import (
    describe_lost,
    lost_chunks,
    open_settled,
    unfinished_copying,
)

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Collection, Container, Iterable, Mapping

    from gulpio2.format.manifest import Run
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "Part",
    "all_taken",
    "begin_merge",
    "chunks_of_ids",
    "content_of",
    "data_path",
    "length_of",
    "merged_labels",
    "merged_metainfo",
    "open_part",
    "present_chunks",
    "refuse_deleted",
    "refuse_other_plans",
    "refuse_repeats",
    "refuse_taken",
    "warnings_of_settings",
]


@dataclass(slots=True)
class Part:
    """A directory to be merged."""

    path: Path
    store: Store
    manifest: Manifest
    chunks: dict[int, tuple[str, ...]]
    """Ids by chunk number."""
    erased: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Spans of data files whose frames were erased, by chunk number."""
    numbers: dict[int, int] = field(default_factory=dict)
    """Number in the target by number in the part."""


def open_part(stack: contextlib.ExitStack, folder: StrPath) -> Part:
    """Look at a part, and keep writers away from it."""
    store, path = open_store(folder), Path(folder)
    if is_folder(path):
        stack.enter_context(store.lock(shared=True))  # until the merge has ended
    listing = settled_listing(store)
    names = frozenset(listing.names)
    # An interrupted one may have no chunk yet: it is refused below, as unfinished.
    if not {JOURNAL_NAME, MANIFEST_NAME} & names and not listing.chunks:
        raise FormatError(
            f"{path} is no gulp directory: it holds no chunk. "
            + (
                listing.describe_lone_data()
                or listing.describe_strays()
                or describe_shares(names, "give these in its place, each as a part")
                or "Leave it out, or give the folder that was ingested into"
            )
        )
    if (copying := unfinished_copying(store)) is not None:
        raise IngestError(
            f"the {copying.verb} into {path} was not finished. {copying.advice} before "
            "merging"
        )
    if JOURNAL_NAME in names:
        raise IngestError(
            f"the ingest into {path} was not finished. Finish it (gulp2 ingest ... "
            "--resume) before merging"
        )
    if (removals := read_removals(store)).deleted:
        raise IngestError(
            f"{path} holds deleted items, which a merge would not know of. Erase "
            "them with 'gulp2 compact' before merging, or merge a copy without them, "
            "as 'gulp2 repair' makes one"
        )
    with open_settled(path) as directory:
        by_chunk: dict[int, list[str]] = {number: [] for number in listing.chunks}
        for id_, number in directory.chunk_lookup.items():
            # Who writes a single chunk may have stored it since they were listed.
            by_chunk.setdefault(number, []).append(id_)
        manifest = directory.manifest
    # In the target nothing would tell that they are lost.
    if lost := lost_chunks(store, manifest.runs):
        raise FormatError(
            f"{describe_lost(path, lost)}. 'gulp2 repair' copies what is there to a "
            "new directory: merge the copy to do without them"
        )
    require_failures_file(store, manifest)
    chunks = {number: tuple(ids) for number, ids in sorted(by_chunk.items()) if ids}
    return Part(path, store, manifest, chunks, removals.erased)


def begin_merge(store: Store, parts: Iterable[str]) -> None:
    """Note in the target that these are being merged, as an ingest does by a journal.

    A check then tells of it, and no ingest is put between the chunks.
    """
    store.write_atomically(JOURNAL_NAME, Copying("merge", tuple(parts)).dump())


def chunks_of_ids(target: StrPath) -> dict[str, int]:
    """Give the chunk of each id; none where there is no chunk, which is no surprise."""
    listing = settled_listing(open_store(target))
    if not (listing.chunks or listing.meta_only):
        return {}
    with open_settled(target) as directory:
        return dict(directory.chunk_lookup)


def present_chunks(
    parts: list[Part], out: Store, lookup: Mapping[str, int]
) -> dict[tuple[Path, int], int]:
    """Find what an earlier merge had brought: there is the same map, byte by byte."""
    present = {}
    for part in parts:
        for chunk, ids in part.chunks.items():
            there = lookup.get(ids[0])
            if there is None:
                continue
            content, entries = read_settled_map(part.store, chunk)
            # Of the data only what the map speaks of was brought.
            if out.read(meta_name(there)) == content and (
                out.size(data_name(there)) >= end_of(entries)
            ):
                present[part.path, chunk] = there
    return present


def refuse_repeats(
    parts: list[Part],
    target: StrPath,
    lookup: Mapping[str, int],
    present: Mapping[tuple[Path, int], int],
) -> dict[str, Path]:
    """Give the directory that each id is in, or refuse where there are two."""
    brought = set(present.values())
    owners = {
        id_: Path(target) for id_, number in lookup.items() if number not in brought
    }
    for part in parts:
        ids = chain.from_iterable(part.chunks.values())
        refuse_taken(ids, part, owners, "Nothing was written. ")
    return owners


def all_taken(parts: list[Part], lookup: Mapping[str, int]) -> set[tuple[Path, int]]:
    """Find the chunks of which the target has an item of each id."""
    return {
        (part.path, chunk)
        for part in parts
        for chunk, ids in part.chunks.items()
        if all(id_ in lookup for id_ in ids)
    }


def refuse_taken(
    ids: Iterable[str], part: Part, owners: dict[str, Path], so_far: str = ""
) -> None:
    """Note the directory that ids are in, or refuse where they are in another too."""
    taken = []
    for id_ in ids:
        if id_ in owners:
            taken.append(id_)
        else:
            owners[id_] = part.path
    if taken:
        first, is_one = taken[0], len(taken) == 1
        more = "" if is_one else f", the first of {len(taken):,} that are there twice"
        raise DuplicateIdError(
            f"the id {first!r} is in {owners[first]} and in {part.path}{more}. {so_far}"
            f"Delete {'it' if is_one else 'them'} in one of them (gulp2 delete and "
            "gulp2 compact), or leave a directory out; or skip what is there "
            "(on_duplicate='skip', on the command line --on-duplicate skip)"
        )


def refuse_deleted(
    parts: list[Part],
    target: StrPath,
    present: Collection[tuple[Path, int]],
    there: Container[str],
) -> None:
    """Refuse to bring back what was deleted in the target, while that is known.

    An item that has another content under its id has been made since, and may come.
    One whose id is `there` does not: it is skipped.
    """
    gone: dict[str, set[str]] = {}
    for pairs in read_removals(open_store(target)).deleted.values():
        for id_, entry in pairs:
            gone.setdefault(id_, set()).add(content_of(entry))
    for part in parts:
        back: list[str] = []
        for chunk, ids in part.chunks.items():
            if (part.path, chunk) in present or gone.keys().isdisjoint(ids):
                continue
            for id_, entry in read_settled_map(part.store, chunk)[1].items():
                if id_ not in gone or id_ in there:
                    continue
                if content_of(entry) in gone[id_]:
                    back.append(id_)
        if back:
            more = f", and {len(back) - 1} more of it," if back[1:] else ""
            raise IngestError(
                f"the item {back[0]!r} of {part.path}{more} was deleted in {target}, "
                "and merging would bring it back. Nothing was written. Leave the part "
                "out, or merge a copy without what was deleted (gulp2 delete, then "
                "gulp2 repair). To have it back, run 'gulp2 compact' on the target "
                "before merging, which forgets what was deleted"
            )


def content_of(entry: Mapping[str, Any]) -> str:
    """Give what an entry says of an item, wherever in a data file its frames are."""
    extras = {**(entry.get("gulp2") or {})}
    extras.pop("check", None)
    sizes = [[pad, length] for _, pad, length in entry["frame_info"]]
    return json.dumps([sizes, entry["meta_data"], extras], sort_keys=True)


def refuse_other_plans(manifests: Iterable[tuple[Path, Manifest]]) -> None:
    """Refuse shares that are not of one whole: items may be in none of them."""
    told = [(path, run) for path, manifest in manifests for run in manifest.runs]
    if found := conflicting_runs([run for _, run in told]):
        (one, one_run), (other, other_run) = (told[index] for index in found)
        if one_run.plan == other_run.plan and one_run.shares and other_run.shares:
            counts = f"{one_run.shares.count} and {other_run.shares.count} shares"
            raise IngestError(
                f"{one} and {other} are of an ingest that was cut into {counts}, so "
                "that items may be in neither, or in both. Nothing was written. Merge "
                "all shares of one of the two cuts, and leave those of the other out"
            )
        raise IngestError(
            f"{one} and {other} hold shares of one source that do not fit together: of "
            "other items, or of chunks of another size, so that items may be in "
            "neither. Nothing was written. Ingest one of them again with the items and "
            "the --videos-per-chunk of the other"
        )


def merged_labels(parts: list[Part], target: StrPath) -> dict[str, int]:
    """Join the labels of all, or refuse where they contradict each other."""
    for folder in (target, *(part.path for part in parts)):
        refuse_lost_labels(folder)
    folders = [str(target), *(str(part.path) for part in parts)]
    read = {folder: read_label_file(folder) for folder in folders}
    if not any(read.values()):
        return {}
    labels: dict[str, int] = {}
    before: list[str] = []
    for folder, own in read.items():
        # Where there is no such file, its items may have numbers all the same.
        found = own or stored_labels(folder)
        labels = merge_labels(
            labels,
            found,
            where=" or ".join(before),
            other=f"that of {folder}" if own else f"the metadata of {folder}",
            advice="ingest one of them anew into a folder with a copy of the other's "
            f"{LABELS_NAME}, or keep them apart",
        )
        if found:
            before.append(f"{LABELS_NAME if own else 'metadata'} of {folder}")
    return labels


def merged_metainfo(manifests: Iterable[tuple[Path, Manifest]]) -> dict[str, Any]:
    """Join the metainfo of all, or refuse where they contradict each other."""
    merged: dict[str, Any] = {}
    owners: dict[str, Path] = {}
    for path, manifest in manifests:
        for key, value in manifest.metainfo.items():
            # As JSON: there a NaN is what it is elsewhere, and true is not 1.
            own = json.dumps(value, sort_keys=True)
            if own != json.dumps(merged.setdefault(key, value), sort_keys=True):
                raise IngestError(
                    f"{owners[key]} and {path} have another {key!r} each in their "
                    "metainfo, which holds for all items of a directory: names of "
                    "classes may say what stored numbers mean. Nothing was written. "
                    "Ingest one of them anew into another folder, with the other's "
                    "value, or keep them apart"
                )
            owners.setdefault(key, path)
    return merged


def length_of(part: Part, chunk: int, entries: Mapping[str, Any]) -> int:
    """Give where a data file ends: with what its map, or a compaction, speaks of."""
    erased = part.erased.get(chunk, ())
    return max([end_of(entries), *(stop for _, stop in erased)])


def data_path(store: Store, number: int) -> Path:
    """Give the path of a data file."""
    return Path(store.path(data_name(number)))


def warnings_of_settings(
    parts: Iterable[Part],
    target: StrPath,
    runs: Iterable[Run],
    present: Collection[tuple[Path, int]],
) -> list[str]:
    """Say of which parts frames come that were made with other settings.

    Those of the target are told by its `runs`.
    """
    known = KnownSettings()
    for run in runs:
        known.add(run)
    told = []
    for part in parts:
        coming = {n for n in part.chunks if (part.path, n) not in present}
        changes = [
            change
            for run in part.manifest.runs
            if not coming.isdisjoint(run.chunks)
            for change in known.changes(run.options, run.encoder)
        ]
        if changes:
            each = {str(change): change for change in changes}.values()
            told.append(warning_of_part(each, part.path, target))
        for run in part.manifest.runs:
            known.add(run)
    return told
