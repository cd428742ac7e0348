"""Several directories into one.

* `parts`: the directories that are merged, and what refuses to be.
* `data`: their data files, on the way into the target.
* `items`: some items of a chunk, where the target has the others already.
* `directories`: the whole of it; `merge_directories` is there.
"""

from gulpio2.merge.directories import MergeReport, merge_directories

__all__ = ["MergeReport", "merge_directories"]
