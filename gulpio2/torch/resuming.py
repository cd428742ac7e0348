"""Where a run stands, and going on from there: what all that give batches have."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.format.wording import counted
from gulpio2.torch.damage import DamageCount, DamageState
from gulpio2.torch.turns import Turn, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gulpio2.order import OrderCursor
    from gulpio2.torch.seeding import SampleIndex

__all__ = ["GivenPlaces", "Resumable"]


class _Mark(NamedTuple):
    """Where a run stood."""

    epoch: int
    position: int
    over_at: tuple[int, int] | None
    damage: tuple[int, int, set[tuple[int, int]]]


class Resumable:
    """A place in an order, and the damage that was met on the way there.

    Parameters
    ----------
    cursor : OrderCursor
        Of this rank.
    max_corrupt : int
        Damaged samples that are put up with.
    """

    def __init__(self, cursor: OrderCursor, max_corrupt: int) -> None:
        self._turn = Turn()
        self.cursor = cursor
        self._damage = DamageCount(max_corrupt, cursor.rank, cursor.num_ranks)
        # Where the last batch of an epoch was given out, if it was.
        self._over_at: tuple[int, int] | None = None
        # Whether an epoch that was left is gone on with, and where that is so anyway.
        self._goes_on = True
        self._taken_up_at: tuple[int, int] | None = None
        # Where somebody has asked for the epoch that it is in.
        self._set_at: tuple[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Pickle, or copy, with a place in the run of its own."""
        own = {"cursor": copy.copy(self.cursor), "_damage": copy.deepcopy(self._damage)}
        state = {**vars(self), **own}
        del state["_turn"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up the place in the run, with a turn of its own."""
        vars(self).update(state)
        self._turn = Turn()

    @property
    def epoch(self) -> int:
        """The epoch that is under way."""
        return self.cursor.epoch

    @property
    def num_skipped(self) -> int:
        """Damaged samples that were left out so far, of this rank."""
        return self._damage.num_skipped

    @property
    def num_substituted(self) -> int:
        """Damaged samples so far, of this rank, in whose places there were others."""
        return self._damage.num_substituted

    @in_turn
    def state_dict(self) -> dict[str, Any]:
        """Give the state as a few integers; of one step, in whichever thread.

        Returns
        -------
        dict
            The place in the global order, which is the same from every rank and knows
            nothing of ranks, threads, workers, batches or prefetching; and the damage
            that this rank has met: counts, and once there was some, whose they are and
            which samples are damaged. `merge_states` makes one of all ranks' states.
        """
        return {**self.cursor.state_dict(), **self._damage.state().as_dict()}

    @in_turn
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where a state was saved, with this one's own ranks and batches.

        Damage is taken up by the rank that met it: where all load what one rank has
        saved, the others begin without. `merge_states` makes a state that has it all.

        Raises
        ------
        TypeError, ValueError
            It is no state, or was saved along another order. Nothing is changed.
        """
        damage = DamageState.of(state)
        self.cursor.load_state_dict(state)
        self._damage.go_on(damage)
        self._over_at = None
        self._taken_up_at = self.cursor.epoch, self.cursor.position

    def _advance(self, num_samples: int, least_left: int) -> None:
        """Note that a batch was given out.

        Parameters
        ----------
        num_samples : int
            What it consumed.
        least_left : int
            Samples that there have to be for another one.
        """
        self.cursor.advance(num_samples)
        if len(self.cursor) < least_left:
            self._over_at = self.cursor.epoch, self.cursor.position

    def _mark(self) -> Any:
        """Say where the run stands, before a batch is counted."""
        cursor = self.cursor
        return _Mark(cursor.epoch, cursor.position, self._over_at, self._damage.mark())

    def _go_back(self, mark: _Mark) -> None:
        """Count a batch no more that was counted after a mark, or a part of it."""
        if self.cursor.epoch == mark.epoch:
            self.cursor.position, self._over_at = mark.position, mark.over_at
            self._damage.go_back(mark.damage)

    def _end_epoch(self, num_open: int, least_left: int) -> None:
        """Go to the next epoch, where a loader has come to its end.

        Parameters
        ----------
        num_open : int
            Samples that were given, and that were in no batch. Some of them may be for
            another iterator, where somebody has looked into the loader meanwhile.
        least_left : int
            Samples that there have to be for another batch.

        Raises
        ------
        RuntimeError
            There was to be another batch.
        """
        if min(num_open, len(self.cursor)) >= least_left:
            missing = len(self.cursor) - len(self.cursor) % least_left
            raise RuntimeError(
                f"the loader has ended, and {counted(missing, 'sample')} of epoch "
                f"{self.epoch} never came. See whether the dataset, a transform or the "
                "collate_fn raises StopIteration, as next() does: a loader takes that "
                "for its own end"
            )
        self.cursor.next_epoch()

    def _leave_what_is_over(self) -> None:
        """Go to the next epoch, where an iteration was left with its last batch.

        Whoever counts batches never asks for one more, which would end the epoch.
        """
        if self._over_at == (self.cursor.epoch, self.cursor.position):
            self.cursor.next_epoch()

    def _leave_what_is_behind(self) -> None:
        """Go to the next epoch, also from the midst of one where that is so wished."""
        self._leave_what_is_over()
        place = self.cursor.epoch, self.cursor.position
        if self._taken_up_at == place:
            return
        self._taken_up_at = None  # as somebody may come by there once more
        if not self._goes_on and self.cursor.position:
            self.cursor.set_epoch(self.epoch + (self._set_at != place))

    def _left_at(self, place: tuple[int, int]) -> _LeftAt:
        """Do so where the block is left by an exception, unless another moved on."""
        return _LeftAt(self, place)


class _LeftAt:
    """The block of `Resumable._left_at`.

    No generator: contextlib of Python 3.10 has the exception that leaves it lead to
    itself, and with it what the frames hold that it passed, as the workers of a
    DataLoader, which would go on until garbage is collected.
    """

    def __init__(self, run: Resumable, place: tuple[int, int]) -> None:
        self._run = run
        self._place = place

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave what is over, if there was an exception, which goes on."""
        run = self._run
        if kind is not None:
            with run._turn.lock:
                if self._place == (run.cursor.epoch, run.cursor.position):
                    run._leave_what_is_over()


class GivenPlaces:
    """The iterator of a sampler, which refuses to go on from a state.

    A loader that has a state of its own, as the one of torchdata, saves and loads that
    of the sampler's iterator, if it has one, and then skips no samples. But the place
    in a run moves when a batch is handed over, and not when its indices are given.

    Parameters
    ----------
    places : iterator of SampleIndex
        What there is to give.
    """

    def __init__(self, places: Iterator[SampleIndex]) -> None:
        self._places = places

    def __iter__(self) -> GivenPlaces:
        """Give itself."""
        return self

    def __next__(self) -> SampleIndex:
        """Give the next one."""
        return next(self._places)

    def state_dict(self) -> dict[str, Any]:
        """Give nothing: a loader may ask, whether its state is used or not."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Refuse: samples would come twice.

        Raises
        ------
        RuntimeError
            Always.
        """
        del state
        raise RuntimeError(
            "the state of a loader does not say where this run stands, and samples "
            "would come again: save state_dict() of the sampler in place of the "
            "loader's, load that into the sampler, and iterate by track(loader)"
        )
