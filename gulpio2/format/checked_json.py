"""Small JSON files that carry their own check.

Indented JSON whose last key, ``check``, is the CRC-32 of the rest. It is read in any
form that an editor may have given it; `has_own_form` finds any changed byte.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.gmeta import load_ordered_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OTHER_FORM", "dump_checked", "has_own_form", "load_checked"]

OTHER_FORM = (
    "its content is what was written, and its form is not, as after an editor or a "
    "conversion of line ends. Readers take it as it is, and whoever writes it next "
    "puts it right"
)
"""What the check says of a file that is read, and not of its own form."""


def dump_checked(body: Mapping[str, Any]) -> bytes:
    """Write an object with its check as the last key."""
    return _dump({**body, "check": _check(body)})


def load_checked(data: bytes, *, where: str, advice: str) -> dict[str, Any]:
    """Read what `dump_checked` wrote.

    Parameters
    ----------
    data : bytes
        The whole file.
    where : str
        Its path, for the message.
    advice : str
        What may be done about a damaged one, for the message.

    Returns
    -------
    dict
        The object, without the check.

    Raises
    ------
    MetaFileError
        Anything of its content is not as it was written.
    """
    value = load_ordered_json(data, where=where, advice=advice)
    if not isinstance(value, dict):
        raise MetaFileError(f"{where}: holds no JSON object. {advice}")
    body = {key: item for key, item in value.items() if key != "check"}
    if value.get("check") != _check(body):
        raise MetaFileError(
            f"{where}: the content does not fit its check: it was damaged or edited. "
            f"{advice}"
        )
    return body


def has_own_form(data: bytes) -> bool:
    """Tell whether a file that `load_checked` reads has the bytes that were written."""
    try:
        return data == _dump(load_ordered_json(data, where=""))
    except MetaFileError:  # it was changed just now
        return False


def _dump(value: Mapping[str, Any]) -> bytes:
    try:
        text = _indented(value, "\n")
    except RecursionError:  # json goes twice as deep
        text = json.dumps(value, indent=1)
    return (text + "\n").encode("ascii")


def _indented(value: Any, margin: str) -> str:
    """Give what ``json.dumps(value, indent=1)`` gives, in half of the time.

    With an indent json has no code in C, and a list of deleted items is long, and is
    written again and again by a compaction.
    """
    if type(value) is str:
        return encode_basestring_ascii(value)
    if type(value) is int:
        return repr(value)
    inner = f"{margin} "
    if isinstance(value, list | tuple) and value:
        if {*map(type, value)} == {int}:  # records: most of all there is
            texts = [*map(repr, value)]
        else:
            texts = [_indented(each, inner) for each in value]
        return f"[{inner}{f',{inner}'.join(texts)}{margin}]"
    if isinstance(value, dict) and value:
        texts = [
            f"{_key(key)}: {_indented(each, inner)}" for key, each in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(texts)}{margin}}}"
    return json.dumps(value)


def _key(key: Any) -> str:
    """Give a key, of which those that are no text become one as in json."""
    if type(key) is str:
        return encode_basestring_ascii(key)
    return json.dumps({key: 0})[1:-4]


def _check(body: Mapping[str, Any]) -> str:
    return f"{crc32_of(json.dumps(body).encode('ascii')):08x}"
