"""What a worker process of a loader does: makes samples, in memory that it shares."""

from __future__ import annotations

import logging
import pickle
import random
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.children import begin_child
from gulpio2.torch import substitutes
from gulpio2.torch.filling import SampleMaker
from gulpio2.torch.job import Job
from gulpio2.torch.profile import Clock
from gulpio2.torch.ring import Slot, shared_arrays
from gulpio2.torch.sending import cannot_be_sent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from gulpio2.memory import Parcel, SharedBytes
    from gulpio2.torch.damage import Damage
    from gulpio2.torch.filling import MakerArguments
    from gulpio2.torch.plan import Sample
    from gulpio2.torch.seeding import SampleIndex

__all__ = ["NOTHING", "Answer", "RemoteError", "Setup", "Task", "serve"]

# In place of a task: there will be none any more.
NOTHING = b""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker process is told when it starts."""

    arguments: MakerArguments
    """Of its `SampleMaker`."""
    memory: SharedBytes
    """Of all batches."""
    num_slots: int
    """Batches in it."""
    shape: tuple[int, ...]
    """Of each, ``(B, ..., H, W, C)``."""


class Task(NamedTuple):
    """Samples to make."""

    slot: int
    """The batch's memory."""
    rows: list[int]
    """Their places in it."""
    draws: list[SampleIndex]
    """Which samples."""


class RemoteError(NamedTuple):
    """What was raised in a worker process."""

    error: BaseException | None
    """None where it cannot be sent."""
    kind: str
    """Its class and its message."""
    trace: str
    """Where it came from, as Python shows it."""

    @classmethod
    def of(cls, error: BaseException) -> RemoteError:
        """Make one that can be sent."""
        sent: BaseException | None = error
        try:
            if type(pickle.loads(pickle.dumps(error))) is not type(error):  # noqa: S301  # just made
                sent = None
        except Exception:  # noqa: BLE001  # of a class of somebody's own
            sent = None
        kind = "".join(traceback.format_exception_only(error)).strip()
        return cls(sent, kind, "".join(traceback.format_exception(error)))

    def restored(self) -> BaseException:
        """Give what to raise in its place, with where it came from as its cause."""
        error = self.error or RuntimeError(self.kind)
        error.__cause__ = RuntimeError(
            f"in a worker process of the loader:\n{self.trace}"
        )
        return error


class Answer(NamedTuple):
    """What there is to say of samples that were made."""

    samples: list[tuple[int, Sample | None, list[Damage], RemoteError | None]]
    """Row, sample, what was come upon, and what was raised, of each."""
    clock: Clock
    """Where the time went."""


def serve(connection: Connection, parcel: Parcel) -> None:
    """Make samples until there is nothing more to do, or nobody who asks.

    Parameters
    ----------
    connection : Connection
        Gives tasks and takes answers, both pickled; `NOTHING` at the end.
    parcel : Parcel
        With a `Setup`: what to do.
    """
    begin_child()
    setup: Setup = parcel.content
    _be_alone(has_view=setup.arguments.view is not None)
    maker = SampleMaker(setup.arguments)
    slots = [
        Slot(setup.shape, tensor=False, pinned=False, memory=memory)
        for memory in shared_arrays(setup.memory, setup.num_slots, setup.shape)
    ]
    is_ready = False
    with suppress(EOFError, OSError):  # nobody asks any more
        while (asked := connection.recv_bytes()) != NOTHING:
            task: Task = pickle.loads(asked)  # noqa: S301  # the trainer's
            if not is_ready:
                is_ready = True
                # Said of the sample itself: it may be a sampler of somebody's own.
                with suppress(BaseException):
                    maker.sample_shape(task.draws)
            connection.send_bytes(_as_bytes(_make(maker, slots[task.slot], task)))


def _be_alone(*, has_view: bool) -> None:
    """Leave the other cores to the other workers, and the log to the trainer."""
    logging.getLogger(substitutes.__name__).disabled = True
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    _draw_apart(torch)
    if has_view:
        import cv2  # heavy, and not needed by every loader

        # None but this one. To go down to 1, OpenCV would first end threads that it
        # had in the trainer, and in a fork there are none: it waits for ever.
        cv2.setNumThreads(0)


def _draw_apart(torch: Any) -> None:
    """Seed the global generators: forks would all draw the same from the trainer's."""
    random.seed()
    np.random.seed()  # noqa: NPY002  # what somebody's own target may use
    if torch is not None:
        torch.default_generator.seed()


def _make(maker: SampleMaker, slot: Slot, task: Task) -> Answer:
    """Make samples in the places that they are to have."""
    clock = Clock()
    # The whole batch, of which only these samples are made here.
    draws: list[Any] = [None] * len(slot.array)
    job = Job(draws, [None] * len(draws))
    job.slot = slot
    for row, draw in zip(task.rows, task.draws, strict=True):
        draws[row] = draw
    try:
        plans = maker.plan(task.draws, clock)
        for row, plan in zip(task.rows, plans, strict=True):
            job.plans[row] = plan
        maker.make(job, task.rows, clock)
    except BaseException as error:  # noqa: BLE001  # raised in the batch's turn
        job.errors.update(dict.fromkeys(task.rows, error))
    return Answer(
        [
            (
                row,
                job.samples[row],
                job.damages[row],
                RemoteError.of(job.errors[row]) if row in job.errors else None,
            )
            for row in task.rows
        ],
        clock,
    )


def _as_bytes(answer: Answer) -> bytes:
    """Pickle an answer; what cannot be sent becomes an error of its sample."""
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except Exception:  # noqa: BLE001  # of what somebody's own target gives
        samples = [_sendable(*of_row) for of_row in answer.samples]
        return pickle.dumps(Answer(samples, answer.clock), pickle.HIGHEST_PROTOCOL)


def _sendable(
    row: int,
    sample: Sample | None,
    damages: Sequence[Damage],
    error: RemoteError | None,
) -> tuple[int, Sample | None, list[Damage], RemoteError | None]:
    try:
        pickle.dumps(sample)
    except Exception as cause:  # noqa: BLE001  # see above
        sample, error = None, RemoteError.of(cannot_be_sent(cause))
    return row, sample, list(damages), error
