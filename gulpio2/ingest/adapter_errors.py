"""What adapters raise: as text, as an exception that travels, behind an item."""

from __future__ import annotations

import logging
import pickle
import signal
import traceback
from typing import Any

from gulpio2.errors import AdapterContractError, IngestError

__all__ = [
    "ToldInVainError",
    "as_failure",
    "begin_run",
    "portable_error",
    "short_text",
    "text_of",
    "warn_of",
]

_logger = logging.getLogger(__name__)

# Characters of an error that go into journals and the report.
_MAX_TEXT = 500
# Warnings of what is raised behind last items: with a text of its own for each of a
# thousand chunks nobody would read more.
_MAX_WARNINGS = 20
# Kinds of errors that this run has told of in this process.
_warned: set[type[BaseException]] = set()
# What it has told of that came behind the last item of a slice.
_warned_at_ends: set[str] = set()


class ToldInVainError(BaseException):
    """Carries what the progress callback has raised past what catches items' errors."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


# What ends more than an item, wherever it is raised.
_NOT_OF_ITEMS = (KeyboardInterrupt, ToldInVainError)


def begin_run() -> None:
    """Warn anew of what an adapter raises behind an item."""
    _warned.clear()
    _warned_at_ends.clear()


def as_failure(error: BaseException) -> Exception:
    """Give the error of an item, as an exception that ends no run.

    `sys.exit` in an adapter must not. Nor must a decoder that panics, of which some
    raise what is a `BaseException` alone, as those do that are written in Rust.

    Raises
    ------
    BaseException
        The error itself, where it is not the adapter's: an interrupt, what the progress
        callback has raised, and what is no `Exception` and was raised by a handler of
        signals, by which the program is told to end.
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, _NOT_OF_ITEMS) or _is_of_signal(error):
        raise error
    failure: Exception
    if isinstance(error, SystemExit):
        failure = AdapterContractError(
            f"the adapter ended the program: sys.exit({error.code!r}). Raise an "
            "exception in its place"
        )
    else:
        failure = _as_ours(error)
    failure.__cause__ = error
    return failure


def _is_of_signal(error: BaseException) -> bool:
    """Tell whether a handler of signals has raised an error."""
    handlers: list[Any] = [signal.getsignal(n) for n in signal.valid_signals()]
    codes = [
        getattr(each, "__code__", getattr(type(each).__call__, "__code__", None))
        for each in handlers
        if callable(each)
    ]
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)


def portable_error(error: Exception) -> Exception:
    """Give an exception that survives the way to another process."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  # made in the line before
    except Exception:  # noqa: BLE001  # whatever a foreign class raises
        return _as_ours(error)
    return error


def _as_ours(error: BaseException) -> IngestError:
    return IngestError(f"{type(error).__name__}: {text_of(error)}")


def text_of(error: BaseException) -> str:
    """Give what an error says, whatever its class does."""
    try:
        return str(error) or repr(error)
    except Exception:  # noqa: BLE001  # of a foreign class
        return "its message cannot be shown"


def short_text(error: BaseException) -> str:
    """Name an error's class and what it says, cut where that is long."""
    text = f"{type(error).__name__}: {text_of(error)}"
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def warn_of(error: BaseException, position: int, *, is_end: bool) -> None:
    """Tell of an error that cost no item, each once: it comes for each of the chunks.

    What the adapter was to do after an item, or after the last one, is not done. Where
    another item followed (not `is_end`), one of a kind is enough. Behind the last one
    the text may be all there is to see of a fault, and so is told.
    """
    text = short_text(error)
    if is_end:
        if text in _warned_at_ends or len(_warned_at_ends) >= _MAX_WARNINGS:
            return
        _warned_at_ends.add(text)
    else:
        if type(error) in _warned:
            return
        _warned.add(type(error))
    _logger.warning(
        "the adapter raised %s after it had given %s, and not when it was asked to go "
        "on from there. Its items are stored; what it was to do then may not be done",
        text,
        f"the item at position {position - 1}" if position else "nothing",
    )
