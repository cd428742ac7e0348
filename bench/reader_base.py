"""What all programs that read clips have in common, and which clips they read."""

from __future__ import annotations

import time
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Task = dict[str, Any]
# Of a turn, before the clock starts: another program had the processor before.
WARM_SECONDS = 0.05

# What is read of a clip of so many frames, from a random generator.
PATTERNS: dict[str, Callable[[int, np.random.Generator], list[int]]] = {
    "random 16": lambda n, rng: _window(n, rng, 16, 1),
    "8 uniform": lambda n, rng: [(2 * k + 1) * n // 16 for k in range(8)],
    "32 at stride 2": lambda n, rng: _window(n, rng, 32, 2),
}


def _window(n: int, rng: np.random.Generator, length: int, stride: int) -> list[int]:
    first = int(rng.integers(n - (length - 1) * stride))
    return list(range(first, first + length * stride, stride))


def draw(task: Task, facts: dict[str, Any]) -> Iterator[tuple[int, list[int]]]:
    """Draw clips and their frames: the same for every reader of a round."""
    rng = np.random.default_rng(task["seed"])
    choose = PATTERNS[task["pattern"]]
    while True:
        number = int(rng.integers(len(facts["ids"])))
        yield number, choose(facts["num_frames"], rng)


def selection(indices: list[int]) -> Any:
    """Say a window as a slice, as one does."""
    step = indices[1] - indices[0]
    if all(b - a == step for a, b in pairwise(indices)):
        return slice(indices[0], indices[-1] + 1, step)
    return indices


class Reader:
    """Reads clips one after the other; the kinds below say how."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.prepare()

    def prepare(self) -> None:
        """Open what is opened once."""

    def reading(self, task: Task) -> Callable[[int, Any], int]:
        """Give what reads one clip, and returns how many frames that were."""
        raise NotImplementedError

    def wanted(self, indices: list[int]) -> Any:
        """Say which frames, as `reading` takes it."""
        return indices

    def run(self, task: Task) -> dict[str, Any]:
        """Read for so long."""
        read, frames = self.reading(task), 0
        clips = draw(task, self.facts)
        # Said beforehand in the reader's own words, as whoever trains has them.
        chosen = [
            (number, self.wanted(indices))
            for number, indices in (next(clips) for _ in range(2000))
        ]
        warm = time.perf_counter() + WARM_SECONDS
        while time.perf_counter() < warm:
            read(*chosen[-1])
        start = stop = time.perf_counter()
        end = start + task["seconds"]
        for place in count():
            frames += read(*chosen[place % len(chosen)])
            stop = time.perf_counter()
            if stop >= end:
                break
        return {"frames": frames, "seconds": stop - start}
