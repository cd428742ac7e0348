"""What a store offers: named files that are read by position and written once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.errors import MetaFileError
from gulpio2.format.gmeta import load_gmeta
from gulpio2.format.layout import FAILURES_NAME, MANIFEST_NAME
from gulpio2.format.manifest import (
    CHECKED_FILES,
    Manifest,
    file_check,
    load_manifest,
    refuse_other_version,
)
from gulpio2.storage.refusals import broken_link

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Collection
    from contextlib import AbstractContextManager

    from gulpio2.types import StrPath

__all__ = [
    "WRITTEN_AT_ONCE",
    "Store",
    "StoreWriter",
    "checks_of_files",
    "read_if_there",
    "read_manifest",
    "read_map",
    "read_unless_missing",
    "require_failures_file",
    "require_known_version",
]

WRITTEN_AT_ONCE = 32 << 10
"""Bytes in a write, which ends at a multiple of as many. Linux makes one piece of its
page cache of what is written in one go, and each processor has pieces of up to 32 kB at
hand. Writing is up to twice as fast as with larger ones, which have to be found. And of
a piece a process that maps the file maps all as soon as it looks at a part: with Linux
6.18 it would be two megabytes for every number of an index."""


class StoreWriter(Protocol):
    """A file that is being written. Nothing is promised before `sync` returned."""

    def tell(self) -> int:
        """Count the bytes written so far."""
        ...

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, all of them or an error."""
        ...

    def truncate(self, size: int) -> None:
        """Drop everything after the first `size` bytes, and go on from there."""
        ...

    def sync(self) -> None:
        """Return once the content is on the disk itself."""
        ...

    def is_at(self, path: StrPath) -> bool:
        """Tell whether a path leads to this file; not, where another replaced it."""
        ...

    def close(self) -> None:
        """Close; a second time is harmless."""
        ...


class Store(Protocol):
    """A flat set of named files.

    Every error is a `gulpio2.errors.StorageError`, except that reading what does not
    exist raises ``FileNotFoundError``.
    """

    def names(self) -> list[str]:
        """List the files, in no particular order; none if the folder is missing."""
        ...

    def path(self, name: str) -> str:
        """Say where a name lies, on the disk.

        For messages, and for what no method here does: files that are mapped, opened
        for reading by a pool, linked, or looked at for their permissions. Another
        store has to replace those, see ``docs/decisions.md``.
        """
        ...

    def size(self, name: str) -> int:
        """Count the bytes of a file."""
        ...

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        ...

    def read_at(self, name: str, offset: int, length: int) -> bytes:
        """Read exactly this many bytes from this position, in one request."""
        ...

    def make(self) -> None:
        """Create the folder, with its parents, if it is missing."""
        ...

    def create(self, name: str, *, alone: bool = False) -> StoreWriter:
        """Begin a new file under a name that no reader looks at; it must not exist.

        With `alone` nobody else opens it so until it is closed.
        """
        ...

    def extend(self, name: str, *, alone: bool = False) -> StoreWriter:
        """Go on at the end of a file.

        With `alone` as its only writer: `gulpio2.errors.LockedError` where another
        process has opened it so, also one of a run that was killed.
        """
        ...

    def write_atomically(
        self, name: str, data: bytes, *, made_of: Collection[str] = ()
    ) -> None:
        """Put a whole small file in place, durably: readers see the old or the new.

        Nobody may read it who may not read each of the files that it is made of, which
        are names in the store, or paths from the root on.
        """
        ...

    def replacing(
        self, name: str, *, made_of: Collection[str] = ()
    ) -> AbstractContextManager[StoreWriter]:
        """Put what is written in the block in place, as `write_atomically` does.

        Where the block raises, the file stays as it was.
        """
        ...

    def rename(
        self,
        source: str,
        target: str,
        *,
        made_of: Collection[str] = (),
        is_new: bool = False,
    ) -> None:
        """Give a synced file its final name, replacing what had it.

        Nobody may read it who may not read each of the files that it is made of. Where
        it `is_new`, it replaces nothing, if the file system can tell: that is refused.
        """
        ...

    def sync_names(self) -> None:
        """Return once renames and removals are on the disk itself."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def lock(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Be the only writer, or raise `gulpio2.errors.LockedError`.

        Shared, only keep writers away: others may do so at the same time.
        """
        ...

    def close(self) -> None:
        """Close what was opened for reading; it reopens when needed."""
        ...


def read_if_there(store: Store, name: str) -> bytes | None:
    """Read a whole file; None where there is none."""
    try:
        return store.read(name)
    except FileNotFoundError:
        return None


def read_unless_missing(store: Store, name: str) -> bytes | None:
    """Read a whole file; None where nothing has its name.

    For files that are replaced by what is made of them: what a link leads to may be
    away for a while, and what it says would be lost.

    Raises
    ------
    StorageNotFoundError
        It is a link that leads nowhere.
    """
    try:
        return store.read(name)
    except FileNotFoundError:
        if broken_link(store.path(name)):
            raise
        return None


def read_map(store: Store, name: str) -> tuple[bytes, OrderedDict[str, Any]]:
    """Give the bytes of a map, and its entries.

    Raises
    ------
    MetaFileError
        It is damaged.
    StorageError
        It cannot be read.
    """
    content = store.read(name)
    return content, load_gmeta(content, where=store.path(name))


def require_known_version(store: Store, *, to_write: bool = False) -> None:
    """Refuse a directory of another version of the format.

    Parameters
    ----------
    store : Store
        The directory.
    to_write : bool, keyword-only
        Refuse one whose manifest is a link that leads nowhere, too: frames can be read
        without it, but nobody knows of what version it is.

    Raises
    ------
    UnknownVersionError
        Its manifest says so.
    StorageError
        Its manifest cannot be read.
    """
    read = read_unless_missing if to_write else read_if_there
    manifest = read(store, MANIFEST_NAME)
    if manifest is not None:
        refuse_other_version(manifest, where=store.path(MANIFEST_NAME))


def checks_of_files(store: Store) -> dict[str, str]:
    """Give `Manifest.files`: the checks of the files that cannot carry their own."""
    return {
        name: file_check(data)
        for name in CHECKED_FILES
        if (data := read_if_there(store, name)) is not None
    }


def read_manifest(store: Store) -> Manifest:
    """Read how a directory was made; an empty manifest where it has none.

    Raises
    ------
    MetaFileError
        It is damaged, or of a newer format.
    StorageError
        It cannot be read, or is a link that leads nowhere.
    """
    data = read_unless_missing(store, MANIFEST_NAME)
    if data is None:
        return Manifest()
    return load_manifest(data, where=store.path(MANIFEST_NAME))


def require_failures_file(store: Store, manifest: Manifest) -> None:
    """Refuse a directory whose list of what failed is gone, by its manifest.

    Raises
    ------
    MetaFileError
        It is: nothing else tells which items of the source are missing.
    """
    if FAILURES_NAME in manifest.files and FAILURES_NAME not in store.names():
        raise MetaFileError(
            f"{store.path(FAILURES_NAME)} is missing, which {MANIFEST_NAME} tells of: "
            "nothing else says which items failed. Put it back; or make a copy without "
            "it by `gulp2 repair`, which tells that it is lost"
        )
