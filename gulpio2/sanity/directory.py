"""Names, maps, and the files beside the chunks."""

from __future__ import annotations

import contextlib
import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gulpio2.errors import MetaFileError, StorageError
from gulpio2.format.changed_places import note_changed_places
from gulpio2.format.checked_json import OTHER_FORM, has_own_form
from gulpio2.format.checks import check_ids, check_names, note_gaps
from gulpio2.format.label_checks import check_labels, note_label_numbers
from gulpio2.format.layout import (
    FAILURES_NAME,
    INDEX_NAME,
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    REMOVALS_NAME,
    data_name,
    list_chunks,
    meta_name,
)
from gulpio2.format.map_checks import (
    MapFindings,
    check_deleted,
    check_failures_file,
    check_manifest,
    check_map,
    has_no_items,
    note_of_manifest,
)
from gulpio2.format.problems import Problem
from gulpio2.format.removals import Removals, merge_spans
from gulpio2.format.salvage import gaps_between
from gulpio2.sanity.data_files import DataFileCheck
from gulpio2.sanity.deleted import not_shared, overwritten
from gulpio2.sanity.index import check_index_of
from gulpio2.sanity.report import CheckReport, Findings, unreadable
from gulpio2.storage.beside_writers import listing_to_read, settled_map
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import is_folder
from gulpio2.storage.refusals import broken_link, local_path
from gulpio2.storage.removals_file import read_removals
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.format.checks import Record
    from gulpio2.format.layout import Listing
    from gulpio2.types import Progress, StrPath

__all__ = ["check_directory"]

_State: TypeAlias = tuple[int, ...] | None

# How often a chunk is looked at that others change meanwhile.
_ATTEMPTS = 3


def check_directory(
    path: StrPath,
    *,
    deep: bool = False,
    decode: bool = False,
    progress: Progress | None = None,
) -> CheckReport:
    """Check a directory, also one that `GulpDirectory` refuses to open.

    Parameters
    ----------
    path : str or path
        The directory.
    deep : bool, optional
        Also check the content of every frame: its checksum, or, where it has none
        because GulpIO2 wrote it, that it can be decoded. Otherwise only the beginning
        and the end of every record are looked at.
    decode : bool, optional
        Also decode every frame, which tells of those that were damaged before they were
        stored. This is a deep check, too.
    progress : callable, optional
        Told of items, frames, bytes of data files and problems (as ``failures``) as
        they come.

    Returns
    -------
    CheckReport
        Problems and counts. A directory without a chunk is a problem.

    Raises
    ------
    StorageError
        There is no such directory, or it cannot be listed.

    Notes
    -----
    Data files are read in blocks of some MiB; maps are read as a whole. A deep check
    reads every byte once, an ordinary one may pass over the inside of long records.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("out", num_items=3, num_frames=8)
    >>> report = check_directory("out", deep=True)
    >>> report.ok, report.items, report.frames
    (True, 3, 24)
    """
    if path != "" and not is_folder(path):  # an empty one the store refuses
        local_path(path, "check")
        raise StorageError(
            errno.ENOENT,
            f"there is no directory {path} to check: give the folder that holds the "
            "data_N.gulp files",
        )
    report = CheckReport(str(path), deep or decode, decode)
    findings = Findings(report, progress or no_progress)
    _DirectoryCheck(LocalStore(path), findings).run()
    findings.finish()
    return report


