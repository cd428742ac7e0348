"""Items into a directory: in parallel, one item failing alone, a chunk at a time.

* `report`: what a run did, and the items that failed.
* `items`: the items of an adapter, one failing without the rest.
* `task`: the work of one process: a slice of items into staged chunks.
* `duplicates`: ids that are taken, found before anything is written.
* `workers`: the executor of this machine, and how tasks reach any other.
* `publishing`: staged chunks get their numbers and names.
* `records`: what is written beside the chunks.
* `writer`: `ChunkWriter`, one chunk at a time, without an ingestor.
* `ingestor`: `GulpIngestor`, the run.
"""

__all__: list[str] = []
