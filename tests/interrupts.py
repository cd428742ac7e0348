"""Interrupts at each moment at which one can come."""

from __future__ import annotations

import gc
import inspect
import itertools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["interrupted"]


def interrupted(action: Callable[[], object]) -> Iterator[int]:
    """Do something again and again, and interrupt it behind each of its calls by turns.

    That is where Python looks for signals. No garbage is collected meanwhile: what
    others have called for that, such as hypothesis, would be interrupted in its place.

    Yields
    ------
    int
        The call that was interrupted, from 1 on. It ends when there are no more.
    """
    for number in itertools.count(1):
        left = number

        def interrupt(frame: FrameType, event: str, _: object) -> None:
            nonlocal left
            is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
            if event == "c_return" or (event == "return" and not is_generator):
                left -= 1
                if not left:
                    raise KeyboardInterrupt

        gc.disable()
        try:
            sys.setprofile(interrupt)
            action()
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
            gc.enable()
        if left > 0:
            return
        yield number
