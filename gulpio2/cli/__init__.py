"""The command line: everything that prints.

* `main`: the program ``gulp2``, and the one place where errors become messages.
* `command`, `options`, `parameter_types`: what commands are made of.
* `conditions`: ``--where``, by which several of them choose items.
* `sorting`: the order of ``ls --sort``.
* `terminal`, `progress`: lines and a bar on stderr that stay out of each other's way.
* `strict_json`: what ``--json`` prints, which every parser of JSON reads;
  `report_stream` keeps what an adapter prints out of it.
* `ingest` `check` `info` `ls` `index` `extract` `sheet` `delete` `compact` `merge`
  `repair` `bench`: a file per command. A body parses, makes a call of the library, and
  prints.
* `adapter_lookup`, `constructor`, `adapter_options`: an adapter's class by its name,
  what its constructor takes, and that as options.
* `ingest_options`: the options of an ingest, and the ingestor that they ask for.
* `summary`, `extraction`, `export`, `video_export`, `contact_sheet`: the work of info,
  extract and sheet.
* `dry_run`, `survey`: what an ingest would do.
* `full_streams`: streams that take nothing more, and the exit status then.
* `interrupts`: Ctrl-C that nothing on the way keeps to itself, and how to go on.
* `legacy`, `grammar`, `register`: the ten ``gulp2_*`` programs of GulpIO2 0.0.4.
* `reference`: writes ``docs/cli.md`` out of the help texts.
"""

from __future__ import annotations

__all__: list[str] = []
