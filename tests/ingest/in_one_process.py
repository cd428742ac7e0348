"""An ingest in pieces whose order is always the same."""

from gulpio2 import GulpIngestor
from gulpio2.ingest.dispatch import Dispatcher
from gulpio2.ingest.workers import in_this_process
from gulpio2.types import no_progress

__all__ = ["InOneProcess"]


class OneAfterAnother(Dispatcher):
    """Does what a number of processes would do, one after another in this one."""

    def _workers(self, job, crashed):
        del crashed
        return in_this_process(job, self._progress)


class InOneProcess(GulpIngestor):
    """Has its tasks done so."""

    def _make_dispatcher(self, failures):
        return OneAfterAnother(
            self.num_workers,
            None,
            resume=self.resume,
            progress=self.progress or no_progress,
            failures=failures,
        )
