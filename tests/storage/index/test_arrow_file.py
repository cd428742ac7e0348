"""The buffers of an Arrow file, found without Arrow, and nothing out of bounds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.storage.index.arrow_file import read_layout


def arrow_file(batches: int = 1, **options: str) -> bytes:
    """Write a file of a number, a text and a list column."""
    batch = pa.RecordBatch.from_pydict(
        {
            "number": pa.array(np.arange(5)),
            "text": pa.array(["a", "bc", "", "def", "g"], pa.large_string()),
            "pairs": pa.array([[1, 2], [], [3], [4], [5]], pa.large_list(pa.uint8())),
        }
    ).replace_schema_metadata({"gulp2": "héader"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(
        sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as file:
        for _ in range(batches):
            file.write_batch(batch)
    return bytes(sink.getvalue())


def test_columns_rows_metadata_and_buffers_are_those_that_arrow_wrote():
    data = arrow_file()
    layout = read_layout(memoryview(data))
    assert layout.field_names == ("number", "text", "pairs")
    assert layout.num_rows == 5
    assert layout.metadata == {"gulp2": "héader"}

    def values(number: int, dtype: str) -> list[int]:
        start, length = layout.buffers[number]
        return list(np.frombuffer(data[start : start + length], dtype))

    # Validity and values; validity, bounds and text; validity, bounds, and the child's.
    assert values(1, "<i8") == [0, 1, 2, 3, 4]
    assert values(3, "<i8") == [0, 1, 3, 3, 6, 7]
    assert bytes(values(4, "u1")) == b"abcdefg"
    assert values(6, "<i8") == [0, 2, 2, 3, 4, 5]
    assert values(8, "u1") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no Arrow file"),
        (b"ARROW1", "footer"),
        (b"x" * 200, "no Arrow file"),
        (b"ARROW1\0\0" + b"\xff" * 40 + b"ARROW1", "footer"),
        (arrow_file(batches=2), "2 record batches"),
        (arrow_file(batches=0), "0 record batches"),
        (arrow_file(compression="zstd"), "compressed"),
    ],
    ids=["empty", "magic", "other", "footer", "two", "none", "compressed"],
)
def test_what_is_not_understood_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        read_layout(memoryview(data))


WHOLE = arrow_file()


@given(st.data())
def test_a_damaged_file_is_refused_or_its_buffers_lie_inside(data):
    damaged = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(WHOLE) - 1))
        damaged[at] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    cut = data.draw(st.one_of(st.just(len(WHOLE)), st.integers(0, len(WHOLE))))
    try:
        layout = read_layout(memoryview(bytes(damaged[:cut])))
    except ValueError:
        return
    for start, length in layout.buffers:
        assert 0 <= start <= start + length <= cut


def test_every_single_changed_byte_is_refused_or_harmless():
    for at in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[at] ^= 0xFF
        try:
            layout = read_layout(memoryview(damaged))
        except ValueError:
            continue
        assert all(start + n <= len(WHOLE) for start, n in layout.buffers)
