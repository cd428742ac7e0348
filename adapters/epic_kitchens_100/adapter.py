"""EPIC-KITCHENS-100: action segments of long videos, as RGB frames or optical flow."""

from __future__ import annotations

import ast
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.adapters import (
    AbstractDatasetAdapter,
    ImageFrames,
    parse_column,
    read_table,
)
from gulpio2.errors import SourceFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.types import Item, Meta, StrPath

__all__ = ["EpicKitchensFlowAdapter", "EpicKitchensRgbAdapter"]

# The CSV files hold these as the text of a Python list.
_LISTS = ("all_nouns", "all_noun_classes")


class _EpicKitchensAdapter(AbstractDatasetAdapter):
    """Segments of an annotation file; a subclass finds the frames of each."""

    def __init__(
        self, annotations: StrPath, root: StrPath, frame_size: int, first_frame: int
    ) -> None:
        self.root = Path(root)
        self.frame_size = frame_size
        self.first_frame = first_frame
        self.segments = read_table(annotations)
        for name in ("participant_id", "video_id"):
            self.segments.column(name)
        for name in ("start_frame", "stop_frame"):
            if any(type(value) is not int for value in self.segments.column(name)):
                # One such cell makes all of the column what it is: as they are written.
                cells = read_table(annotations, parse_values=False).column(name)
                row = next(n for n, cell in enumerate(cells) if not _is_integer(cell))
                raise self._bad_cell(row, name, cells[row], "a whole number")
        self.ids = self.segments.column("narration_id")

    @abstractmethod
    def frame_paths(self, segment: Meta) -> list[Path]:
        """Give the files of a segment's frames, in the order in which to store them.

        Parameters
        ----------
        segment : dict
            A row of the annotations.
        """

    def __len__(self) -> int:
        """Count the segments."""
        return len(self.segments)

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield the segments at these positions; frames are read when iterated."""
        for row in range(len(self))[slice_element or slice(None)]:
            segment = self.segments[row]
            paths = self.frame_paths(segment)
            meta = segment | {
                name: self._list(row, name)
                for name in _LISTS
                if isinstance(segment.get(name), str)
            }
            yield {
                "meta": meta | {"num_frames": len(paths)},
                "frames": ImageFrames(paths, frame_size=self.frame_size),
                "id": segment["narration_id"],
            }

    def item_ids(self) -> list[Any]:
        """List all narration ids in order."""
        return self.ids

    def item_source(self, position: int) -> str:
        """Give the path of the segment's first frame, its row and its frames.

        A dry run tells by these how long each segment is.
        """
        segment = self.segments[position]
        paths = self.frame_paths(segment)
        if not paths:
            return f"row {position + 1}, which has no frames"
        span = f"frames {segment['start_frame']} to {segment['stop_frame']}"
        return f"{paths[0]} (row {position + 1} of {self.segments.name}, {span})"

    def _list(self, row: int, name: str) -> Any:
        text = self.segments[row][name]
        try:
            return ast.literal_eval(text)  # literals only: nothing is run
        except (ValueError, SyntaxError, TypeError, RecursionError) as cause:
            raise self._bad_cell(row, name, text, "a list") from cause

    def _bad_cell(
        self, row: int, name: str, cell: Any, needed: str
    ) -> SourceFormatError:
        return SourceFormatError(
            f"{self.segments.name}: row {row + 1} has {cell!r:.80} as {name!r}; "
            f"{needed} is needed there."
        )

    def _video_folder(self, segment: Meta, kind: str) -> Path:
        return Path(self.root, segment["participant_id"], kind, segment["video_id"])


class EpicKitchensRgbAdapter(_EpicKitchensAdapter):
    """RGB frames of the action segments of EPIC-KITCHENS-100.

    Parameters
    ----------
    annotations : str or path object
        ``EPIC_100_train.csv``, ``EPIC_100_validation.csv`` or a test file.
    root : str or path object
        Holds ``P01/rgb_frames/P01_01/frame_0000000001.jpg`` and so on.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is, and the JPEG files are
        stored byte for byte.
    first_frame : int
        Number of a video's first frame file.

    Notes
    -----
    A segment has the frames ``start_frame <= n < stop_frame``. The id is the
    ``narration_id``, metadata is the row with ``num_frames``, the frames stored.
    """

    def __init__(
        self,
        annotations: StrPath,
        root: StrPath,
        *,
        frame_size: int = -1,
        first_frame: int = 1,
    ) -> None:
        super().__init__(annotations, root, frame_size, first_frame)

    def frame_paths(self, segment: Meta) -> list[Path]:
        """Give the frame files of a segment."""
        folder = self._video_folder(segment, "rgb_frames")
        start = max(segment["start_frame"], self.first_frame)
        return [
            folder / _frame_name(number)
            for number in range(start, segment["stop_frame"])
        ]


class EpicKitchensFlowAdapter(_EpicKitchensAdapter):
    """Optical flow of the action segments of EPIC-KITCHENS-100.

    Stored interleaved as u0, v0, u1, v1 and so on, each a grey frame: the pair ``i`` is
    ``directory[id, slice(2 * i, 2 * i + 2)]``.

    Parameters
    ----------
    annotations : str or path object
        ``EPIC_100_train.csv``, ``EPIC_100_validation.csv`` or a test file.
    root : str or path object
        Holds ``P01/flow_frames/P01_01/u/frame_0000000001.jpg``, the same under ``v``,
        and so on.
    frame_size : int
        Length of the short edge in pixels; below 1: as it is, and the JPEG files are
        stored byte for byte.
    first_frame : int
        Number of a video's first flow file.
    flow_stride : int
        RGB frames from one flow frame to the next; see the README for what is known.

    Notes
    -----
    A segment has the flow frames ``start_frame // flow_stride <= n < stop_frame //
    flow_stride``, and at least one. The id is the ``narration_id``, metadata is the row
    with ``num_frames``, the frames stored: two for each pair.
    """

    def __init__(
        self,
        annotations: StrPath,
        root: StrPath,
        *,
        frame_size: int = -1,
        first_frame: int = 1,
        flow_stride: int = 2,
    ) -> None:
        if int(flow_stride) < 1:
            raise ValueError(f"flow_stride is {flow_stride}; it is at least 1")
        self.flow_stride = int(flow_stride)
        super().__init__(annotations, root, frame_size, first_frame)

    def frame_paths(self, segment: Meta) -> list[Path]:
        """Give the flow files of a segment, u and v in turns."""
        folder = self._video_folder(segment, "flow_frames")
        start = max(segment["start_frame"] // self.flow_stride, self.first_frame)
        stop = max(segment["stop_frame"] // self.flow_stride, start + 1)
        return [
            folder / axis / _frame_name(number)
            for number in range(start, stop)
            for axis in ("u", "v")
        ]


def _is_integer(cell: Any) -> bool:
    value = parse_column([cell])[0] if isinstance(cell, str) else cell
    return type(value) is int


def _frame_name(number: int) -> str:
    return f"frame_{number:010d}.jpg"
