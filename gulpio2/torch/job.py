"""A batch of a loader from its plan to its last sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.torch.damage import Damage
    from gulpio2.torch.plan import Plan, Sample
    from gulpio2.torch.ring import Slot
    from gulpio2.torch.seeding import SampleIndex

__all__ = ["Job"]


class Job:
    """A batch under way.

    Attributes
    ----------
    draws : sequence of SampleIndex
        Its samples.
    plans : list of Plan or None
        What is known of them before their frames are read; None once they are.
    slot : Slot
        Its memory, once it has some.
    samples : list of Sample or None
        What was made; None for one that was left out.
    damages : list of list of Damage
        What was come upon for each.
    """

    __slots__ = (
        "damages",
        "draws",
        "errors",
        "next_row",
        "num_left",
        "plans",
        "samples",
        "slot",
    )

    slot: Slot

    def __init__(self, draws: Sequence[SampleIndex], plans: list[Plan | None]) -> None:
        self.draws = draws
        self.plans = plans
        self.samples: list[Sample | None] = [None] * len(draws)
        self.damages: list[list[Damage]] = [[] for _ in draws]
        self.errors: dict[int, BaseException] = {}
        self.next_row = 0
        self.num_left = len(draws)
