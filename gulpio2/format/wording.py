"""How reports put numbers, errors and what is in a file into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.errors import with_article

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["cannot_be_read", "counted", "first_of", "shown", "some_of"]

_MOST = 80  # characters of a value


def cannot_be_read(cause: OSError) -> str:
    """Say that the system refuses to read something, and why.

    Examples
    --------
    >>> cannot_be_read(OSError(5, "Input/output error"))
    'cannot be read: Input/output error'
    """
    return f"cannot be read: {cause.strerror or cause}"


def counted(number: int, noun: str, plural: str = "", *, spec: str = "") -> str:
    """Give a number with its noun.

    Parameters
    ----------
    number : int
        How many there are.
    noun : str
        What one of them is called.
    plural : str, optional
        What others are called. Default: the noun with an s.
    spec : str, optional
        How the number is written, as in ``format``.

    Examples
    --------
    >>> counted(1, "item"), counted(1200, "frame"), counted(0, "loss", "losses")
    ('1 item', '1200 frames', '0 losses')
    """
    return f"{number:{spec}} {noun if number == 1 else plural or noun + 's'}"


def first_of(names: Sequence[str], noun: str) -> str:
    """Name the first of some, and say how many others there are.

    Examples
    --------
    >>> first_of(["a", "b", "c"], "file")
    'a and 2 other files'
    """
    others = len(names) - 1
    return names[0] + (f" and {counted(others, f'other {noun}')}" if others else "")


def some_of(told: Sequence[str], most: int) -> str:
    """List the first of some, and say how many more there are.

    Examples
    --------
    >>> some_of(["a", "b", "c"], 2), some_of(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    more = f" and {len(told) - most} more" if told[most:] else ""
    return ", ".join(told[:most]) + more


def shown(value: object) -> str:
    """Give a value as a message has it: short, and of whatever a file may hold.

    Examples
    --------
    >>> shown([4, "a"]), len(shown("a" * 1000))
    ("[4, 'a']", 80)
    """
    try:
        text = repr(value)
    except RecursionError:  # JSON is read that is nested deeper
        text = with_article(type(value).__name__)
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
