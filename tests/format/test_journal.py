"""Lines of a journal (rule 26)."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.journal import dump_line, load_lines

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def test_a_line_is_these_bytes():
    check = f"{zlib.crc32(b'[1, 2]'):08x}".encode()
    assert dump_line([1, 2]) == (
        check  # CRC-32 of the JSON
        + b" [1, 2]\n"  # a blank, the JSON, the end of the line
    )


@given(st.lists(values, max_size=5))
def test_lines_read_back_as_they_were_written(written):
    data = b"".join(dump_line(value) for value in written)
    read, ends = load_lines(data)
    assert read == written
    assert ends[-1:] == ([len(data)] if written else [])


@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_what_follows_a_torn_line_was_never_written(written, data):
    lines = [dump_line(value) for value in written]
    content = b"".join(lines)
    length = data.draw(st.integers(0, len(content)))
    read, ends = load_lines(content[:length])
    whole = [n for n in range(len(lines)) if sum(map(len, lines[: n + 1])) <= length]
    assert read == [written[n] for n in whole]
    assert len(ends) == len(whole)


@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_a_changed_byte_ends_the_journal_before_its_line(written, data):
    lines = [dump_line(value) for value in written]
    content = bytearray(b"".join(lines))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    read, _ = load_lines(bytes(content))
    before = [n for n in range(len(lines)) if sum(map(len, lines[: n + 1])) <= place]
    assert read == [written[n] for n in before]


def test_a_changed_byte_anywhere_in_a_line_ends_the_journal_before_it():
    first, second = dump_line([1]), dump_line({"task": 3})
    for place in range(len(second)):
        damaged = bytearray(second)
        damaged[place] ^= 0x55
        assert load_lines(first + damaged + dump_line(2))[0] == [[1]], place


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff"])
def test_a_line_that_fits_its_check_and_is_no_json_ends_the_journal(body):
    bad = f"{zlib.crc32(body):08x} ".encode() + body + b"\n"
    assert load_lines(dump_line(1) + bad + dump_line(2))[0] == [1]
