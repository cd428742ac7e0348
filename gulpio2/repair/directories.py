"""`repair_directory`: copies what is whole of a damaged directory into a clean one."""

from __future__ import annotations

import contextlib
import errno
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.codecs.whole_jpeg import WholeJpeg
from gulpio2.errors import (
    CorruptFrameError,
    FormatError,
    MetaFileError,
    StorageError,
)
from gulpio2.format.checks import note_gaps
from gulpio2.format.checksum import crc32_of
from gulpio2.format.journal import Copying
from gulpio2.format.layout import (
    INDEX_NAME,
    JOURNAL_NAME,
    MANIFEST_NAME,
    REMOVALS_NAME,
    data_name,
    describe_shares,
    list_chunks,
    meta_name,
)
from gulpio2.format.map_checks import check_manifest
from gulpio2.format.records import padded_length
from gulpio2.repair.doubles import miss_replaced, without_doubles
from gulpio2.repair.files import take_over_files
from gulpio2.repair.report import Loss, RepairReport, Salvaged
from gulpio2.repair.survey import survey_chunks
from gulpio2.repair.unread import why_unread
from gulpio2.staging import ChunkSession
from gulpio2.storage.base import require_known_version
from gulpio2.storage.beside_writers import settled_listing
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import is_folder, is_there, real_path
from gulpio2.storage.permissions import permit_copy
from gulpio2.storage.refusals import local_path, refuse_unwritable
from gulpio2.storage.removals_file import read_removals
from gulpio2.types import StoredFrame, no_progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from gulpio2.format.removals import Removals
    from gulpio2.repair.candidates import Candidate
    from gulpio2.storage.base import Store
    from gulpio2.types import JsonValue, Progress, StrPath

__all__ = ["repair_directory"]

_STRAY = (
    "left behind: it is named almost like a file of a chunk. If it belongs to the "
    "directory, rename it (data_N.gulp or meta_N.gmeta, N without leading zeros) and "
    "repair again"
)


