"""What a run, or a task of it, is refused for or asks, mostly when it is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.chunk import GulpChunk
from gulpio2.errors import IngestError
from gulpio2.format.layout import REMOVALS_NAME, data_name, list_chunks, meta_name
from gulpio2.format.wording import counted
from gulpio2.ingest.fitness import this_worker
from gulpio2.ingest.items import place_items
from gulpio2.ingest.report import TO_RESUME, ItemFailure
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import path_in
from gulpio2.unfinished import lost_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from gulpio2.directory import GulpDirectory
    from gulpio2.ingest.items import PlacedItem
    from gulpio2.ingest.planning import RunPlan
    from gulpio2.ingest.task_journal import TaskRecord
    from gulpio2.storage.base import Store
    from gulpio2.types import Adapter

__all__ = [
    "ask_behind",
    "refuse_ended_run",
    "refuse_lost_chunks",
    "refuse_misnamed_chunks",
    "refuse_other_items",
    "refuse_other_tasks",
]

# Finished tasks that are looked at, spread over all. That is enough: a file that was
# added before all others, or an order by chance, moves every item.
_MOST = 20


def refuse_ended_run(store: Store, sign: str, task: int) -> None:
    """Refuse to go on with a task where the run has ended without it.

    Raises
    ------
    IngestError
        The file is gone that says that the run goes on.
    """
    try:
        store.size(sign)
    except FileNotFoundError:
        raise IngestError(
            f"the worker {this_worker()} does not find {store.path(sign)}, which is "
            "there until the run ends. If the run goes on, the worker has another "
            "folder under that path: the output folder must be the same one on all "
            f"machines. Task {task} stops. {TO_RESUME}"
        ) from None


def refuse_other_tasks(
    adapter: Adapter, plan: RunPlan, finished: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse to go on where an adapter that lists no ids has other items now.

    Of some of the tasks that are finished, by the journal, the first item and the last
    are asked for, without their frames; the first alone where some did not come. Where
    ids are listed, the plan's digest tells.

    Raises
    ------
    IngestError
        One of them is another now.
    """
    if plan.ids is not None:
        return
    tasks = {task.index: task for task in plan.tasks}
    lines = [line for line in finished if line["task"] in tasks and not line["skipped"]]
    for line in lines[:: -(-len(lines) // _MOST) or 1]:
        task = tasks[line["task"]]
        # Asked for it alone, an adapter may give one that it stopped before.
        stop = task.start + 1 if line["not_given"] else task.stop
        refuse_other_items(
            adapter,
            range(task.start, stop),
            {id_ for part in line["parts"] for id_ in part["ids"]},
            [ItemFailure.load(failure) for failure in line["failures"]],
        )


def refuse_other_items(
    adapter: Adapter,
    positions: range,
    stored: Collection[str],
    failures: Iterable[ItemFailure],
    last_id: str | None = None,
    on_left: Callable[[PlacedItem], None] = lambda _: None,
) -> bool | None:
    """Refuse to go on where the first or the last of some positions has another item.

    Parameters
    ----------
    adapter : Adapter
        Is asked for the two items.
    positions : range
        Of items that were stored, were skipped, or failed.
    stored : collection of str
        Ids of the items that were stored or skipped.
    failures : iterable of ItemFailure
        Those that failed. Where the adapter gives fewer items than it counts, they are
        not at the positions that were counted.
    last_id : str, optional
        Id of the last item, if it is known.
    on_left : callable, optional
        As `gulpio2.ingest.items.place_items` takes it.

    Returns
    -------
    bool or None
        Whether that item is at the last position; None where nobody can say.

    Raises
    ------
    IngestError
        They are other items now.
    """
    known, failed = {*stored}, set()
    for failure in failures:
        if failure.id is None:
            failed.add(failure.position)  # to ask for it may end the process
        else:
            known.add(failure.id)
    there: set[str | None] = set()
    asked = sorted({*positions[:1], *positions[-1:]}.difference(failed))
    for position in asked:
        there.clear()
        for item in place_items(adapter, position, position + 1, on_left=on_left):
            there.add(item.id_)
            if item.id_ is not None and item.id_ not in known:
                raise IngestError(
                    f"the item at position {position} is {item.id_!r} now, which the "
                    "interrupted run has not stored with those around it: items were "
                    "added, removed or renamed where the adapter takes them from, or "
                    "it gives them in another order in each process. Undo that, or run "
                    "without resuming and skip what is there (on_duplicate='skip', on "
                    "the command line --on-duplicate skip). (With item_ids() an "
                    "adapter lets this be seen for every item)"
                )
    can_say = asked[-1:] == [*positions[-1:]] and None not in {last_id, *there}
    return last_id in there if can_say else None


def ask_behind(
    adapter: Adapter,
    record: TaskRecord,
    stop: int,
    on_left: Callable[[PlacedItem], None],
) -> None:
    """Ask a task's last item once more for what the adapter raises behind it.

    Nothing is asked where the record tells that, or there are items to ask for, or to
    ask for the last one may end the process. Where that one was skipped or has failed,
    its line is written before the adapter goes on: the run may have been killed while
    the adapter looked at the end of its archive.
    """
    if record.next_position == stop and not record.is_ended and record.is_last_given:
        for _ in place_items(adapter, stop - 1, stop, on_left=on_left):
            pass


def refuse_lost_chunks(
    directory: GulpDirectory, finished: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Refuse to go on beside chunks that have lost something since they were stored.

    Their items count as stored, so a run that resumes would pass over them. The length
    of each data file is compared with the end of the last item that has frames: records
    are in the order of the map. How many items the chunks of an interrupted run had is
    in the lines of its journal (`finished`).

    Raises
    ------
    IngestError
        A chunk is missing that the manifest tells of, a data file is shorter than its
        map says, or a map has lost items that were not deleted.
    StorageError
        A data file cannot be looked at.
    """
    store = open_store(directory.output_dir)
    names = {*store.names()}
    for number in lost_chunks(store, directory.manifest.runs):
        path = path_in(directory.output_dir, data_name(number))
        lacks = f"is there and {meta_name(number)} is missing"
        if data_name(number) not in names:
            lacks = "and its map are missing"
        raise _lost(directory, f"{path} {lacks}, which an ingest wrote")
    counts = {}
    for part in (part for line in finished for part in line["parts"]):
        ids = part["ids"]
        if not {REMOVALS_NAME, part["meta"]} & names:  # none deleted, and not staged
            counts[part["number"]] = ids if isinstance(ids, int) else len(ids)
    for number, chunk in directory.chunk_objs_lookup.items():
        ids = chunk.meta_dict
        if len(ids) < counts.get(number, 0):
            raise _lost(
                directory,
                f"{chunk.meta_file_path} has {counted(len(ids), 'item')}, and "
                f"{counts[number]} were stored",
            )
        size, needed = store.size(data_name(number)), _end_of_items(chunk)
        if size < needed:
            # Or written anew since the directory was opened, and has another map.
            now = GulpChunk(chunk.data_file_path, chunk.meta_file_path)
            size, needed = store.size(data_name(number)), _end_of_items(now)
        if size < needed:
            raise _lost(
                directory,
                f"{chunk.data_file_path} holds {size} bytes, and its map speaks of "
                f"{needed}: it was cut since its items were stored",
            )


def _end_of_items(chunk: GulpChunk) -> int:
    """Give where the last item that has frames ends."""
    for id_ in reversed([*chunk.meta_dict]):
        if frame_info := chunk.meta_dict[id_]["frame_info"]:
            end: int = frame_info[-1][0] + frame_info[-1][2]
            return end
    return 0


def _lost(directory: GulpDirectory, what: str) -> IngestError:
    return IngestError(
        f"{what}. Put the whole file back, and resume then; or have `gulp2 repair` "
        "copy what is undamaged to a new folder, and ingest into that one what is "
        "missing there (on_duplicate='skip', on the command line --on-duplicate skip). "
        f"`gulp2 check {directory.output_dir}` tells what is lost"
    )


def refuse_misnamed_chunks(store: Store) -> None:
    """Refuse to begin a directory anew beside chunks that only want other names.

    Their items would not be seen, and a chunk of the run could take the number that
    one of them is to have.

    Raises
    ------
    IngestError
        There are such, and no others.
    """
    listing = list_chunks(store.names())
    kinds = {name.rpartition(".")[2].lower() for name in listing.strays}
    if not listing.numbers and {"gulp", "gmeta"} <= kinds:
        raise IngestError(
            f"{store.path('')}: {listing.describe_strays()} before ingesting, or give "
            "another folder"
        )
