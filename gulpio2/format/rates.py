"""Frame rates as users give them, and what they mean."""

from __future__ import annotations

import numbers
import re
from fractions import Fraction

__all__ = ["FrameRate", "parse_frame_rate"]

FrameRate = float | int | str | Fraction

# FFmpeg reads a rate as a near fraction of numbers up to this (av_parse_video_rate),
# and knows these by name.
_MAX_RATIO = 1_001_000
_NAMED = {
    "ntsc": Fraction(30000, 1001),
    "qntsc": Fraction(30000, 1001),
    "sntsc": Fraction(30000, 1001),
    "pal": Fraction(25),
    "qpal": Fraction(25),
    "spal": Fraction(25),
    "film": Fraction(24),
    "ntsc-film": Fraction(24000, 1001),
}
_LARGE_EXPONENT = re.compile(r"[eE][+-]?[0-9_]{4}")


def parse_frame_rate(
    rate: FrameRate | None, name: str = "frame_rate"
) -> Fraction | None:
    """Read a frame rate as FFmpeg does.

    Parameters
    ----------
    rate : int, float, str, Fraction or None
        Frames per second; as text also a ratio, ``"30000/1001"`` or ``"30000:1001"``,
        or a name: ``"ntsc"``, ``"pal"``, ``"film"``, ``"ntsc-film"``.
    name : str
        The parameter, for messages.

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
    none = "the source's own" if name == "frame_rate" else "none"
    is_bool = type(rate).__name__ in ("bool", "bool_")  # numpy's as well
    if rate is None or is_bool or rate in (0, ""):
        if is_bool and rate:
            raise ValueError(f"{name} is {rate!r}; give frames per second, as 8")
        return None
    try:
        if isinstance(rate, str) and rate in _NAMED:
            return _NAMED[rate]
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
            f"{name} is {rate!r}; give frames per second as a number or a ratio "
            f"(8, 29.97, '30000/1001'), or 0 for {none}"
        ) from cause
    if exact == 0:
        return None
    near = _reduced(exact) if 0 < exact <= _MAX_RATIO else Fraction(0)
    if not near:
        raise ValueError(
            f"{name} is {rate!r}; it must be above 0 and at most {_MAX_RATIO}, "
            f"or 0 for {none}"
        )
    return near


def _reduced(exact: Fraction) -> Fraction:
    """Find the near fraction of bounded numbers that FFmpeg takes, 0 for the smallest.

    As ``av_d2q`` and ``av_reduce`` (libavutil/rational.c): of the double, by continued
    fractions.
    """
    if max(exact.numerator, exact.denominator) <= _MAX_RATIO:
        return exact
    number, divisor = float(exact).as_integer_ratio()
    before, last = (0, 1), (1, 0)
    while divisor:
        whole, rest = divmod(number, divisor)
        following = _step(before, last, whole)
        if max(following) > _MAX_RATIO:
            whole = min(
                (_MAX_RATIO - b) // n for b, n in zip(before, last, strict=True) if n
            )
            if divisor * (2 * whole * last[1] + before[1]) > number * last[1]:
                last = _step(before, last, whole)
            break
        before, last = last, following
        number, divisor = divisor, rest
    return Fraction(*last)


def _step(
    before: tuple[int, int], last: tuple[int, int], whole: int
) -> tuple[int, int]:
    """Give the fraction that comes next, as numerator and denominator."""
    return whole * last[0] + before[0], whole * last[1] + before[1]
