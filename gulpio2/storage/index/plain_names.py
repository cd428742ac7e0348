"""The text of a condition, with such names for its columns as Python takes."""

from __future__ import annotations

import re

from gulpio2.storage.index.fitting import name_at_start

__all__ = ["with_plain_names"]

# A string, in which all else is text; a name that Python would not take, in backticks;
# any other name; a quote that nothing closes; what Python takes for a comment; and what
# is escaped behind such a quote, or the rest would be searched from each quote in it.
_PARTS = re.compile(
    r"""(?P<string>(?P<quotes>'{3}|"{3}|'|")(?:\\.|(?!(?P=quotes))[^\\])*(?P=quotes))"""
    # Accents and vowels that are letters of their own are no \w.
    r"|`(?P<name>[^`]*)`|(?P<bare>[^\W\d](?:\w|[^\x00-\x7f])*)"
    r"""|(?P<open>['"`])|(?P<comment>\#[^\n]*)|\\.""",
    re.DOTALL,
)
_SHOWN = 100  # characters of a comment in a message


def with_plain_names(text: str) -> tuple[str, dict[str, str]]:
    """Put names that Python takes in the places of others.

    Parameters
    ----------
    text : str
        A condition.

    Returns
    -------
    text : str
        The condition to parse.
    quoted : dict of str to str
        Each of these names to that of the column that it stands for.

    Raises
    ------
    ValueError
        A part of the text would be a comment, and count for nothing.

    Examples
    --------
    >>> with_plain_names("`my key` == 'a' and n > 3")
    ("_quoted_0_  == 'a' and n > 3", {'_quoted_0_': 'my key'})
    """
    quoted: dict[str, str] = {}
    mark = "_quoted_"
    while mark in text:
        mark += "_"
    is_open = False

    def stand_in(match: re.Match[str]) -> str:
        nonlocal is_open
        is_open |= bool(match["open"])
        # Behind a quote that is not closed it may be a part of a text.
        if (comment := match["comment"]) and not is_open:
            raise ValueError(
                f"{comment[:_SHOWN]!r} would be a comment, and a condition has none: a "
                "text with a # in it stands in quotes, as in label == 'a#b', and a "
                "name with one in backticks"
            )
        bare = match["bare"] or ""
        original = match["name"] or name_at_start(bare)
        # Python would take a name that is not of ASCII for one that is spelt otherwise
        # and looks alike (NFKC).
        if match["name"] is None and (not bare or original.isascii()):
            return match[0]
        name = f"{mark}{len(quoted)}_"
        quoted[name] = original
        # Else a word that a backtick ends, or that follows one, would be a part of it.
        return name + bare[len(original) :] if bare else f" {name} "

    return _PARTS.sub(stand_in, text.strip()).strip(), quoted
