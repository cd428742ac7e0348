"""Writing one chunk: under partial names until all of it is on the disk."""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.appending import ChunkAppender
from gulpio2.errors import (
    ChunkMismatchError,
    IngestError,
    StorageError,
    StorageExistsError,
)
from gulpio2.format.gmeta import end_of, refuse_cut_data
from gulpio2.format.layout import partial_name
from gulpio2.format.other_frames import settle_other_frames
from gulpio2.format.wording import counted
from gulpio2.storage.base import read_if_there, read_map
from gulpio2.storage.data_file import has_frames_of, refuse_taken
from gulpio2.storage.leftovers import removed_on_error
from gulpio2.storage.links import is_beginning, stop_sharing
from gulpio2.storage.local import LocalStore, new_token
from gulpio2.storage.paths import follow_link, is_there
from gulpio2.storage.permissions import settle_permissions, withhold
from gulpio2.storage.refusals import left_without_map
from gulpio2.storage.removals_file import forgetting_deleted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, MutableMapping

    from gulpio2.codecs.encoding import FrameEncoder
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.storage.base import Store
    from gulpio2.storage.locks import WriterLock
    from gulpio2.storage.map_file import MapFile
    from gulpio2.types import StrPath

__all__ = [
    "ChunkSession",
    "StagedChunk",
    "begin_writing",
    "taken_number",
]


@dataclass(frozen=True, slots=True)
class StagedChunk:
    """A chunk that is whole and on the disk, under names that no reader looks at."""

    data: str
    """Partial name of the data file."""
    meta: str
    """Partial name of the map."""

    def publish(
        self,
        store: Store,
        data_name: str,
        meta_name: str,
        names: Collection[str],
    ) -> None:
        """Give both files their names; the map's appearance is the commit.

        Parameters
        ----------
        store : Store
            Where they are.
        data_name, meta_name : str
            Their names to be.
        names : collection of str
            What is in the store: a file that is not there any more has been renamed
            by a run that was interrupted.

        Raises
        ------
        IngestError
            There is another chunk of that name already, or what may be left of one: a
            data file whose map was lost.
        """
        there = read_if_there(store, meta_name) if self.meta in names else None
        if there is not None:
            if there != store.read(self.meta):
                raise taken_number(store.path(meta_name))
            self.discard(store)  # done before, by a run whose journal was damaged
            return
        data = store.path(data_name)
        is_begun = self.data in names and is_there(data)
        if is_begun and not is_beginning(
            data, store.path(self.data), store.size(self.data)
        ):
            raise taken_number(data)
        if self.meta in names and self.data not in names:  # it had its name already
            entries = read_map(store, self.meta)[1]
            if not has_frames_of(entries, store, data_name):
                raise taken_number(data)
        for partial, name in ((self.data, data_name), (self.meta, meta_name)):
            if partial in names:
                is_new = partial == self.data and not is_begun
                try:
                    store.rename(partial, name, is_new=is_new)
                except StorageExistsError as cause:  # one that has come just now
                    raise taken_number(data) from cause
                store.sync_names()
        if is_begun:  # it may have had both names
            store.remove(self.data)

    def discard(self, store: Store) -> None:
        """Remove both files."""
        store.remove(self.data)
        store.remove(self.meta)


def taken_number(
    path: str,
    reason: str = "is not what this run would store: another program has written it "
    "meanwhile",
) -> IngestError:
    """Say that a file has the name that a chunk of a run is to get."""
    return IngestError(
        f"{path} is there, and {reason}. Run again without resuming: what is there "
        "stays, and ids that are there can be skipped (on_duplicate='skip', on the "
        "command line --on-duplicate skip)"
    )


