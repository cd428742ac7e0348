"""Is a directory whole? Runs the checks of the format over its files."""

from __future__ import annotations

import errno
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError, MetaFileError, StorageError
from gulpio2.format.checks import (
    HEAD_BYTES,
    Problem,
    Record,
    check_checksum,
    check_head,
    check_ids,
    check_names,
    check_spans,
    check_tail,
    undecodable,
)
from gulpio2.format.entry import frame_crc32
from gulpio2.format.layout import (
    FAILURES_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    REMOVALS_NAME,
    data_name,
    meta_name,
)
from gulpio2.format.map_checks import (
    MapFindings,
    check_deleted,
    check_failures_file,
    check_labels,
    check_manifest,
    check_map,
)
from gulpio2.format.plan import plan_reads
from gulpio2.format.removals import Removals
from gulpio2.removal import read_removals
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.storage.base import Store
    from gulpio2.types import JsonValue, Progress, StrPath

__all__ = ["CheckReport", "check_directory", "original_tests"]

# Bytes read at once, unless a single record is longer.
_BLOCK = 4 * 1024 * 1024
# Bytes. No frame that is decoded is longer; of a longer record, which a damaged map can
# speak of, the checksum alone is computed, piece by piece.
_LONGEST = 64 * 1024 * 1024


