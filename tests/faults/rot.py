"""Files that change on the disk, which notes neither a size nor a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["rot"]


def rot(path: Path, one: bytes, other: bytes) -> None:
    """Put other bytes into a file, at the first place, and leave its size and time."""
    state = path.stat()
    data = path.read_bytes()
    assert one in data
    assert len(one) == len(other)
    path.write_bytes(data.replace(one, other, 1))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
