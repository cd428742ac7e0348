"""``gulp.json``: how a directory was made, and what holds for all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gulpio2.errors import FormatError, MetaFileError, UnknownVersionError
from gulpio2.format.checked_json import dump_checked, load_checked
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import (
    FAILURES_NAME,
    LABELS_NAME,
    MAX_NUMBER,
    data_name,
)
from gulpio2.format.wording import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gulpio2.format.layout import Listing

__all__ = [
    "CHECKED_FILES",
    "FORMAT_VERSION",
    "LOST_PLAN",
    "Manifest",
    "Run",
    "Shares",
    "conflicting_runs",
    "dump_manifest",
    "file_check",
    "free_number",
    "incomplete_plans",
    "load_manifest",
    "missing_shares",
    "refuse_other_version",
    "source_of",
    "without_chunks",
    "without_complete_shares",
    "without_lost_chunks",
]

FORMAT_NAME = "gulp2"
FORMAT_VERSION = 1
LOST_PLAN = ""
"""`Run.plan` of a run that has lost items: no digest, so that none is the same."""
# Files that have no check of their own; the manifest has it.
CHECKED_FILES = (LABELS_NAME, FAILURES_NAME)
# How a manifest of this version begins: most directories need no further look.
_SAYS_VERSION = f'"format_version": {FORMAT_VERSION},'.encode("ascii")
_HEAD_BYTES = 100
_ADVICE = "It can be removed: the frames do not depend on it"


@dataclass(frozen=True, slots=True)
class Shares:
    """Which shares of an ingest a run is."""

    count: int
    """How many there are of the ingest."""
    present: tuple[int, ...]
    """Those that are here: from 1, ascending."""


@dataclass(frozen=True, slots=True)
class Run:
    """One ingest run; without time or host, so that equal runs give equal bytes."""

    adapter: str
    """Name of the adapter's class."""
    options: Mapping[str, Any]
    """Its constructor's arguments."""
    encoder: Mapping[str, Any]
    """Settings of the encoder."""
    package: str
    """Version of this package."""
    chunks: tuple[int, ...]
    """Numbers of the chunks that it wrote."""
    plan: str | None = None
    """The same only where the same items go into the same chunks, of all shares
    together. None where it is not known; see also `LOST_PLAN`."""
    shares: Shares | None = None
    """None where the ingest was not divided, or all of its shares are here."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a directory."""

    runs: tuple[Run, ...] = ()
    """Ingest runs, oldest first."""
    metainfo: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the dataset: class names and so on."""
    files: Mapping[str, str] = field(default_factory=dict)
    """CRC-32, as eight hexadecimal digits, of files that have no check of their own."""


def file_check(data: bytes) -> str:
    """Give the check of a file as `Manifest.files` holds it."""
    return f"{crc32_of(data):08x}"


def dump_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as indented JSON with its own CRC-32 as the last key."""
    body: dict[str, Any] = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "runs": [_dump_run(run) for run in manifest.runs],
        "metainfo": dict(manifest.metainfo),
    }
    if manifest.files:
        body["files"] = dict(manifest.files)
    return dump_checked(body)


def _dump_run(run: Run) -> dict[str, Any]:
    body: dict[str, Any] = {
        "adapter": run.adapter,
        "options": dict(run.options),
        "encoder": dict(run.encoder),
        "package": run.package,
        "chunks": list(run.chunks),
    }
    if run.plan is not None:
        body["plan"] = run.plan
    if run.shares is not None:
        present = list(run.shares.present)
        body["shares"] = {"count": run.shares.count, "present": present}
    return body


def load_manifest(data: bytes, *, where: str) -> Manifest:
    """Read a manifest.

    Raises
    ------
    MetaFileError
        Not a manifest, or damaged.
    UnknownVersionError
        Of a version of the format that this package does not know.
    """
    value = load_checked(data, where=where, advice=_ADVICE)
    if value.get("format") != FORMAT_NAME:
        raise MetaFileError(f"{where}: not the manifest of a gulp directory. {_ADVICE}")
    _require_version(value, where)
    try:
        runs = tuple(
            Run(
                adapter=run["adapter"],
                options=_object(run["options"]),
                encoder=_object(run["encoder"]),
                package=run["package"],
                chunks=tuple(_number(number) for number in run["chunks"]),
                plan=None if run.get("plan") is None else str(run["plan"]),
                shares=_shares(run.get("shares")),
            )
            for run in value["runs"]
        )
        files = _object(value.get("files", {}))
        return Manifest(runs, _object(value["metainfo"]), files)
    except (KeyError, TypeError, ValueError, RecursionError) as cause:
        raise MetaFileError(f"{where}: a part is missing: {cause}") from cause


def refuse_other_version(data: bytes, *, where: str) -> None:
    """Refuse a directory that follows rules which this package does not know.

    Parameters
    ----------
    data : bytes
        Its manifest. Of a damaged one the version is not known, and it is not needed
        to read; who needs the manifest says that it is damaged.
    where : str
        Its path, for the message.

    Raises
    ------
    UnknownVersionError
        The manifest is whole and says another version.
    """
    if _SAYS_VERSION in data[:_HEAD_BYTES]:
        return
    try:
        value = load_checked(data, where=where, advice=_ADVICE)
    except MetaFileError:
        return
    if value.get("format") == FORMAT_NAME:
        _require_version(value, where)


def _require_version(value: Mapping[str, Any], where: str) -> None:
    version = value.get("format_version")
    if version != FORMAT_VERSION:
        raise UnknownVersionError(
            f"{where}: format version {shown(version)}; this package reads "
            f"{FORMAT_VERSION}. Install a newer gulpio2"
        )


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{shown(value)} is no number of a chunk")
    return value


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{shown(value)} is no object")
    return value


