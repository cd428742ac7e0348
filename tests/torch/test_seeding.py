"""Randomness of a sample: its own generator, the same everywhere."""

from __future__ import annotations

import copy
import pickle

import numpy as np

from gulpio2.torch import SampleIndex
from gulpio2.torch.seeding import sample_rng


def index_of(seed: int) -> SampleIndex:
    """Give some sample with this seed."""
    return SampleIndex(3, seed=seed, epoch=1, position=5)


def test_a_sample_has_the_same_numbers_on_every_machine_and_numpy():
    found = sample_rng(index_of(2026)).bit_generator.random_raw(4).tolist()
    assert found == [
        11953984861349478775,
        3755772451832369227,
        170129493489590127,
        5148483751207287776,
    ]


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
    np.random.seed(5)  # noqa: NPY002  what workers seed
    first = sample_rng(3).integers(1 << 30, size=4).tolist()
    np.random.seed(5)  # noqa: NPY002
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
