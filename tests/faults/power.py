"""What a disk may hold after the power failed: recorded operations, replayed in part.

All files are written through `gulpio2.storage.local`. `record_operations` notes every
write, truncation, sync, rename, removal and sync of the folder there. `all_states`
gives every state that a disk may legally be found in when the power goes after some of
them, `state_after_cut` draws one where there are too many.

The model is that of POSIX, weaker than any journaling file system:

* what was written to a file before its last sync is there; of what was written since,
  each page of 512 or 4,096 bytes may be there or not, in any combination, and bytes
  that are missing before some that are there are zero; a file may have grown without
  the bytes that it grew by;
* names that were made, changed or removed before the last sync of the folder are as
  they were then; of the changes since, each may have happened or not, in any
  combination, and a rename is done as a whole or not at all.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from gulpio2.storage.local import LocalStore
from gulpio2.storage.local_writer import LocalWriter

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = [
    "Operation",
    "Recording",
    "all_states",
    "record_operations",
    "state_after_cut",
]

_NAMING = ("create", "rename", "remove")
_WRITING = ("write", "truncate")


class Operation(NamedTuple):
    """Something that was done to the disk."""

    kind: str
    """"create", "write", "truncate", "sync", "rename", "remove" or "sync names"."""
    file: int = -1
    """Which file's content, by the order of their creation."""
    name: str = ""
    """The file's name, for a rename the new one."""
    source: str = ""
    """The old name of a rename."""
    offset: int = 0
    """Of a write; the new size of a truncation. In bytes."""
    data: bytes = b""
    """What was written."""


@dataclass(slots=True)
class Recording:
    """The operations on one folder, and what was in it before them."""

    folder: Path
    before: dict[str, bytes]
    """Content of each file."""
    operations: list[Operation] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=dict)
    """Operations that had been done when the program said something."""
    _files: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def mark(self, name: str) -> None:
        """Remember that something had been promised here."""
        self.marks[name] = len(self.operations)

    def new_file(self, name: str) -> int:
        """Count a file whose name is new."""
        self._files[name] = self._count
        self._count += 1
        return self._files[name]

    def add(self, kind: str, **values: Any) -> None:
        """Note an operation, after it was done."""
        self.operations.append(Operation(kind, **values))

    def file_at(self, name: str) -> int:
        """Say which file has a name now."""
        return self._files[name]

    def renamed(self, source: str, target: str) -> None:
        """Note a rename."""
        file = self._files[target] = self._files.pop(source)
        self.add("rename", file=file, name=target, source=source)

    def removed(self, name: str) -> None:
        """Note a removal, if there was something to remove."""
        if self._files.pop(name, None) is not None:
            self.add("remove", name=name)


@contextmanager
def record_operations(folder: Path) -> Iterator[Recording]:
    """Note what this process does to the files of a folder.

    Parameters
    ----------
    folder : Path
        It need not exist. What is in it counts as being on the disk.

    Yields
    ------
    Recording
        Filled while the block runs.
    """
    there = {path.name: path.read_bytes() for path in _files_in(folder)}
    recording = Recording(folder, there)
    for name in there:
        recording.new_file(name)

    def after(kind: type, method: str, note: Callable[..., None]) -> Any:
        original = getattr(kind, method)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            place = self.folder if kind is LocalStore else _path_of(self, args).parent
            if place.resolve() != folder.resolve():
                return original(self, *args, **kwargs)
            position = self.tell() if method == "write" else 0
            result = original(self, *args, **kwargs)
            note(self, position, *args, **kwargs)
            return result

        return mock.patch.object(kind, method, noted)

    def opened(
        writer: Any,
        _position: int,
        path: Path,
        *,
        extend: bool = False,
        alone: bool = False,
    ) -> None:
        del alone
        if extend:
            writer.recorded = recording.file_at(path.name)
        else:
            writer.recorded = recording.new_file(path.name)
            recording.add("create", file=writer.recorded, name=path.name)

    def written(writer: Any, position: int, data: bytes | memoryview) -> None:
        recording.add("write", file=writer.recorded, offset=position, data=bytes(data))

    def truncated(writer: Any, _position: int, size: int) -> None:
        recording.add("truncate", file=writer.recorded, offset=size)

    def synced(writer: Any, _position: int) -> None:
        recording.add("sync", file=writer.recorded)

    def renamed(
        _store: Any, _position: int, source: str, target: str, **_permissions: Any
    ) -> None:
        recording.renamed(source, target)

    def removed(_store: Any, _position: int, name: str) -> None:
        recording.removed(name)

    def names_synced(_store: Any, _position: int) -> None:
        recording.add("sync names")

    with (
        after(LocalWriter, "__init__", opened),
        after(LocalWriter, "write", written),
        after(LocalWriter, "truncate", truncated),
        after(LocalWriter, "_sync", synced),  # `sync` may have nothing to do
        after(LocalStore, "rename", renamed),
        after(LocalStore, "remove", removed),
        after(LocalStore, "sync_names", names_synced),
    ):
        yield recording


def _path_of(writer: Any, args: tuple[Any, ...]) -> Path:
    path: Path = writer.path if hasattr(writer, "path") else args[0]
    return path


