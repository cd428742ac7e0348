"""The bar of 0.0.4 on stderr: how many chunks are finished."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LenientStream", "above_bars", "chunk_bar"]


class LenientStream:
    """What a bar is drawn on: a stream that loses what cannot be written to it.

    Where drawing fails, as on a log whose disk is full, tqdm keeps for ever the lock
    that all bars of the process share, and other threads wait for it.

    Parameters
    ----------
    stream : text file
        It is equal to this one, so that lines for it make way for the bar.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or lose it."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or lose it."""
        flush = getattr(self._stream, "flush", None)  # some who log have none
        with contextlib.suppress(OSError):
            if flush is not None:
                flush()

    def __getattr__(self, name: str) -> Any:
        """Find the rest with the stream: whether it is a terminal, its encoding."""
        return getattr(self._stream, name)

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same stream."""
        return self._stream is getattr(other, "_stream", other)

    def __hash__(self) -> int:
        """Give the stream's."""
        return hash(self._stream)


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
        if sys.stderr is None:
            bar = tqdm(disable=True)
        else:
            bar = tqdm(**shown, file=LenientStream(sys.stderr))
    except OSError:  # it flushes what others have left there
        bar = tqdm(disable=True)
    with bar:
        yield bar.update
