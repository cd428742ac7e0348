"""Is a directory whole? Runs the checks of the format over its files.

* `report`: what was gone through, and what was found.
* `directory`: names, maps, and the files beside the chunks.
* `data_files`: the records in a data file, read in blocks.
* `deleted`: frames of deleted items that are gone from a data file.
* `index`: the index, compared with the maps.
"""

from gulpio2.sanity.directory import check_directory
from gulpio2.sanity.report import CheckReport, original_tests

__all__ = ["CheckReport", "check_directory", "original_tests"]
