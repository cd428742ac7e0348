"""UCF101: AVI clips in a folder per class, with three published splits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.adapters import AbstractDatasetAdapter, VideoFrames
from gulpio2.errors import SourceReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Item, Meta, StrPath

__all__ = ["Ucf101Adapter"]

_CLIP_NAME = re.compile(r"v_.+_g(?P<group>[0-9]+)_c(?P<clip>[0-9]+)")
_LISTS = {"train": ["train"], "test": ["test"], "all": ["train", "test"]}


class Ucf101Adapter(AbstractDatasetAdapter):
    """Clips of one split of UCF101.

    Parameters
    ----------
    root : str or path object
        Holds ``UCF-101`` and ``ucfTrainTestlist``, as the two archives unpack.
    fold : int
        Which of the splits 1, 2 and 3.
    subset : 'train', 'test' or 'all'
        Which part of the split.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is.
    frame_rate : float, optional
        Frames a second to resample to. Default: as they are, 25.

    Notes
    -----
    The id is the file name without ``.avi``. Metadata is ``id``, ``label``, ``idx``
    (the number in ``classInd.txt`` less one), ``subset``, ``group`` and ``clip``; clips
    of one group come from one video.
    """

    def __init__(
        self,
        root: StrPath,
        *,
        fold: int = 1,
        subset: Literal["train", "test", "all"] = "all",
        frame_size: int = -1,
        frame_rate: float | None = None,
    ) -> None:
        if subset not in _LISTS:
            raise ValueError(f"subset is {subset!r}; allowed are {list(_LISTS)}")
        self.videos = Path(root) / "UCF-101"
        self.lists = Path(root) / "ucfTrainTestlist"
        self.frame_size = frame_size
        self.frame_rate = frame_rate
        self.label2idx = _numbers_of_classes(self.lists / "classInd.txt")
        self.paths: list[tuple[str, str]] = [
            (part, line.split()[0])
            for part in _LISTS[subset]
            for line in _lines(self.lists / f"{part}list{int(fold):02d}.txt")
        ]
        unknown = {path.partition("/")[0] for _, path in self.paths} - set(
            self.label2idx
        )
        if unknown:
            raise SourceReadError(
                f"{self.lists / 'classInd.txt'} has no class {sorted(unknown)[0]!r}, "
                "which a list names. Unpack the lists again."
            )

    def __len__(self) -> int:
        """Count the clips."""
        return len(self.paths)

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the clips at these positions; they are opened when iterated."""
        for part, path in self.paths[slice_element or slice(None)]:
            yield {
                "meta": self._meta(part, path),
                "frames": VideoFrames(
                    self.videos / path,
                    frame_size=self.frame_size,
                    frame_rate=self.frame_rate,
                ),
                "id": Path(path).stem,
            }

    def item_ids(self) -> list[Any]:
        """List all ids in order."""
        return [Path(path).stem for _, path in self.paths]

    def item_source(self, position: int) -> str:
        """Give the path of the clip."""
        return str(self.videos / self.paths[position][1])

    def label_mapping(self) -> dict[str, int]:
        """Give the published numbers of the classes, from 0."""
        return self.label2idx

    def _meta(self, part: str, path: str) -> Meta:
        label, _, name = path.partition("/")
        meta: Meta = {
            "id": Path(name).stem,
            "label": label,
            "idx": self.label2idx[label],
            "subset": part,
        }
        if match := _CLIP_NAME.match(name):
            meta["group"] = int(match["group"])
            meta["clip"] = int(match["clip"])
        return meta


def _numbers_of_classes(path: Path) -> dict[str, int]:
    """Read lines of a number, from 1, and the name of its class."""
    numbers = {}
    for line in _lines(path):
        match = re.fullmatch(r"([1-9][0-9]*)\s+(\S+)", line)
        if match is None:
            raise SourceReadError(
                f"{path}: {line!r} is no number and class. Unpack the lists again."
            )
        numbers[match[2]] = int(match[1]) - 1
    return numbers


def _lines(path: Path) -> list[str]:
    """Give the lines of a text file that have something in them."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or cause
        raise SourceReadError(
            f"{path} cannot be read ({reason}). Unpack UCF-101 and "
            "ucfTrainTestlist side by side, and give the folder that holds them."
        ) from cause
    return [line.strip() for line in text.splitlines() if line.strip()]
