"""Randomness of a sample: its own generator, the same everywhere."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest

from gulpio2.order import OrderCursor, PlainOrder
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import GulpImageDataset, ResumableSampler, SampleIndex
from gulpio2.torch.seeding import places_of, sample_rng


def index_of(seed: int) -> SampleIndex:
    """Give some sample with this seed."""
    return SampleIndex(3, seed=seed, epoch=1, position=5)


MASK_64, MASK_128 = (1 << 64) - 1, (1 << 128) - 1


def splitmix64(state: int, count: int) -> list[int]:
    """Steele, Lea and Flood, "Fast splittable pseudorandom number generators"."""
    words = []
    for _ in range(count):
        state = word = (state + 0x9E3779B97F4A7C15) & MASK_64
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK_64
        words.append(word ^ (word >> 31))
    return words


def pcg64(words: list[int], count: int) -> list[int]:
    """PCG XSL RR 128/64: O'Neill, "PCG: a family of simple fast ... generators"."""
    multiplier = 0x2360ED051FC65DA44385DF649FCCF645
    increment = (((words[2] << 64 | words[3]) << 1) | 1) & MASK_128
    state = (increment + (words[0] << 64 | words[1])) & MASK_128
    state = (state * multiplier + increment) & MASK_128
    numbers = []
    for _ in range(count):
        state = (state * multiplier + increment) & MASK_128
        folded, turn = (state >> 64 ^ state) & MASK_64, state >> 122
        numbers.append((folded >> turn | folded << (64 - turn)) & MASK_64)
    return numbers


def test_a_sample_has_the_same_numbers_on_every_machine_and_numpy():
    for seed in (0, 2026, MASK_64):
        found = sample_rng(index_of(seed)).bit_generator.random_raw(100).tolist()
        assert found == pcg64(splitmix64(seed, 4), 100)
    first = sample_rng(index_of(2026)).bit_generator.random_raw()
    assert first == 10676194733773681933


def test_generators_of_many_samples_are_those_of_each():
    cursor = OrderCursor(PlainOrder(1500, seed=MASK_64), rank=1, num_ranks=2)
    cursor.advance(3)
    ahead, alone = places_of(cursor), places_of(cursor, used_here=False)
    cursor.set_epoch(4)  # what was asked for does not follow
    for place, other in zip(ahead, alone, strict=True):
        assert (place, place.seed, place.epoch) == (other, other.seed, 0)
        assert (place.words is not None, other.words) == (True, None)
        wanted = sample_rng(other).bit_generator.random_raw(9).tolist()
        for same in (place, place.at(7), pickle.loads(pickle.dumps(place))):
            assert sample_rng(same).bit_generator.random_raw(9).tolist() == wanted
    assert pickle.loads(pickle.dumps(place)).words is None
    assert copy.copy(place).__dict__ == other.__dict__
    children = [sample_rng(place).spawn(1)[0].random() for place in (place, other)]
    assert children[0] == children[1]


def test_seeds_give_numbers_of_their_own():
    drawn = {
        tuple(sample_rng(index_of(seed)).integers(1000, size=8)) for seed in range(500)
    }
    assert len(drawn) == 500
    first = np.array([sample_rng(index_of(seed)).integers(10) for seed in range(5000)])
    # Seeds in a row do not follow one another: of ten numbers each comes as often,
    # within six standard deviations of sqrt(5000 * 0.09), and no two neighbours are
    # alike.
    counts = np.bincount(first, minlength=10)
    assert np.abs(counts - 500).max() < 6 * np.sqrt(5000 * 0.09)
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 6 / np.sqrt(5000)
    # Nor do the streams of neighbours.
    one, two = (sample_rng(index_of(seed)).random(5000) for seed in (7, 8))
    assert abs(np.corrcoef(one, two)[0, 1]) < 6 / np.sqrt(5000)


def test_an_int_without_a_place_takes_numpy_s_global_state():
    np.random.seed(5)
    first = sample_rng(3).integers(1 << 30, size=4).tolist()
    np.random.seed(5)
    assert sample_rng(3).integers(1 << 30, size=4).tolist() == first
    assert sample_rng(3).integers(1 << 30, size=4).tolist() != first


def test_a_sampler_may_spawn_generators_and_copy_its_own():
    rng = sample_rng(index_of(7))
    children = [*rng.spawn(2), *rng.spawn(1)]
    again = sample_rng(index_of(7)).spawn(3)
    drawn = [child.integers(1 << 30, size=4).tolist() for child in children]
    assert drawn == [child.integers(1 << 30, size=4).tolist() for child in again]
    copies = [pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng)]
    numbers = rng.integers(1 << 30, size=4).tolist()
    assert len({*map(tuple, drawn), tuple(numbers)}) == 4
    assert [c.integers(1 << 30, size=4).tolist() for c in copies] == [numbers] * 2


class Drawing:
    """A transform that draws from all global generators, around another sample."""

    def __init__(self, path):
        self.path = path
        self.other = None

    def __call__(self, clip):
        import torch

        def draw():
            # One normal number out of two that are made at once.
            drawn = random.random(), np.random.rand(), np.random.randn()
            return [*drawn, float(torch.rand(()))]

        if self.other is None:  # in each worker
            self.other = GulpImageDataset(self.path, transform=lambda _: draw())
        before = draw()
        within = self.other[SampleIndex(1, seed=int(2**63 * before[0]), **PLACE)]
        return np.array([before, within, draw()])


PLACE = {"epoch": 0, "position": 0}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # few cores here
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_transforms_draw_the_same_in_workers_as_without_any(tmp_path):
    from torch.utils.data import DataLoader

    make_gulp_directory(tmp_path / "items", num_items=7, num_frames=2).close()
    dataset = GulpImageDataset(
        tmp_path / "items", transform=Drawing(tmp_path / "items")
    )

    def drawn(num_workers):
        sampler = ResumableSampler(dataset, seed=3)
        return [
            sample.tolist()
            for sample in DataLoader(
                dataset, sampler=sampler, batch_size=None, num_workers=num_workers
            )
        ]

    np.random.randn()
    states = random.getstate(), str(np.random.get_state())
    alone = drawn(0)
    assert len(np.unique(alone)) == 7 * 3 * 4
    assert states == (random.getstate(), str(np.random.get_state()))
    assert drawn(1) == drawn(2) == alone
