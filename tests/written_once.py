"""Input files that take long to make, made once in each test process."""

from __future__ import annotations

import functools
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["written_once"]


def written_once(write: Callable[..., Path]) -> Callable[..., Path]:
    """Have ``write(path, ...)`` make a file once for each ending and other arguments.

    Every caller gets a file of its own, and may damage it: what is kept are the bytes.
    """
    kept: dict[bytes, bytes] = {}

    @functools.wraps(write)
    def copy(path: str | Path, *args: Any, **options: Any) -> Path:
        path = Path(path)
        key = pickle.dumps((path.suffix, args, options))
        path.parent.mkdir(parents=True, exist_ok=True)
        if key in kept:
            path.write_bytes(kept[key])
        else:
            write(path, *args, **options)
            kept[key] = path.read_bytes()
        return path

    return copy
