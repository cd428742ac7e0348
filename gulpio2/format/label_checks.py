"""What the checker knows of labels: ``label2idx.json``, and the numbers in the maps."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from gulpio2.format.layout import LABELS_NAME
from gulpio2.format.problems import Problem
from gulpio2.format.wording import counted, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["check_labels", "note_label_numbers"]


def note_label_numbers(
    found: Mapping[tuple[str, int], Sequence[str]], labels: Mapping[str, int], file: str
) -> list[Problem]:
    """Note the items of a map whose label has another number than they say.

    Parameters
    ----------
    found : mapping of (str, int) to sequence of str
        Label and number, and the ids of the items that have these.
    labels : mapping of str to int
        The content of ``label2idx.json``.
    file : str
        Name of the map.

    Returns
    -------
    list of Problem
        One at most, of the first such item.
    """
    others = [each for each in found if labels.get(each[0]) != each[1]]
    if not others:
        return []
    label, index = others[0]
    now = f"has {labels[label]}" if label in labels else "is not"
    ids = [id_ for each in others for id_ in found[each]]
    more = f" (one of {counted(len(ids), 'such item')} in this map)" if ids[1:] else ""
    text = (
        f"has the label {label!r} with the number {index} (idx) in its metadata, and "
        f"the label {now} in {LABELS_NAME}{more}. A training by idx takes the item for "
        "one of another class, and an ingest may give its number to another label: "
        "correct the metadata, or the file"
    )
    return [Problem("label-number", text, file, ids[0])]


def check_labels(data: bytes) -> list[Problem]:
    """Check ``label2idx.json``: labels, each with an index of its own."""
    try:
        labels = json.loads(data, object_pairs_hook=tuple)  # a list is an array
    except (ValueError, RecursionError) as cause:
        return [_bad_labels(f"is not JSON ({cause})")]
    if not isinstance(labels, tuple):
        return [_bad_labels("holds no JSON object of labels")]
    problems = []
    first: dict[int, str] = {}
    for label, index in labels:
        if type(index) is not int or index < 0:
            text = f"label {label!r} has {shown(index)}, and no whole number from 0"
            problems.append(_bad_labels(text))
        elif index in first:
            text = f"labels {first[index]!r} and {label!r} both have index {index}"
            problems.append(_bad_labels(text))
        else:
            first[index] = label
    for label, count in Counter(label for label, _ in labels).items():
        if count > 1:
            problems.append(_bad_labels(f"label {label!r} stands there {count} times"))
    return problems


def _bad_labels(message: str) -> Problem:
    return Problem("bad-labels", message, LABELS_NAME)
