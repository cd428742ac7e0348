"""The bar of 0.0.4 on stderr: how many chunks are finished."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["above_bars", "chunk_bar"]


@contextlib.contextmanager
def above_bars() -> Iterator[None]:
    """Have bars make way for what is logged meanwhile, which began behind them.

    Where stderr cannot be written to there is nothing to make way.
    """
    with contextlib.ExitStack() as stack:
        # It may be there in part: another thread is about to import it.
        tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
        if tqdm is not None and sys.stderr is not None:
            # Without the lock, for which whoever handles the record might wait.
            mode = tqdm.external_write_mode(file=sys.stderr, nolock=True)
            with contextlib.suppress(OSError):
                mode.__enter__()
                stack.callback(_leave, mode)
        yield


def _leave(mode: contextlib.AbstractContextManager[None]) -> None:
    with contextlib.suppress(OSError):
        mode.__exit__(None, None, None)


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
