"""HMDB51: AVI clips in a folder per class, with three published splits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.adapters import AbstractDatasetAdapter, VideoFrames, number_labels
from gulpio2.errors import SourceReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Item, StrPath

__all__ = ["Hmdb51Adapter"]

_SPLITS_FOLDER = "testTrainMulti_7030_splits"
# The mark behind a name in a split's file.
_SUBSETS = {"0": "unused", "1": "train", "2": "test"}


class Hmdb51Adapter(AbstractDatasetAdapter):
    """Clips of one split of HMDB51.

    Parameters
    ----------
    folder : str or path object
        Holds a folder of clips per class, as the inner archives unpack.
    splits_folder : str or path object, optional
        Holds ``<class>_test_split<fold>.txt``. Default: ``testTrainMulti_7030_splits``
        in `folder`.
    fold : int
        Which of the splits 1, 2 and 3.
    subset : 'train', 'test' or 'all'
        Which part of the split; 'all' has the clips that the split does not use, too.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float, optional
        Frames a second to resample to. Default: as they are, 30.

    Notes
    -----
    The id is ``<class>/<name without .avi>``. Metadata is ``id``, ``label``, ``idx``
    (rank of the class in alphabetical order) and ``subset``.
    """

    def __init__(
        self,
        folder: StrPath,
        splits_folder: StrPath | None = None,
        *,
        fold: int = 1,
        subset: Literal["train", "test", "all"] = "all",
        frame_size: int = -1,
        frame_rate: float | None = None,
    ) -> None:
        if subset not in ("train", "test", "all"):
            raise ValueError(f"subset is {subset!r}; allowed are train, test and all")
        self.folder = Path(folder)
        self.splits_folder = Path(splits_folder or self.folder / _SPLITS_FOLDER)
        self.frame_size = frame_size
        self.frame_rate = frame_rate
        lists = _split_files(self.splits_folder, int(fold))
        self.label2idx = number_labels(lists)
        self.clips: list[tuple[str, str, str]] = [
            (label, name, part)
            for label in sorted(lists)
            for name, part in _read_split(lists[label])
            if subset in ("all", part)
        ]

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.clips)

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the clips at these positions; they are opened when iterated."""
        for label, name, part in self.clips[slice_element or slice(None)]:
            id_ = f"{label}/{Path(name).stem}"
            yield {
                "meta": {
                    "id": id_,
                    "label": label,
                    "idx": self.label2idx[label],
                    "subset": part,
                },
                "frames": VideoFrames(
                    self.folder / label / name,
                    frame_size=self.frame_size,
                    frame_rate=self.frame_rate,
                ),
                "id": id_,
            }

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [f"{label}/{Path(name).stem}" for label, name, _ in self.clips]

    def item_source(self, position: int) -> str:
        """Give the path of the clip."""
        label, name, _ = self.clips[position]
        return str(self.folder / label / name)

    def label_mapping(self) -> dict[str, int]:
        """Give the classes in alphabetical order, numbered from 0."""
        return self.label2idx


def _split_files(folder: Path, fold: int) -> dict[str, Path]:
    """Find the split's file of each class."""
    name = re.compile(rf"(?P<label>.+)_test_split{fold}\.txt")
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    found = {
        match["label"]: path for path in paths if (match := name.fullmatch(path.name))
    }
    if not found:
        raise SourceReadError(
            f"{folder} holds no <class>_test_split{fold}.txt. Unpack the splits of "
            "HMDB51 there, or give splits_folder and a fold of 1, 2 or 3."
        )
    return found


def _read_split(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each clip's name and the subset that it is in."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as cause:
        raise SourceReadError(
            f"{path} cannot be read ({cause}). Unpack the splits again."
        ) from cause
    for line in lines:
        name, _, mark = line.strip().rpartition(" ")
        if not line.strip():
            continue
        if mark not in _SUBSETS:
            raise SourceReadError(
                f"{path}: {line!r} does not end in 0, 1 or 2. Unpack the splits again."
            )
        yield name, _SUBSETS[mark]