class ChunkSession:
    """One data file being written, from the first byte to its commit.

    Parameters
    ----------
    store : Store
        Where the data file is.
    data_name : str
        Its final name.
    meta_dict : mutable mapping
        The map in memory: empty, or what is stored already if `extend`.
    encoder : EncoderSettings or None
        For frames that are not JPEG bytes already. None: the defaults, as they are
        when a frame is encoded.
    extend : bool, optional
        Go on at the end of the data file. What is appended stays invisible until
        `commit`, because the map on the disk does not speak of it.
    resume : (str, int), optional
        Partial name and length in bytes of what an interrupted session had written;
        what lies beyond the length is cut off.
    on_frames : callable, optional
        Called with a number of frames and their bytes, each time some were written.
    frame_encoder : FrameEncoder, optional
        Encodes frames in several threads. Default: in this one.
    gather : bool, optional
        Write small items together; see `flush`.
    """

    def __init__(
        self,
        store: Store,
        data_name: str,
        meta_dict: MutableMapping[str, Any],
        encoder: EncoderSettings | None,
        *,
        extend: bool = False,
        resume: tuple[str, int] | None = None,
        on_frames: Callable[[int, int], None] | None = None,
        frame_encoder: FrameEncoder | None = None,
        gather: bool = False,
    ) -> None:
        self.store = store
        self.data_name = data_name
        self.token = new_token()
        self.partial: str | None = None  # once the data file has its final name
        self.noted: list[tuple[Store, str]] = [(store, data_name)]
        """Directories and names under which notes of deleted items speak of it."""
        self.is_new = False
        """Whether nothing had the name of the data file when it was begun."""
        self.is_unmapped = False
        """Whether the data file has got its name, and its map could not."""
        if resume is not None:
            self.partial, size = resume
            self.writer = store.extend(self.partial)
            try:
                self.writer.truncate(size)
            except BaseException:
                self.close()
                raise
        elif extend:
            self.writer = store.extend(data_name)
        else:
            self.partial = partial_name(data_name, self.token)
            self.writer = store.create(self.partial)
        self._start = self.writer.tell()
        self.appender = ChunkAppender(
            self.writer,
            meta_dict,
            encoder,
            on_frames=on_frames,
            frame_encoder=frame_encoder,
            gather=gather,
        )
        self.append = self.appender.append
        self.take_over = self.appender.take_over
        self.seal = self.appender.seal
        self.drop_last = self.appender.drop_last
        self.tell = self.appender.tell
        self.flush = self.appender.flush

    def commit(
        self,
        map_file: MapFile,
        refuse_changes: Callable[[bytes], None],
        note_map: Callable[[bytes], None],
    ) -> None:
        """Make what was appended so far durable and visible; more may follow.

        Parameters
        ----------
        map_file : MapFile
            The map. That of a data file that is replaced is removed before it, and not
            before the new one is on the disk: there may be no room for that.
        refuse_changes : callable
            Raises where another program has changed the chunk that is extended, in
            another way than to these bytes; it is left as that program made it.
        note_map : callable
            Told the bytes of the map that is in place, also where the last step has
            failed, which is to sync the folder.
        """
        self.flush()
        content = self.appender.dump_map()
        self.writer.sync()
        if self.partial is None:
            refuse_changes(content)
        is_mapped = self.partial is not None and is_there(map_file.path)
        is_dropped = False
        try:
            with map_file.putting(content):
                if self.partial is not None:
                    if self.is_new:
                        refuse_taken(self.store.path(self.data_name), since_opened=True)
                    with ExitStack() as stack:
                        for store, name in self.noted:
                            stack.enter_context(forgetting_deleted(store, name))
                        # Of a new one, a map that has come since is another's.
                        if is_mapped or not self.is_new:
                            map_file.drop()
                            is_dropped = True
                    self._name(self.partial)
                    self.partial = None
                    # Nothing is left to go back to: frames can be salvaged.
                    self._start = self.writer.tell()
                    self.is_unmapped = True
                    self.store.sync_names()
        except BaseException as cause:
            path, is_new = self.store.path(self.data_name), self.is_unmapped
            if map_file.may_be(content):  # then what it speaks of must stay
                self._note(content, note_map)
            elif isinstance(cause, StorageError) and (
                is_new or (is_mapped and (is_dropped or _is_gone(map_file.path)))
            ):
                raise left_without_map(cause, path, is_new=is_new) from cause
            raise
        self._note(content, note_map)

    def _name(self, partial: str) -> None:
        """Give the data file its name; a new one replaces none that has come since."""
        try:
            self.store.rename(partial, self.data_name, is_new=self.is_new)
        except StorageExistsError:
            refuse_taken(self.store.path(self.data_name), since_opened=True)
            raise

    def _note(self, content: bytes, note_map: Callable[[bytes], None]) -> None:
        self._start, self.is_unmapped = self.writer.tell(), False
        note_map(content)

    def stage(self, meta_name: str, made_of: Collection[Path] = ()) -> StagedChunk:
        """Make everything durable under partial names, for another to publish.

        Nobody may read the map who may not read each of the files that it is made of.
        """
        if self.partial is None:
            raise ValueError(f"{self.data_name} is published already")
        staged = StagedChunk(self.partial, partial_name(meta_name, self.token))
        self.flush()
        content = self.appender.dump_map()
        self.writer.sync()
        map_writer = self.store.create(staged.meta)
        with removed_on_error(self.store, staged.meta), closing(map_writer):
            if made_of:
                path = Path(self.store.path(staged.meta))
                settle_permissions(path, path, made_of)
            map_writer.write(content)
            map_writer.sync()
        self.store.sync_names()
        return staged

    def abort(self, others_end: int | None = 0) -> None:
        """Undo everything since the last commit.

        Parameters
        ----------
        others_end : int or None, optional
            Where the records end that other programs have committed meanwhile. What
            was written here stays before them, and where it is None, not known.
        """
        if self.partial is not None:
            self.store.remove(self.partial)
        elif others_end is not None and others_end <= self._start:
            with suppress(ChunkMismatchError):  # theirs are behind, not committed yet
                self.writer.truncate(self._start)

    def close(self) -> None:
        """Close the data file."""
        self.writer.close()


