"""What stands between the brackets of ``directory[...]``."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["extract_input_for_getitem", "split_request"]


def split_request(element: Any) -> tuple[str, Any]:
    """Take an id, or an id and a selection, apart.

    Parameters
    ----------
    element : str, integer, or (id, selection)
        An id of any type in a pair is passed through ``str``.

    Returns
    -------
    id_ : str
        The item.
    selection
        None where there is none.

    Raises
    ------
    TypeError
        Anything else.
    """
    if isinstance(element, tuple) and len(element) == 2:
        return str(element[0]), element[1]
    if isinstance(element, (str, int)):  # True is stored as "True", not as "1"
        return str(element), None
    try:
        return str(operator.index(element)), None
    except TypeError:
        raise TypeError(
            f"cannot look up {element!r}; give an id (str or int), or an id and a "
            "selection of frames: directory[id] or directory[id, 0:16]"
        ) from None


extract_input_for_getitem = split_request
