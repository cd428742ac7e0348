"""Damaged samples of a run, where its batches are given out, and in its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gulpio2.arguments import require_number, require_state
from gulpio2.errors import CorruptFrameError
from gulpio2.torch.wrappers import DatasetWrapper, only_finds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Damage", "DamageCount", "DamageState", "merge_states", "number_of"]

# What a state has beside the place in the order, which is the same from all ranks.
_COUNTS = ("skipped", "substituted")
_OF_ONE_RANK = (*_COUNTS, "damaged", "rank")


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged sample; one that stood in for another may be one, too."""

    dataset: int
    """The dataset that it is of, see `number_of`."""
    index: int
    """The sample there."""
    message: str
    """What is wrong with it."""


@dataclass(frozen=True, slots=True)
class DamageState:
    """What a state says of damage."""

    skipped: int
    """Samples that were left out."""
    substituted: int
    """Samples in whose places there were others."""
    damaged: frozenset[tuple[int, int]]
    """The damaged ones, each once: dataset, and index there."""
    rank: int
    """Whose counts they are."""

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> DamageState:
        """Take it out of a state, which may have been saved before there was any.

        Raises
        ------
        TypeError, ValueError
            It is no state.
        """
        require_state(state)
        skipped, substituted, rank = (
            require_number(f"the state's {name}", state.get(name, 0), 0)
            for name in (*_COUNTS, "rank")
        )
        pairs = state.get("damaged", ())
        try:
            damaged = frozenset(
                (
                    require_number("a dataset", dataset, 0),
                    require_number("a sample", index, 0),
                )
                for dataset, index in pairs
            )
        except (TypeError, ValueError) as cause:
            raise ValueError(
                f"the state's damaged is {pairs!r}, expected pairs of numbers: a "
                "dataset, and a sample of it"
            ) from cause
        return cls(skipped, substituted, damaged, rank)

    def as_dict(self) -> dict[str, Any]:
        """Give it as a state has it: without damage, two zeros."""
        state: dict[str, Any] = {name: getattr(self, name) for name in _COUNTS}
        if any(state.values()) or self.damaged:
            state["damaged"] = [list(pair) for pair in sorted(self.damaged)]
            state["rank"] = self.rank
        return state


class DamageCount:
    """The damaged samples that a rank met.

    Those of batches that were given out: what is made ahead, by however many threads or
    workers, does not decide at which step a run ends.

    Parameters
    ----------
    max_corrupt : int
        So many are put up with, each counted once.
    rank : int
        Whose they are.

    Attributes
    ----------
    num_skipped, num_substituted : int
        What was done, each time that it was.
    """

    def __init__(self, max_corrupt: int, rank: int) -> None:
        self.max_corrupt = require_number("max_corrupt", max_corrupt, 0)
        self.rank = rank
        self.num_skipped = self.num_substituted = 0
        self._damaged: set[tuple[int, int]] = set()

    def add(
        self, damages: Iterable[Damage], num_skipped: int, num_substituted: int
    ) -> None:
        """Count what a batch came upon, and what was done for it.

        Raises
        ------
        CorruptFrameError
            More samples are damaged than are put up with; nothing was done then.
        """
        for damage in damages:
            self._damaged.add((damage.dataset, damage.index))
            if len(self._damaged) > self.max_corrupt:
                raise CorruptFrameError(
                    f"{damage.message}. More than {self.max_corrupt} samples are "
                    "damaged (max_corrupt), so it is not a few items that are wrong"
                )
        self.num_skipped += num_skipped
        self.num_substituted += num_substituted

    def state(self) -> DamageState:
        """Give what was counted."""
        damaged = frozenset(self._damaged)
        return DamageState(self.num_skipped, self.num_substituted, damaged, self.rank)

    def go_on(self, state: DamageState) -> None:
        """Go on from what was counted elsewhere.

        Which samples are damaged is known to all ranks then. The counts are taken up by
        the rank that they are of: else a sum over ranks would have them several times.
        """
        own = state.rank == self.rank
        self.num_skipped = state.skipped if own else 0
        self.num_substituted = state.substituted if own else 0
        self._damaged = set(state.damaged)


def merge_states(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Put together what the ranks of a run say at one step, for any number of ranks.

    Parameters
    ----------
    states : sequence of mapping
        What ``state_dict`` of `GulpLoader`, or of `ResumableSampler`, gave on each.

    Returns
    -------
    dict
        The place, which all have alike; the damage of all, whose counts the first rank
        of those that load it takes up.

    Raises
    ------
    ValueError
        There are none, or they are not of one step of one run.

    Examples
    --------
    With ``torch.distributed``, on every rank::

        states = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(states, loader.state_dict())
        state = merge_states(states)  # the same everywhere: any of them saves it
    """
    if not states:
        raise ValueError("there are no states to merge: expected that of each rank")
    for state in states:
        require_state(state)
    places = [
        {name: value for name, value in state.items() if name not in _OF_ONE_RANK}
        for state in states
    ]
    for rank, place in enumerate(places):
        if place != places[0]:
            names = sorted(
                name
                for name in place.keys() | places[0].keys()
                if place.get(name) != places[0].get(name)
            )
            raise ValueError(
                f"state {rank} is not of the step of state 0: {', '.join(names)} "
                "differ. Take that of each rank after the same number of steps"
            )
    parts = [*map(DamageState.of, states)]
    merged = DamageState(
        sum(part.skipped for part in parts),
        sum(part.substituted for part in parts),
        frozenset().union(*(part.damaged for part in parts)),
        rank=0,
    )
    return {**places[0], **merged.as_dict()}


def number_of(dataset: Any, leaf: Any) -> int:
    """Give the number of an innermost dataset: the same in all processes and runs.

    Parameters
    ----------
    dataset : dataset or wrapper
        The outermost one.
    leaf : dataset
        What `gulpio2.torch.wrappers.find_sample` found in it.
    """
    return next(
        number for number, other in enumerate(_leaves(dataset)) if other is leaf
    )


def _leaves(dataset: Any) -> Iterator[Any]:
    if not only_finds(dataset):
        yield dataset
        return
    wrapper: DatasetWrapper = dataset
    for member in wrapper._members:
        yield from _leaves(member)
