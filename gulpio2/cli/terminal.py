"""Lines for people: escaped, counted, and on stderr beside a bar."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import shlex
import sys
import traceback
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING

import click

from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from click import Context

    from gulpio2.types import StrPath

__all__ = [
    "as_options",
    "as_options_of_ingest",
    "count",
    "environment_kept",
    "escape",
    "escapes_in",
    "is_quiet",
    "note",
    "one_line",
    "quoted",
    "set_verbosity",
    "size",
    "take_any_text",
    "write_lines",
    "write_some",
]

_LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
_VERBOSITY = "gulpio2.verbosity"
# What OpenCV writes to stderr by itself it writes for each image, and without its name:
# a line for each field of a GeoTIFF, and one for each JPEG 2000. Set before it is
# loaded, for workers as well.
_OPENCV, _SILENT = "OPENCV_LOG_LEVEL", "SILENT"
# Variables that this process has set: what its user has set stays.
_SET_HERE: set[str] = set()
# Of Persian and Indian words, and of emoji of several parts.
_JOINERS = "\u200c\u200d"
_ESCAPE = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
# Lines that go out together: click flushes on every call.
_BLOCK = 1000
# Advice of the library that a user of the program cannot follow as it stands.
_ARGUMENT = re.compile(r"\(\w+='\w+', on the command line (--[a-z-]+ \w+)\)")
_DUPLICATE = re.compile(r"\(on_duplicate='(\w+)'\)")
# From the beginning of a word: a message may hold one of a hundred thousand letters.
_FLAG = re.compile(
    r"\b(?:\w+=(?:True|1)|[a-z]+(?:_[a-z]+)+) "
    r"\(on the command line (--[a-z-]+(?: 1)?)\)"
)
_IN_PYTHON_ONLY = re.compile(r"; GulpDirectory\(path, verify=False\) gives [\w ]+")


def escape(text: object) -> str:
    r"""Give a text without anything that a terminal would obey.

    Spaces of all widths, and what joins letters, are part of ordinary names.

    Examples
    --------
    >>> print(escape("clip\x1b[2J\n7"))
    clip\x1b[2J\n7
    """
    text = str(text)
    if text.isprintable():  # as nearly all are, told of in a hundredth of the time
        return text
    return "".join(
        char if _is_shown(char) else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _is_shown(char: str) -> bool:
    return char.isprintable() or char in _JOINERS or unicodedata.category(char) == "Zs"


def escapes_in(id_: object) -> bool:
    r"""Tell whether an id holds what may be an escape, as `escape` makes them.

    Examples
    --------
    >>> escapes_in(r"a\u202eb"), escapes_in("a\u202eb"), escapes_in(r"videos\walk")
    (True, False, False)
    """
    return _ESCAPE.search(str(id_)) is not None


def quoted(path: StrPath) -> str:
    """Give a path as it stands in a command line for a shell, safe to print.

    Examples
    --------
    >>> print(quoted("gulped"), quoted("my videos"))
    gulped 'my videos'
    """
    return escape(shlex.quote(os.fspath(path)))


def one_line(error: BaseException) -> str:
    """Give an error's message without line breaks and error numbers.

    What it advises is said as options; the library says it as arguments as well.
    """
    text = str(error)
    if isinstance(error, OSError) and error.strerror and not error.filename:
        text = error.strerror
    return escape(as_options(" ".join(text.split("\n"))))


def as_options(text: str) -> str:
    """Say as options what the library advises, which says it as arguments as well.

    Examples
    --------
    >>> as_options("skip them (on_duplicate='skip')")
    'skip them (--on-duplicate skip)'
    >>> as_options("ids by path (id_rule='path', on the command line --id-rule path)")
    'ids by path (--id-rule path)'
    >>> as_options("take file_extensions (on the command line --file-extensions)")
    'take --file-extensions'
    """
    text = _IN_PYTHON_ONLY.sub("", text)
    text = _DUPLICATE.sub(r"(--on-duplicate \1)", _FLAG.sub(r"\1", text))
    return _ARGUMENT.sub(r"(\1)", text)


def as_options_of_ingest(text: str) -> str:
    """Say whose options the library advises, to who runs a program without them.

    Examples
    --------
    >>> as_options_of_ingest("take endings (on the command line --file-extensions)")
    'take endings (with `gulp2 ingest` --file-extensions)'
    """
    return text.replace("on the command line --", "with `gulp2 ingest` --")


def count(number: int, noun: str) -> str:
    """Give a number with its noun, thousands apart.

    Examples
    --------
    >>> count(1, "item"), count(1200, "frame")
    ('1 item', '1,200 frames')
    """
    return counted(number, noun, spec=",")


def size(num_bytes: float) -> str:
    """Give a number of bytes with a decimal unit.

    Examples
    --------
    >>> size(0), size(999), size(999.6), size(12_345_678)
    ('0 B', '999 B', '1.0 kB', '12.3 MB')
    """
    if num_bytes < 999.5:
        return f"{num_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        num_bytes /= 1000
        if num_bytes < 999.95:
            return f"{num_bytes:.1f} {unit}"
    return f"{num_bytes / 1000:.1f} TB"


def note(line: str) -> None:
    """Write a line to stderr; a bar that is there makes way for it.

    Where stderr cannot be written to, the line is lost, and the work goes on.
    """
    # It may be there in part: another thread is about to show the first bar.
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    with contextlib.suppress(OSError):
        if tqdm is None or sys.stderr is None:
            click.echo(line, err=True)
        else:
            # Without the lock: a worker that was killed may have it, and for ever.
            tqdm.write(line, file=sys.stderr, nolock=True)


def take_any_text() -> None:
    """Have stdout show what its encoding does not have as escapes, as `escape` does."""
    # Where Python's own choice is another than an error, it stays.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def write_lines(lines: Iterable[str]) -> None:
    """Write many lines to stdout, some at a time."""
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == _BLOCK:
            click.echo("\n".join(block))
            block = []
    if block:
        click.echo("\n".join(block))


def write_some(
    lines: Iterable[str],
    limit: int,
    *,
    ways: str | None = "--limit 0 or --json",
    kind: str = "",
) -> None:
    """Write lines to stdout up to a limit, and how many more there are.

    Parameters
    ----------
    lines : iterable of str
        The lines.
    limit : int
        How many to write; 0 for all of them.
    ways : str, optional
        What gives all of them, on the command line. None: nothing can any more.
    kind : str, optional
        What the line about the rest begins with.
    """
    lines = iter(lines)
    write_lines(islice(lines, limit or None))
    if more := sum(1 for _ in lines):
        rest = f": {ways} gives all of them" if ways else ""
        click.echo(f"{kind}and {more:,} more{rest}")


class _NoteHandler(logging.Handler):
    """Shows what the library logs."""

    say: Callable[[str], str] = staticmethod(as_options)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            said = self.say(record.getMessage())
            note(f"gulp2: {record.levelname.lower()}: {escape(said)}")
            if record.exc_info:
                lines = "".join(traceback.format_exception(*record.exc_info))
                for line in lines.rstrip("\n").split("\n"):
                    note(escape(line))
        except Exception:  # noqa: BLE001  # as logging.Handler asks for
            self.handleError(record)


def set_verbosity(
    level: int,
    ctx: Context | None = None,
    *,
    say: Callable[[str], str] = as_options,
) -> None:
    """Show what the library logs from a level on.

    Parameters
    ----------
    level : int
        -1 errors, 0 warnings as well, 1 what is done, 2 everything.
    ctx : click.Context, optional
        Takes note of it, for `is_quiet`.
    say : callable, optional
        Makes of what the library says what this program's user can follow.

    Notes
    -----
    OpenCV says what it has to say only from level 1 on, or where its variable in the
    environment asks for it.
    """
    if level < 1 and _OPENCV not in os.environ:
        os.environ[_OPENCV] = _SILENT
        _SET_HERE.add(_OPENCV)
    elif level >= 1 and _OPENCV in _SET_HERE:
        _SET_HERE.remove(_OPENCV)
        os.environ.pop(_OPENCV, None)
    if ctx is not None:
        ctx.meta[_VERBOSITY] = level
    logger = logging.getLogger("gulpio2")
    handlers = [each for each in logger.handlers if isinstance(each, _NoteHandler)]
    if not handlers:
        handlers = [_NoteHandler()]
        logger.addHandler(handlers[0])
    for handler in handlers:
        handler.say = say
    logger.setLevel(_LEVELS[max(-1, min(level, 2))])


@contextlib.contextmanager
def environment_kept() -> Iterator[None]:
    """Have the environment have nothing of `set_verbosity` after the block.

    A program that runs a command in its own process may start others.
    """
    try:
        yield
    finally:
        while _SET_HERE:
            os.environ.pop(_SET_HERE.pop(), None)


def is_quiet() -> bool:
    """Tell whether the user asked for nothing but results and errors."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(_VERBOSITY, 0) < 0
