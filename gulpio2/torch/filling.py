"""Samples of a dataset in their places in a batch, and what is done about damage."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gulpio2.errors import CorruptFrameError, StorageError
from gulpio2.torch.ahead import ReadAhead
from gulpio2.torch.pixels import PixelMaker
from gulpio2.torch.plan import Sample, plan_sample
from gulpio2.torch.substitutes import require_rule, stand_in, try_twice
from gulpio2.torch.wrappers import find_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.codecs.decode import FrameDecoder
    from gulpio2.torch.damage import Damage
    from gulpio2.torch.job import Job
    from gulpio2.torch.plan import Plan
    from gulpio2.torch.profile import Clock
    from gulpio2.torch.ring import Place
    from gulpio2.torch.seeding import SampleIndex
    from gulpio2.torch.stored import ReadyClip, StoredClip
    from gulpio2.torch.substitutes import OnCorrupt
    from gulpio2.torch.views import FrameView, Region

__all__ = ["MakerArguments", "SampleMaker"]

# Samples that are planned in a row before they are read. The second one takes half the
# time of the first; but the other threads wait for the interpreter until the row ends.
_NUM_IN_A_ROW = 2


class MakerArguments(NamedTuple):
    """What a `SampleMaker` is made of, here and in worker processes."""

    dataset: Any
    """A `GulpClipDataset`, a `GulpImageDataset`, or a wrapper of such, without
    transforms of its own."""
    view: FrameView | None
    """What to show of each frame; None for the whole, all frames being of one size."""
    colorspace: Literal["rgb", "gray"]
    """Channels of the batch."""
    on_corrupt: OnCorrupt
    """What to do about damaged frames."""


class SampleMaker:
    """Makes samples of a dataset, in any thread.

    Parameters
    ----------
    arguments : MakerArguments
        Which samples, and how.
    """

    def __init__(self, arguments: MakerArguments) -> None:
        self.dataset, view, colorspace, self.on_corrupt = arguments
        self._pixels = PixelMaker(view, colorspace)
        self._plan = partial(
            plan_sample,
            random_view=view is not None,
            each_clip=bool(getattr(view, "each_clip", False)),
        )
        self._ahead = ReadAhead()
        self._shape: tuple[int, ...] = ()

    def sample_shape(self, draws: Iterable[SampleIndex]) -> tuple[int, ...]:
        """Give the shape that a sample has in a batch; reads a frame, where needed.

        Parameters
        ----------
        draws : iterable of SampleIndex
            At least one. Further ones are looked at where the first are damaged and
            that is put up with.

        Raises
        ------
        CorruptFrameError, StorageError
            Only where there is no view, so that the size comes from the frame.
        """
        damage: Exception | None = None
        for draw in draws:
            leaf, place = find_sample(self.dataset, draw)
            try:
                plan = self._plan(leaf, place)
                self._shape = (*plan.shape, *self._pixels.frame_shape(plan))
                return self._shape
            except (CorruptFrameError, StorageError) as error:
                require_rule(self.on_corrupt, error)
                damage = error
            except StopIteration as error:
                raise _told(error, draw) from error
        raise damage or ValueError("there is no sample")

    def begin(self) -> None:
        """Let nothing be read ahead for an iteration that was left before its end."""
        self._ahead.begin()

    def plan(self, draws: Sequence[SampleIndex], clock: Clock) -> list[Plan | None]:
        """Plan samples, and read ahead as many of them as there is memory for.

        Many are planned at once: decoding puts this code out of the processor's caches,
        so the first one takes five times as long as those after it.

        Parameters
        ----------
        draws : sequence of SampleIndex
            The samples.
        clock : Clock
            Of this thread.

        Returns
        -------
        list of Plan or None
            None where something is wrong with a sample, which `make` then says.
        """
        plans: list[Plan | None] = []
        decoder, reads_on = self._pixels.last, True
        for first in range(0, len(draws), _NUM_IN_A_ROW):
            part = [*map(self._try_to_plan, draws[first : first + _NUM_IN_A_ROW])]
            plans += part
            for plan in part:
                if reads_on and plan is not None and plan.located is not None:
                    reads_on = self._ahead.read(plan.located, clock)
                    if decoder is not None and self._is_only_decoded(plan, decoder):
                        plan.located.prepare(decoder)
        return plans

    def _is_only_decoded(self, plan: Plan, decoder: FrameDecoder) -> bool:
        """Tell whether this decoder gives a sample's frames as they are in a batch."""
        return (
            (*plan.shape, *decoder.shape) == self._shape
            and not plan.again
            and not plan.empty
        )

    def _try_to_plan(self, draw: SampleIndex) -> Plan | None:
        try:
            return self._plan(*find_sample(self.dataset, draw))
        except Exception:  # noqa: BLE001  # the sample's own turn is when it is raised
            return None

    def make(self, job: Job, rows: Iterable[int], clock: Clock) -> None:
        """Make some samples of a batch.

        Parameters
        ----------
        job : Job
            The batch; it has the samples afterwards, or what making one raised.
        rows : iterable of int
            Which ones.
        clock : Clock
            Of this thread; the time that each part takes is added to it.

        Notes
        -----
        After a decode nothing of this code is in the processor's caches. So, for those
        samples that need nothing but a decode, each step before and after it is done
        for all of them at once.
        """
        alone = self._make_ready(job, rows, clock)
        for row in alone:
            # The plan is freed with its sample, while it is in the processor's caches,
            # and not with the batch.
            plan, job.plans[row] = job.plans[row], None
            damages = job.damages[row]
            try:
                job.samples[row] = self._make(
                    job.draws[row], plan, job.slot.places[row], damages, clock
                )
            except BaseException as error:  # noqa: BLE001  # raised in the batch's turn
                job.errors[row] = _told(error, job.draws[row])

    def _make_ready(self, job: Job, rows: Iterable[int], clock: Clock) -> list[int]:
        """Make the samples that need nothing but a decode; give the rows of others."""
        start = perf_counter()
        plans, places = job.plans, job.slot.places
        alone: list[int] = []
        chosen: list[tuple[int, Plan, StoredClip, ReadyClip]] = []
        for row in rows:
            plan = plans[row]
            clip = plan and plan.located
            if plan and clip and clip.ready:
                chosen.append((row, plan, clip, clip.ready))
            else:
                alone.append(row)
        decoding = perf_counter()
        damaged: list[int] = []
        for row, _, _, (decoder, jpegs) in chosen:
            try:
                decoder.decode_plain(zip(jpegs, places[row].rows, strict=True))
            except CorruptFrameError:
                damaged.append(row)
        decoded = perf_counter()
        for row, plan, clip, (_, jpegs) in chosen:
            plans[row] = None
            clip.drop()
            if row in damaged:
                continue  # planned and read anew, which tells which frame it is
            try:
                job.samples[row] = _sample_of(plan)
            except BaseException as error:  # noqa: BLE001  # raised in the batch's turn
                job.errors[row] = _told(error, job.draws[row])
            clock.samples += 1
            clock.frames += len(jpegs)
        clock.decode += decoded - decoding
        clock.busy += perf_counter() - start
        return alone + damaged

    def _make(
        self,
        draw: SampleIndex,
        plan: Plan | None,
        place: Place,
        damages: list[Damage],
        clock: Clock,
    ) -> Sample | None:
        """Make one sample; None where it is left out (``on_corrupt="skip"``).

        Raises
        ------
        CorruptFrameError, StorageError
            It is damaged, and so are too many that could stand in for it.
        """
        start = perf_counter()

        def make(leaf: Any, index: Any) -> Sample:
            return self._fill(self._plan(leaf, index), place, clock)

        def make_anew() -> Sample:
            return make(*find_sample(self.dataset, draw))

        rule, first = self.on_corrupt, make_anew
        if plan is not None:
            first = partial(self._fill, plan, place, clock)
        sample: Sample | None
        sample, error = try_twice(first, make_anew, rule)
        if error is not None:
            sample = stand_in(self.dataset, draw, rule, error, make, damages)
            sample = sample and sample._replace(substituted=True)
        if sample is not None:
            clock.samples += 1
            clock.busy += perf_counter() - start
        return sample

    def _fill(self, plan: Plan, place: Place, clock: Clock) -> Sample:
        rows = place.rows
        if place.shape != plan.shape:
            raise ValueError(
                f"the sampler chose frames of shape {plan.shape} of item {plan.id_!r}, "
                f"and {place.shape} of an earlier one: a loader needs as many of each, "
                "whatever its batch_size. Take a sampler that chooses as many of every "
                "item, make each window a sample (parse_data_info of the dataset; "
                "docs/training.md has one), or take a DataLoader with pseudo_collate, "
                "which stacks nothing"
            )
        for row in plan.empty:
            rows[row][...] = 0
        regions: list[Region | None] = []
        for part in plan.parts or (plan,):
            region = None
            if part.rows:
                region = self._pixels.fill(part, rows, clock)
                clock.frames += len(part.rows)
            regions.append(region)
        for row, earlier in plan.again:
            rows[row][...] = rows[earlier]
        return _sample_of(plan, tuple(regions) if plan.parts else regions[0])


def _told(error: BaseException, draw: SampleIndex) -> BaseException:
    """Give what to raise; a generator would hide where a StopIteration is from."""
    if not isinstance(error, StopIteration):
        return error
    told = RuntimeError(
        f"StopIteration was raised where sample {int(draw)} was made: see whether a "
        "sampler, a target or a view of your own calls next() on what has ended"
    )
    told.__cause__ = error
    return told


def _sample_of(plan: Plan, region: Any = None) -> Sample:
    return Sample(plan.info, plan.leaf.target_of(plan.info), plan.chosen, region)
