"""`GulpIngestor`: what an adapter yields, into a directory."""

from __future__ import annotations

import contextlib
import logging
import reprlib
import time
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gulpio2.arguments import require_choice
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import (
    AdapterContractError,
    DuplicateIdError,
    IngestSettingError,
    with_article,
)
from gulpio2.format.layout import FAILURES_NAME, JOURNAL_NAME, list_chunks
from gulpio2.format.manifest import free_number
from gulpio2.format.other_settings import changed_settings, warning_of
from gulpio2.format.plan import calculate_chunk_slices
from gulpio2.format.wording import counted
from gulpio2.ingest.chunk_bar import chunk_bar
from gulpio2.ingest.completeness import is_complete, settle_not_given
from gulpio2.ingest.dispatch import Dispatcher
from gulpio2.ingest.estimate import bytes_of_partials, refuse_what_cannot_fit
from gulpio2.ingest.facts import (
    ask_for_facts,
    count_items,
    require_items,
    warn_of_ids_beyond_utf8,
)
from gulpio2.ingest.jobs import MAX_WORKERS, Job, OnDuplicate, Task
from gulpio2.ingest.journal import RunJournal
from gulpio2.ingest.pieces import CutTasks
from gulpio2.ingest.planning import RunPlan, plan_run
from gulpio2.ingest.preflight import arguments_of, tell_of_run
from gulpio2.ingest.publishing import Publisher
from gulpio2.ingest.records import (
    describe_run,
    known_failures,
    write_labels,
    write_records,
)
from gulpio2.ingest.report import (
    IngestReport,
    ItemFailure,
    NotedFailures,
    tell_with,
)
from gulpio2.ingest.resuming import (
    refuse_lost_chunks,
    refuse_misnamed_chunks,
    refuse_other_tasks,
)
from gulpio2.ingest.shard import Shard
from gulpio2.storage.index.keeping import refresh_index
from gulpio2.storage.leftovers import (
    made_and_locked,
    remove_leftovers,
    remove_partials,
)
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import is_there
from gulpio2.storage.refusals import absolute, local_path
from gulpio2.storage.removals_file import removed_numbers
from gulpio2.types import no_progress
from gulpio2.unfinished import open_settled, refuse_unfinished_copying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gulpio2.format.manifest import Run
    from gulpio2.ingest.facts import AdapterFacts
    from gulpio2.storage.base import Store
    from gulpio2.types import Adapter, Progress, StrPath

__all__ = ["GulpIngestor"]

_logger = logging.getLogger(__name__)


