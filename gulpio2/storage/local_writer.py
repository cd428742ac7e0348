"""A file of a folder that is being written, only ever at its end."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from gulpio2.errors import ChunkMismatchError, LockedError, StorageError
from gulpio2.storage.base import WRITTEN_AT_ONCE
from gulpio2.storage.descriptors import open_descriptor
from gulpio2.storage.locks import lock_file
from gulpio2.storage.paths import is_at
from gulpio2.storage.refusals import refused
from gulpio2.storage.writeback import begin_writeback

if TYPE_CHECKING:
    from pathlib import Path

    from gulpio2.types import StrPath

__all__ = ["ExtendingWriter", "LocalWriter"]

# Bytes after which the system is asked to begin writing. Else it would keep all of a
# chunk in memory until its sync, with the disk idle first and the processor then.
_WRITEBACK_BYTES = 4 << 20


class LocalWriter:
    """A file being written through one descriptor. See `gulpio2.storage.base`."""

    def __init__(
        self, path: Path, *, extend: bool = False, alone: bool = False
    ) -> None:
        self.path = path
        flags = os.O_WRONLY
        # What is appended is to be behind what others append meanwhile.
        flags |= os.O_APPEND if extend else os.O_CREAT | os.O_EXCL
        if not path.name.endswith(".gulp"):
            # A data file may be a link to another disk. What only writers make is
            # none, unless somebody wants a run that resumes to write elsewhere.
            flags |= os.O_NOFOLLOW
        self._fd: int | None = None
        # Whether nothing was written since a sync: of what was there nobody knows.
        self._is_synced = False
        try:
            self._fd = open_descriptor(path, flags, 0o666)
            is_locked = not alone or lock_file(self._fd)
            self._position = self._begun = os.lseek(self._fd, 0, os.SEEK_END)
            if alone and not extend and self._position:  # another took it up before
                is_locked = False
        except OSError as cause:
            self._drop()
            raise refused(
                cause, "open for writing", path, writing=True, extending=extend
            ) from cause
        except BaseException:  # an interrupt while it waits
            self._drop()
            raise
        if not is_locked:
            self._drop()
            raise LockedError(
                errno.EWOULDBLOCK,
                f"another process is writing to {path}, perhaps one of a run that was "
                "killed and waits for its disk. Wait for it to end",
            )

    def tell(self) -> int:
        """Count the bytes written so far."""
        return self._position

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, all of them or an error."""
        rest = memoryview(data)
        self._is_synced = False
        try:
            while rest:
                room = WRITTEN_AT_ONCE - self._position % WRITTEN_AT_ONCE
                written = os.write(self._descriptor(), rest[:room])
                self._position += written
                rest = rest[written:]
                if self._position - self._begun >= _WRITEBACK_BYTES:
                    self._begin_writeback()
        except OSError as cause:
            raise refused(cause, "write", self.path, writing=True) from cause

    def _begin_writeback(self) -> None:
        """Have the system write to the disk what it has; `sync` then waits less."""
        size = self._position - self._begun
        begin_writeback(self._descriptor(), self._begun, size)
        self._begun = self._position

    def truncate(self, size: int) -> None:
        """Drop everything after the first `size` bytes, and go on from there."""
        self._is_synced = False
        try:
            os.ftruncate(self._descriptor(), size)
            self._position = os.lseek(self._descriptor(), size, os.SEEK_SET)
            self._begun = min(self._begun, size)
        except OSError as cause:
            raise refused(cause, "truncate", self.path, writing=True) from cause

    def sync(self) -> None:
        """Return once the content is on the disk itself; at once where it is."""
        if not self._is_synced:
            self._sync()
            self._is_synced = True

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor())
        except OSError as cause:
            raise refused(cause, "sync", self.path, writing=True) from cause

    def is_at(self, path: StrPath) -> bool:
        """Tell whether a path leads to this file; not, where another replaced it."""
        return is_at(self._descriptor(), path)

    def _drop(self) -> None:
        """Close a file that nothing was written to."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def close(self) -> None:
        """Close; a second time is harmless."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                os.close(fd)
            except OSError as cause:
                raise refused(cause, "close", self.path, writing=True) from cause

    def _descriptor(self) -> int:
        if self._fd is None:
            raise StorageError(None, f"{self.path} is closed already")
        return self._fd


class ExtendingWriter(LocalWriter):
    """Goes on at the end of a file that programs without locks may append to as well.

    What they have written is neither overwritten nor cut off, and where it is in the
    way of what is written here, that is an error: its place is not what it was to be.
    """

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        super().__init__(path, extend=True, alone=alone)

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes, all of them or an error."""
        self._refuse_others()
        super().write(data)
        fd = self._descriptor()
        try:
            end = os.lseek(fd, 0, os.SEEK_CUR)
        except OSError as cause:
            raise refused(cause, "write", self.path, writing=True) from cause
        if end != self._position:
            raise self._changed()  # in between

    def truncate(self, size: int) -> None:
        """Drop everything after the first `size` bytes, if it was written here."""
        self._refuse_others()
        super().truncate(size)

    def _refuse_others(self) -> None:
        fd = self._descriptor()
        try:
            size = os.fstat(fd).st_size
        except OSError as cause:
            raise refused(cause, "look at", self.path, writing=True) from cause
        if size != self._position:
            raise self._changed()

    def _changed(self) -> ChunkMismatchError:
        return ChunkMismatchError(
            f"{self.path} was written to by another program while it was open here. "
            "What that program wrote stays as it is, perhaps not where its map says it "
            "is: run `gulp2 check --deep`. What was not flushed before is not stored: "
            "append again"
        )
