"""An ingest in pieces whose order is always the same."""

from gulpio2 import GulpIngestor
from gulpio2.ingest.workers import in_this_process

__all__ = ["InOneProcess"]


class InOneProcess(GulpIngestor):
    """Does what a number of processes would do, one after another in this one."""

    def _workers(self, job, crashed):
        del crashed
        return in_this_process(job, self._told)