@dataclass(slots=True)
class CheckReport:
    """What a check went through, and what it found."""

    path: str
    """The directory."""
    deep: bool
    """Whether the content of every frame was checked as well."""
    chunks: int = 0
    """Chunks that have both files."""
    items: int = 0
    """Entries in their maps."""
    frames: int = 0
    """Frames that the entries speak of."""
    num_bytes: int = 0
    """Bytes of the data files."""
    frames_without_checksum: int = 0
    """Frames of which not every changed byte can be found."""
    problems: list[Problem] = field(default_factory=list)
    """Faults, by file."""
    notes: list[Problem] = field(default_factory=list)
    """What is worth knowing and no fault."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> dict[str, JsonValue]:
        """Give the report as JSON values."""
        return {
            "path": self.path,
            "ok": self.ok,
            "deep": self.deep,
            "chunks": self.chunks,
            "items": self.items,
            "frames": self.frames,
            "bytes": self.num_bytes,
            "frames_without_checksum": self.frames_without_checksum,
            "problems": [problem.to_json() for problem in self.problems],
            "notes": [note.to_json() for note in self.notes],
        }

    def __str__(self) -> str:
        """Sum the check up on one line."""
        count = len(self.problems)
        verdict = f"{count} problem{'s' * (count != 1)}" if count else "no problem"
        return (
            f"{verdict} in {self.frames} frames of {self.items} items in {self.chunks} "
            f"chunks ({self.num_bytes / 1e6:.1f} MB)"
        )


def check_directory(
    path: StrPath, *, deep: bool = False, progress: Progress | None = None
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
    if not Path(path).is_dir():
        raise StorageError(
            errno.ENOENT,
            f"there is no directory {path} to check: give the folder that holds the "
            "data_N.gulp files",
        )
    report = CheckReport(str(path), deep)
    _Checker(open_store(path), report, progress or _no_progress).run()
    return report


def original_tests(report: CheckReport) -> list[dict[str, object]]:
    """Sort the problems of a report into the four tests of GulpIO2, and a fifth.

    Parameters
    ----------
    report : CheckReport
        Of any directory.

    Returns
    -------
    list of dict
        With ``message`` and ``failures``, as
        `gulpio2.sanity_utils.check_for_failures` prints them. The fifth, with
        everything that GulpIO2 did not look for, is there only if it failed.
    """
    folder = Path(report.path)
    wrong_size = {"data-too-short", "data-too-long", "empty-data-file"}
    tests: list[dict[str, object]] = []
    left = list(report.problems)
    for message, codes in (
        ("Check for empty meta files", {"empty-map-file"}),
        ("Check for empty data files", {"empty-data-file"}),
        ("Check data file size equals size in meta file", wrong_size),
        ("Check presence of duplicate ids", {"duplicate-id"}),
    ):
        found = [problem for problem in report.problems if problem.code in codes]
        left = [problem for problem in left if problem.code not in codes]
        # 0.0.4 named ids in the last test, and files by their paths in the others.
        names = [p.item or str(folder / p.file) for p in found]
        tests.append({"message": message, "failures": list(dict.fromkeys(names))})
    if left:
        failures = [str(problem) for problem in left]
        tests.append({"message": "Check everything else", "failures": failures})
    return tests


def _no_progress(**_counts: int) -> None:
    """Take no note."""


class _Probe(NamedTuple):
    """A part of a record to look at."""

    offset: int
    length: int
    record: Record
    part: str
    """"head", "tail" or "whole"."""


class _Checker:
    """One check under way."""

    def __init__(self, store: Store, report: CheckReport, progress: Progress) -> None:
        self.store = store
        self.report = report
        self.progress = progress
        self.removals = Removals()

    def run(self) -> None:
        """Check everything."""
        listing, problems = check_names(self.store.names())
        self._found(problems)
        try:
            self.removals = read_removals(self.store)
        except (MetaFileError, OSError) as cause:
            self._found([Problem("bad-removals", str(cause), REMOVALS_NAME)])
        ids_by_chunk: dict[int, list[str]] = {}
        for number in sorted((*listing.chunks, *listing.meta_only)):
            findings = self._check_map(meta_name(number))
            ids_by_chunk[number] = findings.ids
            if number in listing.chunks:
                self.report.chunks += 1
                self._check_data(number, findings)
            self.progress(items=len(findings.ids))
        self._found(check_ids(ids_by_chunk))
        numbers = {*listing.chunks, *listing.data_only, *listing.meta_only}
        if (data := self._read(MANIFEST_NAME)) is not None:
            self._found(check_manifest(data, numbers, self._side_files()))
        if (data := self._read(LABELS_NAME)) is not None:
            self._found(check_labels(data))
        if (data := self._read(FAILURES_NAME)) is not None:
            problems, notes = check_failures_file(data)
            self._found(problems)
            self.report.notes += notes

    def _side_files(self) -> dict[str, bytes]:
        """Read the files whose checksums are in the manifest."""
        files = {}
        for name in (LABELS_NAME, FAILURES_NAME):
            if (data := self._read(name)) is not None:
                files[name] = data
        return files

    def _found(self, problems: list[Problem]) -> None:
        if problems:
            self.report.problems += problems
            self.progress(failures=len(problems))

    def _read(self, name: str) -> bytes | None:
        """Read a small file; None where it is not there, or cannot be read."""
        try:
            return self.store.read(name)
        except FileNotFoundError:
            return None
        except OSError as cause:
            self._found([_unreadable(name, cause)])
            return None

    def _check_map(self, name: str) -> MapFindings:
        data = self._read(name)
        findings = MapFindings() if data is None else check_map(data, name)
        self._found(findings.problems)
        report = self.report
        report.notes += findings.notes
        report.items += len(findings.ids)
        report.frames += len(findings.records)
        report.frames_without_checksum += sum(
            record.crc32 is None for record in findings.records
        )
        return findings

    # --- data files ----------------------------------------------------------------

    def _check_data(self, number: int, findings: MapFindings) -> None:
        name = data_name(number)
        erased = self.removals.erased.get(number, [])
        # Deleted items are in no map; what is in one again was not deleted after all.
        hidden = check_deleted(
            (
                pair
                for pair in self.removals.deleted.get(number, [])
                if pair[0] not in findings.ids
            ),
            REMOVALS_NAME,
        )
        self._found(hidden.problems)
        try:
            size = self.store.size(name)
        except OSError as cause:
            self._found([_unreadable(name, cause)])
            return
        self.report.num_bytes += size
        if not findings.ids and findings.problems:
            self.progress(num_bytes=size)
            return  # the map is lost, which says nothing about the data
        records, problems = check_spans(
            [*findings.records, *hidden.records], size, name, erased
        )
        self._found(problems)
        if self.report.deep:
            self._check_erased(name, erased)
        deep, shallow = self._split(records, size, name)
        probes = [
            *(_whole(record) for record in deep if record.length <= _LONGEST),
            *(probe for record in shallow for probe in _ends(record)),
        ]
        for record in deep:
            if record.length > _LONGEST:
                probes += _ends(record)
                self._check_long(record, name)
        spans = [(probe.offset, probe.length) for probe in probes]
        position = 0
        for read in plan_reads(spans, max_read=_BLOCK):
            members = [probes[member] for member in read.members]
            self._check_block(name, read.offset, read.length, members)
            stop = max(position, read.offset + read.length)
            self.progress(
                frames=sum(probe.part != "tail" for probe in members),
                num_bytes=stop - position,
            )
            position = stop
        self.progress(num_bytes=size - position)

    def _split(
        self, records: list[Record], size: int, name: str
    ) -> tuple[list[Record], list[Record]]:
        """Say which records to read as a whole, and of which to read the ends.

        A crafted map can have every record cover the whole file. Overlaps are problems
        anyway, so the overlapping ones are read only up to the size of the file.
        """
        if not self.report.deep:
            return [], records
        deep: list[Record] = []
        shallow: list[Record] = []
        end, spare = 0, size
        for record in records:
            spare -= record.length if record.loc < end else 0
            end = max(end, record.loc + record.length)
            unknown = record.crc32 is None and record.length > _LONGEST
            (shallow if spare < 0 or unknown else deep).append(record)
        if shallow:
            text = (
                f"{len(shallow)} records that overlap, or that are too long for a "
                "frame, were checked at their ends alone"
            )
            self.report.notes.append(Problem("not-checked", text, name))
        return deep, shallow

    def _check_block(
        self, name: str, offset: int, length: int, probes: list[_Probe]
    ) -> None:
        try:
            block = memoryview(self.store.read_at(name, offset, length))
        except OSError as cause:
            self._found([_unreadable(name, cause, offset)])
            return
        for probe in probes:
            start = probe.offset - offset
            part = block[start : start + probe.length]
            record = probe.record
            if probe.part != "tail":
                self._found(check_head(record, part[:HEAD_BYTES], name))
            if probe.part != "head":
                self._found(check_tail(record, part[-record.pad - 2 :], name))
            if probe.part == "whole":
                jpeg = part[: record.length - record.pad]
                self._found(_check_content(record, jpeg, name))

    def _check_erased(self, name: str, spans: list[tuple[int, int]]) -> None:
        """Check that erased spans hold zeros."""
        for start, stop in spans:
            for offset in range(start, stop, _BLOCK):
                length = min(_BLOCK, stop - offset)
                try:
                    block = self.store.read_at(name, offset, length)
                except OSError as cause:
                    self._found([_unreadable(name, cause, offset)])
                    return
                if rest := block.lstrip(b"\0"):
                    where = offset + length - len(rest)
                    text = "is not zero, in bytes whose frames were deleted and erased"
                    self._found([Problem("not-erased", text, name, offset=where)])
                    return

    def _check_long(self, record: Record, name: str) -> None:
        """Compute the checksum of a record in pieces."""
        crc32 = 0
        stop = record.loc + record.length - record.pad
        for offset in range(record.loc, stop, _BLOCK):
            try:
                piece = self.store.read_at(name, offset, min(_BLOCK, stop - offset))
            except OSError as cause:
                self._found([_unreadable(name, cause, offset)])
                return
            crc32 = zlib.crc32(piece, crc32)
        self._found(check_checksum(record, crc32, name))


def _whole(record: Record) -> _Probe:
    return _Probe(record.loc, record.length, record, "whole")


def _ends(record: Record) -> Iterator[_Probe]:
    num_bytes = record.length - record.pad
    yield _Probe(record.loc, min(HEAD_BYTES, num_bytes), record, "head")
    yield _Probe(record.loc + num_bytes - 2, record.pad + 2, record, "tail")


def _check_content(record: Record, jpeg: memoryview, name: str) -> list[Problem]:
    """Check a frame by its checksum, or by decoding it where it has none."""
    if record.crc32 is not None:
        return check_checksum(record, frame_crc32(jpeg), name)
    try:
        decode_frame(jpeg)
    except CorruptFrameError as cause:
        return [undecodable(record, str(cause), name)]
    return []


def _unreadable(name: str, cause: OSError, offset: int | None = None) -> Problem:
    text = f"cannot be read: {cause.strerror or cause}"
    return Problem("unreadable-file", text, name, offset=offset)
