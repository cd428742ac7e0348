"""Whether a text can be a part of the JSON in a column, as ``json.dumps`` writes it."""

from __future__ import annotations

import re

__all__ = ["may_be_part", "with_spaces"]

# What may come next: the rest of a word, or one of these.
_TEXT, _ESCAPED, _HEX = '"', "\\", ("\\1", "\\2", "\\3", "\\4")
_VALUE, _FIRST, _NUMBER, _AFTER, _SPACE = "value", "first", "0", "]", " "
_WORDS = ("true", "false", "null", "NaN", "Infinity")
_RESTS = tuple(word[at:] for word in _WORDS for at in range(1, len(word)))
_ALL = (_TEXT, _ESCAPED, *_HEX, _VALUE, _FIRST, _NUMBER, _AFTER, _SPACE, *_RESTS)
_MARK = re.compile(r'("(?:[^"\\]|\\.)*")|([,:])\s*', re.DOTALL)


def may_be_part(text: str, test: str) -> bool:
    """Tell whether JSON can pass a test of strings; how deep it nests is not counted.

    What is null has no text.

    Parameters
    ----------
    text : str
        What is looked for.
    test : {"startswith", "endswith", "contains"}
        Where.

    Examples
    --------
    >>> may_be_part('a"b', "contains"), may_be_part('say "', "contains")
    (False, True)
    >>> may_be_part("[1,2", "startswith"), may_be_part("[1, 2", "startswith")
    (False, True)
    """
    if test != "contains" and text and getattr("null", test)(text):
        return False
    states = {_VALUE} if test == "startswith" else {*_ALL}
    for letter in text:
        states = {after for state in states if (after := _next(state, letter))}
    return bool(states & {_AFTER, _NUMBER} if test == "endswith" else states)


def _next(state: str, letter: str) -> str | None:
    """Give what may come after a letter; None if it cannot stand here."""
    if state == _TEXT:
        plain = _TEXT if letter >= " " else None
        return {'"': _AFTER, "\\": _ESCAPED}.get(letter, plain)
    if state == _ESCAPED:
        return _HEX[3] if letter == "u" else _TEXT if letter in '"\\bfnrt' else None
    if state in _HEX:
        left = _HEX.index(state)
        known = letter in "0123456789abcdef"
        return (_HEX[left - 1] if left else _TEXT) if known else None
    if state in _RESTS:
        return (state[1:] or _AFTER) if state[0] == letter else None
    if state == _SPACE:
        return _VALUE if letter == " " else None
    if state == _NUMBER and letter in "0123456789.e+-":
        return _NUMBER
    if state == _NUMBER and letter == "I":  # of -Infinity
        return _WORDS[-1][1:]
    if state in (_NUMBER, _AFTER):
        return _SPACE if letter in ",:" else _AFTER if letter in "]}" else None
    if state == _FIRST and letter in "]}":
        return _AFTER
    words = {word[0]: word[1:] for word in _WORDS}
    numbers = dict.fromkeys("-0123456789", _NUMBER)
    return {'"': _TEXT, "[": _FIRST, "{": _FIRST, **numbers, **words}.get(letter)


def with_spaces(text: str) -> str:
    """Write JSON, or a part of it, with the spaces that ``json.dumps`` puts into it.

    Examples
    --------
    >>> with_spaces('{"a,b":[1,2')
    '{"a,b": [1, 2'
    """
    return _MARK.sub(lambda match: match[1] or f"{match[2]} ", text)
