"""What ``--json`` prints: JSON that every parser reads."""

from __future__ import annotations

import json
from typing import Any

import click

__all__ = ["json_text", "write_json"]

# With other arguments than its defaults, json.dumps makes one for each call.
_encode = json.JSONEncoder(allow_nan=False).encode


def json_text(value: Any) -> str:
    """Give a value as JSON on one line.

    Parameters
    ----------
    value : mapping, list, tuple, str, number, bool or None
        Nested as deep as a map can be.

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
        return _encode(value)
    except ValueError:  # there is one, as in few values
        finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
        return _encode(finite)


def write_json(value: Any) -> None:
    """Write a value to stdout, as `json_text` has it."""
    click.echo(json_text(value))