def _files_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def state_after_cut(
    recording: Recording,
    cut: int,
    rng: random.Random,
    *,
    keep: float | Callable[[Operation], float],
    page: int,
) -> dict[str, bytes]:
    """Give a state of the disk after the power went.

    Parameters
    ----------
    recording : Recording
        What was done.
    cut : int
        How many of the operations had been done.
    rng : random.Random
        Draws what is there of all that was not synced.
    keep : float or callable
        How likely each part of it is there: 0 for nothing, 1 for all; or what says so
        of each operation.
    page : int
        Bytes that are written at once.

    Returns
    -------
    dict
        Name to content.
    """
    contents = _contents_before(recording)
    names = _names_before(recording)
    for operation, is_synced in _with_syncs(recording.operations[:cut]):
        likely = keep(operation) if callable(keep) else keep
        if operation.kind in _NAMING:
            if is_synced or rng.random() < likely:
                _change_names(names, operation)
        elif operation.kind in _WRITING:
            content = contents.setdefault(operation.file, bytearray())
            if is_synced:
                _change_content(content, operation)
            else:
                _change_in_part(content, operation, rng, likely, page)
    return {
        name: bytes(contents.get(file, bytearray())) for name, file in names.items()
    }


def all_states(
    recording: Recording, cut: int, *, page: int
) -> Iterator[dict[str, bytes]]:
    """Give every state of the disk that is legal after the power went, each once.

    Parameters
    ----------
    recording : Recording
        What was done.
    cut : int
        How many of the operations had been done.
    page : int
        Bytes that are written at once. What can come of a larger page that is a
        multiple of this one can come of this one too.

    Yields
    ------
    dict
        Name to content.

    Notes
    -----
    They are as many as there are subsets of what was not synced, less what comes to the
    same: for small files, and a few operations between one sync and the next.
    """
    contents = {
        file: {bytes(data)} for file, data in _contents_before(recording).items()
    }
    all_names = [_names_before(recording)]
    for operation, is_synced in _with_syncs(recording.operations[:cut]):
        if operation.kind in _NAMING:
            changed = [dict(names) for names in all_names]
            for names in changed:
                _change_names(names, operation)
            both = changed if is_synced else [*all_names, *changed]
            all_names = [dict(one) for one in {frozenset(n.items()) for n in both}]
        elif operation.kind in _WRITING:
            found = contents.get(operation.file, {b""})
            found = _all_changes(found, operation, page, is_synced=is_synced)
            contents[operation.file] = found
    seen: set[frozenset[tuple[str, bytes]]] = set()
    for names in all_names:
        files = sorted(set(names.values()))
        choices = [sorted(contents.get(file, {b""})) for file in files]
        for chosen in itertools.product(*choices):
            of = dict(zip(files, chosen, strict=True))
            state = {name: of[file] for name, file in names.items()}
            key = frozenset(state.items())
            if key not in seen:
                seen.add(key)
                yield state


def _contents_before(recording: Recording) -> dict[int, bytearray]:
    return {
        file: bytearray(data) for file, data in enumerate(recording.before.values())
    }


def _names_before(recording: Recording) -> dict[str, int]:
    return {name: file for file, name in enumerate(recording.before)}


def _with_syncs(done: Sequence[Operation]) -> Iterator[tuple[Operation, bool]]:
    """Give each operation, and whether what it did was synced later."""
    last_sync = {op.file: at for at, op in enumerate(done) if op.kind == "sync"}
    names_synced = max(
        (at for at, op in enumerate(done) if op.kind == "sync names"), default=-1
    )
    for at, operation in enumerate(done):
        synced = last_sync.get(operation.file, -1)
        yield operation, at < (names_synced if operation.kind in _NAMING else synced)


def _change_names(names: dict[str, int], operation: Operation) -> None:
    if operation.kind == "remove":
        names.pop(operation.name, None)
        return
    names.pop(operation.source, None)
    names[operation.name] = operation.file


def _change_content(content: bytearray, operation: Operation) -> None:
    start, stop = operation.offset, operation.offset + len(operation.data)
    if operation.kind == "truncate":
        del content[start:]
    if len(content) < start:
        content.extend(bytes(start - len(content)))
    content[start:stop] = operation.data


def _change_in_part(
    content: bytearray, operation: Operation, rng: random.Random, keep: float, page: int
) -> None:
    """Do some of the pages of a write; a file may have grown without its bytes."""
    if operation.kind == "truncate":
        if rng.random() < keep:
            _change_content(content, operation)
        return
    stop = operation.offset + len(operation.data)
    for piece in _pieces(operation, page):
        if rng.random() < keep:
            _change_content(content, piece)
    if len(content) < stop and rng.random() < keep:
        content.extend(bytes(stop - len(content)))


def _pieces(operation: Operation, page: int) -> list[Operation]:
    """Cut a write at the edges of pages."""
    start, stop = operation.offset, operation.offset + len(operation.data)
    edges = [start, *range(start - start % page + page, stop, page), stop]
    return [
        Operation("write", offset=at, data=operation.data[at - start : end - start])
        for at, end in itertools.pairwise(edges)
    ]


def _all_changes(
    contents: set[bytes], operation: Operation, page: int, *, is_synced: bool
) -> set[bytes]:
    """Give what a file may hold after an operation, from what it may have held."""
    if is_synced or operation.kind == "truncate":
        done = {_changed(content, operation) for content in contents}
        return done if is_synced else contents | done
    edges = []
    for piece in _pieces(operation, page):
        contents = contents | {_changed(content, piece) for content in contents}
        edges.append(piece.offset + len(piece.data))
    return contents | {
        content.ljust(edge, b"\0") for content in contents for edge in edges
    }


def _changed(content: bytes, operation: Operation) -> bytes:
    result = bytearray(content)
    _change_content(result, operation)
    return bytes(result)
