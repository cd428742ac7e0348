"""The bar of 0.0.4 on stderr: how many chunks are finished."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["chunk_bar"]


@contextlib.contextmanager
def chunk_bar(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar, where there is a stderr that can be written to.

    A log whose disk is full, or a reader of it that is gone, is no reason to end a run:
    nothing more is shown then.

    Parameters
    ----------
    total : int
        Chunks.

    Yields
    ------
    callable
        To be called for each chunk that is finished.
    """
    from tqdm import tqdm

    shown = {"desc": "Chunks finished", "unit": "chunk", "total": total}
    try:
        bar = tqdm(**shown, disable=sys.stderr is None)
    except OSError:
        bar = tqdm(disable=True)

    def advance() -> None:
        try:
            bar.update()
        except OSError:
            bar.disable = True

    try:
        yield advance
    finally:
        with contextlib.suppress(OSError):
            bar.close()
