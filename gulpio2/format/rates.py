"""Frame rates as users give them, and what they mean."""

from __future__ import annotations

import numbers
import re
from fractions import Fraction

__all__ = ["FrameRate", "parse_frame_rate"]

FrameRate = float | int | str | Fraction

# FFmpeg reads a rate as the nearest fraction with these bounds (av_parse_video_rate).
_MAX_RATIO = 1_001_000
_LARGE_EXPONENT = re.compile(r"[eE][+-]?[0-9_]{4}")


def parse_frame_rate(rate: FrameRate | None) -> Fraction | None:
    """Read a frame rate as FFmpeg does.

    Parameters
    ----------
    rate : int, float, str, Fraction or None
        Frames per second; as text also a ratio: ``"30000/1001"`` or ``"30000:1001"``.

    Returns
    -------
    Fraction or None
        None for what is falsy (None, 0, ``""``): the source's own frames.

    Raises
    ------
    ValueError
        Not a rate, or not above 0; the message gives it.

    Examples
    --------
    >>> parse_frame_rate(29.97), parse_frame_rate("30000/1001"), parse_frame_rate(0)
    (Fraction(2997, 100), Fraction(30000, 1001), None)
    """
    if rate is None or isinstance(rate, bool) or rate in (0, ""):
        if rate is True:
            raise ValueError("frame_rate is True; give frames per second, as 8")
        return None
    try:
        if isinstance(rate, str):
            if _LARGE_EXPONENT.search(rate):  # it would be computed
                raise ValueError
            number, slash, divisor = rate.replace(":", "/").partition("/")
            exact = Fraction(number.strip())
            if slash:
                exact /= Fraction(divisor.strip())
        elif isinstance(rate, numbers.Rational):
            exact = Fraction(int(rate.numerator), int(rate.denominator))
        else:
            # Through text: 29.97 means 2997/100, not the double next to it.
            exact = Fraction(str(float(rate)))
    except (TypeError, ValueError, ArithmeticError) as cause:
        raise ValueError(
            f"frame_rate is {rate!r}; give frames per second as a number or a ratio "
            "(8, 29.97, '30000/1001'), or 0 for the source's own"
        ) from cause
    if exact == 0:
        return None
    nearest = exact.limit_denominator(_MAX_RATIO)
    if not 0 < nearest <= _MAX_RATIO:
        raise ValueError(
            f"frame_rate is {rate!r}; it must be above 0 and at most {_MAX_RATIO}, "
            "or 0 for the source's own"
        )
    return nearest
