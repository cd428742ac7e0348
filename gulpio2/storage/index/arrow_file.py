"""Where the buffers of an Arrow IPC file are, found without the Arrow library.

Loading that library costs a process some 30 MB of memory and a tenth of a second;
reading a few numbers out of the file's footer costs neither. Only what `file` writes
is understood: one record batch, not compressed, little-endian. Sources: the Arrow
columnar format, "IPC File Format", with ``File.fbs``, ``Message.fbs`` and
``Schema.fbs``; the FlatBuffers internals page for tables, vtables and vectors.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["ArrowLayout", "read_layout"]

MAGIC = b"ARROW1"
# Continuation marker and metadata size before each message, since Arrow 0.15.
_MESSAGE_PREFIX = 8
_RECORD_BATCH = 3  # of the union MessageHeader
_LITTLE_ENDIAN = 0

_I32 = struct.Struct("<i")
_U32 = struct.Struct("<I")
_U16 = struct.Struct("<H")
_I64 = struct.Struct("<q")
_PAIR = struct.Struct("<qq")
_BLOCK = struct.Struct("<qi4xq")


@dataclass(frozen=True, slots=True)
class ArrowLayout:
    """What the footer of a file says."""

    metadata: dict[str, str]
    """Custom metadata of the schema."""
    field_names: tuple[str, ...]
    """Columns, without their children."""
    num_rows: int
    """Rows of the record batch."""
    buffers: tuple[tuple[int, int], ...]
    """Offset in the file and bytes of each buffer, in the order of the columns'
    depth-first walk; each lies inside of the file."""


class _Table:
    """A FlatBuffers table. Whatever is out of bounds raises ``struct.error``."""

    def __init__(self, data: memoryview, position: int) -> None:
        self.data = data
        self.position = position
        self._vtable = position - _I32.unpack_from(data, position)[0]
        if self._vtable < 0:
            raise ValueError("a vtable before the beginning")
        self._vtable_size = _U16.unpack_from(data, self._vtable)[0]

    def at(self, field: int) -> int | None:
        """Give the place of a field's value; None where it has its default."""
        slot = 4 + 2 * field
        if slot >= self._vtable_size:
            return None
        offset = _U16.unpack_from(self.data, self._vtable + slot)[0]
        return self.position + offset if offset else None

    def number(self, field: int, kind: struct.Struct) -> int:
        at = self.at(field)
        return 0 if at is None else int(kind.unpack_from(self.data, at)[0])

    def target(self, field: int) -> int | None:
        """Follow the offset in a field."""
        at = self.at(field)
        return None if at is None else at + _U32.unpack_from(self.data, at)[0]

    def table(self, field: int) -> _Table:
        target = self.target(field)
        if target is None:
            raise ValueError(f"table {field} is missing")
        return _Table(self.data, target)

    def vector(self, field: int) -> tuple[int, int]:
        """Give the place of a vector's first element, and their number."""
        target = self.target(field)
        if target is None:
            return 0, 0
        return target + 4, _U32.unpack_from(self.data, target)[0]

    def tables(self, field: int) -> list[_Table]:
        first, count = self.vector(field)
        if count > len(self.data) // 4:
            raise ValueError(f"{count} tables in {len(self.data)} bytes")
        return [
            _Table(self.data, at + _U32.unpack_from(self.data, at)[0])
            for at in range(first, first + 4 * count, 4)
        ]

    def text(self, field: int) -> str:
        first, count = self.vector(field)
        part = bytes(self.data[first : first + count])
        if len(part) != count:
            raise ValueError("a text out of bounds")
        return part.decode("utf-8")


def read_layout(data: memoryview) -> ArrowLayout:
    """Read the footer of an Arrow IPC file.

    Parameters
    ----------
    data : memoryview
        The whole file, mapped. Only its end and the head of its record batch are
        touched.

    Raises
    ------
    ValueError
        It is no such file, or is damaged.
    """
    try:
        return _read_layout(data)
    except (struct.error, IndexError, OverflowError, RecursionError) as cause:
        raise ValueError(f"the Arrow footer is damaged: {cause}") from cause


def _read_layout(data: memoryview) -> ArrowLayout:
    end = len(data) - len(MAGIC)
    if bytes(data[: len(MAGIC)]) != MAGIC or bytes(data[max(end, 0) :]) != MAGIC:
        raise ValueError("no Arrow file: it does not begin and end as one")
    footer_size = _I32.unpack_from(data, end - 4)[0]
    if not 0 < footer_size <= end - 4 - len(MAGIC):
        raise ValueError(f"the footer has {footer_size} bytes")
    footer_bytes = data[end - 4 - footer_size : end - 4]
    footer = _Table(footer_bytes, _U32.unpack_from(footer_bytes, 0)[0])
    schema = footer.table(1)
    if schema.number(0, _U16) != _LITTLE_ENDIAN:
        raise ValueError("not little-endian")
    blocks_at, num_blocks = footer.vector(3)
    if num_blocks != 1:
        raise ValueError(f"{num_blocks} record batches")
    offset, prefix, body_length = _BLOCK.unpack_from(footer_bytes, blocks_at)
    body = offset + prefix
    if offset < 0 or prefix < _MESSAGE_PREFIX or not 0 <= body <= len(data):
        raise ValueError("the record batch is out of bounds")
    head = data[offset + _MESSAGE_PREFIX : body]
    message = _Table(head, _U32.unpack_from(head, 0)[0])
    kind_at = message.at(1)
    if kind_at is None or head[kind_at] != _RECORD_BATCH:
        raise ValueError("no record batch")
    batch = message.table(2)
    if batch.at(3) is not None:
        raise ValueError("compressed")
    buffers_at, num_buffers = batch.vector(2)
    if num_buffers > len(head) // _PAIR.size:
        raise ValueError(f"{num_buffers} buffers")
    buffers = []
    for number in range(num_buffers):
        start, length = _PAIR.unpack_from(head, buffers_at + number * _PAIR.size)
        if start < 0 or length < 0 or start + length > body_length:
            raise ValueError(f"buffer {number} is out of bounds")
        if body + start + length > end:
            raise ValueError(f"buffer {number} is out of the file")
        buffers.append((body + start, length))
    return ArrowLayout(
        metadata={pair.text(0): pair.text(1) for pair in schema.tables(2)},
        field_names=tuple(field.text(0) for field in schema.tables(1)),
        num_rows=batch.number(0, _I64),
        buffers=tuple(buffers),
    )
