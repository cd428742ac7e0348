"""Groups of an array, against comparing all of it with each value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2 import GulpDirectory
from gulpio2.grouping import groups_of
from gulpio2.testing import make_gulp_directory


@given(st.lists(st.integers(-3, 4) | st.sampled_from([-(2**63), 2**63 - 1])))
def test_each_value_has_its_places(numbers):
    values = np.array(numbers, np.int64)
    groups = [(value, places.tolist()) for value, places in groups_of(values)]
    assert groups == [
        (value, np.flatnonzero(values == value).tolist())
        for value in np.unique(values).tolist()
    ]


def test_as_many_groups_as_places_are_no_trouble():
    # To compare all places with each of them would take a minute.
    sizes = [len(places) for _, places in groups_of(np.arange(400_000))]
    assert sizes == [1] * 400_000


@pytest.mark.parametrize("backwards", [False, True])
def test_the_chunks_of_a_view_have_its_order(tmp_path, backwards):
    make_gulp_directory(tmp_path, num_items=7, num_frames=1, items_per_chunk=2)
    with GulpDirectory(tmp_path) as directory:
        ids = sorted(directory.chunk_lookup, reverse=backwards)
        chunks = [list(chunk.meta_dict) for chunk in directory.view(ids)]
    pairs = [["item0", "item1"], ["item2", "item3"], ["item4", "item5"], ["item6"]]
    assert chunks == [pair[::-1] if backwards else pair for pair in pairs]
