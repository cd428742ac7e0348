"""Labels of items, as adapters that number labels note them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["key_of_label", "numbered_label"]


def key_of_label(label: float | str | None) -> str:
    """Give the key that a label has in ``label2idx.json``: a name, or its JSON."""
    return label if isinstance(label, str) else json.dumps(label)


def numbered_label(meta_data: Sequence[Mapping[str, Any]]) -> tuple[str, int] | None:
    """Give label and number of an item, as adapters that number labels note them.

    Parameters
    ----------
    meta_data : sequence of mapping
        The metadata of an entry.

    Returns
    -------
    tuple of str and int, or None
        ``label``, as a key of ``label2idx.json``, and ``idx``, of the first that has
        both. Not where `idx` is True or below 0, which no label has as its number.
    """
    for meta in meta_data:
        match meta:
            case {"label": str() | int() | float() as label, "idx": int(index)}:
                if index >= 0 and not isinstance(index, bool):
                    return key_of_label(label), index
    return None
