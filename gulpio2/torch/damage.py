"""Damaged samples of a run, where its batches are given out, and in its state."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.arguments import require_number, require_state
from gulpio2.errors import CorruptFrameError
from gulpio2.format.wording import counted
from gulpio2.torch.wrappers import leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "Damage",
    "DamageCount",
    "DamageState",
    "merge_states",
    "note_sample",
    "number_of",
    "sample_of",
]

# What a state has beside the place in the order, which is the same from all ranks.
_COUNTS = ("skipped", "substituted")
_OF_RANKS = (*_COUNTS, "counts", "damaged")


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged sample; one that stood in for another may be one, too."""

    dataset: int
    """The dataset that it is of, see `number_of`."""
    index: int
    """The sample there."""
    message: str
    """What is wrong with it."""


class DamageState(NamedTuple):
    """What a state says of damage, of one rank or of several."""

    counts: frozenset[tuple[int, int, int]] = frozenset()
    """Rank, and how many samples were left out and substituted there."""
    damaged: frozenset[tuple[int, int, int]] = frozenset()
    """Rank, and of a damaged sample that it met, dataset and index there."""

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> DamageState:
        """Take it out of a state, which has two zeros alone where there is none.

        Raises
        ------
        TypeError, ValueError
            It is no state.
        """
        require_state(state)
        for name in _COUNTS:
            require_number(f"the state's {name}", state.get(name, 0), 0)
        return cls(_rows(state, "counts"), _rows(state, "damaged"))

    def as_dict(self) -> dict[str, Any]:
        """Give it as a state has it: without damage, two zeros."""
        state: dict[str, Any] = {
            name: sum(row[column] for row in self.counts)
            for column, name in enumerate(_COUNTS, start=1)
        }
        if self.counts or self.damaged:
            state["counts"] = [list(row) for row in sorted(self.counts)]
            state["damaged"] = [list(row) for row in sorted(self.damaged)]
        return state


def _rows(state: Mapping[str, Any], name: str) -> frozenset[tuple[int, int, int]]:
    given = state.get(name, ())
    try:
        rows = []
        for row in given:
            one, two, three = (require_number("a number", value, 0) for value in row)
            rows.append((one, two, three))
        return frozenset(rows)
    except (TypeError, ValueError) as cause:
        raise ValueError(
            f"the state's {name} is {reprlib.repr(given)}, expected rows of three "
            "numbers, as state_dict gave them"
        ) from cause


class DamageCount:
    """The damaged samples that a rank met.

    Only batches that were given out count. What threads or workers have made ahead does
    not, so that a run ends at the same step however many of them there are.

    Parameters
    ----------
    max_corrupt : int
        So many are put up with, each counted once.
    rank, num_ranks : int
        Whose they are, of how many.

    Attributes
    ----------
    num_skipped, num_substituted : int
        What was done, each time that it was.
    """

    def __init__(self, max_corrupt: int, rank: int, num_ranks: int) -> None:
        self.max_corrupt = require_number("max_corrupt", max_corrupt, 0)
        self.rank = rank
        self.num_ranks = num_ranks
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
        new: set[tuple[int, int]] = set()
        for damage in damages:
            sample = damage.dataset, damage.index
            if sample in self._damaged:
                continue
            new.add(sample)
            if len(self._damaged) + len(new) > self.max_corrupt:
                raise CorruptFrameError(
                    f"{damage.message}. More than "
                    f"{counted(self.max_corrupt, 'sample')} "
                    f"{'is' if self.max_corrupt == 1 else 'are'} damaged "
                    "(max_corrupt), so it is not a few items that are wrong"
                )
        self._damaged |= new
        self.num_skipped += num_skipped
        self.num_substituted += num_substituted

    def mark(self) -> tuple[int, int, set[tuple[int, int]]]:
        """Give what was counted, to go back to."""
        return self.num_skipped, self.num_substituted, {*self._damaged}

    def go_back(self, mark: tuple[int, int, set[tuple[int, int]]]) -> None:
        """Forget what was counted since a mark."""
        self.num_skipped, self.num_substituted, self._damaged = mark

    def state(self) -> DamageState:
        """Give what was counted."""
        rank, counts = self.rank, (self.num_skipped, self.num_substituted)
        return DamageState(
            frozenset([(rank, *counts)] if any(counts) else []),
            frozenset((rank, *sample) for sample in self._damaged),
        )

    def go_on(self, state: DamageState) -> None:
        """Go on from what was counted on this rank.

        What there is of more ranks than there are now is shared out among those.
        """
        own = [row for row in state.counts if row[0] % self.num_ranks == self.rank]
        self.num_skipped = sum(row[1] for row in own)
        self.num_substituted = sum(row[2] for row in own)
        self._damaged = {
            (dataset, index)
            for rank, dataset, index in state.damaged
            if rank % self.num_ranks == self.rank
        }


def merge_states(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put together what the ranks of a run say at one step, for any number of ranks.

    Parameters
    ----------
    states : iterable of mapping
        What ``state_dict`` of `GulpLoader`, or of `ResumableSampler`, gave on each.

    Returns
    -------
    dict
        The place, which all have alike; and the damage of each, which the same rank
        takes up again.

    Raises
    ------
    ValueError
        There are none, they are not of one step of one run, or a rank's comes twice.

    Examples
    --------
    With ``torch.distributed``, on every rank::

        states = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(states, loader.state_dict())
        state = merge_states(states)  # the same everywhere: any of them saves it
    """
    given = list(states)
    if not given:
        raise ValueError("there are no states to merge: expected that of each rank")
    for state in given:
        require_state(state)
    first = given[0]
    for number, state in enumerate(given):
        names = (first.keys() | state.keys()) - {*_OF_RANKS}
        differ = sorted(str(name) for name in names if _differ(first, state, name))
        if differ:
            raise ValueError(
                f"state {number} is not of the step of state 0: {', '.join(differ)} "
                "differ. Take that of each rank after the same number of steps"
            )
    parts = [DamageState.of(state) for state in given]
    ranks = [{row[0] for row in part.counts | part.damaged} for part in parts]
    before: set[int] = set()
    for number, own in enumerate(ranks):
        if own & before:
            raise ValueError(
                f"state {number} has damage of a rank that a state before it has, too: "
                "give the state of each rank once"
            )
        before |= own
    merged = DamageState(
        frozenset().union(*(part.counts for part in parts)),
        frozenset().union(*(part.damaged for part in parts)),
    )
    place = {name: value for name, value in first.items() if name not in _OF_RANKS}
    return {**place, **merged.as_dict()}


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    try:
        return bool(one.get(name) != other.get(name))
    except (ValueError, RuntimeError):  # somebody's own arrays, which say nothing
        return False


def number_of(dataset: Any, leaf: Any) -> int:
    """Give the number of an innermost dataset: the same in all processes and runs.

    Parameters
    ----------
    dataset : dataset or wrapper
        The outermost one.
    leaf : dataset
        What `gulpio2.torch.wrappers.find_sample` found in it.
    """
    leaves = enumerate(leaves_of(dataset))
    return next(number for number, other in leaves if other is leaf)


def note_sample(error: Exception, dataset: Any, index: int) -> None:
    """Note which sample of a dataset is damaged, where it makes one of them.

    It need not be the one that was asked for: a pipeline may have given None for that.
    """
    vars(error)["_sample"] = id(dataset), int(index)


def sample_of(error: Exception, dataset: Any, asked: int) -> int:
    """Give the damaged sample of a dataset, which was asked for one."""
    made_by, index = vars(error).get("_sample", (None, 0))
    return index if made_by == id(dataset) else int(asked)
