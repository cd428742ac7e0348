"""Metadata of a whole dataset: class names and the like, from several sources."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gulpio2.errors import with_article

__all__ = ["are_equal", "given_metainfo", "require_equal_metainfo"]

logger = logging.getLogger(__name__)


def given_metainfo(of_class: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Merge what the caller gave over what the class says.

    Parameters
    ----------
    of_class : mapping
        ``METAINFO`` of the dataset's class.
    given : mapping, optional
        What the constructor got. A string that is the path of a text file becomes the
        list of its lines; any other string stays, and a warning is logged.

    Returns
    -------
    dict
        Deep copies of both.

    Raises
    ------
    TypeError
        What was given is no mapping.
    """
    metainfo = copy.deepcopy(dict(of_class))
    if given is None:
        return metainfo
    # Config objects of toolboxes have the methods of a mapping without being one.
    if not isinstance(given, Mapping) and not (
        hasattr(given, "keys") and hasattr(given, "__getitem__")
    ):
        raise TypeError(
            f"metainfo is {with_article(type(given).__name__)}, expected a mapping or "
            "None"
        )
    for key in given.keys():  # noqa: SIM118  all that a config object has for it
        value = given[key]
        metainfo[key] = (
            _lines_or_itself(key, value)
            if isinstance(value, str)
            else copy.deepcopy(value)
        )
    return metainfo


def _lines_or_itself(key: str, value: str) -> list[str] | str:
    try:
        # utf-8-sig: some editors put a byte order mark in front.
        with Path(value).open(encoding="utf-8-sig") as file:
            return [line.rstrip("\r\n") for line in file]
    except (OSError, ValueError):  # also: no text, or a string that is no path
        logger.warning(
            "metainfo %r is %r, which is no text file that can be read; it is kept as "
            "a string",
            key,
            value,
        )
        return value


def require_equal_metainfo(
    first: Mapping[str, Any],
    other: Mapping[str, Any],
    numbers: tuple[int, int],
    ignore_keys: frozenset[str],
) -> None:
    """Check that two members of a concatenation say the same.

    Parameters
    ----------
    first, other : mapping
        Metadata of both.
    numbers : tuple of int
        Which members they are, counted from 0, for the message.
    ignore_keys : frozenset of str
        Keys that may differ, or be missing.

    Raises
    ------
    ValueError
        One has a key that the other has not, or another value.
    TypeError
        A value is of another type.
    """
    one, two = numbers
    for key in sorted(first.keys() ^ other.keys(), key=str):
        if key not in ignore_keys:
            has, lacks = (one, two) if key in first else (two, one)
            raise ValueError(
                f"metainfo {key!r} is in dataset {has} and not in dataset {lacks}. "
                "Give it to both, or add it to ignore_keys"
            )
    for key in first:
        if key in ignore_keys:
            continue
        value, own = first[key], other[key]
        if type(value) is not type(own):
            raise TypeError(
                f"metainfo {key!r} is {with_article(type(value).__name__)} in dataset "
                f"{one} and {with_article(type(own).__name__)} in dataset {two}"
            )
        if not are_equal(value, own):
            raise ValueError(
                f"metainfo {key!r} of dataset {two} is not that of dataset {one}: "
                f"{own!r}, expected {value!r}. Make them one, or add the key to "
                "ignore_keys"
            )


def are_equal(first: Any, other: Any) -> bool:
    """Compare values that may hold arrays at any depth."""
    if hasattr(first, "__array__") and hasattr(other, "__array__"):  # tensors, too
        one, two = np.asarray(first), np.asarray(other)
        has_nan = one.dtype.kind in "fc" and two.dtype.kind in "fc"
        return np.array_equal(one, two, equal_nan=has_nan)
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        return first.keys() == other.keys() and all(
            are_equal(first[key], other[key]) for key in first
        )
    if isinstance(first, (list, tuple)) and type(first) is type(other):
        return len(first) == len(other) and all(map(are_equal, first, other))
    return first is other or bool(first == other)  # NaN is not equal to itself
