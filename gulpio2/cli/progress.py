"""A bar on stderr for work that takes longer than a second; in a file, lines."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.cli.terminal import is_quiet
from gulpio2.errors import GulpError
from gulpio2.format.layout import data_name, list_chunks
from gulpio2.storage.index.keeping import map_bytes
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Self

__all__ = ["ProgressBar", "data_bytes", "indexed_bytes"]

_COUNTS = "{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}{postfix}]"
_FORMAT = "{l_bar}{bar}| " + _COUNTS
# Seconds between two drawings, on a terminal and into a file.
_TERMINAL_SECONDS = 0.1
_FILE_SECONDS = 10.0


def data_bytes(directory: Path, *, orphans: bool = False) -> int:
    """Count the bytes of data files, `orphans` among them where they are to be."""
    store = open_store(directory)
    listing = list_chunks(store.names())
    total = 0
    for number in (*listing.chunks, *(listing.data_only if orphans else ())):
        with contextlib.suppress(OSError):  # nobody can tell
            total += store.size(data_name(number))
    return total


def indexed_bytes(*directories: Path) -> int:
    """Count the bytes of maps that an index is made of; 0 where nobody can tell.

    What is done then says why, in its own words.
    """
    total = 0
    for directory in directories:
        with contextlib.suppress(GulpError):
            total += map_bytes(directory)
    return total


class ProgressBar:
    """Draws what the library tells it: a `gulpio2.types.Progress`.

    Parameters
    ----------
    total : int
        How much there is to do. Where more is found, the attribute may be set.
    counted : {"items", "frames", "num_bytes"}, optional
        In what that is counted.
    delay_seconds : float, optional
        Nothing is drawn before.

    Notes
    -----
    It may be called from any thread. Under ``-q`` it draws nothing, nor where stderr is
    closed. Where that is no terminal, there is a line every ten seconds and at the end.
    Where it cannot be written to, as when the disk of a log is full or a terminal is
    gone, nothing more is drawn, and the work goes on.
    """

    def __init__(
        self,
        total: int,
        *,
        counted: Literal["items", "frames", "num_bytes"] = "items",
        delay_seconds: float = 1.0,
    ) -> None:
        self.total = total
        self.counted = counted
        self.items = self.frames = self.num_bytes = self.failures = 0
        self._delay = delay_seconds
        # There is none where a program was started with it closed.
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._pause = _TERMINAL_SECONDS if self._is_terminal else _FILE_SECONDS
        self._began = time.monotonic()
        self._drawn = float("-inf")
        self._bar: Any = None
        self._quiet = is_quiet() or sys.stderr is None
        self._lock = threading.Lock()

    def __call__(
        self, *, items: int = 0, frames: int = 0, num_bytes: int = 0, failures: int = 0
    ) -> None:
        """Take note of what was done since the last call."""
        with self._lock:
            self.items += items
            self.frames += frames
            self.num_bytes += num_bytes
            self.failures += failures
            now = time.monotonic()
            if (
                not self._quiet
                and self.total > 0  # of nothing there is no share
                and now - self._began >= self._delay
                and now - self._drawn >= self._pause
            ):
                self._drawn = now
                self._try_to_draw(now - self._began)

    def settle(self) -> None:
        """Take what was done for all that there was to do: it has ended."""
        self.total = getattr(self, self.counted)

    def _try_to_draw(self, seconds: float) -> None:
        try:
            self._draw(seconds)
        except OSError:
            self._quiet = True

    def _draw(self, seconds: float) -> None:
        from tqdm import tqdm

        from gulpio2.ingest.chunk_bar import LenientStream

        unit_scale = self.counted == "num_bytes"
        unit = "B" if unit_scale else f" {self.counted}"
        done: int = getattr(self, self.counted)
        if self.counted == "items":
            done += self.failures
        done = min(done, self.total)
        if not self._is_terminal:
            line = tqdm.format_meter(
                done,
                self.total,
                seconds,
                bar_format=_COUNTS,
                unit=unit,
                unit_scale=unit_scale,
                postfix=self._rates(seconds),
            )
            sys.stderr.write(f"{line}\n")
            return
        if self._bar is None:
            self._bar = tqdm(
                total=self.total,
                bar_format=_FORMAT,
                file=LenientStream(sys.stderr),
                unit=unit,
                unit_scale=unit_scale,
                # A terminal that does not know its size says 0, and tqdm believes it.
                nrows=shutil.get_terminal_size().lines,
            )
            self._bar.start_t -= seconds
        self._bar.total = self.total
        self._bar.n = done
        self._bar.set_postfix_str(self._rates(seconds), refresh=False)
        self._bar.refresh()

    def _rates(self, seconds: float) -> str:
        seconds = max(seconds, 1e-9)
        parts = []
        # Not all work counts both, and 0 would look as if it stood still.
        if self.frames:
            parts.append(f"{self.frames / seconds:,.0f} frames/s")
        if self.num_bytes:
            parts.append(f"{self.num_bytes / seconds / 1e6:.1f} MB/s")
        if self.failures:
            parts.append(f"{self.failures} failed")
        return ", ".join(parts)

    def __enter__(self) -> Self:
        """Give the bar itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Draw the end, where a bar was shown."""
        with self._lock:
            if self._drawn > float("-inf") and not self._quiet:  # something is there
                self._try_to_draw(time.monotonic() - self._began)
            if self._bar is not None:
                self._bar.close()
