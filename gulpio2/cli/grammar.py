"""The command line grammar of GulpIO2 0.0.4.

Long options anywhere before or after the positional arguments, as ``--opt value`` or
``--opt=value``, and shortened as long as it is clear which one is meant. Wrong usage
prints the usage on stderr and exits with 1.
"""

from __future__ import annotations

import getopt
import os
import sys
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Grammar", "show_mapping"]

Mapped = str | bool | None


def _print(text: str) -> None:
    print(text, end="")


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a program takes."""

    program: str
    """Its name."""
    summary: str
    """What it does, on one line."""
    positionals: Mapping[str, str]
    """Name to help, in order."""
    options: Mapping[str, tuple[str | bool, str]] = field(default_factory=dict)
    """Name without dashes to default and help; the default of a flag is False."""
    version: str | None = None
    """What ``--version`` prints; None where there is no such option."""

    def parse(
        self, argv: Sequence[str], write: Callable[[str], object] = _print
    ) -> dict[str, Mapped]:
        """Parse a command line.

        Parameters
        ----------
        argv : sequence of str
            Without the program's name.
        write : callable, optional
            Prints the help, or the version, to stdout.

        Returns
        -------
        dict
            ``--option`` and ``<positional>`` to a str, or a bool for a flag. Exits
            after ``-h``, ``--help`` or ``--version``, and for wrong usage.
        """
        long = [
            name if default is False else f"{name}=" for name, default in self._long()
        ]
        # Where it is set, options behind an argument would be taken for arguments.
        posix = os.environ.pop("POSIXLY_CORRECT", None)
        try:
            given, positionals = getopt.gnu_getopt(list(argv), "h", ["help", *long])
        except getopt.GetoptError as error:
            self.fail(str(error))
        finally:
            if posix is not None:
                os.environ["POSIXLY_CORRECT"] = posix
        names = [name for name, _ in given]
        if "-h" in names or "--help" in names:
            write(self.help())
            sys.exit(0)
        if "--version" in names:
            write(f"{self.version}\n")
            sys.exit(0)
        if len(set(names)) < len(names):
            self.fail("an option is given twice")
        if len(positionals) != len(self.positionals):
            self.fail(
                f"{len(positionals)} arguments; {len(self.positionals)} are needed"
            )
        mapping: dict[str, Mapped] = {"--help": False} if self.options else {}
        mapping.update((f"--{name}", default) for name, default in self._long())
        flags = {f"--{name}" for name, default in self._long() if default is False}
        mapping.update(
            (name, True if name in flags else value) for name, value in given
        )
        mapping.update(
            (f"<{name}>", value)
            for name, value in zip(self.positionals, positionals, strict=True)
        )
        return mapping

    def fail(self, message: str) -> NoReturn:
        """Say what is wrong, and the usage, on stderr, and exit with 1."""
        sys.exit(f"{message}\n{self.usage()}")

    def usage(self) -> str:
        """Give the forms of the call."""
        first = f"    {self.program} "
        parts = [
            f"[--{name}]" if default is False else f"[--{name} <{name}>]"
            for name, (default, _) in self.options.items()
        ]
        parts.append(" ".join(f"<{name}>" for name in self.positionals))
        lines = [first + f"\n{'':{len(first)}}".join(parts)]
        lines.append(f"    {self.program} (-h | --help)")
        if self.version is not None:
            lines.append(f"    {self.program} --version")
        return "\n".join(["Usage:", *lines])

    def help(self) -> str:
        """Give what ``--help`` prints."""
        arguments = [(name, text) for name, text in self.positionals.items()]
        options = [("-h --help", "Show this screen.")]
        if self.version is not None:
            options.append(("--version", "Show version."))
        for name, (default, text) in self.options.items():
            if default is False:
                options.append((f"--{name}", text))
            else:
                shown = f" [default: {default}]" if default else ""
                options.append((f"--{name}=<{name}>", f"{text}{shown}"))
        return "\n".join(
            [
                self.program,
                "",
                *textwrap.wrap(self.summary, 80),
                "",
                self.usage(),
                "",
                "Arguments:",
                *_columns(arguments),
                "",
                "Options:",
                *_columns(options),
                "",
            ]
        )

    def _long(self) -> list[tuple[str, str | bool]]:
        options = [(name, default) for name, (default, _) in self.options.items()]
        return [*options, ("version", False)] if self.version is not None else options


def show_mapping(mapping: Mapping[str, Mapped]) -> str:
    """Give a mapping as the programs of 0.0.4 print it: sorted, a line to a key.

    Examples
    --------
    >>> print(show_mapping({"--shuffle": False, "--num_workers": "4"}))
    {'--num_workers': '4',
     '--shuffle': False}
    """
    pairs = (f"{key!r}: {value!r}" for key, value in sorted(mapping.items()))
    return "{" + ",\n ".join(pairs) + "}"


def _columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows) + 3
    return [f"    {name:{width}}{text}" for name, text in rows]
