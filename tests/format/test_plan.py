"""Few reads that cover what is wanted, and chunks that cover every item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import IngestSettingError
from gulpio2.format.plan import calculate_chunk_slices, plan_reads

spans = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=25)


def records(lengths: list[int]) -> list[tuple[int, int]]:
    """Give spans that lie one after another."""
    offsets = [sum(lengths[:n]) for n in range(len(lengths))]
    return list(zip(offsets, lengths, strict=True))


@given(spans, st.integers(0, 40), st.integers(1, 200))
def test_each_span_lies_in_one_read_and_is_named_there_once(spans, max_gap, max_read):
    reads = plan_reads(spans, max_gap=max_gap, max_read=max_read)
    members = [member for read in reads for member in read.members]
    assert sorted(members) == [n for n, span in enumerate(spans) if span[1]]
    for read in reads:
        for member in read.members:
            offset, length = spans[member]
            assert read.offset <= offset
            assert offset + length <= read.offset + read.length


@given(spans, st.integers(0, 40), st.integers(1, 200))
def test_a_read_is_as_long_as_its_members_need_and_as_is_allowed(
    spans, max_gap, max_read
):
    for read in plan_reads(spans, max_gap=max_gap, max_read=max_read):
        members = [spans[member] for member in read.members]
        assert read.offset == min(offset for offset, _ in members)
        assert read.offset + read.length == max(sum(member) for member in members)
        assert read.length <= max(max_read, *(length for _, length in members))


@given(st.lists(st.integers(1, 60), max_size=25), st.integers(1, 200))
def test_records_in_a_row_are_read_once_and_in_order(lengths, max_read):
    reads = plan_reads(records(lengths), max_gap=0, max_read=max_read)
    covered = [
        at for read in reads for at in range(read.offset, read.offset + read.length)
    ]
    assert covered == list(range(sum(lengths)))
    assert [m for read in reads for m in read.members] == list(range(len(lengths)))


def test_neighbours_are_fetched_by_one_read():
    (read,) = plan_reads(records([8, 4, 12]))
    assert (read.offset, read.length, [*read.members]) == (0, 24, [0, 1, 2])


def test_a_gap_is_read_over_up_to_the_limit_and_no_further():
    spans = [(0, 10), (15, 10), (31, 10)]
    assert [[*r.members] for r in plan_reads(spans, max_gap=5)] == [[0, 1], [2]]
    assert [[*r.members] for r in plan_reads(spans, max_gap=6)] == [[0, 1, 2]]


def test_repeats_and_any_order_are_one_read():
    spans = [(8, 4), (0, 8), (8, 4), (0, 8)]
    (read,) = plan_reads(spans)
    assert (read.offset, read.length) == (0, 12)
    assert sorted(read.members) == [0, 1, 2, 3]


def test_a_repeat_does_not_make_up_for_a_gap():
    large = 1 << 20
    spans = [(5 * large, 4 * large), (5 * large, 4 * large), (0, large)]
    reads = plan_reads(spans)
    assert [(read.offset, read.length) for read in reads] == [
        (0, large),
        (5 * large, 4 * large),
    ]


def test_a_span_longer_than_a_read_may_be_is_read_alone():
    reads = plan_reads([(0, 4), (4, 100), (104, 4)], max_read=50)
    assert [(read.offset, read.length) for read in reads] == [
        (0, 4),
        (4, 100),
        (104, 4),
    ]


def test_nothing_to_read_is_no_read():
    assert plan_reads([]) == plan_reads([(7, 0)]) == []


@given(st.integers(1, 50), st.integers(1, 300))
def test_chunks_cover_every_item_once_in_order(items_per_chunk, num_items):
    slices = calculate_chunk_slices(items_per_chunk, num_items)
    items = list(range(num_items))
    assert [item for part in slices for item in items[part]] == items
    assert all(part.stop - part.start == items_per_chunk for part in slices[:-1])
    assert 1 <= slices[-1].stop - slices[-1].start <= items_per_chunk


@pytest.mark.parametrize(
    ("arguments", "slices"),
    [((2, 3), [slice(0, 2), slice(2, 3)]), ((100, 2), [slice(0, 2)])],
)
def test_chunks_are_those_of_the_original(arguments, slices):
    assert calculate_chunk_slices(*arguments) == slices


def test_chunks_of_a_number_of_few_bits_hold_every_item():
    few: Any = np.uint8  # as a column of a table has them
    wanted = [slice(0, 100), slice(100, 200), slice(200, 250)]
    assert calculate_chunk_slices(few(100), few(250)) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 3), "at least 1 item, not 0"),
        ((-1, 3), "at least 1 item, not -1"),
        ((2, 0), "there are no items to ingest"),
        ((2, -1), "there are no items to ingest"),
    ],
)
def test_chunks_that_cannot_be_are_refused_also_as_in_the_original(arguments, message):
    with pytest.raises(IngestSettingError, match=message):
        calculate_chunk_slices(*arguments)
    with pytest.raises(AssertionError):
        calculate_chunk_slices(*arguments)
