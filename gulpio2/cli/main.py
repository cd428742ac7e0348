"""The program ``gulp2``, and the one place where errors become messages."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import errno
import gc
import importlib
import logging
import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gulpio2.cli.command import DocumentedGroup
from gulpio2.cli.full_streams import (
    NO_ROOM,
    drop,
    noticing_closed_output,
    settle_remarks,
)
from gulpio2.cli.interrupts import is_interrupt, raise_once_a_second
from gulpio2.cli.options import verbosity_options
from gulpio2.cli.terminal import (
    environment_kept,
    escape,
    escapes_in,
    note,
    one_line,
    set_verbosity,
    take_any_text,
)
from gulpio2.errors import GulpError, ItemNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "Program", "gulp2", "main"]

# By its name: run with -m, this module is called something else.
_logger = logging.getLogger("gulpio2.cli.main")

# In the order of the help. Each is the attribute of the module of its name, which is
# imported when the command is asked for.
COMMANDS = [
    "ingest",
    "check",
    "info",
    "ls",
    "index",
    "extract",
    "sheet",
    "delete",
    "compact",
    "merge",
    "repair",
    "bench",
]
_CLOSED = os.strerror(errno.EBADF)  # as coreutils say it of a closed stdout
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class Program(DocumentedGroup):
    """A group that loads its commands when needed, and ends with a message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands."""
        return COMMANDS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"gulpio2.cli.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the closest ones."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = difflib.get_close_matches(name, COMMANDS)
            advice = (
                f"Did you mean {' or '.join(close)}?"
                if close
                else f"There is: {', '.join(COMMANDS)}."
            )
            ctx.fail(
                f"No command {escape(name)!r}. {advice} gulp2 --help says what they do."
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an interrupt that Python has wrapped is one all the same."""
        try:
            return super().invoke(ctx)
        except RuntimeError as error:
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            raise

    @environment_kept()
    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT002  # signature of click
        windows_expand_args: bool = True,  # noqa: FBT002  # signature of click
        **extra: Any,
    ) -> NoReturn:
        """Run a command line and exit.

        Raises
        ------
        SystemExit
            0 good, 1 found or failed, 2 wrong usage, 130 interrupted. Errors that are
            not the package's own come through, with their traceback.
        """
        del standalone_mode  # the messages and codes are those below
        set_verbosity(0)
        take_any_text()
        with noticing_closed_output() as is_lost:
            status = self._status_of(
                args, prog_name, complete_var, windows_expand_args, extra
            )
            if is_lost():
                note(f"gulp2: error: cannot write the output: {_CLOSED}")
                status = status or 1
        settle_remarks()
        sys.exit(status)

    def _status_of(
        self,
        args: Sequence[str] | None,
        prog_name: str | None,
        complete_var: str | None,
        windows_expand_args: bool,
        extra: dict[str, Any],
    ) -> int:
        """Run a command line, say what went wrong, and give the exit status."""
        try:
            status: object = super().main(
                args,
                prog_name,
                complete_var,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )
        except click.ClickException as error:
            with contextlib.suppress(OSError):  # stderr is full: the status is left
                error.show()
            status = error.exit_code
        except click.Abort:
            note("gulp2: interrupted")
            status = INTERRUPTED
        except GulpError as error:
            _logger.debug("what led to the error:", exc_info=True)
            note(f"gulp2: error: {one_line(error)}{_hint(error)}")
            status = 1
        except MemoryError as error:
            _logger.debug("what led to the error:", exc_info=True)
            note(f"gulp2: error: there is not enough memory. {escape(error)}".rstrip())
            status = 1
        except OSError as error:
            if not _is_of_output(error):
                raise
            note(f"gulp2: error: cannot write the output: {error.strerror}")
            drop(sys.stdout)
            status = 1
        return status if isinstance(status, int) else 0


def _is_of_output(error: OSError) -> bool:
    """Tell whether stdout was written to, which the commands alone do."""
    if error.errno not in NO_ROOM or error.filename is not None:
        return False
    frames = traceback.walk_tb(error.__traceback__)
    modules = [frame.f_globals.get("__name__", "") for frame, _ in frames]
    of_package = [name for name in modules if name.startswith("gulpio2.")]
    return not of_package or of_package[-1].startswith("gulpio2.cli.")


def _hint(error: GulpError) -> str:
    """Say of an id that is not found how it may have been copied."""
    if isinstance(error, ItemNotFoundError) and any(map(escapes_in, error.args[:1])):
        return (
            ". Where gulp2 ls shows an escape, as \\u202e, the id has the character "
            "itself; gulp2 ls --json gives such an id"
        )
    return ""


def print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    """Print the version and end."""
    if value:
        from gulpio2.__version__ import __version__

        click.echo(f"gulp2 {__version__}")
        ctx.exit()


@click.group(
    cls=Program,
    # Kebab-case is shown, the snake_case of 0.0.4 is understood.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda token: token.replace("_", "-"),
    },
    examples=[
        "gulp2 ingest video-folder videos gulped",
        "gulp2 check --deep gulped",
        "gulp2 info gulped",
        "gulp2 ls --long gulped",
    ],
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version and end.",
)
@verbosity_options
def gulp2() -> None:
    """Store the frames of videos in few files, and read any of them fast.

    A gulp directory holds every frame of a dataset as a JPEG of its own, in chunks of
    many items, with a map of where each one is.
    """
    from gulpio2.storage.descriptors import fill_standard_descriptors

    fill_standard_descriptors()  # before a command opens anything


def main() -> NoReturn:
    """Run ``gulp2`` with the arguments of this process."""
    raise_once_a_second()
    # Last of all: looking once more for what can be freed, of a process that ends,
    # takes a tenth of the time of a short command. `find_adapter` takes it back.
    atexit.register(gc.freeze)
    try:
        gulp2.main(prog_name="gulp2")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            # Not even a later Ctrl-C may print what Python tidies up on its way out.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise


if __name__ == "__main__":
    main()
