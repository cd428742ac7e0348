"""Which maps of a directory an index was not made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.errors import StorageError
from gulpio2.format.layout import list_chunks, meta_name
from gulpio2.storage.index.composing import map_states, read_map
from gulpio2.storage.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from gulpio2.storage.index.columns import IndexContent

__all__ = ["stale_maps", "states_of"]


def states_of(folder: str) -> npt.NDArray[np.int64]:
    """Ask for the size and time of every map that is there; see `map_states`."""
    return map_states(folder, list_chunks(LocalStore(folder).names()).chunks)


def stale_maps(
    folder: str,
    states: npt.NDArray[np.int64],
    content: IndexContent,
    *,
    thorough: bool,
    unread: Callable[[str, OSError], None] | None = None,
) -> tuple[str, ...]:
    """Give the maps that an index was not made of, or not as they are.

    Parameters
    ----------
    folder : str
        The directory.
    states : numpy.ndarray
        Of its maps, see `states_of`, from before the index was mapped.
    content : IndexContent
        The index.
    thorough : bool, keyword-only
        Of maps of which the time alone is another, compare the CRC-32.
    unread : callable, optional
        Called with the name of a map and the error, where the system refuses to read
        it: whether it is as it was indexed is not known. Default: the error is raised.

    Raises
    ------
    StorageError
        Without `unread`: a map cannot be read.
    """
    now = {number: rest for number, *rest in states[:, :3].tolist()}
    then = {number: rest for number, *rest in content.chunks[:, :3].tolist()}
    differ = sorted(
        number for number in now.keys() | then if now.get(number) != then.get(number)
    )
    if thorough:
        sums = dict(content.chunks[:, [0, 3]].tolist())
        differ = [
            number
            for number in differ
            if now.get(number, [-1])[0] != then.get(number, [-2])[0]
            or not _is_of_sum(folder, number, sums[number], unread)
        ]
    return tuple(map(meta_name, differ))


def _is_of_sum(
    folder: str,
    number: int,
    crc32: int,
    unread: Callable[[str, OSError], None] | None,
) -> bool:
    """Tell whether a map has a CRC-32; True where that is not known, and was told."""
    try:
        return read_map(folder, number)[1][3] == crc32
    except FileNotFoundError:
        return False
    except StorageError as cause:
        if unread is None:
            raise
        unread(meta_name(number), cause)
        return True
