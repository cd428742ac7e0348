"""The files that an adapter was made with, such as a table of labels.

A run that is resumed compares items by their ids. What else a table says of them it
does not see: what is stored already is not asked for again. So the files are compared.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.format.checksum import crc32_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["given_files"]

# Bytes. Tables are smaller; of what is larger only the size is compared.
_MAX_READ = 256 << 20


def given_files(options: Mapping[str, Any] | None) -> dict[str, list[int]]:
    """Say what is in the files that options name.

    Parameters
    ----------
    options : mapping or None
        Of an adapter, as JSON values.

    Returns
    -------
    dict
        Path, as it was given, to size and CRC-32. Folders, and what cannot be read,
        are left out.
    """
    found = {}
    for path in _texts(options):
        try:
            state = os.stat(path)  # noqa: PTH116  # any text: Path refuses some
            if not stat.S_ISREG(state.st_mode):
                continue
            is_read = state.st_size <= _MAX_READ
            crc32 = crc32_of(Path(path).read_bytes()) if is_read else 0
        except (OSError, ValueError):
            continue
        found[path] = [state.st_size, crc32]
    return found


def _texts(value: Any) -> Iterator[str]:
    """Give every text in a JSON value that may be a path."""
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
