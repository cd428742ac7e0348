"""Checks of constructor arguments, so that a wrong one is told before any work."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from gulpio2.errors import IngestSettingError
from gulpio2.format.rates import parse_frame_rate

if TYPE_CHECKING:
    from gulpio2.format.rates import FrameRate

__all__ = ["check_choice", "checked_frame_rate", "checked_size"]


def check_choice(name: str, value: object, kind: Any) -> None:
    """Refuse a value that is not one of the allowed ones, and name these.

    Parameters
    ----------
    name : str
        The parameter, for the message.
    value : object
        What was given.
    kind : a ``Literal``
        What is allowed.

    Raises
    ------
    IngestSettingError
        Another value; it is a ``ValueError`` too.
    """
    if value not in get_args(kind):
        raise IngestSettingError(
            f"{name} is {value!r}; allowed are {list(get_args(kind))}"
        )


def checked_frame_rate(
    frame_rate: FrameRate | None, name: str = "frame_rate"
) -> FrameRate | None:
    """Give a frame rate as an adapter keeps it, once it is known to be one.

    Parameters
    ----------
    frame_rate : float, str, Fraction or None
        Frames a second; None or 0 for none.
    name : str
        The parameter, for messages.

    Returns
    -------
    float, str, Fraction or None
        The same; of the text of a whole number, as command lines give it, the number:
        programs for GulpIO2 0.0.4 compute with the attribute.

    Raises
    ------
    IngestSettingError
        It is no frame rate; it is a ``ValueError`` too.
    """
    try:
        parse_frame_rate(frame_rate, name)
    except ValueError as cause:
        raise IngestSettingError(str(cause)) from cause
    if isinstance(frame_rate, str):
        with suppress(ValueError):
            return int(frame_rate)
    return frame_rate


def checked_size(name: str, value: Any) -> int:
    """Give a size of frames as GulpIO2 0.0.4 does: what ``int`` makes of it.

    Raises
    ------
    IngestSettingError
        It is True, which would be stored as frames of one pixel. False is 0.
    """
    if isinstance(value, (bool, np.bool_)) and value:
        raise IngestSettingError(
            f"{name} is {value!r}; give the short edge in pixels, or -1 for the "
            "source's own"
        )
    return int(value)
