"""Whether a worker elsewhere is fit for a run: the same package, folder and paths.

A worker that is not fails each task at once, and so is given most of the run. So each
is asked before the run begins. On a cluster others may join later: a worker also checks
itself at its first task.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import pkgutil
import platform
import sys
from typing import TYPE_CHECKING, Any

from gulpio2.__version__ import __version__
from gulpio2.errors import AdapterContractError, IngestError
from gulpio2.format.layout import partial_name
from gulpio2.ingest.cluster import ask_workers, client_of
from gulpio2.ingest.items import source_path
from gulpio2.ingest.programs import differs, program_of
from gulpio2.ingest.report import TO_RESUME
from gulpio2.storage.local import new_token, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor

    from gulpio2.ingest.jobs import Job, Task
    from gulpio2.storage.base import Store
    from gulpio2.types import Adapter

__all__ = [
    "choose_sources",
    "refuse_other_program",
    "refuse_other_version",
    "refuse_unfit_workers",
    "refuse_unseen_sources",
    "sign_of_a_run",
    "this_worker",
    "unpack",
]

# The place of the version, for `pkgutil.resolve_name`.
_VERSION = "gulpio2.__version__:__version__"
_OF_PROGRAM = (
    "It, or what it holds, is of the script or notebook that began the run, which "
    "workers do not have: move that to a file of its own and import it from there. "
)


def choose_sources(adapter: Adapter, tasks: Sequence[Task]) -> tuple[str, ...]:
    """Choose some paths that each worker must see, for a run that has tasks.

    They are those of the first item, of one in the middle and of the last, where the
    adapter tells them and this process itself can read them.
    """
    first, middle, last = (
        tasks[place].positions() for place in (0, len(tasks) // 2, -1)
    )
    half = len(middle) // 2
    positions = [*first[:1], *middle[half : half + 1], *last[-1:]]
    paths = [source_path(adapter, position) for position in positions]
    return tuple(dict.fromkeys(filter(_is_seen, paths)))  # each once, in this order


@contextlib.contextmanager
def sign_of_a_run(store: Store) -> Iterator[str]:
    """Give the name of a file that is there for the time of the block.

    A worker that has another folder under the same path does not find it.
    """
    sign = partial_name("ingest.run", new_token())
    store.create(sign).close()
    try:
        yield sign
    finally:
        store.remove(sign)


def refuse_unfit_workers(
    executor: Executor, folder: str, sources: Sequence[str]
) -> None:
    """Refuse a cluster that has a worker which is not fit for the run.

    Of executors only those of Dask can say which workers they have.

    Raises
    ------
    IngestError
        A worker lacks this package, has another version of it, does not see a source,
        or has another output folder. The message names it.
    """
    client = client_of(executor)
    if client is None:
        return
    # Functions of the standard library alone, which any worker can import.
    for worker, version in ask_workers(client, pkgutil.resolve_name, _VERSION):
        if version != __version__:
            raise IngestError(_other_version(worker, __version__, version))
    _refuse_other_folders(client, folder)
    for source in sources:
        for worker, is_seen in ask_workers(client, os.access, source, os.R_OK):
            if is_seen is not True:
                raise IngestError(_unseen(worker, source))


def _refuse_other_folders(client: Any, folder: str) -> None:
    store = open_store(folder)
    with sign_of_a_run(store) as sign:
        for worker, is_there in ask_workers(client, os.path.exists, store.path(sign)):
            if is_there is not True:
                raise IngestError(
                    f"the worker {worker} has another folder under the path {folder}, "
                    "or none: a file that this machine has just made in it is not "
                    "there. The output folder must be the same one on all machines: "
                    "mount it there, too"
                )
    for worker, is_mine in ask_workers(client, os.access, folder, os.W_OK | os.X_OK):
        if is_mine is not True:
            raise IngestError(
                f"the worker {worker} may not write to {folder}: it is mounted there "
                "for reading only, or belongs to another user. All workers store what "
                "they make in it"
            )


def _other_version(worker: str, ours: str, found: object) -> str:
    what = f"has version {found}" if isinstance(found, str) else "has none"
    why = f" ({found})" if isinstance(found, Exception) else ""
    return (
        f"this run is one of gulpio2 {ours}, and the worker {worker} {what}{why}. Give "
        "all workers the same version, as by 'pip install' in their environment, and "
        "start them again"
    )


def _unseen(worker: str, source: str) -> str:
    text = (
        f"the worker {worker} does not see {source!r}, of which an item is made, or "
        "may not read it. The machine that began the run does, and paths must mean the "
        "same on every machine"
    )
    if os.path.isabs(source):  # noqa: PTH117  # as it is, and not as a Path has it
        return f"{text}: mount the folder of the sources under this path there, too"
    return (
        f"{text}: this one is relative, and each worker has a current folder of its "
        "own. Give the adapter absolute paths"
    )


def _is_seen(source: str) -> bool:
    try:
        return os.access(source, os.R_OK)
    except ValueError:  # as for a null in it
        return False


# --- on the worker --------------------------------------------------------------


def refuse_other_version(version: str) -> None:
    """Refuse the work of a run of another version.

    Raises
    ------
    IngestError
        This process has another one.
    """
    if version != __version__:
        message = _other_version(this_worker(), version, __version__)
        raise IngestError(f"{message}. {TO_RESUME}")


def refuse_other_program(job: Job) -> None:
    """Refuse the work of a run whose adapter does something else there.

    Raises
    ------
    IngestError
        A function of the adapter's module is another in this process.
    """
    name = differs(program_of(job.adapter), job.program)
    if name is not None:
        raise IngestError(
            f"the worker {this_worker()} has another version of {name} than the "
            "process that began the run, and would store other items or frames. Give "
            "all of them the same one, and start the worker again: it keeps a module "
            f"as it was when it was first needed. {TO_RESUME}"
        )


def refuse_unseen_sources(sources: Sequence[str]) -> None:
    """Refuse the work of a run whose sources this process does not see.

    Raises
    ------
    IngestError
        One of these paths is not there, or may not be read.
    """
    for source in sources:
        if not _is_seen(source):
            raise IngestError(f"{_unseen(this_worker(), source)}. {TO_RESUME}")


def unpack(shipped: bytes) -> Any:
    """Unpickle a job on the worker that it was sent to.

    Raises
    ------
    AdapterContractError
        The adapter's module is not there, or its class is another.
    """
    try:
        return pickle.loads(shipped)  # noqa: S301  # our own parent's
    except Exception as cause:
        # Pickle names the module of a script so; the error has the worker's own script.
        is_of_program = isinstance(cause, AttributeError) and b"__main__" in shipped
        raise AdapterContractError(
            f"the worker {this_worker()} cannot make the adapter that it was sent: "
            f"{type(cause).__name__}: {cause}. "
            + (_OF_PROGRAM if is_of_program else "")
            + "Its module must be there for all workers to import: install it in their "
            "environment, or start them with its folder in PYTHONPATH"
        ) from cause


def this_worker() -> str:
    """Name this process: by its address on a Dask cluster, where it is part of one."""
    name = f"with process {os.getpid()} on {platform.node()}"
    distributed = sys.modules.get("distributed")  # a worker of Dask has it
    try:
        return name if distributed is None else f"{distributed.get_worker().address}"
    except (AttributeError, ValueError):  # another executor's worker
        return name