class GulpIngestor:
    """Writes the items of an adapter into a directory, in parallel.

    Parameters
    ----------
    adapter : Adapter
        Where the items come from; see `gulpio2.adapters`.
    output_folder : str or path
        Made if it is missing. Chunks that are there stay; new ones get the numbers
        after them.
    videos_per_chunk : int or str
        Items to a chunk.
    num_workers : int or str
        Worker processes, 4,096 at most; 1 does the work in this process, but see
        `apart`.
    executor : concurrent.futures.Executor, optional
        Does the work instead of processes of this machine; it must see the same
        output folder. Twice as many tasks as `num_workers` are under way at a time; of
        a Dask cluster the threads are counted in its place, as they come and go.
    chunk_bytes : int, optional
        A chunk is also closed once it holds this many bytes.
    encoder : EncoderSettings, optional
        Quality and chroma of frames that have to be encoded.
    on_duplicate : {"raise", "skip", "report"}, optional
        What to do about an item whose id is in the directory or was there before:
        refuse the run, leave the item out, or record it as a failure.
    allow_failures : bool, optional
        A call does not raise for items that failed.
    resume : bool, optional
        Go on with a run that was interrupted; items that were stored are not decoded
        again, and the directory becomes what the run would have made; sources that
        were changed meanwhile are not noticed. Without one, or where it is complete,
        nothing is amiss, but `IngestReport.failures` are those of the run.
    ignore_space : bool, optional
        Begin also where an estimate says that the disk has no room for the run. The
        estimate is made for 200 items and more.
    apart : bool, optional
        One worker is a process of its own as well, so that an item which ends it, as by
        a fault in a decoder, is left out and told of. It is this process all the same
        where Python does not fork processes, where none is to be had, and while a
        debugger looks on.
    shard : Shard, optional
        Ingest this share only; `gulpio2.merge` joins what the shares gave.
    progress : Progress, optional
        Called with what was done since its last call, also from another thread: by
        keyword, with some of ``items``, ``frames``, ``num_bytes`` and ``failures``.
    on_failure : callable, optional
        Called with each `ItemFailure` as it becomes known.

    Attributes
    ----------
    report : IngestReport or None
        What the last run did.

    Raises
    ------
    IngestSettingError
        No workers or too many, or a setting that does not exist.

    Examples
    --------
    >>> from gulpio2.testing import FrameAdapter
    >>> ingestor = GulpIngestor(FrameAdapter(num_items=3), "out", 2, 1)
    >>> report = ingestor.run()
    >>> str(report)
    '3 items, 12 frames, 0.0 MB in 2 chunks'

    Notes
    -----
    The files are the same bytes for any number of workers. Items that fail are
    listed in ``failures.jsonl``; the rest is stored. The first 20 of a run that fail
    are logged as warnings, the others at the level DEBUG.
    """

    def __init__(
        self,
        adapter: Adapter,
        output_folder: StrPath,
        videos_per_chunk: int | str,
        num_workers: int | str,
        *,
        executor: Executor | None = None,
        chunk_bytes: int | None = None,
        encoder: EncoderSettings | None = None,
        on_duplicate: OnDuplicate = "raise",
        allow_failures: bool = False,
        resume: bool = False,
        shard: Shard | None = None,
        ignore_space: bool = False,
        apart: bool = False,
        progress: Progress | None = None,
        on_failure: Callable[[ItemFailure], None] | None = None,
    ) -> None:
        self.adapter = adapter
        self.output_folder = output_folder
        self.videos_per_chunk = _whole_number("videos_per_chunk", videos_per_chunk)
        self.num_workers = _whole_number("num_workers", num_workers)
        if self.num_workers < 1:
            raise IngestSettingError(
                f"num_workers is {num_workers!r}; at least one is needed"
            )
        if executor is None and self.num_workers > MAX_WORKERS:
            raise IngestSettingError(
                f"num_workers is {num_workers!r}; {MAX_WORKERS} are the most. One for "
                "each core is enough"
            )
        require_choice(
            "on_duplicate", on_duplicate, OnDuplicate, error=IngestSettingError
        )
        if chunk_bytes is not None:
            given: Any = chunk_bytes
            chunk_bytes = _whole_number("chunk_bytes", given)
            is_flag = isinstance(given, bool)
            if is_flag or (chunk_bytes != given and not isinstance(given, str)):
                raise IngestSettingError(
                    f"chunk_bytes is {given!r}; it must be a whole number"
                )
            if chunk_bytes < 1:
                raise IngestSettingError(
                    f"chunk_bytes is {chunk_bytes!r}; a chunk holds at least one byte "
                    "(None: no limit)"
                )
        _require_kind("encoder", encoder, EncoderSettings)
        _require_kind("shard", shard, Shard)
        # With another kind of executor a run would fail at its first task.
        such = "as client.get_executor() of Dask gives one"
        _require_kind("executor", executor, Executor, such)
        self.executor = executor
        self.chunk_bytes = chunk_bytes
        self.encoder = EncoderSettings() if encoder is None else encoder
        self.on_duplicate = on_duplicate
        self.allow_failures = allow_failures
        self.resume = resume
        self.shard = shard
        self.ignore_space = ignore_space
        self.apart = apart
        self.progress = _callable_or_none("progress", progress)
        self.on_failure = _callable_or_none("on_failure", on_failure)
        self.report: IngestReport | None = None
        self._num_items = 0  # as counted when the run began
        self._kept_folder: Path | None = None  # where the output is, during a run

    def __call__(self) -> None:
        """Ingest, with a bar of the chunks on stderr.

        Raises
        ------
        Exception
            The first failed item's own exception, after the rest was stored and
            unless failures are allowed; and what `run` raises.
        """
        with self._keeping_folder():
            self._call()

    def _call(self) -> None:
        self.output_store().make()  # before all else, and whatever follows, as by 0.0.4
        num_items = self._count_items()
        total = len(calculate_chunk_slices(self.videos_per_chunk, num_items))
        with chunk_bar(total) as advance:
            report = self._run(on_task=advance, num_items=num_items)
        if report.failures and not self.allow_failures:
            _logger.error(
                "%d of %s failed; %s lists them",
                len(report.failures),
                counted(len(report.failures) + report.items, "item"),
                self.output_store().path(FAILURES_NAME),
            )
            error = self._dispatcher.failures.error_of(report)
            tell_with(
                error,
                f"{len(report.failures)} of the items failed, {report.items} are "
                f"stored; {self.output_store().path(FAILURES_NAME)} lists the "
                "failed ones. To go on with what there is, allow failures "
                "(allow_failures=True, on the command line --allow-failures)",
            )
            raise error
        if report.raised_behind and not self.allow_failures:
            raise AdapterContractError(
                f"the adapter {type(self.adapter).__name__} raised an error after it "
                f"had given its last item ({report.error_behind}). "
                f"{counted(report.items, 'item')} are stored. Allow failures "
                "(allow_failures=True, on the command line --allow-failures), if that "
                "does not matter"
            )

    def run(self) -> IngestReport:
        """Ingest, and tell what was done.

        Returns
        -------
        IngestReport
            Counts, chunk numbers and the failed items.

        Raises
        ------
        IngestSettingError
            The adapter has no items.
        IngestError
            A worker died, what is to be resumed had other arguments, or a merge into
            the folder was not finished.
        AdapterContractError
            The adapter counts its items, or tells of itself, in a way that cannot be.
        DuplicateIdError
            Ids are taken, and `on_duplicate` is "raise".
        LockedError
            Another process writes to the folder.
        StorageError
            The folder cannot be written to. What was committed before is intact.
        """
        return self._run(on_task=lambda: None)

    def output_store(self) -> Store:
        """Give the store of the output folder."""
        return open_store(self._folder())

    def _folder(self) -> Path:
        """Give the absolute path of the output folder."""
        if self._kept_folder is not None:
            return self._kept_folder
        if self.output_folder == "":  # a shell's variable that was not set
            raise IngestSettingError(
                "output_folder is empty; give a folder ('.' is the current one)"
            )
        return absolute(local_path(self.output_folder, "write to"))

    @contextlib.contextmanager
    def _keeping_folder(self) -> Iterator[None]:
        """Write to one folder, also where the adapter changes the current one."""
        before, self._kept_folder = self._kept_folder, self._folder()
        try:
            yield
        finally:
            self._kept_folder = before

    def left_to_resume(self) -> RunPlan | None:
        """Plan what a run that resumes would store; nothing is written.

        Returns
        -------
        RunPlan or None
            Without tasks where the run is complete; its failures are those of the items
            that it went through as well. None where there is nothing to go
            on with, so that resuming is an ordinary run.

        Raises
        ------
        IngestError, DuplicateIdError, MetaFileError
            Resuming would be refused.
        """
        store = self.output_store()
        if not is_there(self._folder()):  # a run would make it
            return None
        refuse_unfinished_copying(store, "ingesting")
        self._num_items = count_items(self.adapter)
        facts = ask_for_facts(self.adapter)
        journal = RunJournal(store, arguments_of(self, facts, self._num_items))
        if not journal.read():
            return self._completed(store, facts)
        stored, _ = self._read_directory(journal)
        plan = self._plan(stored)
        journal.refuse_other_plan(plan.digest())
        refuse_other_tasks(self.adapter, plan, journal.finished)
        finished = {line["task"] for line in journal.finished}
        left = [task for task in plan.tasks if task.index not in finished]
        failed = [each for line in journal.finished for each in line["failures"]]
        failures = [*plan.failures, *map(ItemFailure.load, failed)]
        return replace(plan, tasks=left, failures=failures)

    # --- the run -------------------------------------------------------------------

    def _run(
        self, *, on_task: Callable[[], object], num_items: int | None = None
    ) -> IngestReport:
        with self._keeping_folder():
            return self._run_there(on_task, num_items)

    def _run_there(
        self, on_task: Callable[[], object], num_items: int | None
    ) -> IngestReport:
        began = time.monotonic()
        store = self.output_store()
        self._num_items = self._count_items() if num_items is None else num_items
        facts = ask_for_facts(self.adapter)
        self.report = report = IngestReport()
        path = store.path(FAILURES_NAME)
        self._dispatcher = self._make_dispatcher(NotedFailures(path, self.on_failure))
        with made_and_locked(store, self._folder()) as hold:
            refuse_unfinished_copying(store, "ingesting")
            refuse_misnamed_chunks(store)
            arguments = arguments_of(self, facts, self._num_items)
            journal = RunJournal(store, arguments, hold)
            resumed = self.resume and journal.take_up()
            if self.resume and not resumed and (plan := self._completed(store, facts)):
                _logger.info("nothing to resume: the run is complete")
                report.failures = plan.failures
                return report
            if self.resume and not resumed:
                _logger.info("no run was interrupted here: this one is begun")
            try:
                self._ingest(store, journal, report, facts, on_task, resumed=resumed)
            finally:
                journal.close()
                report.chunks.sort()
                report.failures.sort(key=lambda failure: failure.position)
                report.seconds = time.monotonic() - began
        return report

    def _ingest(
        self,
        store: Store,
        journal: RunJournal,
        report: IngestReport,
        facts: AdapterFacts,
        on_task: Callable[[], object],
        *,
        resumed: bool,
    ) -> None:
        dispatcher = self._dispatcher
        stored, runs = self._read_directory(journal if resumed else None)
        try:
            plan = self._plan(stored)
        except DuplicateIdError as cause:
            if resumed or JOURNAL_NAME not in store.names():
                raise
            raise DuplicateIdError(
                f"{cause}. A run into this folder was interrupted: resume=True (on the "
                "command line --resume) goes on with it"
            ) from cause
        self._refuse_other_count(plan)
        changes = changed_settings(runs, facts.options, self.encoder.describe())
        if stored and plan.tasks and changes:
            _logger.warning("%s", warning_of(changes, self.output_folder))
        report.skipped += plan.skipped
        report.failures.extend(plan.failures)
        taken = DuplicateIdError(plan.failures[0].message) if plan.failures else None
        dispatcher.failures.note(plan.failures, taken)
        tell_of_run(self, facts, plan, adds=bool(stored))
        folder = str(self._folder())
        sources = dispatcher.look_at_workers(self.adapter, plan.tasks, folder)
        replaces = not resumed and JOURNAL_NAME in store.names()
        if resumed:
            journal.refuse_other_plan(plan.digest())
            refuse_other_tasks(self.adapter, plan, journal.finished)
        else:
            # What refuses the run comes before anything of an earlier one is removed.
            self._refuse_what_cannot_fit(store, plan.tasks)
            journal.tell_of_other()
            self._abandon(store, journal)
            names = store.names()
            removed = removed_numbers(store, names)
            number = free_number(list_chunks(names), runs, removed)
            # How many workers an executor has is not known.
            cut_for = self.num_workers if self.executor is None else 1
            journal.begin(number, plan.digest(), cut_for)
        write_labels(facts, self._folder())
        job = Job(
            self.adapter,
            folder,
            self.encoder,
            self.on_duplicate,
            self.chunk_bytes,
            stored if plan.ids is None else frozenset(),
            resume=resumed,
            sources=sources,
        )
        publisher = Publisher(
            store,
            journal,
            report,
            in_order=self.chunk_bytes is not None or plan.ids is None,
            watch_ids=plan.ids is None,
            on_duplicate=self.on_duplicate,
        )
        finished = publisher.take_up(plan)
        tasks = []
        for task in plan.tasks:
            if task.index in finished:
                on_task()
            else:
                tasks.append(task)
        dispatcher.settle(report)  # with what the interrupted run has stored
        if resumed:
            self._refuse_what_cannot_fit(store, tasks)
        try:
            cuts = CutTasks(
                plan.tasks, None if publisher.in_order else plan.ids, journal.cut_for
            )
            dispatcher.work(job, tasks, cuts, publisher, on_task)
        except (DuplicateIdError, AdapterContractError) as cause:
            if not (resumed or report.chunks or replaces):
                # Nothing was stored, so the directory is finished as it was before.
                self._abandon(store, journal)
            if replaces and isinstance(cause, DuplicateIdError):
                # The directory stays as unfinished as the interrupted run left it.
                raise DuplicateIdError(
                    f"{cause}. A run into this folder was interrupted before: to go "
                    "on, skip what is there (on_duplicate='skip', on the command line "
                    "--on-duplicate skip)"
                ) from cause
            raise
        dispatcher.settle(report)
        warn_of_ids_beyond_utf8(publisher.ids or ())  # known only now
        if plan.ids is not None:
            settle_not_given(self.adapter, self._folder(), plan, report)
        elif report.not_given:
            _logger.warning(
                "the adapter %s counts %s and gave %d; what it gave is stored. "
                "Its len() and its iter_data() should agree, and iter_data give the "
                "items of its slice_element alone",
                type(self.adapter).__name__,
                counted(self._num_items, "item"),
                self._num_items - report.not_given,
            )
        run = self._described(facts, plan)
        write_records(store, run, facts, report, plan.share)
        self._finish(store, journal)
        refresh_index(self._folder(), publisher.maps.parts)

    def _make_dispatcher(self, failures: NotedFailures) -> Dispatcher:
        """Give what has the tasks done."""
        return Dispatcher(
            self.num_workers,
            self.executor,
            resume=self.resume,
            progress=no_progress if self.progress is None else self.progress,
            failures=failures,
            apart=self.apart,
        )

    def _count_items(self) -> int:
        """Count the items, or refuse where there are none."""
        num_items = require_items(self.adapter)
        calculate_chunk_slices(self.videos_per_chunk, num_items)  # or refuse
        return num_items

    def _completed(self, store: Store, facts: AdapterFacts) -> RunPlan | None:
        """Give a plan without tasks where the run was completed before, else None."""
        # As if nothing were stored, and without a word of ids that are repeated.
        plan = self._plan(frozenset(), "skip")
        self._refuse_other_count(plan)
        run = self._described(facts, plan)
        if not is_complete(self._folder(), run, plan):
            return None
        return replace(plan, tasks=[], failures=known_failures(store, plan, run))

    def _plan(
        self, stored: frozenset[str], on_duplicate: OnDuplicate | None = None
    ) -> RunPlan:
        return plan_run(
            self.adapter,
            stored,
            items_per_chunk=self.videos_per_chunk,
            on_duplicate=on_duplicate or self.on_duplicate,
            shard=self.shard,
        )

    def _refuse_other_count(self, plan: RunPlan) -> None:
        """Refuse a plan of more or fewer items than there were when the run began."""
        planned = len(plan.share) if self.shard is None else self._num_items
        for num_items in (planned, count_items(self.adapter)):
            if num_items != self._num_items:
                raise AdapterContractError(
                    f"the adapter {type(self.adapter).__name__} counted "
                    f"{counted(self._num_items, 'item')}, and then {num_items}. Its "
                    "len() must give the same number however often it is asked. "
                    "Nothing was written"
                )

    def _described(self, facts: AdapterFacts, plan: RunPlan) -> Run:
        adapter = type(self.adapter).__name__
        return describe_run(adapter, facts, self.encoder, plan, self.shard)

    def _refuse_what_cannot_fit(self, store: Store, tasks: list[Task]) -> None:
        if self.ignore_space:
            return
        refuse_what_cannot_fit(
            self.adapter,
            self.encoder,
            self._folder(),
            [n for task in tasks for n in task.positions()],
            apart=self.executor is not None or self.num_workers > 1 or self.apart,
            # A run that resumes has these already, and any other removes them.
            freed=bytes_of_partials(store),
        )

    def _read_directory(
        self, resumed: RunJournal | None
    ) -> tuple[frozenset[str], tuple[Run, ...]]:
        """Give the ids that are stored, and the runs that the manifest tells of.

        Where a run is resumed, those that it has stored itself are left out.
        """
        before = None if resumed is None else resumed.first_number
        with open_settled(self._folder()) as directory:
            # A broken manifest is refused here, before anything is written.
            runs = directory.manifest.runs
            if resumed is not None:
                refuse_lost_chunks(directory, resumed.finished)
            ids = frozenset(
                id_
                for id_, number in directory.chunk_lookup.items()
                if before is None or number < before
            )
            return ids, runs

    @staticmethod
    def _abandon(store: Store, journal: RunJournal) -> None:
        """Remove what an interrupted run has left: another one takes its place.

        The journal is removed first: it says that the other files are there.
        """
        if JOURNAL_NAME in store.names():
            journal.remove()
            store.sync_names()
        remove_leftovers(store)

    @staticmethod
    def _finish(store: Store, journal: RunJournal) -> None:
        """Remove what this run needed; the journal last, or other files may be left."""
        remove_partials(store)
        store.sync_names()  # or the disk may keep the others and lose the journal
        journal.remove()


def _require_kind(name: str, value: object, kind: type, such: str = "") -> None:
    if not isinstance(value, (kind, type(None))):
        raise IngestSettingError(
            f"{name} is {reprlib.repr(value)}; it must be {with_article(kind.__name__)}"
            + (f", {such}" if such else "")
        )


def _whole_number(name: str, value: Any) -> int:
    """Give what ``int`` makes of it, as GulpIO2 0.0.4 does, or refuse it."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise IngestSettingError(
            f"{name} is {value!r}; it must be a whole number"
        ) from None


def _callable_or_none(name: str, value: Any) -> Any:
    """Refuse what would end the run where it is first called; False is none as well."""
    if value and not callable(value):
        raise IngestSettingError(f"{name} is {value!r}; it must be callable, or None")
    return value if callable(value) else None
