"""Salvage every undamaged item of a damaged directory into a clean one.

* `report`: what was found, copied and lost.
* `survey`: goes through the source and decides about every item and frame.
* `candidates`: what may become an item of the target.
* `maps`: what a map says, or the index of one that is lost or damaged.
* `entries`: how far an entry of a map can be trusted.
* `data_file`: looks at a place of a data file, and searches it for frames.
* `unread`: what of it cannot be read, to the sector, and why.
* `moved`: frames that are not where the map says, found by their checksums.
* `unclaimed`: the bytes between the records that are known, and what is there.
* `doubles`: items that are there twice, and chunks in whose place a copy is.
* `files`: takes over the small files beside the chunks.
* `directories`: the whole of it; `repair_directory` is there.
"""

from gulpio2.repair.directories import repair_directory
from gulpio2.repair.report import Loss, RepairReport, Salvaged

__all__ = ["Loss", "RepairReport", "Salvaged", "repair_directory"]
