"""The index of a directory: the file if it is fresh, else columns built anew."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.errors import MapChangedError, MetaFileError, StorageExistsError
from gulpio2.format.layout import INDEX_NAME, is_partial_of
from gulpio2.format.scan import UnusualMapError
from gulpio2.storage.index.composing import (
    compose,
    is_fresh,
    lost_maps,
    map_states,
)
from gulpio2.storage.index.file import write_index
from gulpio2.storage.index.index import Index
from gulpio2.storage.index.loading import load_index
from gulpio2.storage.index.texts import MapTexts
from gulpio2.storage.local import LocalStore
from gulpio2.storage.locks import lock_file
from gulpio2.storage.paths import path_in
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from gulpio2.storage.index.columns import IndexContent
    from gulpio2.storage.local_writer import LocalWriter
    from gulpio2.types import Progress, StrPath

__all__ = [
    "SMALL_MAPS_BYTES",
    "UnlessChanged",
    "index_of_state",
    "is_small",
    "may_write_index",
    "open_index",
]

_logger = logging.getLogger(__name__)

# Bytes of all maps. Below, parsing them takes some hundredths of a second at most, and
# ordinary dictionaries have nothing to be explained.
SMALL_MAPS_BYTES = 1024 * 1024
# Seconds after which an unfinished file of another process is taken to be left over.
_ABANDONED = 3600.0


def is_small(states: npt.NDArray[np.int64]) -> bool:
    """Tell whether maps are so small that an index is not worth its while."""
    return int(states[:, 1].sum()) <= SMALL_MAPS_BYTES


def may_write_index(path: StrPath, partials: Sequence[str]) -> bool:
    """Tell whether a reader may write an index file, if the folder allows it.

    Not beside files that another program is writing: it will see to the index.

    Parameters
    ----------
    path : str or path
        The directory.
    partials : sequence of str
        Unfinished files in it. One of an index that nobody has written to for an hour
        is left over from a process that was killed.
    """
    for name in partials:
        if not is_partial_of(name, INDEX_NAME):
            return False
        try:
            state = os.stat(path_in(path, name))  # noqa: PTH116  # a str, once for each file
        except OSError:
            continue
        if time.time() - state.st_mtime < _ABANDONED:
            return False
    return True


def open_index(
    path: StrPath,
    numbers: Sequence[int],
    *,
    wanted: bool | None,
    may_write: bool,
    verify: bool = False,
    progress: Progress = no_progress,
) -> Index | None:
    """Give the index of a directory.

    Parameters
    ----------
    path : str or path
        The directory.
    numbers : sequence of int
        Its chunks, ascending.
    wanted : bool or None
        None: only if the directory is not small.
    may_write : bool
        Whether the file may be written, where it is missing or stale and the folder
        allows it.
    verify : bool, optional
        Whether each entry is compared with its own check before it is first used.
    progress : Progress, optional
        Called for each map that is looked through, with its bytes.

    Returns
    -------
    Index or None
        None if there is none, so that the maps have to be loaded.

    Raises
    ------
    MetaFileError
        A map is damaged.
    DuplicateIdError
        Two chunks have an item of the same id.
    """
    folder = os.fspath(path)
    if wanted is False or (wanted is None and not numbers):
        return None
    states = map_states(folder, numbers)
    if wanted is None and is_small(states):
        return None
    make = _Maker(folder, numbers, states, may_write=may_write, progress=progress)
    try:
        return Index(folder, make, verify=verify)
    except UnusualMapError as cause:
        _logger.info("%s is opened without an index: %s", folder, cause)
        return None


def index_of_state(
    path: StrPath, states: npt.NDArray[np.int64], *, verify: bool
) -> Index:
    """Give the index of a directory whose maps were loaded. Nothing is written.

    Parameters
    ----------
    path : str or path
        The directory.
    states : numpy.ndarray
        The maps as they have to be, from `map_states`: what they say is known already.
        Where the CRC-32 of one is not 0, it has to be that as well.
    verify : bool
        As for `open_index`.

    Raises
    ------
    MapChangedError
        A map is not any more what it has to be.
    MetaFileError
        It cannot be put into columns.
    """
    folder, numbers = os.fspath(path), states[:, 0].tolist()
    now = map_states(folder, numbers)
    make = _Maker(folder, numbers, now, may_write=False, of_state=states)
    try:
        return Index(folder, make, verify=verify)
    except UnusualMapError as cause:
        raise MetaFileError(
            f"{folder} cannot be asked like a table: {cause}. Its items can be read by "
            "their ids"
        ) from cause


class _Maker:
    """Makes the content of an index, first of all of maps in a state that is known."""

    def __init__(
        self,
        folder: str,
        numbers: Sequence[int],
        states: npt.NDArray[np.int64],
        *,
        may_write: bool,
        of_state: npt.NDArray[np.int64] | None = None,
        progress: Progress = no_progress,
    ) -> None:
        self._folder = folder
        self._numbers = numbers
        self._known: npt.NDArray[np.int64] | None = states
        self._may_write = may_write
        self._of_state = of_state
        self._progress = progress  # of the first time: the index is made anew later on

    def __call__(self, *, trust: bool = True) -> tuple[IndexContent, bool]:
        """Give content, and whether it is mapped from the file."""
        folder, states = self._folder, self._known
        progress, self._progress = self._progress, no_progress
        self._known = None
        if states is None:
            states = map_states(folder, self._numbers)
        before = _identity_of(folder)
        old, may_replace = load_index(folder) if trust else (None, False)
        if (
            old is not None
            and not is_fresh(old, states)
            and not MapTexts(folder).are_those_of(old)
        ):
            # Of other maps, or of one that has rotted, for a repair: it is left alone.
            old, may_replace = None, False
            _logger.warning(
                "%s: it was made of other maps than these, so it is built anew from "
                "the maps, in memory. Run `gulp2 index` to replace the file",
                path_in(folder, INDEX_NAME),
            )
        content, _ = compose(folder, states, old, progress)
        wanted = self._of_state
        if wanted is not None and not _are_sums_of(wanted, content):
            # It may be the file that is of other maps.
            content, _ = compose(folder, states, None)
        if wanted is not None and not (
            is_fresh(content, wanted) and _are_sums_of(wanted, content)
        ):
            raise MapChangedError(
                f"{folder} has changed since it was opened: a map in it is another. "
                "Open it again"
            )
        if content is old:
            return content, True
        if lost_maps(folder, content.chunks, old):
            return content, False  # a repair takes from the file what nothing else has
        if may_replace:
            # Others who opened the directory at the same time may have been quicker.
            found = _made_since(folder, before, content)
            if found is None and self._may_write:
                _write(folder, content, before)
                found = _made_since(folder, before, content)
            if found is not None:
                return found, True
        return content, False


def _identity_of(folder: str) -> tuple[int, int, int] | None:
    """Give what is another where the file of the index is; None if there is none."""
    try:
        state = os.lstat(path_in(folder, INDEX_NAME))  # what is replaced
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


def _made_since(
    folder: str, before: tuple[int, int, int] | None, content: IndexContent
) -> IndexContent | None:
    """Give what is in the file, if it is another one by now, and of the same maps."""
    if _identity_of(folder) in (before, None):
        return None
    made, _ = load_index(folder)
    is_same = made is not None and np.array_equal(made.chunks, content.chunks)
    return made if is_same else None


def _are_sums_of(wanted: npt.NDArray[np.int64], content: IndexContent) -> bool:
    """Tell whether maps have the CRC-32 that they are to have; 0 is any.

    True where they are others by size and time.
    """
    found = content.chunks
    return (
        not is_fresh(content, wanted)
        or not ((found[:, 3] != wanted[:, 3]) & (wanted[:, 3] != 0)).any()
    )


def _write(
    folder: str, content: IndexContent, before: tuple[int, int, int] | None
) -> None:
    """Write the file if the folder allows it, in the place of the one before."""
    if not len(content.columns) or not os.access(folder, os.W_OK):
        return
    store = _UnlessMade(folder, content, before)
    try:
        write_index(store, content.columns, content.lookup, content.chunks)
    except StorageExistsError as cause:
        _logger.debug("%s", cause)
    except (OSError, MapChangedError, ImportError) as cause:
        _logger.info("the index of %s stays in memory: %s", folder, cause)
    except Exception:  # whatever it is: the file is optional, and opening is not
        _logger.warning("the index of %s stays in memory", folder, exc_info=True)


class UnlessChanged(LocalStore):
    """Puts an index in place, unless its maps have changed by the time it is begun.

    Who deletes items changes maps first, and then removes what is being written of an
    index, as it makes its own. So an index that is begun before that is removed, and
    one that is begun after it is not written: else the metadata of what was deleted
    would come back with it.
    """

    def __init__(self, folder: str, content: IndexContent) -> None:
        super().__init__(folder)
        self._content = content

    @contextmanager
    def replacing(
        self, name: str, *, made_of: Collection[str] = ()
    ) -> Iterator[LocalWriter]:
        """Put what the block writes in place, as `LocalStore.replacing` does.

        Raises
        ------
        MapChangedError
            A map has changed.
        """
        with super().replacing(name, made_of=made_of) as writer:
            numbers = self._content.chunks[:, 0].tolist()
            if not is_fresh(self._content, map_states(str(self.folder), numbers)):
                raise MapChangedError(
                    f"a map in {self.folder} has changed while an index was made of it"
                )
            yield writer


class _UnlessMade(UnlessChanged):
    """Puts an index in place, unless another process has done so meanwhile.

    A file that is replaced stays to those who have it mapped, but not by NFS: there
    its server removes it, and a process on another machine that looks at it then ends
    by a signal.
    """

    def __init__(
        self, folder: str, content: IndexContent, before: tuple[int, int, int] | None
    ) -> None:
        super().__init__(folder, content)
        self._before = before

    def rename(
        self,
        source: str,
        target: str,
        *,
        made_of: Collection[str] = (),
        is_new: bool = False,
    ) -> None:
        """Give the file its name, as `LocalStore.rename` does.

        Raises
        ------
        StorageExistsError
            Another has given one that name.
        """
        with _one_at_a_time(self.path(target)):
            now = _identity_of(str(self.folder))
            if now not in (self._before, None):
                raise StorageExistsError(
                    errno.EEXIST,
                    f"{self.path(target)} was made by another process meanwhile",
                )
            is_new = is_new or now is None  # who is second is refused then
            super().rename(source, target, made_of=made_of, is_new=is_new)


@contextmanager
def _one_at_a_time(path: str) -> Iterator[None]:
    """Let others who replace a file wait, who look at its name once more then.

    By a lock on the file that is there, if there is one and the file system has locks:
    else two may replace it in one instant.
    """
    try:
        fd = os.open(path, os.O_RDWR)  # NFS gives no exclusive lock for less
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            lock_file(fd)
        yield
    finally:
        # Not by closing alone: a child that was forked meanwhile has the file as well.
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)
