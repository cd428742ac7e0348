"""`gulpio2.sanity.deleted`: what was written over frames that were deleted before."""

from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.checks import Record
from gulpio2.sanity.deleted import not_shared, overwritten

RECORDS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12).map(
    lambda spans: [Record(loc, 0, length, "x", 0) for loc, length in spans]
)


def share(one, other):
    return max(one.loc, other.loc) < min(one.loc + one.length, other.loc + other.length)


@given(RECORDS, RECORDS)
def test_it_is_what_shares_bytes_with_anything_later(deleted, present):
    expected = {
        place
        for place, record in enumerate(deleted)
        if any(share(record, later) for later in [*deleted[place + 1 :], *present])
    }
    assert overwritten(deleted, present) == expected


def test_a_record_that_another_item_has_as_well_is_left_out():
    first, second = Record(0, 0, 8, "a", 0, 1), Record(8, 2, 8, "a", 1, 2)
    twins = [record._replace(item="b") for record in (first, second)]
    assert not_shared([first, second], twins) == []
    assert not_shared([first, second], [second._replace(crc32=None)]) == [first]
    assert not_shared([first, second, *twins], []) == [first, second]
    for other in (first._replace(crc32=5), first._replace(length=4)):
        assert not_shared([first], [other]) == [first]
        assert not_shared([first, other], []) == [first, other]


def test_many_that_lie_in_each_other_are_told_soon():
    number = 200_000
    nested = [Record(n, 0, 2 * (number - n), "x", 0) for n in range(number)]
    assert overwritten(nested, []) == set(range(number - 1))
    assert overwritten(nested[::-1], nested[:1]) == set(range(number))
