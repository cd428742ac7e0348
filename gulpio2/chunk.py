"""One chunk: a data file and its map."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.arguments import callable_or, optional_number, require_verify
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.errors import ItemNotFoundError, StorageError
from gulpio2.forks import renew_in_children
from gulpio2.format.edits import Origins
from gulpio2.format.wording import counted
from gulpio2.item import StoredItem
from gulpio2.record import record_of
from gulpio2.rewritten import watched
from gulpio2.serializers import json_serializer, reads_json, serializer_of, writes_json
from gulpio2.staging import begin_writing
from gulpio2.storage.data_file import open_data_file, refuse_taken
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.index.taking_in import GivenMap, remember, taken_in
from gulpio2.storage.locks import WriterLock
from gulpio2.storage.map_file import MapFile, refuse_changed
from gulpio2.verbs import ReadingVerbs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from gulpio2.serializers import AbstractSerializer
    from gulpio2.staging import ChunkSession
    from gulpio2.storage.base import StoreWriter
    from gulpio2.types import Meta, StrPath, Verify

__all__ = ["GulpChunk"]


class GulpChunk(ReadingVerbs):
    """A data file and its map: reads any frames of its items, appends new ones.

    Parameters
    ----------
    data_file_path, meta_file_path : str or path
        ``data_N.gulp`` and ``meta_N.gmeta``. The map is read at once if it exists.
    serializer : AbstractSerializer, optional
        Reads and writes the map. Default: JSON, the only one that others can read.
    jpeg_decoder : callable, optional
        Bytes of a JPEG to anything; see `read_frames`.
    threads : int, optional
        Threads that may decode the frames of a call at the same time. Default: one
        per core, 8 at most; one in a daemonic worker process.
    verify : bool or 'frames', optional
        What to compare with the checks that are stored; see `GulpDirectory`.
    handles : HandlePool, optional
        Open files shared with other chunks.
    meta_dict : OrderedDict, optional
        What the map says, where it is known already and need not be read.

    Attributes
    ----------
    meta_dict : OrderedDict
        Id to ``{"frame_info": [...], "meta_data": [...]}``. It may be edited:
        ``open("ab")`` writes it as it is at the end, to the ``meta_file_path`` of then.
    fp : file or None
        The open file inside of `open`.
    is_new : bool
        Whether "wb" refuses to replace what is there; see `GulpDirectory.new_chunks`.

    Examples
    --------
    >>> import numpy as np
    >>> chunk = GulpChunk("data_0.gulp", "meta_0.gmeta")
    >>> with chunk.open("wb"):
    ...     chunk.append("clip", {"label": 3}, [np.zeros((4, 6, 3), np.uint8)] * 5)
    >>> frames, meta = chunk["clip", 1:3]
    >>> len(frames), frames[0].shape, meta
    (2, (4, 6, 3), {'label': 3})

    Notes
    -----
    Reading is safe from many threads at once, in nested loops, and in processes that
    were forked or to which the chunk was pickled; ``open("rb")`` is not needed for it.
    """

    is_new = False

    def __init__(
        self,
        data_file_path: StrPath,
        meta_file_path: StrPath,
        serializer: AbstractSerializer | None = json_serializer,
        jpeg_decoder: Callable[[bytes], Any] | None = jpeg_bytes_to_img,
        *,
        threads: int | None = None,
        verify: Verify = "frames",
        handles: HandlePool | None = None,
        meta_dict: OrderedDict[str, Any] | None = None,
    ) -> None:
        self.data_file_path = data_file_path
        self.meta_file_path = meta_file_path
        self.serializer = serializer_of(serializer)
        self.jpeg_decoder = callable_or("jpeg_decoder", jpeg_decoder, jpeg_bytes_to_img)
        self.threads = optional_number("threads", threads, 1)
        self.verify = require_verify(verify)
        self.fp: BinaryIO | StoreWriter | None = None
        # The map that meta_dict is made of, and its bytes; None if they are not known.
        self._base_map = self._map_file
        self._base: bytes | None = None
        if meta_dict is None:
            # A directory tells of the changed entries of all its maps at once.
            verify = self.verify if handles is None else self.verify is True
            meta_dict, self._base = self._map_file.load_checked(verify=verify)
        self.meta_dict = meta_dict
        self._given = GivenMap(meta_dict if self._base is None else {})
        self._handles = watched(self, HandlePool() if handles is None else handles)
        self._session: ChunkSession | None = None
        self._open_depth = 0
        renew_in_children(self, GulpChunk._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.Lock()
        vars(self).pop("_writer", None)

    def __contains__(self, id_: object) -> bool:
        """Tell whether an item has this id; 7 and "7" are the same."""
        return str(id_) in self.meta_dict

    def __iter__(self) -> Iterator[tuple[list[Any], Meta]]:
        """Read every item, in order."""
        return self.iter_all()

    def item(self, id_: Any) -> StoredItem:
        """Find an item, without reading any of its frames.

        Raises
        ------
        ItemNotFoundError
            No item has this id.
        """
        id_ = str(id_)
        if (record := record_of(self.meta_dict, id_)) is None:
            raise ItemNotFoundError(f"no item {id_!r} in {self.data_file_path}", id_)
        return StoredItem(
            id_,
            record,
            self.data_file_path,
            self._read_at,
            self.jpeg_decoder,
            self.threads,
            bool(self.verify),
            self._handles if self._session is None and self.fp is None else None,
        )

    def iter_all(
        self,
        accepted_ids: Iterable[Any] | None = None,
        shuffle: bool = False,  # noqa: FBT001, FBT002  # signature of 0.0.4
        *,
        seed: int | None = None,
    ) -> Iterator[tuple[list[Any], Meta]]:
        """Read item after item.

        Parameters
        ----------
        accepted_ids : iterable of str, optional
            Only these; the chunk's order is kept and unknown ids are ignored.
        shuffle : bool, optional
            In random order, drawn from numpy's global generator.
        seed : int, optional
            In a random order, the same for the same seed; implies `shuffle`.

        Yields
        ------
        frames : list
            All frames of the item.
        meta : dict
            A copy of its metadata, as `read_frames` gives it.
        """
        ids = list(self.meta_dict)
        if not ids:
            self._read_at(0, 0)  # a wrong path looks like a chunk without items
        if accepted_ids is not None:
            # Gone through once, for it may be an iterator; ids are strings.
            accepted = {id_ for id_ in accepted_ids if isinstance(id_, str)}
            ids = [id_ for id_ in ids if id_ in accepted]
        if seed is not None:
            np.random.default_rng(seed).shuffle(ids)
        elif shuffle:
            np.random.shuffle(ids)  # noqa: NPY002  # contract of 0.0.4
        for id_ in ids:
            yield self.read_frames(id_)

    def _read_at(self, offset: int, length: int) -> bytes:
        """Read through the pool's handles, which no other reader can close."""
        if self._session is not None:
            raise StorageError(
                None,
                f"{self.data_file_path} is open for writing; leave the `with` block "
                "before reading",
            )
        if isinstance(self.fp, io.BytesIO):  # put there by a test
            with self._lock:
                self.fp.seek(offset)
                return self.fp.read(length)
        return self._handles.read_at(str(self.data_file_path), offset, length)

    @contextmanager
    def open(self, flag: str = "rb") -> Iterator[None]:
        """Open the chunk for the length of a ``with`` block.

        Parameters
        ----------
        flag : {"rb", "wb", "ab"}
            "wb" starts from nothing, "ab" adds to what is there, and writes what was
            edited in `meta_dict`; what another process has appended meanwhile is taken
            in. Readers see the old chunk until the block ends; when it ends with an
            error, nothing of it is kept, and `meta_dict` is what it was before, or
            empty where the old data file was replaced and only its map could not be.

        Raises
        ------
        NotImplementedError
            Another flag.
        ChunkMismatchError
            "ab", and the data file is missing or too short for the map; or the chunk
            has changed, and no longer has the frames of an item of the map in memory,
            or since the directory of an assigned map was closed, or inside the block.
        DuplicateIdError
            "ab", and items of the same id were added in memory and on the disk.
        LockedError
            It is open for writing already, in another process or by another object; or
            "wb", and another process writes to the folder while ``deleted.json`` is to
            forget the chunk.
        StorageError
            A file cannot be opened, written or synced; this object is open already; or
            "wb", and another has taken the number of a new chunk meanwhile.
        """
        if flag not in ("rb", "wb", "ab"):
            raise NotImplementedError(f"flag is {flag!r}, expected 'rb', 'wb' or 'ab'")
        reading, writing = self._opened_for_reading, self._opened_for_writing
        with reading() if flag == "rb" else writing(extend=flag == "ab"):
            yield

    @contextmanager
    def _opened_for_reading(self) -> Iterator[None]:
        with self._lock:
            if self._open_depth == 0:
                self.fp = open_data_file(self.data_file_path)
            self._open_depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._open_depth -= 1
                if self._open_depth == 0 and self.fp is not None:
                    self.fp.close()
                    self.fp = None

    @contextmanager
    def _opened_for_writing(self, *, extend: bool) -> Iterator[None]:
        with WriterLock() as lock, ExitStack() as ends, ExitStack() as undo:
            ends.callback(self._end_writing, lock)
            # In one step: two threads would undo what either sets.
            writer = vars(self).setdefault("_writer", lock)
            if writer is not lock or self.fp is not None:
                raise StorageError(None, f"{self.data_file_path} is open already")
            ends.callback(vars(self).update, _session=None, fp=None)
            ends.callback(self._handles.close)
            state = {k: getattr(self, k) for k in ("meta_dict", "_base", "_base_map")}
            undo.callback(vars(self).update, state)
            lock.take(self.data_file_path, to_write=extend)
            if extend:  # what is read then stays as it is
                prior = self._take_in(undo)
                stored = self._base_map.parse(self._base) if self._base else prior
            else:
                self.meta_dict, self._base, prior, stored = OrderedDict(), b"", {}, None
            session = begin_writing(
                self.data_file_path, self.meta_file_path, self.meta_dict, stored, lock
            )
            ends.callback(session.close)
            session.appender.origins = self._origins(prior)
            self._session, self.fp = session, session.writer
            try:
                if self.is_new and not extend:
                    refuse_taken(self.data_file_path)
                yield
                self.flush()
                undo.pop_all()
            except BaseException:
                with suppress(StorageError):  # what failed first is told
                    session.abort(self._base_map.end_if_changed(self._base))
                if session.is_unmapped:  # the old frames are gone, and so is their map
                    state.update(meta_dict=OrderedDict(), _base=b"", is_new=False)
                raise

    def _end_writing(self, writer: WriterLock) -> None:
        if vars(self).get("_writer") is writer:
            del vars(self)["_writer"]

    def _take_in(self, undo: ExitStack) -> dict[str, Any]:
        """Bring the map in memory up to date; give what it was made of, if needed."""
        remember(self.meta_dict, undo)
        self._base_map = map_ = self._base_map.or_at(self.meta_file_path)
        if self._base is not None and map_.read() == self._base:
            return {}
        is_gone = map_.is_gone(self.data_file_path)
        load = map_.load_checked
        disk, data = (None, b"") if is_gone else load(verify=self.verify is True)
        base = self._given if self._base is None else map_.parse(self._base)
        self.meta_dict, before = taken_in(self.meta_dict, base, disk, undo)
        map_.refuse_over_others(self.data_file_path, self.meta_dict if is_gone else {})
        self._base = data
        return before

    def _origins(self, before: dict[str, Any]) -> Origins:
        return Origins(partial(self._base_map.parse, self._base), before)

    def append(self, id_: Any, meta_data: Meta, frames: Iterable[Any]) -> None:
        """Append an item, or frames to an item that is there; inside of `open`.

        Parameters
        ----------
        id_ : str or int
            Stored as a string.
        meta_data : dict
            Kept by reference until the chunk is closed. A second call with the same
            id adds to a list of which readers see the first.
        frames : iterable
            Arrays, PIL images, planes, JPEGs, or a `FrameSource` of `gulpio2.types`.

        Raises
        ------
        AdapterContractError
            A frame or metadata that cannot be stored. The chunk is as before the call.
        """
        self._writing_session().append(str(id_), meta_data, frames)

    def flush(self) -> None:
        """Make what was appended and edited so far durable and visible to readers."""
        session, map_ = self._writing_session(), self._map_file
        if self._base_map != map_:  # another is assigned: whatever is there is replaced
            self._base, self._base_map = map_.read(), map_
        session.commit(map_, self._refuse_changes, partial(setattr, self, "_base"))
        vars(self).pop("is_new", None)
        session.appender.origins = None  # the disk has another map now

    def _refuse_changes(self, content: bytes) -> None:
        writer = self._writing_session().writer
        maps = () if self._base is None else (self._base, content)
        refuse_changed(writer, self.data_file_path, self._map_file, maps)

    def _writing_session(self) -> ChunkSession:
        if self._session is None:
            text = f"{self.data_file_path} is not open for writing; append inside of "
            raise StorageError(None, f"{text}`with chunk.open('wb'):` or 'ab'")
        appender = self._session.appender
        appender.meta_dict = self.meta_dict  # another may have been put there
        if appender.origins is None:
            appender.origins = self._origins({})
        if not writes_json(self.serializer):
            appender.dump = self._map_file.dumped
        return self._session

    @property
    def _map_file(self) -> MapFile:
        is_json = reads_json(self.serializer)
        return MapFile(Path(self.meta_file_path), self.serializer, is_json)

    def _get_or_create_dict(self) -> OrderedDict[str, Any]:
        """Read the map, or begin one where there is none."""
        return self._map_file.load_checked(verify=self.verify is True)[0]

    def __repr__(self) -> str:
        """Show the file and the number of items."""
        items = counted(len(self.meta_dict), "item")
        return f"GulpChunk({str(self.data_file_path)!r}, {items})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without open files; reading reopens."""
        if self._session is not None:
            raise TypeError(f"{self!r} is open for writing and cannot be pickled")
        state = {**vars(self), "fp": None, "_open_depth": 0}
        return {k: each for k, each in state.items() if k not in ("_lock", "_writer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a chunk that is not open, also one that 0.0.4 pickled."""
        if "_handles" not in state:
            known = ("data_file_path", "meta_file_path", "serializer", "jpeg_decoder")
            state = {key: state[key] for key in (*known, "meta_dict")}
            GulpChunk.__init__(self, **state)
        self.__dict__.update(state)
        watched(self, self._handles)
        renew_in_children(self, GulpChunk._renew_lock)
