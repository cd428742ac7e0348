"""A command with documented arguments and examples in its help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DocumentedCommand", "DocumentedGroup"]

# Arguments that are ids, or what ids are like. Those of YouTube often begin with -.
_IDS = frozenset({"id_", "ids", "pattern"})


class DocumentedCommand(click.Command):
    """A command whose help ends with examples.

    Parameters
    ----------
    *args, **attrs
        As for ``click.Command``.
    examples : sequence of str
        Command lines; what follows a ``#`` is a remark.

    Attributes
    ----------
    sections : dict of str to set of str
        Heading to names of the options that the help has below it.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.examples = tuple(examples)
        self.sections: dict[str, set[str]] = {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; of what is no option but an argument it says so."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if text := self._place_of_argument(ctx, error.option_name):
                text = f"{error.message} {text}"
                raise click.NoSuchOption(error.option_name, text, ctx=ctx) from error
            takes_ids = any(param.name in _IDS for param in self.get_params(ctx))
            if not takes_ids or error.possibilities:
                raise
            text = f"{error.message} An id that begins with - comes last, behind --."
            raise click.NoSuchOption(error.option_name, text, ctx=ctx) from error

    def _place_of_argument(self, ctx: click.Context, option: str) -> str:
        """Say where an argument is given that was taken for an option, if it was."""
        name = option.lstrip("-").replace("-", "_").upper()
        words = [
            param.human_readable_name
            for param in self.get_params(ctx)
            if isinstance(param, click.Argument)
        ]
        if name not in words:
            return ""
        place = f"{ctx.command_path} {' '.join(words)}"
        return f"{name} is an argument, given without its name: {place}."

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, text, arguments, options and examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        rows = [
            (param.human_readable_name, param.help or "")
            for param in self.get_params(ctx)
            if isinstance(param, click.Argument)
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        for heading, names in self.sections.items():
            self._write_options(heading, names, ctx, formatter)
        self.format_options(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def _write_options(
        self,
        heading: str,
        names: set[str],
        ctx: click.Context,
        formatter: click.HelpFormatter,
    ) -> None:
        records = [
            record
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and param.name in names
            if (record := param.get_help_record(ctx)) is not None
        ]
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options that are in no other section."""
        everything = [p.name or "" for p in self.get_params(ctx)]
        apart = set().union(*self.sections.values())
        self._write_options("Options", {*everything} - apart, ctx, formatter)


class DocumentedGroup(DocumentedCommand, click.Group):
    """A group of commands whose help ends with examples."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; of an option that came too early it says so."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            if not self._is_of_a_command(ctx, option):
                raise
            text = (
                f"{error.message} That of a command comes behind it: "
                f"{ctx.command_path} {self.subcommand_metavar} {option}."
            )
            raise click.NoSuchOption(option, text, ctx=ctx) from error

    def _is_of_a_command(self, ctx: click.Context, option: str) -> bool:
        commands = (self.get_command(ctx, name) for name in self.list_commands(ctx))
        return any(
            option in param.opts
            for command in commands
            if command is not None
            for param in command.params
        )

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options, and the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
