"""Items that are worked on for so long that somebody should be told."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from gulpio2.format.wording import counted
from gulpio2.ingest.crashes import AtWork, name_of
from gulpio2.ingest.telling import NOTHING, telling_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Lingering", "watching_here"]

_logger = logging.getLogger(__name__)

# Seconds after which an item is told of, and how many times as long as the longest one
# before: where all are long it is nothing to speak of.
_LONG_SECONDS = 300.0
_TIMES = 3
# Seconds between two looks at what this process is at.
_LOOK_SECONDS = 1.0


class Lingering:
    """Tells once of each item that takes far longer than those before it.

    Its frames may never end, or a decoder hang: nothing else says which item it is.
    """

    def __init__(self) -> None:
        self._since: dict[int | None, tuple[int, float]] = {}
        self._told: set[int] = set()
        self._longest = 0.0

    def look(self, at_work: Mapping[int | None, AtWork]) -> None:
        """Look at what each worker is at now, which is to be done about every second.

        Parameters
        ----------
        at_work : mapping
            What each is at, by whatever tells the workers apart.
        """
        now = time.monotonic()
        for worker, at in at_work.items():
            position, since = self._since.get(worker, (NOTHING, now))
            if position != at.position:
                if position != NOTHING:
                    self._longest = max(self._longest, now - since)
                self._since[worker] = at.position, now
            elif position != NOTHING and position not in self._told:
                seconds = now - since
                if seconds >= max(_LONG_SECONDS, _TIMES * self._longest):
                    self._told.add(position)
                    _tell(at, seconds)


def _tell(at: AtWork, seconds: float) -> None:
    _logger.warning(
        "%s has been worked on for %s, and is not done. It is long, or its frames "
        "never end, or a decoder hangs: then interrupt (Ctrl-C), and leave it out",
        name_of(at),
        counted(max(round(seconds / 60), 1), "minute"),
    )


@contextlib.contextmanager
def watching_here() -> Iterator[None]:
    """Tell of items that this thread works at for long, from another thread."""
    at = AtWork(NOTHING, None)
    ended = threading.Event()

    def note(position: int, id_: str | None) -> None:
        nonlocal at
        at = AtWork(position, id_)

    def watch() -> None:
        lingering = Lingering()
        while not ended.wait(_LOOK_SECONDS):
            lingering.look({None: at})

    watcher = threading.Thread(target=watch, name="gulpio2-lingering", daemon=True)
    with contextlib.suppress(RuntimeError):  # no thread is to be had: nobody is told
        watcher.start()
    try:
        with telling_here(note):
            yield
    finally:
        ended.set()
