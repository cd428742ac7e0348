"""The records in a data file, read in blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.codecs.frame_sizes import SizeReader, describe_sizes, why_not_alike
from gulpio2.codecs.jpeg import decode_frame
from gulpio2.errors import CorruptFrameError
from gulpio2.format.checks import (
    AGAIN,
    HEAD_BYTES,
    Record,
    check_checksum,
    check_head,
    check_spans,
    check_tail,
    undecodable,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.plan import plan_reads
from gulpio2.format.problems import Problem
from gulpio2.format.removals import merge_spans
from gulpio2.sanity.report import Findings, unreadable
from gulpio2.threads import default_threads, work_together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.codecs.frame_sizes import Size
    from gulpio2.storage.base import Store

__all__ = ["DataFileCheck"]

# Bytes read at once, unless a single record is longer.
_BLOCK = 4 * 1024 * 1024
_ZEROS = bytes(_BLOCK)
# Records whose parts are planned at once.
_BATCH = 10_000
# Bytes. No frame that is decoded is longer. A damaged map can speak of longer records:
# of these the checksum alone is computed, piece by piece.
_LONGEST = 64 * 1024 * 1024


class _Probe(NamedTuple):
    """A part of a record to look at."""

    offset: int
    length: int
    record: Record
    part: str
    """"head", "tail" or "whole"."""


@dataclass(frozen=True, slots=True)
class DataFileCheck:
    """The check of one data file."""

    store: Store
    """Where it is."""
    name: str
    """Its name."""
    size: int
    """Its bytes."""
    findings: Findings
    """Takes what is found."""
    deleted: frozenset[int] = frozenset()
    """Offsets of the records whose items are deleted, and not yet erased."""
    _sizes: _SizesByItem = field(default_factory=lambda: _SizesByItem())

    def run(self, records: list[Record], erased: list[tuple[int, int]]) -> None:
        """Check spans and content.

        Parameters
        ----------
        records : list of Record
            What must be in the file.
        erased : list of (int, int)
            Spans that must be zero instead.
        """
        inside, problems = check_spans(records, self.size, self.name, erased)
        self.findings.add(self._with_erased_end(problems, erased))
        told = self._check_erased(erased) if self.findings.report.deep else 0
        deep, shallow = self._split(inside)
        position = 0
        for chosen, parts in ((deep, self._whole_or_ends), (shallow, _ends)):
            for first in range(0, len(chosen), _BATCH):
                batch = chosen[first : first + _BATCH]
                probes = [probe for record in batch for probe in parts(record)]
                num_bytes, position = self._check_probes(probes, position)
                told += num_bytes
        self.findings.add([], self._sizes.notes(self.name))
        self.findings.progress(num_bytes=max(0, self.size - told))

    def _with_erased_end(
        self, problems: list[Problem], erased: list[tuple[int, int]]
    ) -> list[Problem]:
        """Correct the problems of the end of the file, which may have been erased."""
        start, end = max(erased, default=(0, 0))
        kept = [
            problem
            for problem in problems
            if problem.code != "data-too-long"
            or problem.offset != start
            or end < self.size
        ]
        is_short = {"data-too-short", "empty-data-file"} & {p.code for p in kept}
        if start <= self.size < end and not is_short:
            text = (
                f"holds {self.size} bytes, and was erased up to byte {end}: it was "
                "cut. Frames that the map knows are not concerned"
            )
            kept.append(Problem("data-too-short", text, self.name, offset=self.size))
        return kept

    def _whole_or_ends(self, record: Record) -> Iterator[_Probe]:
        """Give the parts to read of a record whose content is checked."""
        if record.length <= _LONGEST:
            yield _Probe(record.loc, record.length, record, "whole")
            return
        yield from _ends(record)
        self._check_long(record)

    def _check_probes(self, probes: list[_Probe], position: int) -> tuple[int, int]:
        """Check parts of records; count new bytes, and give how far they go.

        Holes between them are told of by themselves.
        """
        told = 0
        spans = [(probe.offset, probe.length) for probe in probes]
        for read in plan_reads(spans, max_read=_BLOCK):
            members = [probes[member] for member in read.members]
            self._check_block(read.offset, read.length, members)
            stop = read.offset + read.length
            num_bytes = max(0, stop - max(position, read.offset))
            self.findings.progress(
                frames=sum(probe.part != "tail" for probe in members),
                num_bytes=num_bytes,
            )
            told, position = told + num_bytes, max(position, stop)
        return told, position

    def _split(self, records: list[Record]) -> tuple[list[Record], list[Record]]:
        """Divide records into those to read as a whole and those to read at the ends.

        A crafted map can have every record cover the whole file. Overlaps are problems
        anyway, so the overlapping ones are read only up to the size of the file.
        """
        if not self.findings.report.deep:
            return [], records
        deep: list[Record] = []
        shallow: list[Record] = []
        end, spare = 0, self.size
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
            self.findings.add([], [Problem("not-checked", text, self.name)])
        return deep, shallow

    def _check_block(self, offset: int, length: int, probes: list[_Probe]) -> None:
        block = memoryview(self._read(offset, length))
        if not block:
            return
        found: list[list[Problem]] = [[] for _ in probes]
        shares = enumerate(probes)

        def work() -> None:
            for place, probe in shares:
                start = probe.offset - offset
                found[place] = self._check_part(
                    probe, block[start : start + probe.length]
                )

        decodes = self.findings.report.decoded or any(
            probe.part == "whole" and probe.record.crc32 is None for probe in probes
        )
        work_together(work, default_threads() - 1 if decodes else 0)
        for probe, problems in zip(probes, found, strict=True):
            self._add(probe.record, problems)
            record = probe.record
            if (
                probe.part == "whole"
                and not problems
                and record.loc not in self.deleted
            ):
                start = probe.offset - offset
                stop = start + record.length - record.pad
                self._sizes.add(record, block[start:stop])

    def _check_part(self, probe: _Probe, part: memoryview) -> list[Problem]:
        record, problems = probe.record, []
        if probe.part != "tail":
            problems += check_head(record, part[:HEAD_BYTES], self.name)
        if probe.part != "head":
            problems += check_tail(record, part[-record.pad - 2 :], self.name)
        if probe.part == "whole":
            jpeg = part[: record.length - record.pad]
            problems += self._check_content(record, jpeg)
        return problems

    def _check_content(self, record: Record, jpeg: memoryview) -> list[Problem]:
        """Check a frame by its checksum, and by decoding it where it has none."""
        if record.crc32 is not None:
            problems = check_checksum(record, crc32_of(jpeg), self.name)
            if problems or not self.findings.report.decoded:
                return problems
        try:
            decode_frame(jpeg)
        except CorruptFrameError as cause:
            return [undecodable(record, str(cause), self.name)]
        return []

    def _check_erased(self, spans: list[tuple[int, int]]) -> int:
        """Check that erased spans hold zeros, up to the first that does not.

        Returns
        -------
        int
            Bytes that were looked at, and told of.
        """
        told = 0
        for start, stop in merge_spans(spans):
            stop = min(stop, self.size)
            for offset in range(start, stop, _BLOCK):
                length = min(_BLOCK, stop - offset)
                block = self._read(offset, length)
                if not block:
                    return told
                if block != _ZEROS[:length]:  # a twentieth of a search's time
                    rest = block.lstrip(b"\0")
                    where = offset + length - len(rest)
                    text = (
                        "is not zero, in bytes whose frames were deleted and erased: "
                        "the file may be an older copy. `gulp2 repair` makes a "
                        "directory without them"
                    )
                    self.findings.add(
                        [Problem("not-erased", text, self.name, offset=where)]
                    )
                    return told
                self.findings.progress(num_bytes=length)
                told += length
        return told

    def _check_long(self, record: Record) -> None:
        """Compute the checksum of a record in pieces."""
        crc32 = 0
        stop = record.loc + record.length - record.pad
        for offset in range(record.loc, stop, _BLOCK):
            piece = self._read(offset, min(_BLOCK, stop - offset))
            if not piece:
                return
            crc32 = crc32_of(piece, crc32)
        self._add(record, check_checksum(record, crc32, self.name))

    def _add(self, record: Record, problems: list[Problem]) -> None:
        """Add what is wrong with the content of a record."""
        if problems and record.loc in self.deleted:
            problems = [
                replace(
                    problem,
                    message=problem.message.removesuffix(AGAIN)
                    + ". Its item is deleted: `gulp2 compact` erases the frame",
                )
                for problem in problems
            ]
        self.findings.add(problems)

    def _read(self, offset: int, length: int) -> bytes:
        """Read bytes; none where they cannot be read, which is a finding."""
        try:
            return self.store.read_at(self.name, offset, length)
        except OSError as cause:
            self.findings.add([unreadable(self.name, cause, offset)])
            return b""


class _SizesByItem:
    """The sizes of the frames of each item; of most there is one."""

    def __init__(self) -> None:
        self._reader = SizeReader()
        self._first: dict[str, tuple[Size, int]] = {}
        self._mixed: dict[str, dict[Size, int]] = {}

    def add(self, record: Record, jpeg: memoryview) -> None:
        """Look at a frame."""
        size = self._reader.size_of(jpeg)
        if size is None:
            return
        id_, frame = record.item, record.frame
        known, first = self._first.setdefault(id_, (size, frame))
        if known == size and frame >= first:
            return
        if known == size:
            self._first[id_] = size, frame
        else:
            others = self._mixed.setdefault(id_, {})
            others[size] = min(frame, others.get(size, frame))

    def notes(self, file: str) -> list[Problem]:
        """Tell of the items whose frames differ in size."""
        notes = []
        for id_, others in self._mixed.items():
            size, frame = self._first[id_]
            sizes = {size: frame, **others}
            text = (
                f"has frames of {describe_sizes(sizes)}: {why_not_alike(sizes)}, and a "
                "training may end there. Bring its pictures to one size, all of them "
                "grey or none, and ingest it again, or leave it out; read_frames gives "
                "a list of any"
            )
            notes.append(Problem("mixed-sizes", text, file, item=id_))
        return notes


def _ends(record: Record) -> Iterator[_Probe]:
    num_bytes = record.length - record.pad
    yield _Probe(record.loc, min(HEAD_BYTES, num_bytes), record, "head")
    yield _Probe(record.loc + num_bytes - 2, record.pad + 2, record, "tail")
