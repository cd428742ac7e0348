"""Arguments of callers, checked where they are given."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

if TYPE_CHECKING:
    from gulpio2.types import Verify

__all__ = [
    "as_number",
    "callable_or",
    "optional_number",
    "require_choice",
    "require_number",
    "require_state",
    "require_verify",
    "whole_number",
]


def require_choice(
    name: str, value: object, choices: Any, *, error: type[ValueError] = ValueError
) -> None:
    """Make sure that a value is one of those of a Literal type.

    Raises
    ------
    ValueError
        It is not; an `error`.
    """
    if value not in get_args(choices):
        allowed = ", ".join(get_args(choices))
        raise error(f"{name} is {value!r}; it must be one of {allowed}")


def require_number(name: str, value: Any, least: int) -> int:
    """Give a whole number as an int.

    Raises
    ------
    TypeError
        It is none.
    ValueError
        It is too small.
    """
    if type(value) is int and value >= least:  # as mostly, and for every sample
        return value
    number = whole_number(name, value)
    if number < least:
        raise ValueError(f"{name} is {number}, expected at least {least}")
    return number


def whole_number(name: str, value: Any) -> int:
    """Give a whole number as an int, such as a seed, which may be below 0.

    Raises
    ------
    TypeError
        It is none, or a boolean: a flag in the place of a number is a mistake.
    """
    try:
        if isinstance(value, (bool, np.bool_)):  # an index of 1 up to numpy 2.2
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected a whole number") from None


def as_number(value: Any) -> float:
    """Give a number of whatever kind as a float, and what is none as NaN.

    So, too, a whole number that is larger than any float.
    """
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def optional_number(name: str, value: Any, least: int) -> int | None:
    """Give a whole number as an int, and None as None; see `require_number`."""
    return None if value is None else require_number(name, value, least)


def callable_or(name: str, value: Any, default: Any = None) -> Any:
    """Give what can be called, and the default for None.

    Raises
    ------
    TypeError
        It cannot be called.
    """
    if value is None:
        return default
    if not callable(value):
        raise TypeError(
            f"{name} is {reprlib.repr(value)}, expected something that can be called, "
            "as a function, or None"
        )
    return value


def require_state(state: Any) -> None:
    """Refuse what is no state of a run.

    Raises
    ------
    TypeError
        It is no mapping.
    """
    if not isinstance(state, Mapping):
        raise TypeError(
            f"the state is {reprlib.repr(state)}, expected the dict of state_dict()"
        )


def require_verify(verify: object) -> Verify:
    """Make sure what is to be compared with the checks that are stored.

    Raises
    ------
    ValueError
        Another string than ``"frames"``.
    """
    if verify == "frames":
        return "frames"
    if isinstance(verify, str):
        raise ValueError(f"verify is {verify!r}; it must be True, False or 'frames'")
    return bool(verify)
