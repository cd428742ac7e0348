"""A data file for who reads it without the handles of this package."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from gulpio2.storage.refusals import not_opened

if TYPE_CHECKING:
    from typing import BinaryIO

    from gulpio2.types import StrPath

__all__ = ["open_data_file"]


def open_data_file(path: StrPath) -> BinaryIO:
    """Open a data file; its caller closes it.

    Raises
    ------
    StorageError
        It cannot be opened, or is no regular file: a pipe would wait for ever.
    """
    name = os.fspath(path)
    try:
        # Asked before, as clients patch `open`, and expect a path and a flag.
        if os.path.exists(name) and not os.path.isfile(name):  # noqa: PTH110, PTH113  # of any path
            raise OSError(errno.EINVAL, "not a regular file", name)
        return open(path, "rb")  # noqa: PTH123  # see above
    except OSError as cause:
        raise not_opened(cause, name) from cause
