"""Names of files (rules 1, 2, 22 and 27)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.layout import data_name, list_chunks, meta_name, partial_name


def test_a_chunk_is_named_by_its_number_without_leading_zeros():
    assert (data_name(0), meta_name(0)) == ("data_0.gulp", "meta_0.gmeta")
    assert (data_name(1234), meta_name(1234)) == ("data_1234.gulp", "meta_1234.gmeta")


def test_chunks_come_in_the_order_of_their_numbers():
    names = [name(n) for n in (10, 2, 0, 9, 1) for name in (data_name, meta_name)]
    assert list_chunks(names).chunks == (0, 1, 2, 9, 10)


@given(st.sets(st.integers(0, 10**6)), st.sets(st.integers(0, 10**6)))
def test_files_are_paired_by_number_and_halves_are_told_apart(data, meta):
    names = [*map(data_name, data), *map(meta_name, meta), "README.md", "gulp.json"]
    listing = list_chunks(names)
    assert listing.chunks == tuple(sorted(data & meta))
    assert listing.data_only == tuple(sorted(data - meta))
    assert listing.meta_only == tuple(sorted(meta - data))
    assert (listing.partials, listing.strays) == ((), ())
    assert listing.numbers == data | meta


@pytest.mark.parametrize(
    "name",
    [
        "data_00.gulp",
        "data_01.gulp",
        "meta_007.gmeta",
        "data.gulp",
        "data_.gulp",
        "data_-1.gulp",
        "data_+1.gulp",
        "data_1_0.gulp",
        "data_1.0.gulp",
        "data_0.gmeta",
        "meta_0.gulp",
        "data_٣.gulp",  # digits, but not those of the rule
        "data_ 1.gulp",
        "data_1000000000000000000.gulp",
        "meta_99999999999999999999.gmeta",
        "Data_1.gulp",
        "old_data_1.gulp",
        "DATA_1.GULP",
        "data_1 (copy).gulp",
    ],
)
def test_a_name_that_is_almost_that_of_a_chunk_is_a_stray(name):
    listing = list_chunks([name])
    assert listing.strays == (name,)
    assert listing.chunks == listing.data_only == listing.meta_only == ()


@pytest.mark.parametrize(
    "name",
    [
        "data_0.gulp\n",
        "data_0.gulp.bak",
        "x",
        "",
        "data_0.gulp~",
        "meta_0",
        "._data_0.gulp",
    ],
)
def test_other_names_have_nothing_to_do_with_chunks(name):
    assert list_chunks([name]) == list_chunks([])


def test_a_partial_name_is_no_name_of_a_chunk():
    name = partial_name(data_name(3), "1f0c9a52e6b7")
    assert name == "data_3.gulp.1f0c9a52e6b7.partial"
    listing = list_chunks([name])
    assert listing.partials == (name,)
    assert not listing.numbers
