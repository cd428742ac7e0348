"""A folder of this machine, written so that a crash leaves the old or the new."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.errors import LockedError, StorageError
from gulpio2.format.layout import partial_name
from gulpio2.storage.descriptors import letting_go, open_descriptor, open_regular
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.leftovers import removed_on_error
from gulpio2.storage.local_writer import ExtendingWriter, LocalWriter
from gulpio2.storage.locks import lock_folder
from gulpio2.storage.naming import rename_new
from gulpio2.storage.paths import path_in
from gulpio2.storage.permissions import settle_permissions
from gulpio2.storage.refusals import local_path, refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "LocalStore",
    "free_bytes",
    "new_token",
    "open_store",
]


def open_store(folder: StrPath) -> Store:
    """Give the store of a folder. Creates nothing and opens nothing."""
    return LocalStore(folder)


def new_token() -> str:
    """Make a name part that no other writer has, for files under way."""
    return secrets.token_hex(6)


def free_bytes(folder: StrPath) -> int | None:
    """Say how many bytes can still be written to a folder; None if nobody knows."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    # Some network and virtual file systems say 0 blocks of everything.
    return found.f_bavail * found.f_frsize if found.f_blocks else None


class LocalStore:
    """The files of one folder. See `gulpio2.storage.base.Store`.

    Picklable; open files are left behind and reopened where they are needed.

    Parameters
    ----------
    folder : str or path
        It need not exist.

    Examples
    --------
    >>> store = LocalStore("out")
    >>> store.make()
    >>> store.write_atomically("gulp.json", b"{}")
    >>> store.read("gulp.json")
    b'{}'
    """

    def __init__(self, folder: StrPath) -> None:
        if not os.fspath(folder):
            raise ValueError(
                "the path of the folder is empty: perhaps a variable is not set. The "
                "current folder is '.'"
            )
        self.folder = Path(folder)
        self._handles = HandlePool()

    def __repr__(self) -> str:
        """Show the folder."""
        return f"LocalStore({str(self.folder)!r})"

    def names(self) -> list[str]:
        """List the files, in no particular order; none if the folder is missing."""
        try:
            # A third of Path's time.
            return letting_go(lambda: os.listdir(self.folder))  # noqa: PTH208  # see above
        except FileNotFoundError:
            return []
        except OSError as cause:
            raise refused(cause, "list", self.folder) from cause

    def path(self, name: str) -> str:
        """Say where a name lies, for messages."""
        return str(self.folder / name)

    def size(self, name: str) -> int:
        """Count the bytes of a file."""
        try:
            state = (self.folder / name).stat()
            if not stat.S_ISREG(state.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")  # told as others are
        except OSError as cause:
            raise refused(cause, "read", self.folder / name) from cause
        return state.st_size

    def read(self, name: str) -> bytes:
        """Read a whole file."""
        try:
            fd = open_regular(self.path(name))
            try:
                # Where this fails, Python leaves a descriptor that it is given open.
                with open(fd, "rb", closefd=False) as file:
                    return file.read()
            finally:
                with suppress(OSError):  # it was only read
                    os.close(fd)
        except OSError as cause:
            raise refused(cause, "read", self.folder / name) from cause

    def read_at(self, name: str, offset: int, length: int) -> bytes:
        """Read exactly this many bytes from this position, in one request."""
        return self._handles.read_at(path_in(self.folder, name), offset, length)

    def make(self) -> None:
        """Create the folder, with its parents, if it is missing."""
        folder = local_path(self.folder, "write to")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise refused(cause, "create the folder", folder, writing=True) from cause

    def create(self, name: str, *, alone: bool = False) -> LocalWriter:
        """Begin a new file under a name that no reader looks at; it must not exist."""
        return LocalWriter(self.folder / name, alone=alone)

    def extend(self, name: str, *, alone: bool = False) -> ExtendingWriter:
        """Go on at the end of a file; with `alone` as its only writer."""
        return ExtendingWriter(self.folder / name, alone=alone)

    def write_atomically(
        self, name: str, data: bytes, *, made_of: Collection[str] = ()
    ) -> None:
        """Put a whole small file in place, durably: readers see the old or the new."""
        with self.replacing(name, made_of=made_of) as writer:
            writer.write(data)

    @contextmanager
    def replacing(
        self, name: str, *, made_of: Collection[str] = ()
    ) -> Iterator[LocalWriter]:
        """Put what the block writes in place, as `write_atomically` does."""
        partial = partial_name(name, new_token())
        writer = self.create(partial)
        with removed_on_error(self, partial):
            try:
                # Before anything is written: it is no more secret under its final name.
                self._permit(partial, name, made_of)
                yield writer
                writer.sync()
                writer.close()
            except BaseException:
                with suppress(StorageError):  # what it was to hold is dropped
                    writer.close()
                raise
            self.rename(partial, name, made_of=made_of)
            self.sync_names()

    def _permit(self, source: str, target: str, made_of: Collection[str]) -> None:
        """Have a new file be read by nobody who may not read it under its final name.

        See `rename`.
        """
        folder = self.folder
        sources = (folder / name for name in made_of)
        settle_permissions(folder / source, folder / target, sources)

    def rename(
        self,
        source: str,
        target: str,
        *,
        made_of: Collection[str] = (),
        is_new: bool = False,
    ) -> None:
        """Give a synced file its final name, replacing what had it.

        It gets the permissions of a file that it replaces: the new file would shut out
        others who write to the directory. Of those, none that not all have of the files
        that it is made of. Where it `is_new`, a file that has the name stays, and
        `StorageExistsError` is raised. Where the file system knows no hard links, or
        such that have locks of their own, a file that gets the name in the same instant
        stays if it is given so too, and the file system knows locks.
        """
        try:
            self._permit(source, target, made_of)
            if is_new:
                rename_new(self.folder / source, self.folder / target)
            else:
                (self.folder / source).replace(self.folder / target)
        except LockedError:
            raise
        except OSError as cause:
            raise refused(
                cause, f"rename to {target}", self.folder / source, writing=True
            ) from cause

    def sync_names(self) -> None:
        """Return once renames and removals are on the disk itself.

        Where the file system syncs no folders, it alone knows when they are.
        """
        try:
            fd = open_descriptor(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                with suppress(OSError):  # it is synced, and closed all the same
                    os.close(fd)
        except OSError as cause:
            if cause.errno == errno.EINVAL:  # as Linux says where it has no such call
                return
            raise refused(
                cause, "sync the folder", self.folder, writing=True
            ) from cause

    def remove(self, name: str) -> None:
        """Remove a file; one that is not there is no error."""
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as cause:
            raise refused(cause, "remove", self.folder / name, writing=True) from cause

    def lock(self, *, shared: bool = False) -> AbstractContextManager[None]:
        """Be the only writer, or raise `gulpio2.errors.LockedError`."""
        return lock_folder(self.folder, shared=shared)

    def close(self) -> None:
        """Close what was opened for reading; it reopens when needed."""
        self._handles.close()
