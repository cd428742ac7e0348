"""Where the frames of a dataset come from: one reader, or several side by side."""

from __future__ import annotations

import logging
import os
import reprlib
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gulpio2.directory import GulpDirectory
from gulpio2.errors import (
    AnnotationError,
    FormatError,
    FrameTimeError,
    ItemNotFoundError,
)
from gulpio2.format.metadata import first_metadata
from gulpio2.sampling.clips import require_chosen
from gulpio2.storage.paths import is_folder
from gulpio2.storage.refusals import local_path
from gulpio2.torch.listing import Listing, frame_times, look_at
from gulpio2.torch.metainfo import are_equal
from gulpio2.unfinished import warn_of_what_is_missing
from gulpio2.view import GulpView

if TYPE_CHECKING:
    from gulpio2.sampling import ClipIndices

__all__ = ["FrameReader", "GulpSource", "read_frames"]

logger = logging.getLogger(__name__)

# What decodes into memory that it is given.
_OWN = (GulpDirectory.read_clip, GulpView.read_clip)


@runtime_checkable
class FrameReader(Protocol):
    """What a dataset needs of the object that it reads frames from.

    `gulpio2.GulpDirectory` is one, and so is a selection of its items. It must be
    picklable without open files. Where it also has ``metainfo`` or
    ``_load_label_dict``, as a directory has, class names come from there.
    """

    @property
    def merged_meta_dict(self) -> Mapping[str, Any]:
        """Id to entry, ``{"frame_info": [...], "meta_data": [...]}``, in order."""
        ...

    def read_clip(self, id_: Any, slice_: Any = None) -> npt.NDArray[np.uint8]:
        """Decode the chosen frames of an item, ``(T, H, W, C)``."""
        ...


