"""The format itself, as pure functions: ints, bytes and dicts in and out.

Nothing here opens a file, asks the clock or draws a random number; ``docs/format.md``
is the specification that these modules implement.

* `layout`: the names of files in a directory, and how they pair up.
* `records`: where a frame is in a data file, and its padding.
* `entry`: what we add to an item's entry: checksums, times, facts of the source.
* `altered`: entries that are not what their checks say.
* `gmeta`: the map of a chunk, to bytes and back.
* `metadata`: users' metadata as JSON can hold it.
* `edits`: a map that was edited in memory, beside what happened to it on the disk;
  `snapshot` to go back to what its entries were.
* `other_frames`: entries in memory in the places of which the disk has other frames.
* `manifest`: ``gulp.json``, how a directory was made. `joined_runs`: the runs of many.
* `failures`: ``failures.jsonl``, what could not be stored.
* `other_settings`: in what runs differ that are in one directory.
* `removals`: ``deleted.json``, what was deleted and erased.
* `checked_json`: small JSON files that carry their own check.
* `journal`: lines that tell whether they are whole.
* `rates`: frame rates, and what they mean.
* `labels`: those of items. `label_checks`: ``label2idx.json``, and the numbers of
  labels in the maps.
* `times`: frames by presentation time. `tick_runs`: such times as runs of equal steps.
* `selection`: what a caller asks for, as frame indices.
* `plan`: which bytes to read together, which items to write together.
* `scan`: the entries of a map one after the other. `salvage`: what is left of a
  damaged map or data file.
* `jpeg_markers`: what tells the parts of a JPEG apart. `jpeg_outline`: what one is,
  without decoding, by `jpeg_remarks`: what in it the codec takes exception to, and
  `jpeg_tables`: what its scans need.
* `checksum`: the CRC-32 of everything that has one.
* `problems`: what a check finds, as values. `wording`: numbers with their nouns.
* `checks`, `map_checks`: everything that the checker knows, of names and records and
  of maps. `changed_places`: data files that were swapped. `times_back`: items whose
  frames are not in the order of their times.
"""

__all__: list[str] = []
