"""Seeds are pinned by value: they may never change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.order import Purpose, augmentation_seeds, derive_seed, derive_seeds
from gulpio2.order.seeds import mix64

GOLDEN = 0x9E3779B97F4A7C15


def test_mixing_is_that_of_splitmix64():
    # The first outputs of the published generator, seeded with 0.
    outputs = [mix64(GOLDEN * step) for step in (1, 2, 3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(
    ("parts", "seed"),
    [
        ((), 0),
        ((0,), 0xE220A8397B1DCDAF),
        ((0, 1), 0x08B4FDA8C892B50E),
        ((-1, 2, 3), 0x48141E3702D4765A),
        ((2**64 - 1, 2, 3), 0x48141E3702D4765A),
    ],
)
def test_a_seed_is_this_number_for_good(parts, seed):
    assert derive_seed(*parts) == seed


@given(
    base=st.lists(st.integers(-(2**70), 2**70), max_size=3),
    parts=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
)
def test_many_seeds_at_once_are_those_one_at_a_time(base, parts):
    together = derive_seeds(derive_seed(*base), np.array(parts, np.uint64))
    assert together.tolist() == [derive_seed(*base, part) for part in parts]


def test_augmentation_seeds_are_these_numbers_for_good():
    seeds = augmentation_seeds(7, 2, [0, 1, 10**12])
    assert seeds.tolist() == [
        derive_seed(7, Purpose.AUGMENTATION, 2, position) for position in (0, 1, 10**12)
    ]
    assert seeds.tolist() == [
        9409346428096123568,
        11925565107364751117,
        17604843830490046290,
    ]


def test_no_two_of_a_million_positions_share_a_seed():
    assert len(np.unique(augmentation_seeds(0, 0, np.arange(1_000_000)))) == 1_000_000


def test_a_part_that_is_no_whole_number_is_refused():
    with pytest.raises(TypeError):
        derive_seed(1, 0.5)  # type: ignore[arg-type]  # what is tested
