"""Reading on where frames are damaged: skip them, or give the nearest good one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.arguments import as_number, require_choice
from gulpio2.errors import (
    CorruptFrameError,
    ReadRangeError,
    StorageError,
    UnreadablePlaceError,
)
from gulpio2.format.wording import counted
from gulpio2.item import EditedChecksums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.directory import GulpDirectory
    from gulpio2.item import StoredItem
    from gulpio2.types import FrameSelection, Meta

__all__ = ["DamageReport", "OnDamage", "TolerantReader", "is_damage"]

OnDamage = Literal["raise", "skip", "substitute"]


@dataclass(slots=True)
class DamageReport:
    """The damaged frames that a reader met, each counted once."""

    frames: dict[str, set[int]] = field(default_factory=dict)
    """Id to indices of damaged frames."""
    reads: int = 0
    """How often a damaged frame was met, also in looking for one to give instead."""

    @property
    def count(self) -> int:
        """Damaged frames."""
        return sum(len(indices) for indices in self.frames.values())

    def __str__(self) -> str:
        """Sum it up on one line."""
        frames = counted(self.count, "damaged frame")
        return f"{frames} in {counted(len(self.frames), 'item')}"


class TolerantReader:
    """Reads frames of a directory, with a rule for those that are damaged.

    Parameters
    ----------
    directory : GulpDirectory
        Not one with ``verify=False``: a damaged frame that the decoder makes something
        of is not found then, nor in what has no checksums.
    on_damage : {"raise", "skip", "substitute"}, optional
        Raise as the directory does; leave the frame out; or give the nearest frame of
        the item that is good, the earlier one of two, in its place.
    ceiling : int, optional
        Damaged frames that are put up with, over all items, each counted once. One
        more raises, whatever the rule: a broken disk is no training set.

    Attributes
    ----------
    damage : DamageReport
        What was met so far.

    Raises
    ------
    ValueError
        No such rule, or a ceiling that is below 0 or no number.

    Examples
    --------
    >>> from gulpio2 import GulpDirectory
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("out", num_items=1, num_frames=8)
    >>> reader = TolerantReader(GulpDirectory("out"), on_damage="skip")
    >>> frames, meta = reader.read_frames("item0", slice(0, 4))
    >>> len(frames), str(reader.damage)
    (4, '0 damaged frames in 0 items')

    Notes
    -----
    As long as nothing is damaged it costs nothing. After a damaged frame the frames of
    that call are read one at a time.
    """

    def __init__(
        self,
        directory: GulpDirectory,
        *,
        on_damage: OnDamage = "raise",
        ceiling: int = 100,
    ) -> None:
        require_choice("on_damage", on_damage, OnDamage)
        if not as_number(ceiling) >= 0:
            raise ValueError(f"ceiling is {ceiling!r}; it must be at least 0")
        self.directory = directory
        self.on_damage = on_damage
        self.ceiling = ceiling
        self.damage = DamageReport()
        self._num_damaged = 0  # to count them all for each would take ever longer

    def read_frames(
        self, id_: Any, slice_: FrameSelection = None
    ) -> tuple[list[Any], Meta]:
        """Decode the chosen frames of one item; see `GulpDirectory.read_frames`.

        Parameters
        ----------
        id_ : str or int
            The item.
        slice_ : slice, int, sequence of int or array, optional
            Default: all frames.

        Returns
        -------
        frames : list
            As many as were asked for, or fewer where damaged ones are skipped.
        meta : dict
            A copy of the item's metadata, as `read_frames` gives it.

        Raises
        ------
        CorruptFrameError, StorageError
            A frame is damaged and the rule is to raise, the ceiling is passed, or no
            frame of the item is good.
        """
        item = self.directory.item(id_)
        try:
            return item.read_frames(slice_), item.meta
        except (CorruptFrameError, StorageError) as error:
            if self.on_damage == "raise" or not is_damage(error):
                raise
        frames, edited = [], EditedChecksums(item)
        for index in item.select(slice_):
            found = self._frame(item, index, edited)
            if found is not None:
                frames.append(found)
            elif self.on_damage == "substitute":
                frames.append(self._nearest(item, index, edited))
        return frames, item.meta

    def _frame(self, item: StoredItem, index: int, edited: EditedChecksums) -> Any:
        """Read one frame; None if it is damaged."""
        try:
            try:
                (frame,) = item.read_frames([index], edited)
            except UnreadablePlaceError:  # it may pass
                (frame,) = item.read_frames([index], edited)
        except (CorruptFrameError, StorageError) as error:
            if not is_damage(error):
                raise
            self.damage.reads += 1
            known = self.damage.frames.setdefault(item.id_, set())
            self._num_damaged += index not in known
            known.add(index)
            if self._num_damaged > self.ceiling:
                # Counted anew, as the report may have been emptied meanwhile.
                self._num_damaged = self.damage.count
            if self._num_damaged > self.ceiling:
                raise type(error)(
                    *error.args[:-1],
                    f"{error.args[-1]}. It is one more than the ceiling of "
                    f"{self.ceiling} damaged frames; run `gulp2 check --deep` on "
                    f"{self.directory.output_dir}",
                ) from error
            return None
        return frame

    def _nearest(self, item: StoredItem, index: int, edited: EditedChecksums) -> Any:
        """Read the good frame that is nearest."""
        known = self.damage.frames[item.id_]
        for other in _by_distance(index, item.num_frames):
            if other not in known:
                frame = self._frame(item, other, edited)
                if frame is not None:
                    return frame
        raise CorruptFrameError(
            f"item {item.id_!r} in {item.data_path} has no good frame to give in place "
            f"of frame {index}"
        )


def _by_distance(index: int, num_frames: int) -> Iterator[int]:
    """Give the other frames by their distance, earlier ones first."""
    for distance in range(1, num_frames):
        for other in (index - distance, index + distance):
            if 0 <= other < num_frames:
                yield other


def is_damage(error: Exception) -> bool:
    """Tell a damaged frame from a disk or network that refuses everything.

    Parameters
    ----------
    error : Exception
        What reading it raised.

    Returns
    -------
    bool
        True for bytes that are not there or cannot be decoded, and for a medium that
        cannot be read at that place (``EIO``), which may pass. False where a file
        cannot be opened or looked at, also with this number.
    """
    return isinstance(error, (CorruptFrameError, ReadRangeError, UnreadablePlaceError))