class GulpSource:
    """The items of one directory, or of several.

    Parameters
    ----------
    source : path, FrameReader, or a sequence of them
        Ids need to be unique in each of several only.
    data_root : str, optional
        Joined before paths that are relative.

    Attributes
    ----------
    readers : list of FrameReader
        In the order given.
    """

    def __init__(self, source: Any, data_root: str = "") -> None:
        several = isinstance(source, Sequence) and not isinstance(source, (str, bytes))
        parts = list(source) if several else [source]
        if not parts:
            raise ValueError("source is empty: expected a directory or a reader")
        self.readers: list[FrameReader] = [_reader(part, data_root) for part in parts]
        for reader in self.readers:
            warn_of_what_is_missing(getattr(reader, "directory", reader))

    def items(self) -> Iterator[dict[str, Any]]:
        """Describe every item: its metadata with ``id`` and ``num_frames``.

        Yields
        ------
        dict
            With ``source_idx``, the number of its reader, where there are several.
        """
        for number, reader in enumerate(self.readers):
            for id_ in reader.merged_meta_dict:
                yield self._describe(number, id_)

    def describe(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the item that an entry of an annotation file is about.

        Parameters
        ----------
        entry : mapping
            It names an item by ``id``, and by ``source_idx`` where several readers
            have one of that id.

        Returns
        -------
        dict
            The item's metadata; the entry's values win over it.

        Raises
        ------
        AnnotationError
            The entry is no dict.
        ItemNotFoundError
            There is no such item.
        ValueError
            The entry names none, or one of several.
        """
        if not isinstance(entry, Mapping):  # of a file, where anything may stand
            raise AnnotationError(
                f"an annotation is {reprlib.repr(entry)}, expected a dict with the "
                "'id' of an item"
            )
        if "id" not in entry:
            raise ValueError(f"an annotation has no 'id' to find its item by: {entry}")
        id_ = str(entry["id"])
        numbers = [
            number
            for number, reader in enumerate(self.readers)
            if entry.get("source_idx", number) == number
            and id_ in reader.merged_meta_dict
        ]
        if not numbers:
            raise ItemNotFoundError(
                f"no item {id_!r} in {self!r}, which an annotation names: "
                f"{dict(entry)}",
                id_,
            )
        if len(numbers) > 1:
            raise ValueError(
                f"item {id_!r} is in sources {numbers}: give its annotation a "
                "'source_idx'"
            )
        stored = self._describe(numbers[0], id_)
        named = {key: stored[key] for key in ("id", "num_frames")}
        return {**stored, **entry, **named}

    def listing(self) -> Listing | None:
        """Give the items by number; None where a reader has no index."""
        return Listing(self.readers) if Listing.is_of(self.readers) else None

    def describe_item(self, number: int, id_: str) -> dict[str, Any]:
        """Describe an item of a reader of this package, by its index if it has one."""
        reader: Any = self.readers[number]
        item = reader.item(id_)
        return self._named(first_metadata([item.meta]), number, id_, item.num_frames)

    def _describe(self, number: int, id_: str) -> dict[str, Any]:
        entry = look_at(self.readers[number], id_)
        info = first_metadata(entry["meta_data"])
        return self._named(info, number, id_, len(entry["frame_info"]))

    def _named(
        self, info: dict[str, Any], number: int, id_: str, num_frames: int
    ) -> dict[str, Any]:
        info["id"] = id_
        info["num_frames"] = num_frames
        if len(self.readers) > 1:
            info["source_idx"] = number
        return info

    def metainfo(self, known: Container[str] = ()) -> dict[str, Any]:
        """Give the metadata that the directories have.

        Parameters
        ----------
        known : container of str, optional
            Keys that have a value already, from where it counts for more.

        Returns
        -------
        dict
            What their manifests say, and ``classes`` from ``label2idx.json`` where
            they do not say it. What several directories have must be the same.

        Raises
        ------
        ValueError
            They say different things.
        """
        merged: dict[str, Any] = {}
        for reader in self.readers:
            for key, value in _metainfo_of(reader).items():
                if key in known or are_equal(merged.setdefault(key, value), value):
                    continue
                raise ValueError(
                    f"{key!r} is {value!r} in {reader!r} and {merged[key]!r} in "
                    f"one before it. Say which holds, metainfo={{{key!r}: ...}}, "
                    "or make a dataset of each and concatenate them"
                )
        return merged

    def times(self, info: Mapping[str, Any]) -> npt.NDArray[np.float64]:
        """Give the presentation times of an item's frames in seconds.

        Parameters
        ----------
        info : mapping
            What `items` or `describe` gave.

        Returns
        -------
        numpy.ndarray of float64
            One per frame, in the order in which they are stored.

        Raises
        ------
        FrameTimeError
            The item has none.
        """
        reader, id_ = self.find(info)
        where = f"item {id_!r} of {reader!r}"
        times = frame_times(reader, id_, where)
        if times is None:
            raise FrameTimeError(
                f"{where} has no presentation times: it has no video behind it, "
                "GulpIO2 0.0.4 wrote it, or frames without such times were appended. "
                "Sample its frames by index"
            )
        return times.seconds

    def read(self, info: Mapping[str, Any], clip: ClipIndices) -> npt.NDArray[np.uint8]:
        """Decode the frames of a clip, or of several.

        Parameters
        ----------
        info : mapping
            What `items` or `describe` gave.
        clip : ClipIndices
            Which frames of the item.

        Returns
        -------
        numpy.ndarray
            ``(*clip.indices.shape, H, W, C)`` uint8; zeros where there is to be no
            frame.

        Notes
        -----
        Each frame is decoded once, however often it comes.
        """
        reader, id_ = self.find(info)
        wanted = clip.indices.ravel()
        ordered: list[int] = wanted.tolist()
        if ordered and ordered[0] >= 0 and ordered == sorted(set(ordered)):
            frames = read_frames(reader, id_, ordered)  # as mostly
            return frames.reshape(*clip.indices.shape, *frames.shape[1:])
        require_chosen(ordered)
        unique, places = np.unique(wanted[wanted >= 0], return_inverse=True)
        frames = read_frames(reader, id_, unique.tolist())
        gathered = np.zeros((len(wanted), *frames.shape[1:]), np.uint8)
        gathered[wanted >= 0] = frames[places]
        return gathered.reshape(*clip.indices.shape, *frames.shape[1:])

    def read_into(
        self, info: Mapping[str, Any], clip: ClipIndices, out: npt.NDArray[np.uint8]
    ) -> bool:
        """Decode the frames of a clip, or of several, into memory.

        Parameters
        ----------
        info, clip
            As in `read`.
        out : numpy.ndarray
            Of the shape that `read` gives.

        Returns
        -------
        bool
            False where that cannot be done, and `read` is to be called.

        Raises
        ------
        FormatError
            The frames are of another shape.
        """
        reader, id_ = self.find(info)
        indices = clip.indices.ravel().tolist()
        is_own = getattr(type(reader), "read_clip", None) in _OWN
        if not is_own or min(indices, default=-1) < 0:
            return False
        own: Any = reader
        own.read_clip(id_, indices, out=out.reshape(-1, *out.shape[-3:]))
        return True

    def find(self, info: Mapping[str, Any]) -> tuple[FrameReader, str]:
        """Give the reader of an item, and its id there.

        Parameters
        ----------
        info : mapping
            What `items` or `describe` gave.
        """
        number, id_ = self.place_of(info)
        return self.readers[number], id_

    def place_of(self, info: Mapping[str, Any]) -> tuple[int, str]:
        """Give the number of an item's reader, and its id there; as `find`."""
        return info["source_idx"] if len(self.readers) > 1 else 0, info["id"]

    def __repr__(self) -> str:
        """Show the readers."""
        return f"GulpSource({', '.join(map(repr, self.readers))})"


def read_frames(
    reader: FrameReader, id_: str, indices: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """Have a reader decode frames, and refuse what is not them.

    Parameters
    ----------
    reader : FrameReader
        Where the item is.
    id_ : str
        Its id there.
    indices : sequence of int
        Which frames.

    Returns
    -------
    numpy.ndarray
        ``(T, H, W, C)`` uint8.

    Raises
    ------
    FormatError
        It gave something else, as one of somebody's own may.
    """
    frames: Any = reader.read_clip(id_, indices)
    if (
        not isinstance(frames, np.ndarray)
        or frames.dtype != np.uint8
        or frames.ndim != 4
        or len(frames) != len(indices)
    ):
        shape = getattr(frames, "shape", None)
        given = f"{frames.dtype} of shape {shape}" if shape else type(frames).__name__
        raise FormatError(
            f"item {id_!r} of {reader!r}: read_clip gave {given} for "
            f"{len(indices)} frames, expected a numpy array ({len(indices)}, H, W, C) "
            "of uint8"
        )
    return frames


def _reader(part: Any, data_root: str) -> FrameReader:
    if isinstance(part, (str, os.PathLike)):
        path = os.path.join(data_root, part)  # noqa: PTH118  text, as data_root is
        # A missing directory reads as an empty one, which nobody means to train on.
        if not is_folder(local_path(path, "read")):
            raise FileNotFoundError(f"there is no gulp directory at {path}")
        directory = GulpDirectory(path)
        if directory._is_of_others:
            raise FileNotFoundError(
                f"{path} is no gulp directory: it holds other files or folders, and no "
                "chunk (data_N.gulp with meta_N.gmeta)"
            )
        return directory
    if not isinstance(part, FrameReader):
        raise TypeError(
            f"source is {part!r}, expected the path of a gulp directory or an object "
            "with merged_meta_dict and read_clip"
        )
    return part


def _metainfo_of(reader: FrameReader) -> dict[str, Any]:
    metainfo = dict(getattr(reader, "metainfo", {}))
    if "classes" not in metainfo and hasattr(reader, "_load_label_dict"):
        try:
            labels: Any = reader._load_label_dict()
        except FileNotFoundError:
            return metainfo
        numbers: Any = labels.values() if isinstance(labels, Mapping) else [None]
        whole = all(isinstance(number, (int, np.integer)) for number in numbers)
        if whole and sorted(numbers) == list(range(len(numbers))):
            metainfo["classes"] = sorted(labels, key=labels.__getitem__)
        else:
            logger.warning(
                "label2idx.json of %r does not number its labels from 0 on, so it "
                "gives no 'classes': %s",
                reader,
                reprlib.repr(labels),
            )
    return metainfo
