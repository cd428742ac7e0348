"""Datasets that are initialised when they are first needed."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["force_full_init", "warn_lazy"]

logger = logging.getLogger(__name__)

Method = TypeVar("Method", bound=Callable[..., Any])


def force_full_init(method: Method) -> Method:
    """Make a method initialise a lazy dataset before it runs.

    Parameters
    ----------
    method : callable
        A method of an object that has ``full_init``.

    Returns
    -------
    callable
        The method, which logs a warning where it had to initialise, and raises
        ``AttributeError`` on an object that has no ``full_init``.
    """

    @functools.wraps(method)
    def initialised(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(self, "_fully_initialized", False):
            if not hasattr(self, "full_init"):
                raise AttributeError(
                    f"{type(self).__name__} has no full_init, which "
                    f"{method.__name__} needs"
                )
            warn_lazy(self, method.__name__)
            self.full_init()
            self._fully_initialized = True
        return method(self, *args, **kwargs)

    return initialised  # type: ignore[return-value]  # the same signature


def warn_lazy(dataset: object, asked: str) -> None:
    """Log that a dataset was initialised late, by what, and what to do about it."""
    logger.warning(
        "%s is initialised by %s; call full_init() first. Workers that get it as it is "
        "would each initialise their own copy",
        type(dataset).__name__,
        asked,
    )
