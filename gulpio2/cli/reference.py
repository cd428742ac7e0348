"""Writes ``docs/cli.md`` out of the help texts: ``python -m gulpio2.cli.reference``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gulpio2.cli import legacy
from gulpio2.cli.adapter_lookup import BUILT_IN
from gulpio2.cli.main import COMMANDS, gulp2

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["command_lines", "reference"]

# Columns.
_WIDTH = 80
_HEAD = """\
# Command line

<!-- Written by `python -m gulpio2.cli.reference > docs/cli.md`; do not edit. -->

Results are on stdout, everything else on stderr. The exit status is 0 if all went well,
1 if something failed or was found, 2 if the command line was wrong, 130 after Ctrl-C.
Output that is lost, as on a full disk or where stdout is closed, is a failure as well;
the programs of GulpIO2 0.0.4 take a closed stdout for one that nobody wants.
`python -m gulpio2` is `gulp2`, also where that is not on the `PATH`. Options may be
written with `_` for `-`. Nothing that is there is overwritten without `--overwrite`.
`--json` prints JSON that every parser reads: `NaN` and the infinities, for which Python
and the maps have words and JSON has none, are `null` there. Only an id that comes from
a file name which is no UTF-8 has half of a pair there (`"\\udcff"`), as in the maps:
some parsers refuse that, and an ingest warns of it.

The examples speak of a directory `gulped` with the items `item0`, `item1` and so on,
whose metadata has a `number`. `gulp2 ls` lists the ids of yours, and with `--long`
their metadata.
"""
_LEGACY_HEAD = """\
## The programs of GulpIO2 0.0.4

They take the same arguments, may be given options in short (`--num 2`), print what they
understood, and exit with 1 for everything that goes wrong, wrong usage included.
"""


def command_lines() -> Iterator[tuple[list[str], click.Context]]:
    """Go through ``gulp2``, its commands, and ``ingest`` for each built-in adapter.

    Yields
    ------
    words : list of str
        ``["gulp2", "ingest", "table"]``, for one.
    context : click.Context
        Of that command.
    """
    top = gulp2.make_context("gulp2", [], resilient_parsing=True, terminal_width=_WIDTH)
    yield ["gulp2"], top
    for name in COMMANDS:
        context = _below(top, name)
        yield ["gulp2", name], context
        if name == "ingest":
            for adapter in BUILT_IN:
                yield ["gulp2", name, adapter], _below(context, adapter)


def _below(parent: click.Context, name: str) -> click.Context:
    group = parent.command
    command = (
        group.get_command(parent, name) if isinstance(group, click.Group) else None
    )
    if command is None:
        raise LookupError(f"{parent.command_path} has no command {name}")
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def reference() -> str:
    """Give the text of ``docs/cli.md``."""
    parts = [_HEAD]
    for words, context in command_lines():
        help_text = context.command.get_help(context)
        parts.append(f"## {' '.join(words)}\n\n```text\n{help_text.rstrip()}\n```\n")
    parts.append(_LEGACY_HEAD)
    for program in sorted(legacy.__all__):
        help_text = legacy.grammar_of(program).help()
        parts.append(f"### {program}\n\n```text\n{help_text.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(reference())
