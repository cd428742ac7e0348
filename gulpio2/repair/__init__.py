"""Salvage every undamaged item of a damaged directory into a clean one.

* `report`: what was found, moved and lost.
* `survey`: goes through the source and decides about every item and frame.
* `files`: takes over the small files beside the chunks.
* `directories`: the whole of it; `repair_directory` is there.
"""

from gulpio2.repair.directories import repair_directory
from gulpio2.repair.report import Loss, RepairReport, Salvaged

__all__ = ["Loss", "RepairReport", "Salvaged", "repair_directory"]