class _DirectoryCheck:
    """The check of one directory."""

    def __init__(self, store: LocalStore, findings: Findings) -> None:
        self.store = store
        self.findings = findings
        self.removals = Removals()
        # State of `deleted.json`, from before it was read.
        self.removals_state: _State = None
        # The numbers of labels, and the state of the file that they were read from.
        self.labels: dict[str, int] | None = None
        self.labels_state: _State = None
        # Bytes of each data file, and bytes up to the end of its last record.
        self.lengths: dict[int, tuple[int, int]] = {}

    def run(self) -> None:
        """Check everything."""
        listing, _ = listing_to_read(self.store)
        problems = check_names(listing)
        if self._may_have_no_chunk(listing.names):
            problems = [each for each in problems if each.code != "no-chunks"]
        copies = self._copied_maps(listing)
        self.findings.add([copies.get(each.file, each) for each in problems])
        try:
            self._read_removals()
        except MetaFileError as cause:
            text = str(cause).removeprefix(f"{self.store.path(REMOVALS_NAME)}: ")
            problem = Problem("bad-removals", text, REMOVALS_NAME)
            self.findings.add([problem])
        except OSError as cause:
            self.findings.add([unreadable(REMOVALS_NAME, cause)])
        else:
            data = self._read(REMOVALS_NAME)
            if data is not None and not has_own_form(data):
                problem = Problem("bad-removals", OTHER_FORM, REMOVALS_NAME)
                self.findings.add([problem])
        ids_by_chunk: dict[int, list[str]] = {}
        complete = frozenset(listing.chunks)  # a tuple is searched from its beginning
        numbers = {*complete, *listing.meta_only}
        for number in sorted(n for n in numbers if meta_name(n) not in copies):
            ids_by_chunk[number] = self._check_chunk(
                number, has_data=number in complete
            )
        self.findings.add(check_ids(ids_by_chunk), note_changed_places(self.lengths))
        labels, failures = self._read(LABELS_NAME), self._read(FAILURES_NAME)
        files = {LABELS_NAME: labels, FAILURES_NAME: failures}
        data = self._read(MANIFEST_NAME)
        # The manifest may tell of chunks that have come since the names were listed.
        names = {*listing.names, *self.store.names()}
        listing = list_chunks(names)
        if data is not None:
            there = {name: read for name, read in files.items() if read is not None}
            unfinished = JOURNAL_NAME in names
            self.findings.add(
                check_manifest(data, listing.numbers, there, is_unfinished=unfinished),
                note_of_manifest(data, listing.numbers, labels),
            )
        elif {LABELS_NAME, FAILURES_NAME} & {*names} and not (
            {MANIFEST_NAME, JOURNAL_NAME} & {*names}
        ):
            self._note_no_manifest()
        told = {problem.code for problem in self.findings.report.problems}
        if told.isdisjoint(("missing-chunk", "unfinished-ingest")):
            self.findings.add([], note_gaps(listing.numbers))
        if labels is not None:
            self.findings.add(check_labels(labels))
        if failures is not None:
            self.findings.add(*check_failures_file(failures))
        if self.findings.report.deep and INDEX_NAME in names:
            present = {id_ for ids in ids_by_chunk.values() for id_ in ids}
            check_index_of(self.store, self.findings, present)

    def _note_no_manifest(self) -> None:
        """Tell of a manifest that is lost; GulpIO2 0.0.4 writes labels without one."""
        report = self.findings.report
        if report.frames > report.frames_without_checksum:
            text = (
                "is not there, and an ingest writes it together with the labels, or "
                "the list of failures. Frames can be read without it; but it alone "
                "tells of chunks that are lost. Put it back, if there was one"
            )
            self.findings.add([], [Problem("no-manifest", text, MANIFEST_NAME)])

    def _copied_maps(self, listing: Listing) -> dict[str, Problem]:
        """Find maps without a data file that are copies of another map.

        Else each of their items would be said to be there twice.
        """
        copies: dict[bytes, list[str]] = {}
        found: dict[str, Problem] = {}
        for name in map(meta_name, listing.meta_only):
            with contextlib.suppress(OSError):  # said where it is read to be checked
                copies.setdefault(self.store.read(name), []).append(name)
        sizes = {len(data) for data in copies} - {len("{}")}
        for other in map(meta_name, listing.chunks if sizes else ()):
            with contextlib.suppress(OSError):
                if self.store.size(other) not in sizes:
                    continue
                text = (
                    f"is a copy of {other} without a data file, so that the directory "
                    "cannot be opened. Remove it"
                )
                for name in copies.get(self.store.read(other), ()):
                    found[name] = Problem("map-without-data", text, name)
        return found

    def _check_chunk(self, number: int, *, has_data: bool) -> list[str]:
        """Check a chunk, and again where somebody has changed it meanwhile."""
        whole, all_of = self.findings, self.findings.report
        try:
            for _ in range(_ATTEMPTS):
                before = [*self._state_of(number), self.removals_state]
                part = CheckReport(all_of.path, all_of.deep, all_of.decoded)
                self.findings = Findings(part, whole.progress)
                found = self._check_map(number)
                if has_data:
                    self.findings.report.chunks += 1
                    self._check_data(number, found)
                after = [*self._state_of(number), self._state(REMOVALS_NAME)]
                if self.findings.report.ok or after == before:
                    break
                with contextlib.suppress(MetaFileError, OSError):  # said above
                    self._read_removals()
            else:
                text = (
                    f"was changed while it was checked, {_ATTEMPTS} times: what is "
                    "found may be of a moment in between. Check again when nobody "
                    "writes to the directory"
                )
                self.findings.add([], [Problem("changing", text, data_name(number))])
            whole.take(self.findings)
        finally:
            self.findings = whole
        whole.progress(items=len(found.ids))
        return found.ids

    def _read_removals(self) -> None:
        """Read what was deleted."""
        self.removals_state = self._state(REMOVALS_NAME)
        self.removals = read_removals(self.store)

    def _labels_now(self) -> dict[str, int] | None:
        """Give the numbers of labels; None where there are none, or they are damaged.

        An ingest that is at work writes new ones before the maps that have them.
        """
        state = self._state(LABELS_NAME)
        if state != self.labels_state:
            self.labels, self.labels_state = None, state
            with contextlib.suppress(OSError):  # said where it is read to be checked
                data = self.store.read(LABELS_NAME)
                self.labels = None if check_labels(data) else json.loads(data)
        return self.labels

    def _state_of(self, number: int) -> list[_State]:
        """Give what changes with a chunk."""
        return [self._state(meta_name(number)), self._state(data_name(number))]

    def _state(self, name: str) -> _State:
        """Give what changes with a file; None where there is none."""
        try:
            found = Path(self.store.path(name)).stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _may_have_no_chunk(self, names: Iterable[str]) -> bool:
        """Tell whether the directory has no items, and so rightly no chunk."""
        if {JOURNAL_NAME, FAILURES_NAME}.intersection(names):
            return False
        with contextlib.suppress(OSError):  # said where it is read to be checked
            return has_no_items(self.store.read(MANIFEST_NAME))
        return False

    def _read(self, name: str) -> bytes | None:
        """Read a small file; None where it is not there, or cannot be read."""
        try:
            return self.store.read(name)
        except OSError as cause:
            is_gone = isinstance(cause, FileNotFoundError)
            if not is_gone or broken_link(self.store.path(name)):
                self.findings.add([unreadable(name, cause)])
            return None

    def _check_map(self, number: int) -> MapFindings:
        name = meta_name(number)
        try:
            found = check_map(settled_map(self.store, number), name)
        except OSError as cause:
            found = MapFindings(problems=[unreadable(name, cause)])
        labels = self._labels_now() if found.labels else None
        others = note_label_numbers(found.labels, labels, name) if labels else []
        self.findings.add(found.problems, [*found.notes, *others])
        report = self.findings.report
        report.items += len(found.ids)
        report.frames += len(found.records)
        report.frames_without_checksum += sum(
            record.crc32 is None for record in found.records
        )
        return found

    def _check_data(self, number: int, found: MapFindings) -> None:
        name = data_name(number)
        hidden = check_deleted(self._hidden(number, found), REMOVALS_NAME)
        self.findings.add(hidden.problems)
        try:
            size = self.store.size(name)
        except OSError as cause:
            self.findings.add([unreadable(name, cause)])
            return
        self.findings.report.num_bytes += size
        if not found.ids and found.problems:
            self.findings.progress(num_bytes=size)
            return  # the map is lost, which says nothing about the data
        is_whole = not {*self.removals.deleted, *self.removals.erased} & {number}
        if found.records and is_whole:
            self.lengths[number] = size, max(_span(each)[1] for each in found.records)
        erased = list(self.removals.erased.get(number, []))
        intact: list[Record] = []
        zeroed: list[Record] = []
        deleted = not_shared(hidden.records, found.records) if hidden.records else []
        over = overwritten(deleted, found.records) if deleted else set()
        for place, record in enumerate(deleted):
            if place not in over:
                is_zeroed = self._is_zeroed(name, size, record)
                (zeroed if is_zeroed else intact).append(record)
        if over or zeroed:
            text = (
                "has lost the frames of deleted items, and is not noted as compacted: "
                "that is at work, or was interrupted, or another program has written "
                "the chunk anew. If none is at work, run `gulp2 compact` (again)"
            )
            self.findings.add([Problem("unfinished-compaction", text, name)])
            # It left holes where nothing is now, whatever was noted before.
            holes = merge_spans([*erased, *map(_span, zeroed)])
            filled = map(_span, [*found.records, *intact])
            erased = gaps_between([*filled, *gaps_between(holes, size)], size)
        hidden_at = frozenset(record.loc for record in intact)
        DataFileCheck(self.store, name, size, self.findings, hidden_at).run(
            [*found.records, *intact], erased
        )

    def _hidden(
        self, number: int, found: MapFindings
    ) -> list[tuple[str, dict[str, Any]]]:
        """Give deleted items, without those whose deletion was interrupted."""
        deleted = self.removals.deleted.get(number, [])
        there: dict[str, list[list[int]]] = {id_: [] for id_, _ in deleted}
        for record in found.records:
            if record.item in there:
                there[record.item].append([record.loc, record.pad, record.length])
        return self.removals.hidden_items(number, there.items())

    def _is_zeroed(self, name: str, size: int, deleted: Record) -> bool:
        """Tell whether a frame is erased, by its first bytes."""
        try:
            return deleted.loc >= size or not any(
                self.store.read_at(name, deleted.loc, min(2, deleted.length))
            )
        except OSError:  # said where the file is looked at
            return False


def _span(record: Record) -> tuple[int, int]:
    return record.loc, record.loc + record.length
