"""Records byte by byte (rules 3 to 5)."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.records import ALIGNMENT, FrameInfo, pad_length, record_of

# The smallest thing with the markers of a JPEG, and three longer ones.
SHORTEST = b"\xff\xd8\xff\xd9"


@pytest.mark.parametrize(
    ("jpeg", "padding"),
    [
        (SHORTEST, b""),  # 4 bytes
        (b"\xff\xd8.\xff\xd9", b"\0\0\0"),  # 5 bytes
        (b"\xff\xd8..\xff\xd9", b"\0\0"),  # 6 bytes
        (b"\xff\xd8...\xff\xd9", b"\0"),  # 7 bytes
        (b"", b""),
    ],
)
def test_zero_bytes_bring_a_record_to_a_multiple_of_four(jpeg, padding):
    info, written = record_of(jpeg, 8)
    assert written == padding
    assert info == (8, len(padding), len(jpeg) + len(padding))


def test_two_records_in_a_row_are_these_bytes():
    first, first_padding = record_of(b"\xff\xd8\x01\xff\xd9", 0)
    second, second_padding = record_of(b"\xff\xd8\x01\x02\xff\xd9", first.length)
    data = b"\xff\xd8\x01\xff\xd9" + first_padding
    data += b"\xff\xd8\x01\x02\xff\xd9" + second_padding
    assert data == (
        b"\xff\xd8\x01\xff\xd9"  # the first JPEG
        b"\0\0\0"  # its padding
        b"\xff\xd8\x01\x02\xff\xd9"  # the second JPEG
        b"\0\0"  # its padding
    )
    assert (first, second) == ((0, 3, 8), (8, 2, 8))


def test_a_frame_info_is_the_triplet_of_the_original():
    info = FrameInfo(4, 1, 8)
    assert info == (4, 1, 8)
    assert info._fields == ("loc", "pad", "length")
    assert repr(info) == "ImgInfo(loc=4, pad=1, length=8)"


def test_a_frame_info_is_pickled_under_the_name_of_the_original():
    info = FrameInfo(4, 1, 8)
    pickled = pickle.dumps(info)
    assert b"gulpio2.fileio" in pickled
    assert b"ImgInfo" in pickled
    assert type(pickle.loads(pickled)) is type(copy.deepcopy(info)) is FrameInfo


@given(st.integers(0, 10**9))
def test_padding_is_the_least_that_aligns(num_bytes):
    pad = pad_length(num_bytes)
    assert 0 <= pad < ALIGNMENT
    assert (num_bytes + pad) % ALIGNMENT == 0
    assert pad == (4 - num_bytes % 4) % 4  # as the rule has it


@given(st.lists(st.binary(min_size=1, max_size=40)))
def test_jpegs_come_out_of_their_records_as_they_went_in(jpegs):
    data = b""
    infos = []
    for jpeg in jpegs:
        info, padding = record_of(jpeg, len(data))
        data += jpeg + padding
        infos.append(info)
    assert [
        data[info.loc : info.loc + info.length - info.pad] for info in infos
    ] == jpegs
    assert all(info.loc % ALIGNMENT == 0 for info in infos)
    assert sum(info.length for info in infos) == len(data)
