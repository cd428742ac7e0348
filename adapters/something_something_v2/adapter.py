"""Something-Something v2: WebM clips in one folder, labels in JSON files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters import AbstractDatasetAdapter, VideoFrames
from gulpio2.errors import SourceReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Item, Meta, StrPath

__all__ = ["SomethingSomethingV2Adapter"]

# A template is written "Putting [something] on a surface"; labels.json has no brackets.
_BRACKETS = re.compile(r"[\[\]]")


class SomethingSomethingV2Adapter(AbstractDatasetAdapter):
    """Clips of one part of Something-Something v2.

    Parameters
    ----------
    annotations : str or path object
        ``something-something-v2-train.json``, ``-validation.json`` or ``-test.json``.
    labels : str or path object
        ``something-something-v2-labels.json``: template to number.
    folder : str or path object
        ``20bn-something-something-v2``, which holds ``<id>.webm``.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float, optional
        Frames a second to resample to. Default: as they are, 12.

    Notes
    -----
    Metadata is ``id`` (str), ``label`` (the template without brackets), ``idx`` (its
    number in `labels`), ``caption`` (the sentence, under ``label`` in the file) and
    ``placeholders``. The test part has ids only.
    """

    def __init__(
        self,
        annotations: StrPath,
        labels: StrPath,
        folder: StrPath,
        *,
        frame_size: int = -1,
        frame_rate: float | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.frame_size = frame_size
        self.frame_rate = frame_rate
        numbers = _read_json(Path(labels), dict)
        for template, number in numbers.items():
            if not re.fullmatch("[0-9]+", str(number)):
                raise SourceReadError(
                    f"{labels} has {number!r} for {template!r}, which is no number. "
                    "Give the labels file as it was published."
                )
        self.label2idx = {
            template: int(number)
            for template, number in sorted(numbers.items(), key=lambda e: int(e[1]))
        }
        self.rows: list[Meta] = _read_json(Path(annotations), list)
        for position, row in enumerate(self.rows):
            if not _is_row(row):
                raise SourceReadError(
                    f"{annotations}: item {position + 1} is {row!r:.80}; an object "
                    "with an id, and a text as its template if it has one, is needed."
                )
            if "template" in row and _label(row) not in self.label2idx:
                raise SourceReadError(
                    f"{labels} has no {_label(row)!r}, the template of {row['id']} in "
                    f"{annotations}. Give the labels file of the same release."
                )

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.rows)

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the clips at these positions; they are opened when iterated."""
        for row in self.rows[slice_element or slice(None)]:
            yield {
                "meta": self._meta(row),
                "frames": VideoFrames(
                    self._path(row),
                    frame_size=self.frame_size,
                    frame_rate=self.frame_rate,
                ),
                "id": str(row["id"]),
            }

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [str(row["id"]) for row in self.rows]

    def item_source(self, position: int) -> str:
        """Give the path of the clip."""
        return str(self._path(self.rows[position]))

    def label_mapping(self) -> dict[str, int]:
        """Give the published numbers of the templates."""
        return self.label2idx

    def _path(self, row: Meta) -> Path:
        return self.folder / f"{row['id']}.webm"

    def _meta(self, row: Meta) -> Meta:
        meta: Meta = {"id": str(row["id"])}
        if "template" in row:
            meta["label"] = _label(row)
            meta["idx"] = self.label2idx[meta["label"]]
            meta["caption"] = row.get("label")
            meta["placeholders"] = list(row.get("placeholders", []))
        return meta


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and type(row.get("id")) in (str, int)
        and isinstance(row.get("template", ""), str)
        and isinstance(row.get("placeholders", []), list)
    )


def _label(row: Meta) -> str:
    return _BRACKETS.sub("", row["template"])


def _read_json(path: Path, kind: type) -> Any:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as cause:
        raise SourceReadError(f"{path} cannot be read as JSON: {cause}.") from cause
    if not isinstance(content, kind):
        raise SourceReadError(
            f"{path} holds a {type(content).__name__} where a {kind.__name__} is "
            "expected. Give the annotations first, then the labels."
        )
    return content
