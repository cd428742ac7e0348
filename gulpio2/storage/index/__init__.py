"""What is in a directory, in columns: found by id, mapped from a file, or in memory.

The index is derived from the maps and never trusted over them: `index.Index` checks
each row, when it is first used, against the map that it was made from.

* `columns`: the columns of items and frames, however they came about.
* `building`: maps to columns.
* `arrow_file`: where the buffers of an Arrow file are, without the Arrow library.
* `arrays`: Arrow arrays made of buffers.
* `typed`: users' metadata as typed columns.
* `whole`: the checksum of the whole file.
* `file`: columns to ``index.arrow`` and back.
* `table`: what users see, as an Arrow table.
* `exact`: numbers compared with its columns as Python does.
* `fitting`: what an expression gives of its rows, and why it may not fit its columns;
  `hints`: what else may be wrong with a condition.
* `plain_names`: the text of a condition, with names that Python takes.
* `json_parts`: what can be a part of JSON.
* `masks`: boolean masks of whatever library, as rows.
* `spans`: where the frames of an item are, as the list that the map has.
* `entries`, `lazy`, `mappings`: entries, and the dictionaries of 0.0.4, made on demand.
* `texts`: the texts of entries, read from the maps.
* `held`: columns that are searched for an id.
* `index`: ids, rows and spans for readers.
* `in_blocks`: items by the thousand, for whoever goes through all of them.
* `lost`: items that the columns have and a map has lost.
* `composing`: what the maps say, and as much of an old index as holds.
* `loading`: the file mapped, where it can be read.
* `ahead`: maps read while an ingest goes on, for the index at its end.
* `taking_in`: the map of a chunk brought up to date before it is written.
* `opening`: the file if it is fresh, else columns built anew.
* `replacing`: a file made anew, where it would not lose what an old one alone has.
* `stale`: the maps that the file was not made of.
* `keeping`: the file written, checked against the maps, and removed.
"""

__all__: list[str] = []
