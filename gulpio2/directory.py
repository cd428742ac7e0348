"""A directory: the chunks of one data set, read by item id."""

from __future__ import annotations

import logging
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.chunk import GulpChunk
from gulpio2.codecs.decode import decode_options
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.errors import ChunkMismatchError, DuplicateIdError, ItemNotFoundError
from gulpio2.format.layout import (
    LABELS_NAME,
    MANIFEST_NAME,
    data_name,
    list_chunks,
    meta_name,
)
from gulpio2.format.manifest import Manifest, load_manifest
from gulpio2.item import located, read_clips
from gulpio2.request import split_request
from gulpio2.serializers import json_serializer
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from gulpio2.codecs.decode import Colorspace, Crop
    from gulpio2.format.layout import Listing
    from gulpio2.format.times import TimeMode
    from gulpio2.item import Seconds, StoredItem
    from gulpio2.types import FrameSelection, Meta, StrPath

__all__ = ["GulpDirectory"]

_logger = logging.getLogger(__name__)


class GulpDirectory:
    """The items of a gulp directory, by id.

    Parameters
    ----------
    output_dir : str or path
        The directory. A missing or empty one holds no items.
    jpeg_decoder : callable, optional
        Bytes of a JPEG to anything; called once per frame, its results are passed on.
    threads : int, optional
        Threads that may decode the frames of a call at the same time; all directories
        of a process share them. Default: one per core, 8 at most; one in a daemonic
        worker process, as those of a torch ``DataLoader`` are.
    verify : bool, optional
        Compare each entry of the maps with its check on opening, and the checksum of
        each frame, before it is given, with the stored one; what was written by
        GulpIO2 0.0.4 has neither.

    Attributes
    ----------
    chunk_objs_lookup : OrderedDict
        Chunk number to `GulpChunk`, in numeric order.
    chunk_lookup : dict
        Id to chunk number.
    all_meta_dicts : list
        Each chunk's map.
    merged_meta_dict : dict
        Id to entry, over all chunks. Changes to the metadata in it show in later reads.
    num_chunks : int
        Chunks.

    Raises
    ------
    ChunkMismatchError
        A map has no data file.
    DuplicateIdError
        Two chunks have an item of the same id.
    MetaFileError
        A map is damaged.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("out", num_items=3, num_frames=8)
    >>> with GulpDirectory("out") as directory:
    ...     frames, meta = directory["item1", 0:4]
    ...     clip = directory.read_clip("item1", slice(0, 8, 2))
    >>> len(frames), clip.shape
    (4, (4, 24, 32, 3))

    Notes
    -----
    Opening reads the maps and no frame. Reading is safe from many threads, and in
    processes that were forked or to which the directory was pickled.
    """

    def __init__(
        self,
        output_dir: StrPath,
        jpeg_decoder: Callable[[bytes], Any] = jpeg_bytes_to_img,
        *,
        threads: int | None = None,
        verify: bool = False,
    ) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads is {threads!r}; it must be at least 1")
        self.output_dir = output_dir
        self.jpeg_decoder = jpeg_decoder
        self.threads = threads
        self.verify = verify
        self._handles = HandlePool()
        self._store = open_store(output_dir)
        listing = self._list()
        if listing.meta_only:
            number = listing.meta_only[0]
            raise ChunkMismatchError(
                f"{self._store.path(meta_name(number))} has no {data_name(number)}: "
                "the frames are missing. Put the file back, or run `gulp2 check` for "
                "a full list"
            )
        for number in listing.data_only:
            _logger.warning(
                "%s has no map and is left out: it was never committed, or its map is "
                "lost. Run `gulp2 check` on the directory",
                self._store.path(data_name(number)),
            )
        self.chunk_objs_lookup: OrderedDict[int, GulpChunk] = OrderedDict(
            (number, self._chunk(number)) for number in listing.chunks
        )
        self.all_meta_dicts = [
            chunk.meta_dict for chunk in self.chunk_objs_lookup.values()
        ]
        self.num_chunks = len(self.chunk_objs_lookup)
        self.chunk_lookup: dict[str, int] = {}
        self.merged_meta_dict: dict[str, Any] = {}
        for number, chunk in self.chunk_objs_lookup.items():
            for id_, entry in chunk.meta_dict.items():
                if id_ in self.chunk_lookup:
                    raise DuplicateIdError(
                        f"item {id_!r} is in {data_name(self.chunk_lookup[id_])} and "
                        f"in {data_name(number)} of {output_dir}. Run `gulp2 check` on "
                        "the directory to list duplicates"
                    )
                self.chunk_lookup[id_] = number
                self.merged_meta_dict[id_] = entry

    def _list(self) -> Listing:
        return list_chunks(self._store.names())

    def _chunk(self, number: int) -> GulpChunk:
        # Plain paths, relative where output_dir is, as clients print them.
        folder = Path(self.output_dir)
        return GulpChunk(
            str(folder / data_name(number)),
            str(folder / meta_name(number)),
            json_serializer,
            self.jpeg_decoder,
            threads=self.threads,
            verify=self.verify,
            handles=self._handles,
        )

    # --- what is in it -----------------------------------------------------------

    def __len__(self) -> int:
        """Count the items."""
        return len(self.chunk_lookup)

    def __contains__(self, id_: object) -> bool:
        """Tell whether an item has this id; 7 and "7" are the same."""
        return str(id_) in self.chunk_lookup

    def __iter__(self) -> Iterator[GulpChunk]:
        """Go through the chunks in numeric order."""
        return iter(self.chunk_objs_lookup.values())

    def chunks(self) -> Iterator[GulpChunk]:
        """Go through the chunks in numeric order."""
        return iter(self)

    def new_chunks(self, total_new_chunks: int) -> Iterator[GulpChunk]:
        """Make chunk objects for the next free numbers. Writes and reserves nothing.

        Parameters
        ----------
        total_new_chunks : int
            How many.

        Yields
        ------
        GulpChunk
            Empty, with this directory's decoder.
        """
        first = self._list().next_number
        for number in range(first, first + total_new_chunks):
            yield self._chunk(number)

    @property
    def manifest(self) -> Manifest:
        """How the directory was made; an empty manifest where it has none.

        Raises
        ------
        MetaFileError
            ``gulp.json`` is damaged, or of a newer format.
        """
        try:
            data = self._store.read(MANIFEST_NAME)
        except FileNotFoundError:
            return Manifest()
        return load_manifest(data, where=self._store.path(MANIFEST_NAME))

    @property
    def metainfo(self) -> dict[str, Any]:
        """Metadata of the whole data set, from the manifest: a copy."""
        return dict(self.manifest.metainfo)

    def item(self, id_: Any) -> StoredItem:
        """Find an item, without reading any of its frames.

        Raises
        ------
        ItemNotFoundError
            No item has this id.
        """
        return self._chunk_of(id_).item(id_)

    # --- frames ------------------------------------------------------------------

    def __getitem__(self, element: Any) -> tuple[list[Any], Meta]:
        """Read ``directory[id]`` or ``directory[id, selection]``; see `read_frames`."""
        return self.read_frames(*split_request(element))

    def read_frames(
        self, id_: Any, slice_: FrameSelection = None
    ) -> tuple[list[Any], Meta]:
        """Decode the chosen frames of one item; see `GulpChunk.read_frames`."""
        return self._chunk_of(id_).read_frames(id_, slice_)

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
        """Decode the chosen frames into one array; see `GulpChunk.read_clip`."""
        options = decode_options(scale, min_size, crop, colorspace)
        return self.item(id_).read_clip(slice_, out, options)

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
        """Decode clips of several items into one array; see `GulpChunk.read_clips`."""
        options = decode_options(scale, min_size, crop, colorspace)
        return read_clips(located(requests, self.item), out, options)

    def read_jpegs(self, id_: Any, slice_: FrameSelection = None) -> list[bytes]:
        """Read the chosen frames as they are stored; see `GulpChunk.read_jpegs`."""
        return self._chunk_of(id_).read_jpegs(id_, slice_)

    def read_frames_at(
        self, id_: Any, seconds: Seconds, *, mode: TimeMode = "nearest"
    ) -> tuple[list[Any], Meta]:
        """Decode the frames at these times; see `GulpChunk.read_frames_at`."""
        return self._chunk_of(id_).read_frames_at(id_, seconds, mode=mode)

    def _chunk_of(self, id_: Any) -> GulpChunk:
        try:
            return self.chunk_objs_lookup[self.chunk_lookup[str(id_)]]
        except KeyError:
            raise ItemNotFoundError(
                f"no item {str(id_)!r} in {self.output_dir} ({len(self)} items; "
                "`gulp2 ls` lists them)"
            ) from None

    def _load_label_dict(self) -> Any:
        """Read ``label2idx.json``."""
        return json_serializer.load(self._store.path(LABELS_NAME))

    # --- lifetime ----------------------------------------------------------------

    def close(self) -> None:
        """Close every file; reading again reopens."""
        self._handles.close()

    def __enter__(self) -> GulpDirectory:
        """Give the directory itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every file."""
        self.close()

    def __repr__(self) -> str:
        """Show the path, items and chunks."""
        return (
            f"GulpDirectory({str(self.output_dir)!r}, {len(self)} items in "
            f"{self.num_chunks} chunks)"
        )
