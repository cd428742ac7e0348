"""How frames are asked for: by id, of a chunk, a directory or a part of one.

`ReadingVerbs` is what these have in common. They say where an item is; what is read of
it, and how it is decoded, is the item's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gulpio2.codecs.options import decode_options
from gulpio2.item import read_clips
from gulpio2.request import split_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from gulpio2.codecs.options import Colorspace, Crop
    from gulpio2.format.times import TimeMode
    from gulpio2.item import Seconds, StoredItem
    from gulpio2.types import FrameSelection, Meta

__all__ = ["ReadingVerbs", "each_of"]

Out = TypeVar("Out")


class ReadingVerbs(ABC):
    """The verbs of whatever finds items by id."""

    @abstractmethod
    def item(self, id_: Any) -> StoredItem:
        """Find an item, without reading any of its frames.

        Raises
        ------
        ItemNotFoundError
            No item has this id.
        """

    def __getitem__(self, element: Any) -> tuple[list[Any], Meta]:
        """Read ``self[id]`` or ``self[id, selection]``; see `read_frames`."""
        return self.read_frames(*split_request(element))

    def read_frames(
        self, id_: Any, slice_: FrameSelection = None
    ) -> tuple[list[Any], Meta]:
        """Decode the chosen frames of one item.

        Parameters
        ----------
        id_ : str or int
            The item.
        slice_ : slice, int, sequence of int or array, optional
            See `gulpio2.format.selection.select_frames`. Default: all frames.

        Returns
        -------
        frames : list
            What ``jpeg_decoder`` makes of each frame, in the order asked for. By
            default ``(H, W, 3)`` uint8 RGB in [0, 255], ``(H, W)`` for grey records.
        meta : dict
            A copy: changing its keys does not change what is stored. Lists and objects
            in it may be the directory's own: copy them before you change them.

        Raises
        ------
        ItemNotFoundError
            No item has this id.
        FrameIndexError
            A position is outside of the item.
        TypeError, ValueError
            The selection is none, see `gulpio2.format.selection.select_frames`.
        CorruptFrameError
            A record is not a JPEG; the message gives item, frame, file and offset.

        Notes
        -----
        Neighbouring records come with one read. `read_clip` gives one array instead,
        and is faster.
        """
        item = self.item(id_)
        return item.read_frames(slice_), item.meta

    @overload
    def read_clip(
        self,
        id_: Any,
        slice_: FrameSelection = None,
        *,
        out: npt.NDArray[Any] | None = None,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> npt.NDArray[Any]: ...

    @overload
    def read_clip(
        self,
        id_: Any,
        slice_: FrameSelection = None,
        *,
        out: Out,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> Out: ...

    def read_clip(
        self,
        id_: Any,
        slice_: FrameSelection = None,
        *,
        out: Any = None,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> Any:
        """Decode the chosen frames of one item into one array.

        Parameters
        ----------
        id_ : str or int
            The item.
        slice_ : slice, int, sequence of int or array, optional
            See `gulpio2.format.selection.select_frames`. Default: all frames.
        out : writable buffer, optional
            To decode into: a numpy array, a CPU tensor of torch (pinned ones too), or
            anything with a writable C-contiguous buffer of uint8; of the shape of the
            result, or flat with as many bytes.
        scale : {1, 2, 4, 8}, optional
            Decode at 1/scale of the size, rounded up, which costs less than decoding
            and resizing. Chroma that is neither 4:4:4 nor 4:2:0 the codec does not
            average, see docs/reading.md.
        min_size : int, optional
            In place of `scale`: at the smallest of these sizes whose shorter edge has
            still this many pixels.
        crop : (int, int, int, int), optional
            Top, left, height and width of a region, in pixels of the stored frame.
            With a scale, the region's bounds are divided by it and rounded outwards.
        colorspace : {"source", "rgb", "gray"}, optional
            "source": as stored. "rgb": three channels also for grey records. "gray":
            one channel, the luma, whose decoding leaves the colours out.

        Returns
        -------
        numpy.ndarray
            ``(T, H, W, 3)`` uint8 RGB, or ``(T, H, W, 1)`` for grey; T is 0 where
            nothing is selected. It is `out` where that was given. With a
            ``jpeg_decoder`` of one's own: its results, stacked.

        Raises
        ------
        ItemNotFoundError, FrameIndexError, CorruptFrameError
            As `read_frames`.
        FormatError
            The frames differ in shape, or do not fit `out`.
        ValueError
            Options that the codec does not have, or a crop that reaches out of the
            frame.

        Notes
        -----
        Neighbouring records come with one system call; threads share the frames. Rows
        below a crop are not decoded, those above it are, and left out; all columns
        are decoded.
        """
        options = decode_options(scale, min_size, crop, colorspace)
        return self.item(id_).read_clip(slice_, out, options)

    @overload
    def read_clips(
        self,
        requests: Iterable[tuple[Any, FrameSelection]],
        *,
        out: npt.NDArray[Any] | None = None,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> npt.NDArray[Any]: ...

    @overload
    def read_clips(
        self,
        requests: Iterable[tuple[Any, FrameSelection]],
        *,
        out: Out,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> Out: ...

    def read_clips(
        self,
        requests: Iterable[tuple[Any, FrameSelection]],
        *,
        out: Any = None,
        scale: int = 1,
        min_size: int | None = None,
        crop: Crop | None = None,
        colorspace: Colorspace = "source",
    ) -> Any:
        """Decode clips of several items into one array.

        Parameters
        ----------
        requests : iterable of (id, selection)
            At least one; each must come to the same number of frames of one shape.
        out, scale, min_size, crop, colorspace : optional
            As in `read_clip`.

        Returns
        -------
        numpy.ndarray
            ``(B, T, H, W, C)`` uint8, or `out`.

        Raises
        ------
        ItemNotFoundError, FrameIndexError, CorruptFrameError
            As `read_frames`.
        FormatError
            The clips differ in length or shape, or do not fit `out`.
        TypeError
            A request is no pair.
        ValueError
            There are no requests; or as `read_clip`.
        """
        options = decode_options(scale, min_size, crop, colorspace)
        return read_clips(_located(requests, self.item), out, options)

    def read_jpegs(self, id_: Any, slice_: FrameSelection = None) -> list[bytes]:
        """Read the chosen frames of one item as they are stored, without decoding.

        Parameters
        ----------
        id_ : str or int
            The item.
        slice_ : slice, int, sequence of int or array, optional
            Default: all frames.

        Returns
        -------
        list of bytes
            One complete JPEG per frame, padding left out.

        Raises
        ------
        ItemNotFoundError, FrameIndexError, CorruptFrameError
            As `read_frames`.
        """
        return self.item(id_).read_jpegs(slice_)

    def read_frames_at(
        self,
        id_: Any,
        seconds: Seconds,
        *,
        mode: TimeMode = "nearest",
    ) -> tuple[list[Any], Meta]:
        """Decode the frames at these times.

        Parameters
        ----------
        id_ : str or int
            The item.
        seconds : number or iterable of numbers
            Times on the source's own timeline.
        mode : {"nearest", "before", "at"}, optional
            Which frame a time stands for. "nearest": the one whose time is closest, the
            earlier one of two equally close. "before": the last one whose time is not
            after it, the one on the screen then. "at": the one at that very time, to a
            tick of the source.

        Returns
        -------
        frames : list
            One per time, as `read_frames` gives them.
        meta : dict
            A copy of the item's metadata, as `read_frames` gives it.

        Raises
        ------
        ItemNotFoundError, CorruptFrameError
            As `read_frames`.
        FrameTimeError
            No frame is there, or the item has no times.
        TypeError
            A time that is no number: texts and booleans are none.
        ValueError
            A time that is not finite, or an unknown mode.
        """
        item = self.item(id_)
        return item.read_frames(item.frame_indices_at(seconds, mode)), item.meta


def _located(
    requests: Iterable[tuple[Any, FrameSelection]],
    find: Callable[[Any], StoredItem],
) -> list[tuple[StoredItem, FrameSelection]]:
    """Look up the items of a batch.

    Raises
    ------
    ValueError
        There are none: a batch of nothing has no shape.
    TypeError
        One of them is no pair, or they are no list.
    """
    try:
        pairs = iter(requests)
    except TypeError as cause:
        raise TypeError(
            f"requests is {requests!r}; give a list of pairs of an id and a selection"
        ) from cause
    parts = [(find(id_), selection) for id_, selection in map(_pair, pairs)]
    if not parts:
        raise ValueError("requests is empty; give at least one (id, selection)")
    return parts


def _pair(request: Any) -> tuple[Any, FrameSelection]:
    # A text of two characters would be taken apart as well.
    if isinstance(request, str) or not hasattr(request, "__len__") or len(request) != 2:
        raise TypeError(
            f"requests holds {request!r}; each must be a pair of an id and a selection "
            "of frames, which may be None for all"
        )
    id_, selection = request
    return id_, selection


def each_of(ids: Any) -> Iterator[Any]:
    """Go through ids.

    Raises
    ------
    TypeError
        It is one id, and no list of them, or a source of items.
    """
    if isinstance(ids, ReadingVerbs):
        raise TypeError(f"ids is {ids!r}; give a list of ids, as the ids of a view are")
    if not isinstance(ids, (str, bytes, bytearray)):  # in which others may be as well
        with suppress(TypeError):
            each: Iterator[Any] = iter(ids)
            return each
    raise TypeError(f"ids is {ids!r}, which is one; give a list of ids")