def _shares(value: Any) -> Shares | None:
    if value is None:
        return None
    count, present = _number(value["count"]), value["present"]
    shares = Shares(count, tuple(_number(number) for number in present))
    inside = (0, *shares.present, count + 1)
    if count < 1 or not all(before < after for before, after in pairwise(inside)):
        raise ValueError(f"{shown(present)} are no shares of {count}")
    return shares


# --- runs that were divided -----------------------------------------------------


def incomplete_plans(runs: Iterable[Run]) -> dict[tuple[str | None, int], set[int]]:
    """Find the ingests of which not all shares are here.

    Returns
    -------
    dict of (str, int) to set of int
        Plan and number of shares, to those that are here.
    """
    runs = tuple(runs)
    undivided = {run.plan for run in runs if run.shares is None}
    present: dict[tuple[str | None, int], set[int]] = {}
    for run in runs:
        if run.shares is not None and run.plan not in undivided:
            key = run.plan, run.shares.count
            present.setdefault(key, set()).update(run.shares.present)
    return {key: here for key, here in present.items() if len(here) < key[1]}


def missing_shares(runs: Iterable[Run]) -> list[str]:
    """Name the shares that are missing of the ingests whose other shares are here.

    Returns
    -------
    list of str
        As ``2/3``; several in a row as ``4-9/16``.

    Examples
    --------
    >>> run = Run("A", {}, {}, "1", chunks=(0,), plan="p", shares=Shares(9, (2, 8)))
    >>> missing_shares([run])
    ['1/9', '3-7/9', '9/9']
    """
    found = []
    for (_, count), here in incomplete_plans(runs).items():
        for before, after in pairwise((0, *sorted(here), count + 1)):
            first, last = before + 1, after - 1
            if first == last:
                found.append(f"{first}/{count}")
            elif first < last:
                found.append(f"{first}-{last}/{count}")
    return found


def source_of(run: Run) -> str:
    """Give the adapter of a run and its options as text: NaN there is equal to NaN."""
    return json.dumps([run.adapter, dict(run.options)], sort_keys=True)


def conflicting_runs(runs: Sequence[Run]) -> tuple[int, int] | None:
    """Find two runs that hold shares of one source and of no whole, by their indices.

    They were cut from other items, or otherwise, so that items may be in neither. What
    has all of its shares is whole whatever else there is.
    """
    incomplete = incomplete_plans(runs)
    first: dict[str, tuple[int, tuple[str | None, int]]] = {}
    for index, run in enumerate(runs):
        plan = run.plan, 0 if run.shares is None else run.shares.count
        if plan in incomplete:
            source = source_of(run)
            other, other_plan = first.setdefault(source, (index, plan))
            if plan != other_plan:
                return other, index
    return None


def without_complete_shares(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Give runs as if what all shares of are here had never been divided."""
    runs = tuple(runs)
    incomplete = incomplete_plans(runs)
    found = []
    for run in runs:
        if run.shares is None or (run.plan, run.shares.count) in incomplete:
            found.append(run)
        elif run.chunks:  # a share may have none, and a run that has none is not told
            found.append(replace(run, shares=None))
    return tuple(found)


def without_chunks(runs: Iterable[Run], numbers: Collection[int]) -> tuple[Run, ...]:
    """Give runs as if they had not written the chunks that have these numbers now.

    Another run was given the number of a chunk that was lost, or it is the same run,
    which had only its journal left to remove.
    """
    found = []
    for run in runs:
        found += _with_chunks(run, [each for each in run.chunks if each not in numbers])
    return tuple(found)


def free_number(listing: Listing, runs: Iterable[Run], removed: Iterable[int]) -> int:
    """Give the first number for a new chunk.

    Parameters
    ----------
    listing : Listing
        Of the directory.
    runs : iterable of Run
        Those that its manifest tells of. The number of a chunk that is lost is not
        free: another chunk under it would cover up the loss.
    removed : iterable of int
        Those that ``deleted.json`` tells of: it would speak of the other chunk.

    Raises
    ------
    FormatError
        There is none: rule 1 of the format has a last one.
    """
    told = {number for run in runs for number in run.chunks}
    last = max(told.union(removed, listing.numbers), default=-1)
    if last >= MAX_NUMBER:
        raise FormatError(
            f"there is no chunk number behind that of {data_name(last)}. Give that "
            "chunk a smaller one: rename both of its files. If it is lost, `gulp2 "
            "merge` into a new directory numbers the others anew"
        )
    return last + 1


def without_lost_chunks(
    runs: Iterable[Run], done: Run, present: Collection[int]
) -> tuple[Run, ...]:
    """Give runs as if they had not written what is gone and has been made good.

    Parameters
    ----------
    runs : iterable of Run
        Of a directory.
    done : Run
        One that has gone through all of its items now: each is here, in whichever
        chunk, or is listed as failed.
    present : collection of int
        Numbers of the chunks of which a file is there.
    """
    is_whole = done.shares is None or len(done.shares.present) == done.shares.count
    source = source_of(done), done.plan
    found = []
    for run in runs:
        same = (source_of(run), run.plan) == source
        if same and (is_whole or done.shares == run.shares):
            here = [number for number in run.chunks if number in present]
            found += _with_chunks(run, here)
        else:
            found.append(run)
    return tuple(found)


def _with_chunks(run: Run, chunks: Sequence[int]) -> list[Run]:
    """Give a run as if these were all that it wrote: none where it has lost them all.

    A share that has none now is still one that is here.
    """
    if len(chunks) == len(run.chunks):
        return [run]
    if not chunks and run.shares is None:
        return []
    return [replace(run, chunks=tuple(chunks))]
