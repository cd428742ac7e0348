"""The file of a map, written and read by a serializer that may be a client's own."""

from __future__ import annotations

import logging
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.errors import (
    ChunkMismatchError,
    MetaFileError,
    ReadRangeError,
    StorageError,
)
from gulpio2.format.altered import altered_ids, describe_altered
from gulpio2.format.entry import verify_entry
from gulpio2.format.gmeta import end_of, load_ordered_json, validate_entry
from gulpio2.format.layout import partial_name
from gulpio2.format.other_frames import known_crc32
from gulpio2.storage.base import read_if_there
from gulpio2.storage.data_file import has_frame
from gulpio2.storage.local import LocalStore, new_token
from gulpio2.storage.paths import follow_link, is_there
from gulpio2.storage.refusals import refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from gulpio2.storage.base import StoreWriter
    from gulpio2.types import StrPath, Verify

__all__ = ["MapFile", "refuse_changed"]

_logger = logging.getLogger(__name__)


class _Serializer(Protocol):
    """See `gulpio2.serializers.AbstractSerializer`."""

    def load(self, file_name: StrPath) -> Any: ...

    def dump(self, thing: Any, file_name: StrPath) -> None: ...


@dataclass
class MapFile:
    """A map on the disk, there or not."""

    path: Path
    serializer: _Serializer
    reads_json: bool
    """Whether the serializer reads what `load_ordered_json` does."""

    def or_at(self, path: StrPath) -> MapFile:
        """Give this map; that at another path, read alike, where it is not there."""
        return self if os.path.lexists(self.path) else replace(self, path=Path(path))

    def is_gone(self, data_path: StrPath) -> bool:
        """Tell whether it is missing, of a data file that is there."""
        return not is_there(self.path) and is_there(data_path)

    def read(self) -> bytes:
        """Give its bytes; none where it is missing."""
        return read_if_there(self._store, self.path.name) or b""

    def load(self) -> tuple[Any, bytes | None]:
        """Give what it says, and its bytes if they can be read."""
        if not is_there(self.path):
            return OrderedDict(), b""
        if self.reads_json:
            data = read_if_there(self._store, self.path.name)
            if data is None:  # removed since, as when the chunk is written anew
                return OrderedDict(), b""
            return load_ordered_json(data, where=str(self.path)), data
        before: bytes | None = None
        with suppress(StorageError):  # it may be no file, but what a client has there
            before = self.read()
        return self.serializer.load(str(self.path)), before

    def load_checked(
        self, *, verify: Verify
    ) -> tuple[OrderedDict[str, Any], bytes | None]:
        """Give a map that readers can use, and its bytes if they can be read.

        Parameters
        ----------
        verify : bool or 'frames'
            Whether entries that do not fit their checks are an error, or a warning.

        Raises
        ------
        MetaFileError
            It is none; or, with True, an entry does not fit its check.
        """
        loaded, data = self.load()
        if not isinstance(loaded, dict):
            raise MetaFileError(
                f"{self.path}: holds no object. Run `gulp2 check` on its directory"
            )
        for id_, entry in loaded.items():
            if fault := validate_entry(entry):
                raise MetaFileError(
                    f"{self.path}: item {id_!r}: {fault}. Run `gulp2 check` on its "
                    "directory for a full list"
                )
            if verify is True:
                verify_entry(id_, entry, where=f"{self.path}: item {id_!r}")
        if verify == "frames" and data and (ids := altered_ids(data, loaded)):
            _logger.warning("%s: %s", self.path, describe_altered(ids[0], len(ids)))
        return OrderedDict(loaded), data

    def parse(self, data: bytes | None) -> Any:
        """Give what it said when these were its bytes."""
        if not data:
            return OrderedDict()
        if self.reads_json:
            return load_ordered_json(data, where=str(self.path))
        with self._beside() as path:
            path.write_bytes(data)
            return self.serializer.load(str(path))

    def dumped(self, meta_dict: Any) -> bytes:
        """Give the bytes that the serializer writes."""
        with self._beside() as path:
            self.serializer.dump(meta_dict, str(path))
            try:
                return path.read_bytes()
            except OSError as cause:
                raise StorageError(
                    cause.errno,
                    f"{self.serializer!r} has written no map: its `dump` must write "
                    f"to the path that it is given, a file {path.name}",
                ) from cause

    @contextmanager
    def putting(self, data: bytes) -> Iterator[None]:
        """Replace it after the block, durably and in one step.

        All that needs room on the disk is done before the block.
        """
        path = follow_link(self.path)
        with LocalStore(path.parent).replacing(path.name) as writer:
            writer.write(data)
            writer.sync()
            yield

    def drop(self) -> None:
        """Remove it for good."""
        path = follow_link(self.path)
        if is_there(path):
            store = LocalStore(path.parent)
            store.remove(path.name)
            store.sync_names()

    def refuse_over_others(
        self, data_path: StrPath, meta_dict: Mapping[str, Any]
    ) -> None:
        """Refuse to store it again, where it is gone, for other frames than its own.

        Who wrote the chunk anew has removed it, and may have come to no new one.

        Raises
        ------
        ChunkMismatchError
            No frame of an item has its checksum, or the data file was cut.
        """
        path = follow_link(data_path)
        with closing(LocalStore(path.parent)) as store:
            for id_, entry in meta_dict.items():
                if not isinstance(entry, Mapping) or validate_entry({**entry}):
                    continue  # which is said when it would be written
                known = known_crc32(entry).items()
                try:
                    fits = not known or any(
                        has_frame(store, path.name, *frame) for frame in known
                    )
                except ReadRangeError as cause:
                    raise ChunkMismatchError(f"item {id_!r}: {cause}") from cause
                if not fits:
                    raise ChunkMismatchError(
                        f"{path} has no frame of item {id_!r}, and {self.path} is "
                        "gone: the chunk was written anew, or is damaged. Remove the "
                        "item, or open the chunk again"
                    )

    def may_be(self, data: bytes) -> bool:
        """Tell whether it may have these bytes; not, if it has others."""
        try:
            return self.read() == data and is_there(self.path)
        except StorageError:
            return True

    def end_if_changed(self, base: bytes | None) -> int | None:
        """Give where its last record ends; 0 where it is as it was, None if unknown."""
        try:
            if self.read() == base:
                return 0
            return end_of(self.load_checked(verify=False)[0])
        except Exception:  # noqa: BLE001  # a client's serializer may raise anything
            return None

    @property
    def _store(self) -> LocalStore:
        return LocalStore(self.path.parent)

    @contextmanager
    def _beside(self) -> Iterator[Path]:
        """Give a file for a while that no reader looks at.

        In a folder of its own it has the name of the map, by which serializers tell
        how they are to write it.
        """
        folder = self.path.parent / partial_name(self.path.name, new_token())
        try:
            folder.mkdir(0o700)  # the map may be one that not everybody may read
        except OSError as cause:
            raise refused(cause, "create the folder", folder, writing=True) from cause
        try:
            yield folder / self.path.name
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def refuse_changed(
    writer: StoreWriter, data_path: StrPath, map_file: MapFile, maps: Collection[bytes]
) -> None:
    """Refuse to commit to a chunk that another program has changed.

    Parameters
    ----------
    writer : StoreWriter
        The data file that is open.
    data_path : str or path
        Where it should be.
    map_file : MapFile
        The map.
    maps : collection of bytes
        What it may be; anything where there are none.

    Raises
    ------
    ChunkMismatchError
        Frames would be lost with a file that has no name any more, or what the other
        program did to the map would be undone.
    """
    if not writer.is_at(data_path):
        changed = data_path
    elif maps and map_file.read() not in maps:
        changed = map_file.path
    else:
        return
    raise ChunkMismatchError(
        f"{changed} was changed by another program while the chunk was open for "
        "writing, as by `gulp2 delete` or `gulp2 compact`. The chunk is as that "
        "program left it, and what was not flushed before is not stored: append again"
    )
