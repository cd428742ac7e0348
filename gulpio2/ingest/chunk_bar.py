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
    """Clear the bars on stderr while a line is logged, and draw them again below it.

    Where stderr cannot be written to, there are no bars.
    """
    with contextlib.ExitStack() as stack:
        # Another thread may be importing it: then the module is there, its names not.
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
    """Show a bar of so many chunks, and yield what is called for each finished one.

    Where stderr is missing or cannot be written to any more, as when the disk of a log
    is full, the run goes on without a bar.
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