def repair_directory(
    source: StrPath,
    target: StrPath,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RepairReport:
    """Salvage every undamaged item of a directory into a new, clean one.

    Parameters
    ----------
    source : str or path
        A directory in any state. Nothing in it is changed.
    target : str or path
        Missing, or an empty folder, outside of the source.
    dry_run : bool, optional
        Only say what would be done; every byte of the source is read all the same.
    progress : Progress, optional
        Told of frames and bytes as they are looked at, and again as they are written.

    Returns
    -------
    RepairReport
        What was copied, what is under a placeholder id, and what is lost.

    Raises
    ------
    FormatError
        The source holds nothing of a gulp directory.
    StorageError
        There is no source, the target is not empty, or cannot be written to.
    LockedError
        Another process writes to one of the two.

    Notes
    -----
    An item is copied under its own id if its entry is what was written, by the entry's
    own check, and all of its frames are, by their checksums. Frames without a
    checksum, which GulpIO2 wrote, must be decodable. The bytes of the JPEGs, times,
    source facts and metadata are copied unchanged, in chunks of the same numbers.
    Metadata nested too deeply to be stored again, which GulpIO2 allows, is lost, and so
    is what stands in an entry under keys that the format does not have.

    Frames of such an item that are not where its entry says are looked for in all data
    files: bytes may have been put in or cut out, or files have changed their names.
    Length and checksum tell which frame it is. Of an item without checksums nothing
    does, and frames that moved are of unknown owner. Where nothing is lost by it, it
    is noted that frames moved, and the report is as of a sound directory.

    Where a map is damaged or missing, and the directory has an index, the entries are
    taken from there, with ids and metadata. If the map has the size and time that the
    index knows it by, all of it is had back, which is noted. Else it may have changed
    since, and is a loss; what was appended later is of unknown owner.

    What the system refuses to read is a loss that says why, and not that it is damaged:
    it may be readable another time. Where frames are searched for by their markers,
    all are found that do not touch what is unreadable, which is narrowed down to
    sectors and is a loss of its own.

    What is left of other items gets an id ``salvaged_<chunk>_<offset>``, and where it
    comes from as metadata. So do frames that are found by their JPEG markers where the
    map is lost or damaged: those that follow each other and have one shape are one
    such item. Of items of the same id the first whole one, by chunk and place in the
    map, keeps the id; equal ones are left out, others get a placeholder. Deleted items
    stay deleted, by the checksums of their frames also in a data file that has another
    name and no map.

    ``gulp.json``, ``label2idx.json`` and ``failures.jsonl`` are taken over as they are,
    the last two unchanged, where they are sound: the items that an ingest could not
    store are missing from the target too. What the repair itself could not salvage is
    in its report, and not in ``failures.jsonl``, which is of the ingest.
    In ``gulp.json`` a run that has lost items is marked, so that nobody who resumes
    takes it for complete.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("damaged", num_items=3, num_frames=8)
    >>> print(repair_directory("damaged", "clean"))
    3 whole items copied, 24 frames (0.0 MB) in 2 chunks; 0 losses
    """
    store = open_store(source)
    open_store(target)  # or an empty path is refused
    _refuse_bad_target(Path(source), Path(target))
    report = RepairReport(str(source), str(target), dry_run)
    try:
        _refuse_other_folder(store, Path(source))
        # Frames can be read without the manifest. If it cannot be read, that is told
        # where it is taken over.
        with contextlib.suppress(OSError):
            require_known_version(store)
        with store.lock(shared=True):
            tell = progress or no_progress
            chosen = _survey(store, report, tell)
            if not dry_run:
                output = open_store(target)
                output.make()
                with output.lock():
                    _refuse_full(target)  # by now: looking at the source takes long
                    # As long as it is there, a check tells that the copy is not whole.
                    journal = Copying("repair", (str(real_path(source)),)).dump()
                    output.write_atomically(JOURNAL_NAME, journal)
                    _write(store, output, chosen, tell)
                    take_over_files(store, output, report)
                    output.remove(JOURNAL_NAME)
            else:
                take_over_files(store, None, report)
    finally:
        store.close()
    return report


def _refuse_bad_target(source: Path, target: Path) -> None:
    if not is_folder(source):
        local_path(source, "read")
        raise StorageError(errno.ENOENT, f"there is no directory {source} to repair")
    place = real_path(target)
    if real_path(source) in (place, *place.parents):
        raise StorageError(
            errno.EINVAL,
            f"the repaired copy cannot be written to {target}: that is in {source}, "
            "which is not to be changed. Give another folder",
        )
    _refuse_full(target)
    refuse_unwritable(target)


def _refuse_full(target: StrPath) -> None:
    """Refuse a target that holds something already."""
    if is_there(target) and (not is_folder(target) or open_store(target).names()):
        raise StorageError(
            errno.ENOTEMPTY,
            f"{target} is not empty: a repair writes to a folder of its own. Give "
            "another one; what an interrupted repair has left can be removed",
        )


def _refuse_other_folder(store: Store, source: Path) -> None:
    """Refuse a folder that is no gulp directory: nothing of it would be lost."""
    names = store.names()
    listing = list_chunks(names)
    others = {MANIFEST_NAME, REMOVALS_NAME} & set(names)
    if not (listing.numbers or listing.partials or others):
        shares = describe_shares(names, "repair those that need it, and merge all")
        ending = f". {shares}" if shares else "; is it another folder?"
        if strays := listing.describe_strays():
            ending = f"; {strays}"
        raise FormatError(
            f"{source} is no gulp directory: there is no data file and no map in it. "
            f"Nothing was repaired{ending}"
        )


# --- what to move -------------------------------------------------------------------


def _survey(
    store: Store, report: RepairReport, progress: Progress
) -> dict[int, list[Candidate]]:
    """Decide what becomes an item of the target, by chunk."""
    listing = settled_listing(store)
    removals = _removals(store, report)
    report.notes += [f"{name}: {_STRAY}" for name in listing.strays]
    if JOURNAL_NAME in listing.names:
        report.notes.append(
            f"{JOURNAL_NAME}: an ingest, a merge or a repair was interrupted here; "
            "going on with it brings in what is missing, which a repair cannot"
        )
    report.notes += [f"{name}: was never committed" for name in listing.partials]
    whole: list[Candidate] = []
    parts: list[Candidate] = []
    numbers = sorted(listing.numbers)
    _miss_chunks(store, numbers, report)
    copies: dict[int, str] = {}
    others: set[int] = set()
    for number, survey in zip(
        numbers, survey_chunks(store, numbers, removals, progress), strict=True
    ):
        if survey.is_of_others:
            others.add(number)
        report.lost += survey.lost
        report.notes += survey.notes
        for candidate in survey.candidates:
            (parts if candidate.reason else whole).append(candidate)
    kept, doubles = without_doubles(whole, report, copies)
    parts += doubles
    _tell_apart(kept, parts)
    report.items = len(kept)
    report.salvaged = [
        Salvaged(part.id, part.chunk, len(part.frames), part.item, part.reason)
        for part in parts
    ]
    chosen: dict[int, list[Candidate]] = {}
    for candidate in (*kept, *parts):
        chosen.setdefault(candidate.chunk, []).append(candidate)
        report.frames += len(candidate.frames)
        report.num_bytes += sum(
            padded_length(frame.num_bytes) for frame in candidate.frames
        )
        report.frames_without_checksum += candidate.unverified
    report.chunks = sorted(chosen)
    miss_replaced(store, copies, others, report)
    return chosen


def _miss_chunks(store: Store, numbers: list[int], report: RepairReport) -> None:
    """Tell of chunks of which neither file is there."""
    data = b""
    with contextlib.suppress(OSError):  # that is told where it is taken over
        data = store.read(MANIFEST_NAME)
    problems = check_manifest(data, numbers)
    missing = [problem for problem in problems if problem.code == "missing-chunk"]
    report.lost += [Loss(problem.file, problem.message) for problem in missing]
    if not missing:
        report.notes += [problem.message for problem in note_gaps(numbers)]


def _removals(store: Store, report: RepairReport) -> Removals | None:
    try:
        return read_removals(store)
    except MetaFileError as cause:
        why = str(cause).removeprefix(f"{store.path(REMOVALS_NAME)}: ")
    except OSError as cause:
        why = why_unread(cause)
    reason = f"what was deleted can no longer be told: {why}"
    report.lost.append(Loss(REMOVALS_NAME, reason))
    return None


def _tell_apart(kept: list[Candidate], parts: list[Candidate]) -> None:
    """Give each of the parts an id that nothing else has."""
    taken = {candidate.id for candidate in kept}
    last: dict[str, int] = {}  # of what is put behind an id that is taken
    for part in parts:
        id_ = part.id
        while part.id in taken:
            last[id_] = last.get(id_, 1) + 1
            part.id = f"{id_}_{last[id_]}"
        taken.add(part.id)


# --- moving it ----------------------------------------------------------------------


class _MovedFrames:
    """The frames of an item as a `gulpio2.types.FrameSource`."""

    def __init__(self, store: Store, candidate: Candidate, tell: Progress) -> None:
        self.store = store
        self.candidate = candidate
        self.tell = tell

    def __iter__(self) -> Iterator[Any]:
        return (frame.image for frame in self.stored())

    def __len__(self) -> int:
        return len(self.candidate.frames)

    def stored(self) -> Iterator[StoredFrame]:
        """Read each frame again; it must be what was found before."""
        for frame in self.candidate.frames:
            name = data_name(frame.chunk)
            jpeg = self.store.read_at(name, frame.loc, frame.num_bytes)
            if crc32_of(jpeg) != frame.crc32:
                raise CorruptFrameError(
                    f"{self.store.path(name)} at byte {frame.loc}: the bytes have "
                    "changed since they were looked at. Run the repair again"
                )
            # As they are, so that their checksum stays.
            yield StoredFrame(WholeJpeg(jpeg), frame.pts)
            self.tell(frames=1, num_bytes=padded_length(frame.num_bytes))

    @property
    def time_base(self) -> Fraction | None:
        """Seconds per tick."""
        return self.candidate.extras.time_base

    def source_info(self) -> dict[str, JsonValue]:
        """Facts of the source file."""
        return dict(self.candidate.extras.source)


def _write(
    store: Store, output: Store, chosen: dict[int, list[Candidate]], tell: Progress
) -> None:
    for number in sorted(chosen):
        data, maps = _sources(store, number, chosen[number])
        session = ChunkSession(
            output, data_name(number), OrderedDict(), EncoderSettings()
        )
        try:
            permit_copy(Path(output.path(str(session.partial))), data)
            for candidate in chosen[number]:
                frames = _MovedFrames(store, candidate, tell)
                session.append(candidate.id, candidate.metas[0], frames)
                for meta in candidate.metas[1:]:
                    session.append(candidate.id, meta, ())
            staged = session.stage(meta_name(number), maps)
        except BaseException:
            with contextlib.suppress(StorageError):  # what failed first is told
                session.abort()
            raise
        finally:
            session.close()
        # The names that count; to list all takes longer with each chunk.
        names = (staged.data, staged.meta)
        staged.publish(output, data_name(number), meta_name(number), names)


def _sources(
    store: Store, number: int, candidates: list[Candidate]
) -> tuple[list[Path], list[Path]]:
    """Find what the data file and the map of a chunk are made of."""
    numbers = {number} | {frame.chunk for item in candidates for frame in item.frames}
    data, maps = (
        [Path(store.path(name(each))) for each in sorted(numbers)]
        for name in (data_name, meta_name)
    )
    if not all(map(_may_be_read, maps)):  # items may be known by the index
        maps.append(Path(store.path(INDEX_NAME)))
    return data, maps


def _may_be_read(path: Path) -> bool:
    """Tell whether a file is there; not so where the system does not say."""
    with contextlib.suppress(StorageError):
        return is_there(path)
    return False
