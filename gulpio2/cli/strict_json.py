"""What ``--json`` prints: JSON that every parser reads."""

from __future__ import annotations

import json
import math
from typing import Any

import click

__all__ = ["json_text", "write_json"]


def json_text(value: Any) -> str:
    """Give a value as JSON on one line.

    Parameters
    ----------
    value : mapping, list, tuple, str, number, bool or None
        Nested as deep as one likes.

    Returns
    -------
    str
        ASCII only. A float that is not finite is ``null``: Python, and so a map, writes
        it as ``NaN`` or ``Infinity``, which JSON (RFC 8259, section 6) does not have.

    Examples
    --------
    >>> json_text({"speed": float("nan"), "clip": [0.5, float("inf")]})
    '{"speed": null, "clip": [0.5, null]}'
    """
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:  # there is one; going through all values takes ten times as long
        return json.dumps(_finite(value), allow_nan=False)


def write_json(value: Any) -> None:
    """Write a value to stdout, as `json_text` has it."""
    click.echo(json_text(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