def _is_gone(path: Path) -> bool:
    """Tell whether nothing is there for sure, beside an error that is to be told."""
    try:
        return not is_there(path)
    except StorageError:
        return False


def begin_writing(
    data_path: StrPath,
    meta_path: StrPath,
    meta_dict: MutableMapping[str, Any],
    stored: Mapping[str, Any] | None,
    lock: WriterLock,
) -> ChunkSession:
    """Begin a chunk anew, or go on at the end of one that is there.

    Parameters
    ----------
    data_path, meta_path : str or path
        The data file, which may be a link, and the map.
    meta_dict : mutable mapping
        The map in memory. Entries of frames that are others on the disk by now become
        those of the disk; see `settle_other_frames`.
    stored : mapping or None
        What the map on the disk says, to go on; None to begin anew.
    lock : WriterLock
        Holds the data file, if there is one; at the end also one that is new.

    Raises
    ------
    LockedError
        Another is writing to it, or begins it too.
    ChunkMismatchError
        The data file is missing, or ends before the last record of the map does; or it
        has other frames than an item of `meta_dict` that `stored` does not have.
    """
    path = follow_link(data_path)
    store = LocalStore(path.parent)
    extend = False
    if stored is not None and is_there(path):
        extend = True
        lock.refuse_begun(path, store.names())  # one of several links is not held
        lock.refuse_others(path)
        size = store.size(path.name)
        settle_other_frames(meta_dict, stored, size)
        # New records would lie where the map looks for those that are lost.
        refuse_cut_data(
            str(path),
            size,
            end_of(stored),
            "Nothing was appended. `gulp2 check` lists them, and `gulp2 repair` copies "
            "a directory without what is lost: append to the copy",
        )
        stop_sharing(path, lock)
        lock.keep_only(path)
    elif meta_dict:  # a new map would be all that is left of these items
        raise ChunkMismatchError(
            f"{path} is not there, and {meta_path} lists "
            f"{counted(len(meta_dict), 'item')} of it. "
            "Put the data file back before you append; to begin anew, remove the map "
            "or open with 'wb'"
        )
    session = ChunkSession(store, path.name, meta_dict, None, extend=extend)
    if session.partial is not None:
        partial, anew = store.path(session.partial), stored is None
        try:
            withhold(Path(partial), path)
            is_begun = lock.begin(partial, path, store.names(), replacing=anew)
            session.is_new = not is_there(path)
        except BaseException:
            session.close()
            with suppress(StorageError):  # what failed first is told
                session.abort()
            raise
        if not is_begun:  # it was taken for a leftover, before it was locked
            session.close()
            return begin_writing(data_path, meta_path, meta_dict, stored, lock)
        if (link := Path(data_path)) != path:
            session.noted.append((LocalStore(link.parent), link.name))
    return session
