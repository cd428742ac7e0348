"""Programs that change one directory, and what each of them does to its items."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import pickle
import re
import shutil
import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import GulpError
from gulpio2.format.layout import data_name, meta_name
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.leftovers import remove_leftovers
from gulpio2.storage.local import open_store
from tests.faults.killed import is_killed
from tests.faults.operations import before_each_operation
from tests.faults.test_machine import Items, drawn, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from pathlib import Path

__all__ = [
    "BASE",
    "INGESTS",
    "OF_DAMAGE",
    "PROGRAMS",
    "WITH_WORKERS",
    "Program",
    "State",
    "before_each",
    "chunk_of",
    "is_resuming",
    "kind_of",
    "outcome",
    "prepare",
    "read_all",
    "state_before",
    "told",
    "without_chunk",
]

State = dict[str, tuple[str, int, Any]]
"""Id to its chunk, the number of what it shows, and who has edited its metadata."""

# What is said where something is lost, and nothing is.
OF_DAMAGE = re.compile(r"damaged|was cut|[Pp]ut .* back|is lost|are lost")
# What others can see of a program, and what it can see of them.
_OPERATIONS = (
    *("open", "listdir", "mkdir", "link", "unlink", "rename", "replace"),
    *("write", "ftruncate"),
)


def before_each(act: Callable[[int], None]) -> None:
    """Call something with the ordinal of each operation of this process, before it."""
    before_each_operation(act, _OPERATIONS, [(fcntl, "flock")])


class NothingToEditError(GulpError):
    """The item that a program was to edit is not where it was, which is no fault."""


@dataclass(frozen=True)
class Program:
    """One of two that are at work; each gets the folder, its parent, and 0 or 1."""

    work: Callable[[Path, int], Any]
    effect: Callable[[State, int], State] = lambda state, who: state
    done: int | None = None
    """Number of an item that tells, beside 0 or 1, that all of it is done."""
    copy: str = ""
    """Beginning of the name of the directory that it makes."""
    writes: bool = True

    def again(self, folder: Path, who: int) -> Any:
        """Do it after it was killed, unless it had come to its end."""
        if self.done is not None and f"item{self.done + who}" in read_all(folder):
            return None
        return self.work(folder, who)


def told(state: State) -> dict[str, Any]:
    """Give what reading all of a directory in this state gives."""
    return {
        id_: (stored(number), {"n": number} | ({} if by is None else {"by": by}))
        for id_, (_, number, by) in state.items()
    }


def read_all(folder: Path, *, indexed: bool | None = None) -> dict[str, Any]:
    """Read every frame, and all metadata."""
    with GulpDirectory(folder, indexed=indexed) as directory:
        return {
            id_: (directory.read_jpegs(id_), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        }


def outcome(work: Callable[[Path, int], Any], folder: Path, who: int) -> bytes:
    """Do the work of a program; give what it said, pickled."""
    try:
        said = "done", work(folder, who), ""
    except GulpError as error:
        said = "refused", type(error).__name__, str(error)
    except BaseException:  # noqa: BLE001  # whatever it is, it is told
        said = "crashed", None, traceback.format_exc()
    return pickle.dumps(said)


def chunk_of(folder: Path, number: int) -> GulpChunk:
    """Give a chunk of the directory."""
    return GulpChunk(folder / data_name(number), folder / meta_name(number))


def _append(chunk: GulpChunk, *numbers: int, by: int | None = None) -> None:
    for number in numbers:
        meta = {"n": number} if by is None else {"n": number, "by": by}
        chunk.append(f"item{number}", meta, drawn(number))


def _with(chunk: str, numbers: list[int], by: int | None = None) -> State:
    return {f"item{number}": (chunk, number, by) for number in numbers}


def without_chunk(state: State, chunk: str = "0") -> State:
    """Give what is left where a chunk is not there."""
    return {id_: known for id_, known in state.items() if known[0] != chunk}


def _new(folder: Path, who: int) -> None:
    with GulpDirectory(folder) as directory:
        (chunk,) = directory.new_chunks(1)
    with chunk.open("wb"):
        _append(chunk, 100 + who, 110 + who)


def _replace(folder: Path, who: int) -> None:
    chunk = chunk_of(folder, 0)
    with chunk.open("wb"):
        _append(chunk, 200 + who, 210 + who)


def _replaced(state: State, who: int) -> State:
    return without_chunk(state) | _with("0", [200 + who, 210 + who])


def _improve(folder: Path, who: int) -> None:
    with GulpDirectory(folder) as directory:  # as who writes a chunk does not ask
        if directory.chunk_lookup.get("item0"):  # stored again where its map was gone
            raise NothingToEditError
    chunk = chunk_of(folder, 0)
    with chunk.open("wb"):
        _append(chunk, 0, 1, by=5 + who)


def _improved(state: State, who: int) -> State:
    return without_chunk(state) | _with("0", [0, 1], 5 + who)


def _extend(folder: Path, who: int) -> None:
    chunk = chunk_of(folder, 0)
    with chunk.open("ab"):
        _append(chunk, 300 + who)


def _edit(folder: Path, who: int) -> None:
    chunk = chunk_of(folder, 0)
    with chunk.open("ab"):
        if "item1" not in chunk.meta_dict:
            raise NothingToEditError
        chunk.meta_dict["item1"]["meta_data"][0]["by"] = who
        chunk.flush()


def _edited(state: State, who: int) -> State:
    known = state.get("item1")
    return state | {"item1": (*known[:2], who)} if known else state


def _delete(folder: Path, who: int) -> None:
    if "item1" in read_all(folder):
        delete_items(folder, ["item1"])


def _deleted(state: State, who: int) -> State:
    return {id_: known for id_, known in state.items() if id_ != "item1"}


def _numbers_of(numbers: list[int], who: int) -> list[int]:
    return [number + who if number >= 400 else number for number in numbers]


def _ingest(
    numbers: list[int],
    folder: Path,
    who: int,
    *,
    workers: int = 1,
    list_ids: bool = True,
    is_share: bool = False,
    pool: Callable[[int], Executor] | None = None,
    resume: bool = True,
    chunk_bytes: int | None = None,
) -> list[str]:
    """Ingest, going on with a run that was interrupted; give the items that failed."""
    with contextlib.nullcontext() if pool is None else pool(workers) as executor:
        report = GulpIngestor(
            Items(_numbers_of(numbers, who), list_ids=list_ids),
            folder,
            _PER_CHUNK,
            workers,
            executor=executor,
            on_duplicate="skip",
            resume=resume and (folder / "ingest.journal").exists(),
            shard=_share_of(who) if is_share else None,
            chunk_bytes=chunk_bytes,
        ).run()
    return [*map(str, report.failures)]


def _share_of(who: int) -> Shard:
    return Shard(1 + who % 2, 2)


def _ingested(
    numbers: list[int], state: State, who: int, *, is_share: bool = False
) -> State:
    numbers = _numbers_of(numbers, who)
    if is_share:
        chunks = _share_of(who).chunks(-(-len(numbers) // _PER_CHUNK))
        numbers = numbers[chunks.start * _PER_CHUNK : chunks.stop * _PER_CHUNK]
    new = [number for number in numbers if f"item{number}" not in state]
    return state | _with(f"ingest{who}", new)


def _ingesting(
    numbers: list[int], *, is_share: bool = False, **options: Any
) -> Program:
    return Program(
        functools.partial(_ingest, numbers, is_share=is_share, **options),
        functools.partial(_ingested, numbers, is_share=is_share),
    )


def _merge_in(folder: Path, who: int) -> None:
    merge_directories([folder.with_name(f"part{who}")], folder)


def _clear(folder: Path, who: int) -> None:
    store = open_store(folder)
    with store.lock():
        remove_leftovers(store)


def _compact(folder: Path, who: int) -> None:
    compact_directory(folder)


def _index(folder: Path, who: int) -> None:
    build_index(folder)


def _merge_out(folder: Path, who: int) -> None:
    merge_directories([folder], folder.with_name(f"merged{who}"))


def _read(folder: Path, who: int) -> None:
    read = read_all(folder, indexed=bool(who))
    folder.with_name(f"read{who}").write_bytes(pickle.dumps(read))


def _check(folder: Path, who: int) -> None:
    check_directory(folder, deep=True)


def _repair(folder: Path, who: int) -> list[str]:
    report = repair_directory(folder, folder.with_name(f"repaired{who}"))
    return [*map(str, report.lost)]


_PER_CHUNK = 2
_GIVEN = [0, 2, 400, 410, 420]
_GIVEN_LONG = [*_GIVEN, 430, 440, 450, 460]
# Of a run that was interrupted before either of the two begins.
_BEGUN = [30, 31, 32, 33, 34]

PROGRAMS = {
    "new": Program(
        _new, lambda s, who: s | _with(f"new{who}", [100 + who, 110 + who]), 100
    ),
    "replace": Program(_replace, _replaced, 200),
    "improve": Program(_improve, _improved),
    "extend": Program(_extend, lambda s, who: s | _with("0", [300 + who]), 300),
    "edit": Program(_edit, _edited),
    "delete": Program(_delete, _deleted),
    "compact": Program(_compact),
    "index": Program(_index),
    "clear": Program(_clear),
    "ingest": _ingesting(_GIVEN),
    "resume": _ingesting(_BEGUN),
    "merge": Program(
        _merge_in,
        lambda s, who: s | _with(f"merge{who}", [500 + 2 * who, 501 + 2 * who]),
    ),
    "merge it": Program(_merge_out, copy="merged"),
    "repair": Program(_repair, copy="repaired"),
    "read": Program(_read, writes=False),
    "check": Program(_check, writes=False),
}

WITH_WORKERS = {
    "by two": _ingesting(_GIVEN, workers=2),
    "long by two": _ingesting(_GIVEN_LONG, workers=2),
    "anew by two": _ingesting(_GIVEN_LONG, workers=2, resume=False),
    "share by two": _ingesting(_GIVEN_LONG, workers=2, is_share=True),
    "unlisted by two": _ingesting(_GIVEN_LONG, workers=2, list_ids=False),
    "bytes by two": _ingesting(_GIVEN_LONG, workers=2, chunk_bytes=1200),
    "resume by two": _ingesting(_BEGUN, workers=2),
    "on processes": _ingesting(_GIVEN, workers=2, pool=ProcessPoolExecutor),
    "on threads": _ingesting(_GIVEN, workers=2, pool=ThreadPoolExecutor),
    "resume on processes": _ingesting(_BEGUN, workers=2, pool=ProcessPoolExecutor),
}
"""Ingests whose items are stored by others than the process that began them."""

INGESTS = {"ingest", "resume", *WITH_WORKERS}
"""Programs of which a part stays where they are refused, or killed."""

BASE: State = {f"item{number}": (str(number // 2), number, None) for number in range(6)}
"""What is in a directory before."""


def prepare(root: Path) -> None:
    """Make directories with an index, and parts to merge, by `kind_of` programs."""
    folder = root / "plain" / "all"
    folder.mkdir(parents=True)
    for number in range(3):
        chunk = chunk_of(folder, number)
        with chunk.open("wb"):
            for each in (2 * number, 2 * number + 1):
                chunk.append(f"item{each}", {"n": each}, drawn(each))
    for who in range(3):
        part = root / "plain" / f"part{who}"
        GulpIngestor(Items([500 + 2 * who, 501 + 2 * who]), part, 2, 1).run()
    build_index(folder)
    shutil.copytree(root / "plain", root / "deleted")
    chunk = chunk_of(root / "deleted" / "all", 0)
    with chunk.open("ab"):
        chunk.append("item7", {"n": 7}, drawn(7))
    delete_items(root / "deleted" / "all", ["item7"])
    for kind in ("plain", "deleted"):
        for operation in range(1, 1000):
            folder = root / f"{kind} interrupted" / "all"
            shutil.copytree(root / kind, folder.parent)
            assert is_killed(operation, PROGRAMS["resume"].work, folder, 0)
            if (folder / meta_name(3)).exists():
                break
            shutil.rmtree(folder.parent)
    for program in PROGRAMS.values():  # so that what forks later has all in memory
        shutil.copytree(root / "plain", root / "first")
        program.work(root / "first" / "all", 0)
        shutil.rmtree(root / "first")


def state_before(names: Iterable[str], folder: Path) -> State:
    """Give what a directory holds before these programs begin."""
    if not is_resuming(names):
        return BASE
    begun = PROGRAMS["resume"].effect(BASE, 0)  # its first chunk is there
    return {id_: begun[id_] for id_ in read_all(folder)}


def kind_of(*names: str) -> str:
    """Say in what folder programs have something to do."""
    kind = "plain"
    if "compact" in names and "merge it" not in names:  # which would be refused
        kind = "deleted"
    return f"{kind} interrupted" if is_resuming(names) else kind


def is_resuming(names: Iterable[str]) -> bool:
    """Tell whether a program goes on with a run that was interrupted before."""
    return any(name.startswith("resume") for name in names)
