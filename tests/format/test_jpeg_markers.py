"""Finding the marker that ends entropy-coded data."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format import jpeg_markers
from gulpio2.format.jpeg_markers import end_of_far_marker, end_of_next_marker

# As ITU-T T.81 has it, a byte at a time.
PLAIN = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
# No marker is between these: stuffed bytes, restarts, and FFs that fill.
DATA = bytes.fromhex("12 ff00 ffd0 ffd7 ffff00 00 d9")


def found_plainly(data, position):
    match = PLAIN.search(data, position)
    return match and match.end()


@given(
    st.lists(
        st.sampled_from([b"\0", b"\x01", b"\xff", b"\xd7", b"\xd8", b"\xd9", b"\xcf"])
    ),
    st.integers(0, 40),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_it_is_what_a_plain_search_finds(parts, position, near, window):
    data = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jpeg_markers, "_NEAR", near)
        patch.setattr(jpeg_markers, "_WINDOW", window)
        assert end_of_next_marker(data, position) == found_plainly(data, position)
        if data:
            assert end_of_far_marker(data, position) == found_plainly(data, position)


@pytest.mark.parametrize("length", [0, 4093, 4094, 4095, 4096, 69_630, 69_631, 69_632])
@pytest.mark.parametrize("marker", [b"\xff\xd9", b"\xff\xff\xda", b"\xff\x01", b""])
def test_it_is_found_at_the_edges_of_what_is_searched_together(length, marker):
    data = (DATA * (length // len(DATA) + 1))[:length].rstrip(b"\xff") + marker
    found = end_of_next_marker(data + b"\0", 0)
    assert found == (len(data) if marker else None)


@pytest.mark.parametrize("length", [0, 1, 2, 65_534, 65_535, 65_536, 65_537, 131_072])
@pytest.mark.parametrize("marker", [b"\xff\xd9", b"\xff\xff\xda", b"\xff\x01", b"\xff"])
def test_a_far_one_is_found_at_the_edges_of_windows(length, marker):
    data = (DATA * (length // len(DATA) + 1))[:length].rstrip(b"\xff") + marker
    found = end_of_far_marker(data, 0)
    assert found == (len(data) if len(marker) > 1 else None)
    assert end_of_far_marker(data + b"\0" + marker, 0) == found


def test_it_is_found_behind_many_windows():
    data = DATA * 30_000 + b"\xff\xd9" + DATA
    assert end_of_next_marker(data, 5) == 30_000 * len(DATA) + 2
    assert end_of_next_marker(data, 30_000 * len(DATA) + 1) is None


def test_numpy_is_not_started_for_a_scan_of_a_progressive_image(monkeypatch):
    monkeypatch.setattr(jpeg_markers, "np", None)
    data = (DATA * 400)[:4000].rstrip(b"\xff") + b"\xff\xda"
    assert end_of_next_marker(data + DATA * 9000, 0) == len(data)
