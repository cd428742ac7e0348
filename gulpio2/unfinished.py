"""What a directory is known to lack: chunks, shares or the rest of an ingest."""

from __future__ import annotations

import errno
import logging
import os
from typing import TYPE_CHECKING

from gulpio2.directory import GulpDirectory
from gulpio2.errors import IngestError, LockedError, MetaFileError, with_article
from gulpio2.format.journal import Copying, load_copying
from gulpio2.format.layout import (
    JOURNAL_NAME,
    MANIFEST_NAME,
    data_name,
    list_chunks,
    meta_name,
)
from gulpio2.format.manifest import missing_shares
from gulpio2.storage.base import read_if_there
from gulpio2.storage.beside_writers import settled_listing
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gulpio2.format.manifest import Run
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "describe_begun",
    "describe_lost",
    "lost_chunks",
    "open_settled",
    "refuse_unfinished_copying",
    "say_what_is_missing",
    "unfinished_copying",
    "warn_of_what_is_missing",
]

_logger = logging.getLogger(__name__)


def open_settled(folder: StrPath) -> GulpDirectory:
    """Open a directory with the chunks that others are just writing anew.

    A reader passes over one that has no map for longer than a second. Who stores items
    would take their ids for free ones, and who copies would leave it out.

    Raises
    ------
    LockedError
        Another has a data file without a map open for writing, and does not store the
        map within a second.
    """
    directory = GulpDirectory(folder)
    if directory._is_settled:
        return directory
    directory.close()
    settled_listing(open_store(folder))  # where it is still so, that says which
    raise LockedError(
        errno.EWOULDBLOCK,
        f"chunks of {os.fspath(folder)} are written anew again and again by another "
        "process. Wait for it to end, and try again",
    )


def lost_chunks(store: Store, runs: Iterable[Run]) -> list[int]:
    """Give the chunks that runs have stored, and that are not there any more.

    Parameters
    ----------
    store : Store
        The directory.
    runs : iterable of Run
        Of its manifest.
    """
    there = list_chunks(store.names()).chunks
    return sorted({number for run in runs for number in run.chunks}.difference(there))


def describe_lost(folder: StrPath, lost: Sequence[int]) -> str:
    """Say that a directory has lost chunks, at least one; see `lost_chunks`."""
    more = f" (and those of {len(lost) - 1} more)" if lost[1:] else ""
    return (
        f"{os.fspath(folder)} has lost a chunk, of which its {MANIFEST_NAME} tells: "
        f"{data_name(lost[0])} or {meta_name(lost[0])} is not there{more}. Put both "
        "files back, or ingest their items again"
    )


def say_what_is_missing(directory: GulpDirectory) -> list[str]:
    """Say why a directory may hold less than what was to be stored in it.

    Half of a dataset reads as all of one.

    Parameters
    ----------
    directory : GulpDirectory
        Its folder is listed, and its manifest read.

    Returns
    -------
    list of str
        A sentence for each reason, also for one that nobody may know of as a file
        cannot be read; empty where none is known.
    """
    folder, found = directory.output_dir, []
    store = open_store(folder)
    try:
        journal = read_if_there(store, JOURNAL_NAME)
    except OSError as cause:
        found.append(_not_asked(folder, cause))
    else:
        if journal is not None:
            verb, advice = _rest_of(load_copying(journal))
            found.append(
                f"{folder} is not finished: it holds what {with_article(verb)} has "
                f"stored so far. If none is at work: {advice}"
            )
    try:
        runs = directory.manifest.runs
        lost = lost_chunks(store, runs)
    # What is damaged, or gone, is told by who needs it, and by a check.
    except (MetaFileError, FileNotFoundError):
        return found
    except OSError as cause:
        return [*found, _not_asked(folder, cause)]
    if lost:
        found.append(describe_lost(folder, lost))
    if missing := missing_shares(runs):
        found.append(
            f"{folder} lacks shares of its ingest: {', '.join(missing)}. `gulp2 merge` "
            "adds them"
        )
    return found


def _not_asked(folder: StrPath, cause: OSError) -> str:
    """Say that nobody may know of a reason: silence would mean that there is none."""
    return (
        f"{os.fspath(folder)} may lack items, as it could not be asked whether it is "
        f"finished: {cause.strerror}"
    )


def _rest_of(copying: Copying | None) -> tuple[str, str]:
    """Give what was begun, and what to do about the rest; None is an ingest."""
    if copying is None:
        return "ingest", "`gulp2 ingest` with --resume goes on"
    return copying.verb, f"{copying.advice} before its items are taken for all"


def describe_begun(store: Store) -> str:
    """Say that what fills a folder has not got to its first chunk.

    Parameters
    ----------
    store : Store
        The folder; it has no chunk.

    Returns
    -------
    str
        Empty where nothing was begun.
    """
    journal = read_if_there(store, JOURNAL_NAME)
    if journal is None:
        return ""
    verb, advice = _rest_of(load_copying(journal))
    return (
        f"holds no chunk yet: {with_article(verb)} is at work there, or was "
        f"interrupted. If none is at work: {advice}"
    )


def warn_of_what_is_missing(reader: object) -> None:
    """Log `say_what_is_missing`, where it is a directory that frames are read from."""
    if isinstance(reader, GulpDirectory):
        for reason in say_what_is_missing(reader):
            _logger.warning("%s", reason)


def unfinished_copying(store: Store) -> Copying | None:
    """Give the merge or repair that was interrupted; None where there was none."""
    return load_copying(read_if_there(store, JOURNAL_NAME) or b"")


def refuse_unfinished_copying(
    store: Store, action: str, verbs: Collection[str] = ("merge", "repair")
) -> None:
    """Refuse to change a directory that a merge or a repair is to fill first.

    What is ingested would be stored between its chunks. And a merge knows by the maps
    that it has brought what it need not bring again: with others it would bring back
    what was deleted, or be refused itself.

    Parameters
    ----------
    store : Store
        The directory.
    action : str
        What is refused, as in "before deleting".
    verbs : collection of str, optional
        Which of the two is in the way of that.

    Raises
    ------
    IngestError
        One was interrupted, and has left its journal.
    """
    copying = unfinished_copying(store)
    if copying is not None and copying.verb in verbs:
        raise IngestError(
            f"a {copying.verb} into this folder was not finished "
            f"({store.path(JOURNAL_NAME)}). {copying.advice} before {action}: nothing "
            "was changed. To leave it unfinished, remove that file"
        )
