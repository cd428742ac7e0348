"""What the checker knows of maps and of the small files beside them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError, UnknownVersionError
from gulpio2.format.checked_json import OTHER_FORM, has_own_form
from gulpio2.format.checks import AGAIN, Record
from gulpio2.format.entry import ENTRY_KEYS, EXTRAS_KEY, covered_part, load_extras
from gulpio2.format.gmeta import advice_for_pickle, load_pairs, validate_entry
from gulpio2.format.labels import numbered_label
from gulpio2.format.layout import FAILURES_NAME, LABELS_NAME, MANIFEST_NAME, data_name
from gulpio2.format.manifest import LOST_PLAN, file_check, load_manifest, missing_shares
from gulpio2.format.problems import Problem
from gulpio2.format.times_back import note_times_back
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = [
    "MapFindings",
    "check_deleted",
    "check_failures_file",
    "check_manifest",
    "check_map",
    "has_no_items",
    "note_of_manifest",
]

_MAP_BACK = "Put the map back, or salvage its frames with `gulp2 repair`"


@dataclass(slots=True)
class MapFindings:
    """What a map says, and what is wrong with it."""

    ids: list[str] = field(default_factory=list)
    """Every id, in file order; one that appears twice is here twice."""
    records: list[Record] = field(default_factory=list)
    """The records of the entries that can be understood."""
    problems: list[Problem] = field(default_factory=list)
    """Faults."""
    notes: list[Problem] = field(default_factory=list)
    """What is worth knowing and no fault."""
    labels: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """The ids of items by their label and its number, where they have both."""


def check_map(data: bytes, file: str) -> MapFindings:
    """Check a map.

    Parameters
    ----------
    data : bytes
        The whole file.
    file : str
        Its name.
    """
    found = MapFindings()
    try:
        pairs = load_pairs(data)
    except (ValueError, RecursionError) as cause:
        found.problems.append(_unreadable(data, cause, file))
        return found
    try:
        _check_entries(pairs, found, file)
        if any(isinstance(entry, dict) and EXTRAS_KEY in entry for _, entry in pairs):
            # Without such entries another program has written the map, in its way.
            found.problems += _check_bytes(data, pairs, file)
    except RecursionError:
        text = "is nested too deeply to be a map"
        found.problems.append(Problem("map-not-json", text, file))
    return found


_ERASE = "`gulp2 compact` erases it with the frames of the item"
_LET_COUNT = (
    "Where another program was to change it, take 'check' out of its 'gulp2' in "
    f"memory, and open the chunk with 'ab' to write the map; else it is damaged{AGAIN}"
)


def check_deleted(
    pairs: Iterable[tuple[str, dict[str, Any]]], file: str
) -> MapFindings:
    """Check the entries of items that are hidden, and not yet erased.

    Parameters
    ----------
    pairs : iterable of (str, dict)
        Id and entry.
    file : str
        Name of the file that holds the entries.
    """
    found = MapFindings()
    for id_, entry in pairs:
        _check_entry(id_, entry, found, file, _ERASE)
    return found


def _check_entries(pairs: list[tuple[str, Any]], found: MapFindings, file: str) -> None:
    for id_, count in Counter(id_ for id_, _ in pairs).items():
        if count > 1:
            text = (
                f"stands in the map {count} times: this package refuses the map, and "
                "GulpIO2 0.0.4 sees only the last"
            )
            found.problems.append(Problem("duplicate-id", text, file, item=id_))
    for id_, entry in pairs:
        found.ids.append(id_)
        if fault := validate_entry(entry):
            found.problems.append(Problem("bad-entry", _short(fault), file, item=id_))
        else:
            _check_entry(id_, entry, found, file)
            if numbered := numbered_label(entry["meta_data"]):
                found.labels.setdefault(numbered, []).append(id_)
    if unknown := sum(record.crc32 is None for record in found.records):
        text = (
            f"{unknown} of {len(found.records)} frames have no usable checksum "
            "(GulpIO2 stores none): not every changed byte in them can be found"
        )
        found.notes.append(Problem("no-checksums", text, file))


def _unreadable(data: bytes, cause: Exception, file: str) -> Problem:
    """Describe a map, or another small file, that cannot be parsed."""
    if not data:
        text = f"is empty: nothing of its chunk can be read. {_MAP_BACK}"
        return Problem("empty-map-file", text, file)
    if isinstance(cause, MetaFileError):
        return Problem("map-not-object", str(cause), file)
    offset = getattr(cause, "pos", getattr(cause, "start", None))
    advice = advice_for_pickle(data) or _MAP_BACK
    text = f"is not JSON ({cause}): nothing of its chunk can be read. {advice}"
    return Problem("map-not-json", text, file, offset=offset)


def _check_bytes(data: bytes, pairs: list[tuple[str, Any]], file: str) -> list[Problem]:
    """Check that a map has the one form that its content can have (rule 8).

    A blank that has become a tab, or a repeated key deep inside, changes no value.
    """
    if len(dict(pairs)) != len(pairs):
        return []  # which is reported
    canonical = json.dumps(dict(pairs)).encode("ascii")
    if data == canonical:
        return []
    both = enumerate(zip(data, canonical, strict=False))
    shorter = min(len(data), len(canonical))
    offset = next((at for at, (one, two) in both if one != two), shorter)
    text = (
        "is not written as its content has to be written: a byte has changed, or "
        "another program has edited the file. Open the chunk with 'ab' to write it anew"
    )
    return [Problem("map-not-canonical", text, file, offset=offset)]


def _check_entry(
    id_: str,
    entry: Mapping[str, Any],
    found: MapFindings,
    file: str,
    advice: str = _LET_COUNT,
) -> None:
    """Check an entry whose frame_info and meta_data have their form."""

    def report(code: str, message: str) -> None:
        found.problems.append(Problem(code, message, file, item=id_))

    for key in entry.keys() - ENTRY_KEYS:
        report("unknown-key", f"{key!r} is no key of this version of the format")
    if not entry["meta_data"]:
        report("no-metadata", "meta_data is empty; GulpIO2 cannot read such an item")
    if not entry["frame_info"]:
        text = "has no frames"
        found.notes.append(Problem("empty-item", text, file, item=id_))
    crc32: list[int] = []
    if EXTRAS_KEY in entry:
        try:
            crc32 = _check_extras(id_, entry, report, advice)
            if len(crc32) == len(entry["frame_info"]):  # else none is known
                found.notes += note_times_back(id_, entry, file)
        except MetaFileError as cause:
            report("bad-extras", _short(str(cause.__cause__ or cause)))
    for frame, (loc, pad, length) in enumerate(entry["frame_info"]):
        checksum = crc32[frame] if frame < len(crc32) else None
        found.records.append(Record(loc, pad, length, id_, frame, checksum))


def _check_extras(
    id_: str,
    entry: Mapping[str, Any],
    report: Callable[[str, str], None],
    advice: str,
) -> list[int]:
    """Check the extras; give the checksums of the frames that have one."""
    extras = entry[EXTRAS_KEY]
    decoded = load_extras(entry, where=id_)
    needed = {"crc32", "check"}
    if "pts" in extras or "time_base" in extras:
        needed |= {"pts", "time_base"}
    for key in sorted(needed - extras.keys()):
        report("bad-extras", f"{key} is missing")
    covered = covered_part(id_, entry)
    if covered is not None:
        decoded = load_extras(covered, where=id_)
    elif "check" in extras:
        report(
            "entry-check",
            "its check is not that of its content: something of the entry has changed "
            f"since it was written. {advice}",
        )
    return [int(crc32) for crc32 in decoded.crc32]


# --- the files beside the chunks ----------------------------------------------------


_CHANGED = (
    "is not as the last ingest left it: it is missing, was edited, or damaged. Put it "
    "back; where it was edited on purpose, ingest more items, and it counts as it is"
)
_CHANGED_UNFINISHED = (
    "is not as the last finished ingest left it. The one that is unfinished may have "
    "written it: resume that, after which it counts as it is"
)


def check_manifest(
    data: bytes,
    chunks: Collection[int],
    files: Mapping[str, bytes] | None = None,
    *,
    is_unfinished: bool = False,
) -> list[Problem]:
    """Check ``gulp.json``.

    Parameters
    ----------
    data : bytes
        The whole file.
    chunks : collection of int
        Numbers of the chunks that are there, whole or not.
    files : mapping of str to bytes, optional
        Name and content of the files that carry no check of their own, to be compared
        with the checksums in the manifest.
    is_unfinished : bool
        Whether there is an ingest that has not come to its end, and may have written
        those files.
    """
    try:
        manifest = load_manifest(data, where=MANIFEST_NAME)
    except MetaFileError as cause:
        message = str(cause).removeprefix(f"{MANIFEST_NAME}: ")
        if isinstance(cause, UnknownVersionError):
            return [Problem("unknown-version", message, MANIFEST_NAME)]
        return [Problem("bad-manifest", message, MANIFEST_NAME)]
    problems = []
    if not has_own_form(data):
        problems.append(Problem("bad-manifest", OTHER_FORM, MANIFEST_NAME))
    written = {number for run in manifest.runs for number in run.chunks}
    # GulpIO2 0.0.4 adds chunks and labels, and tells the manifest of neither.
    foreign = set() if written.issuperset(chunks) else {LABELS_NAME} & {*(files or ())}
    problems += [
        Problem(
            "changed-file",
            _CHANGED_UNFINISHED if is_unfinished else _CHANGED,
            name,
        )
        for name, crc32 in manifest.files.items()
        if files is not None
        and name not in foreign
        and (name not in files or file_check(files[name]) != crc32)
    ]
    return problems + [
        Problem(
            "missing-chunk",
            "was written by a run that the manifest tells of, and neither of its "
            "files is there. Put them back, or ingest its items again",
            data_name(number),
        )
        for number in sorted(written.difference(chunks))
    ]


def note_of_manifest(
    data: bytes, chunks: Collection[int], labels: bytes | None
) -> list[Problem]:
    """Tell what ``gulp.json`` says that is worth knowing and no fault.

    That there are shares of an ingest which are not here, as it should be where they
    were ingested apart and not yet merged. And of labels that another program left,
    which has added chunks: GulpIO2 0.0.4 adds to those of its 20BN adapters; of folders
    and lists it writes those of the new items alone, in numbers from 0.
    """
    try:
        manifest = load_manifest(data, where=MANIFEST_NAME)
    except MetaFileError:
        return []  # a problem
    notes = []
    if missing := missing_shares(manifest.runs):
        text = (
            f"tells of an ingest in shares, of which these are not here: "
            f"{', '.join(missing)}. `gulp2 merge` adds them"
        )
        notes.append(Problem("missing-shares", text, MANIFEST_NAME))
    known = manifest.files.get(LABELS_NAME)
    written = {number for run in manifest.runs for number in run.chunks}
    is_other = labels is not None and known not in (None, file_check(labels))
    if is_other and not written.issuperset(chunks):  # else `check_manifest` has told
        text = (
            "is not as the last ingest left it, and there are chunks of another "
            "program: GulpIO2 0.0.4 replaces it where it adds images or videos of a "
            "folder, so that labels of stored items are missing and their numbers are "
            "given again. Compare it with the metadata (`gulp2 ls --long`) before more "
            "is ingested"
        )
        notes.append(Problem("other-labels", text, LABELS_NAME))
    return notes


def has_no_items(data: bytes) -> bool:
    """Tell whether, by ``gulp.json``, it is as it should be that there is no chunk.

    There are fewer chunks than shares of an ingest; or all items were deleted, and what
    is left was merged or repaired, which brings no chunk without items.
    """
    try:
        runs = load_manifest(data, where=MANIFEST_NAME).runs
    except MetaFileError:
        return False
    return bool(runs) and all(
        not run.chunks and (run.shares or run.plan != LOST_PLAN) for run in runs
    )


def check_failures_file(data: bytes) -> tuple[list[Problem], list[Problem]]:
    """Check ``failures.jsonl``.

    Returns
    -------
    problems : list of Problem
    notes : list of Problem
        How many items could not be stored.
    """
    lines = data.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            valid = isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            valid = False
        if not valid:
            text = f"line {number} is no JSON object"
            return [Problem("bad-failures", text, FAILURES_NAME)], []
    if not lines:
        return [], []
    text = f"{counted(len(lines), 'item')} could not be ingested; the file names them"
    return [], [Problem("failed-items", text, FAILURES_NAME)]


def _short(text: str) -> str:
    """Keep a message short that quotes what is in a file."""
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-90:]}"
