"""The only place that opens, lists, locks or replaces files.

* `base`: what a store offers, as contracts.
* `local`: a folder of this machine, written so that a crash leaves old or new.
* `local_writer`: a file of it that is being written, only ever at its end.
* `map_file`: the file of a map, by a serializer that may be a client's own.
* `descriptors`: opened also where a process has as many as it may have.
* `handles`: open files for reading, few at a time, safe under threads and forks.
* `data_file`: one as a whole: opened, compared with its map, or about to be begun.
* `beside_writers`: changing a chunk that others append to.
* `leftovers`: what writers leave behind that are killed, or refused.
* `links`: data files that several directories share.
* `locks`: one writer per folder, and one per data file.
* `naming`: a name for a new file, where nothing has it.
* `paths`: what a path leads to, where the system may also refuse to say.
* `permissions`: who may read a file that replaces another, or is made of others.
* `reads`: from a file that is open, whole although the system gives less at a time.
* `refusals`: what the system refused, and what a person can do about it.
* `removable`: what is refused before items are hidden or erased.
* `removals_file`: ``deleted.json``.
* `writeback`: has the system begin to write before a sync waits for it.
"""

from gulpio2.storage.local import open_store

__all__ = ["open_store"]
