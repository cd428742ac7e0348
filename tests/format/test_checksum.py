"""`gulpio2.format.checksum`: fast where it can be, the same numbers everywhere."""

import subprocess
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.checksum import crc32_of

WITHOUT_ZLIB_NG = """
import sys, zlib
sys.modules["zlib_ng"] = None  # as where it is not installed
from gulpio2.format.checksum import crc32_of
assert crc32_of is zlib.crc32
"""


def test_the_checksum_is_that_of_png():
    assert crc32_of(b"123456789") == 0xCBF43926
    assert crc32_of(memoryview(b"")) == 0


@given(st.binary(max_size=5000), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_it_is_the_one_of_zlib_at_every_length_place_and_start(data, start, value):
    part = memoryview(data)[start:]
    assert crc32_of(part) == zlib.crc32(part)
    assert crc32_of(part, value) == zlib.crc32(part, value)


@pytest.mark.parametrize("length", [1 << 16, (1 << 20) + 7])
def test_it_is_the_one_of_zlib_for_long_data(length):
    data = bytearray(range(251)) * (length // 251 + 1)
    assert crc32_of(data) == zlib.crc32(data)


def test_where_the_fast_one_is_missing_zlib_is_used(python):
    subprocess.run([python, "-c", WITHOUT_ZLIB_NG], check=True, timeout=60)
