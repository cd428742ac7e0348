"""Datasets and transforms out of configs, by class or by registered name.

The smallest thing that does it: one dict, filled by a decorator. A name is looked up
and never imported, so a config can only build what the program has registered.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["build", "register"]

Registered = TypeVar("Registered", bound=Callable[..., Any])

_REGISTERED: dict[str, Callable[..., Any]] = {}


def register(cls: Registered) -> Registered:
    """Let configs name this class, or this function, by its own name.

    Parameters
    ----------
    cls : class or callable
        What ``{"type": <its name>, **arguments}`` is to build.

    Returns
    -------
    class or callable
        The same, so that this can stand above its definition.

    Raises
    ------
    KeyError
        Another one has that name.
    TypeError
        It has no name, as a ``functools.partial``.

    Examples
    --------
    >>> @register
    ... class Scale:
    ...     def __init__(self, factor):
    ...         self.factor = factor
    >>> build({"type": "Scale", "factor": 2}).factor
    2
    """
    name = getattr(cls, "__name__", None)
    if name is None:
        raise TypeError(f"{cls!r} has no name of its own; register a class or a def")
    if _REGISTERED.setdefault(name, cls) is not cls:
        raise KeyError(f"{name!r} is registered already, for {_REGISTERED[name]!r}")
    return cls


def build(config: Mapping[str, Any]) -> Any:
    """Build what a config describes.

    Parameters
    ----------
    config : mapping
        ``type``: a class, a function, or the name of a registered one; the other
        keys are its arguments. It is not changed.

    Returns
    -------
    object
        What the call gave.

    Raises
    ------
    KeyError
        It has no ``type``, or nothing is registered under that name.
    TypeError
        It is no mapping, or its ``type`` is something else.
    """
    if not hasattr(config, "keys"):  # a config of one's own may be no Mapping
        raise TypeError(
            f"config is {reprlib.repr(config)}, expected a mapping such as "
            "{'type': 'Scale', 'factor': 2}: what it builds, and the arguments of that"
        )
    arguments = dict(config)
    if "type" not in arguments:
        raise KeyError(f"config {arguments!r} has no 'type' to say what it builds")
    kind = arguments.pop("type")
    if isinstance(kind, str):
        if kind not in _REGISTERED:
            raise KeyError(
                f"nothing is registered as {kind!r}; known are {sorted(_REGISTERED)}. "
                "Put gulpio2.torch.register above its definition, or give the class"
            )
        kind = _REGISTERED[kind]
    if not callable(kind):
        raise TypeError(f"type is {kind!r}, expected a class or a registered name")
    return kind(**arguments)
