"""The indices of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import IngestError
from gulpio2.format.labels import key_of_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LabelNumbers", "label_key", "number_labels"]


def label_key(label: object) -> str:
    """Give the name that a label has in ``label2idx.json``.

    Parameters
    ----------
    label : None, bool, int, float or str
        A label as it is in the metadata.

    Returns
    -------
    str
        What a JSON object's key becomes: a string is itself, ``3`` is ``"3"``,
        ``True`` is ``"true"``, ``None`` is ``"null"``.

    Raises
    ------
    IngestError
        The label is a list or some other thing that is no name.
    """
    if label is None or isinstance(label, str | bool | int | float):
        return key_of_label(label)
    raise IngestError(
        f"{label!r} is no label: a label is a string or a number. "
        "Name another column as the one with the labels."
    )


def number_labels(
    labels: Iterable[Any], existing: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Give every label an index.

    Parameters
    ----------
    labels : iterable
        Labels in any order, repeats allowed.
    existing : mapping of str to int, optional
        Labels that have their index already; they come first and keep it.

    Returns
    -------
    dict of str to int
        New labels in sorted order (numbers by value where all are numbers) from the
        highest index so far plus one, or from 0.

    Examples
    --------
    >>> number_labels(["b", "a", "b"])
    {'a': 0, 'b': 1}
    >>> number_labels(["b", "a"], {"x": 5, "b": 2})
    {'x': 5, 'b': 2, 'a': 6}
    """
    mapping = dict(existing or {})
    by_key = {label_key(label): label for label in labels}
    new = [key for key in by_key if key not in mapping]
    numbers = all(
        isinstance(by_key[key], int | float) and by_key[key] == by_key[key]  # not NaN
        for key in new
    )
    following = max(mapping.values(), default=-1) + 1
    ordered = sorted(new, key=by_key.__getitem__ if numbers else None)
    mapping.update((key, following + rank) for rank, key in enumerate(ordered))
    return mapping


class LabelNumbers(dict[str, int]):
    """Indices by label, where labels that are numbers are found as in GulpIO2 0.0.4."""

    def __missing__(self, label: Any) -> int:
        """Find a label that is no text by its name in the file."""
        key = None if isinstance(label, str) else _key_or_none(label)
        if key is None:
            raise KeyError(label)
        return self[key]

    def __contains__(self, label: object) -> bool:
        """Tell whether there is such a label."""
        return super().__contains__(label) or super().__contains__(_key_or_none(label))

    def get(self, label: Any, default: Any = None) -> Any:
        """Give the index of a label, or something else where there is none."""
        return self[label] if label in self else default  # noqa: SIM401  # it is this very method


def _key_or_none(label: Any) -> str | None:
    """Give the name that a label has in the file; None for what is no label."""
    try:
        return label_key(label.item() if isinstance(label, np.generic) else label)
    except IngestError:
        return None
