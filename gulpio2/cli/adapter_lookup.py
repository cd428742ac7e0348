"""An adapter's class by the name that a user gives."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import gc
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gulpio2.cli.interrupts import is_interrupt
from gulpio2.cli.terminal import escape
from gulpio2.errors import StorageError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["BUILT_IN", "find_adapter", "import_here"]

# Name on the command line -> class in gulpio2.adapters.
BUILT_IN = {
    "video-folder": "VideoFolderAdapter",
    "frame-folder": "FrameFolderAdapter",
    "image-folder": "ImageFolderAdapter",
    "image-list": "ImageListAdapter",
    "table": "TableAdapter",
    "gulp-directory": "GulpDirectoryAdapter",
    "20bn-json-videos": "Custom20BNJsonVideoAdapter",
    "20bn-csv-webm": "Custom20BNCsvWebmAdapter",
    "20bn-csv-jpeg": "Custom20BNCsvJpegAdapter",
    "activitynet": "ActivitynetAdapter",
    "kinetics": "KineticsAdapter",
}

# What every adapter has, of gulpio2.types.Adapter.
_NEEDED = ("__len__", "iter_data")


def find_adapter(name: str) -> type:
    """Find the class of an adapter.

    Parameters
    ----------
    name : str
        Name of a built-in one, ``module:Class``, or ``file.py:Class``.

    Returns
    -------
    type
        The class.

    Raises
    ------
    click.UsageError
        There is none; the message names what is close.
    click.ClickException
        The user's own module has an error in it; the message says where.
    """
    if name in BUILT_IN:
        module = importlib.import_module("gulpio2.adapters")
        built_in: type = getattr(module, BUILT_IN[name])
        return built_in
    place, colon, class_name = name.rpartition(":")
    if not colon and name.endswith(".py"):
        place = name
    elif not colon:
        close = difflib.get_close_matches(name, BUILT_IN)
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        raise click.UsageError(
            f"No adapter {name!r}. {hint}Built in are {', '.join(BUILT_IN)}; a class "
            "of your own is given as module:Class or path/to/file.py:Class."
        )
    # See `gulpio2.cli.main.main`: a file that the user's code has left open is written
    # to its end when Python frees it, which it may find only where it looks for that.
    atexit.unregister(gc.freeze)
    try:
        module = _import_file(place) if place.endswith(".py") else import_here(place)
    except click.ClickException:
        raise
    except (Exception, SystemExit) as error:  # it may be a script that ends itself
        if is_interrupt(error):
            raise
        raise click.ClickException(_told(place, error)) from error
    if not colon:
        raise click.UsageError(_no_name(module, place))
    found = getattr(module, class_name, None)
    if not inspect.isclass(found):
        raise click.UsageError(_no_class(module, place, class_name))
    abstract: frozenset[str] = getattr(found, "__abstractmethods__", frozenset())
    missing = [method for method in _NEEDED if not hasattr(found, method)]
    missing += sorted(abstract)
    if missing:
        raise click.UsageError(
            f"{name!r} is no adapter: it has no {' and no '.join(missing)}. "
            "Derive it from gulpio2.adapters.AbstractDatasetAdapter and give it these; "
            "gulpio2.types.Adapter says what they do."
        )
    return found


def import_here(name: str) -> ModuleType:
    """Import a module that may lie in the working directory.

    Parameters
    ----------
    name : str
        Dotted name.

    Raises
    ------
    click.UsageError
        There is no such module.
    """
    # Python itself looks here only for `python -m`, not for an installed program.
    here = "the current folder, which is gone,"
    with contextlib.suppress(FileNotFoundError):  # the module may be installed
        here = str(Path.cwd())
        if here not in sys.path and "" not in sys.path:
            sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except (ModuleNotFoundError, ValueError) as cause:
        missing = getattr(cause, "name", None)
        if name and not f"{name}.".startswith(f"{missing}."):
            raise  # the module is there: it lacks something, or raises this itself
        raise click.UsageError(
            f"No module {name!r} in {here} or among what is installed. For a file, "
            "write path/to/file.py:Class."
        ) from cause


def _import_file(place: str) -> ModuleType:
    """Import a file under a name by which worker processes find it too.

    It gets its own name, and its folder a place on ``sys.path``, as for ``python
    file.py``: processes that are not forked import it by that. Where the name is
    taken it gets another one, by which only forked processes know it.
    """
    from gulpio2.storage.paths import real_path

    try:
        path = real_path(place)
        is_file = path.is_file()
    except StorageError as cause:
        raise click.ClickException(escape(cause.strerror)) from cause
    except OSError as cause:
        raise click.UsageError(
            f"{place!r} cannot be looked at: {cause.strerror}. Check the path of the "
            "adapter."
        ) from cause
    if not is_file:
        raise click.UsageError(
            f"No file {place!r}{_seen_from(place)}. Check the path of the adapter."
        )
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem
    present = sys.modules.get(name)
    if present is not None and _is_file_of(present, path):
        return present
    if present is None and name.isidentifier():
        module = importlib.import_module(name)
        if _is_file_of(module, path):
            return module
    name = f"gulpio2_adapter_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.UsageError(
            f"{place!r} cannot be imported as Python. Give a source file: name.py."
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _seen_from(place: str) -> str:
    return "" if os.path.isabs(place) else f", seen from {Path.cwd()}"  # noqa: PTH117  # as it is written


def _is_file_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _told(place: str, error: BaseException) -> str:
    """Tell of an error in the user's module, from there on."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = {__file__, importlib.__file__}
    own = [
        frame
        for frame in frames
        if frame.filename not in ours and not frame.filename.startswith("<frozen")
    ]
    lines = [*traceback.format_list(own), *traceback.format_exception_only(error)]
    return f"{place} cannot be imported:\n{''.join(lines).rstrip()}"


def _no_name(module: ModuleType, place: str) -> str:
    """Say how to name a class of a file, where the file alone was given."""
    known = _adapters_in(module)
    if not known:
        return f"{place} has no adapter: none of its classes has iter_data()."
    return (
        f"{place} is a file; name the class in it as well: {place}:{known[0]}. "
        f"There is: {', '.join(known)}."
    )


def _no_class(module: ModuleType, place: str, class_name: str) -> str:
    candidates = _adapters_in(module)
    known = ", ".join(difflib.get_close_matches(class_name, candidates) or candidates)
    return f"No class {class_name!r} in {place}. " + (
        f"There is: {known}." if known else "It has no adapter: none has iter_data()."
    )


def _adapters_in(module: ModuleType) -> list[str]:
    """Name the adapters of a module, also those that it imports when asked for."""
    found = []
    for name in dict.fromkeys([*vars(module), *getattr(module, "__all__", ())]):
        value = getattr(module, name, None)
        if (
            inspect.isclass(value)
            and hasattr(value, "iter_data")
            and not inspect.isabstract(value)
            and value.__module__.partition(".")[0] == module.__name__.partition(".")[0]
        ):
            found.append(name)
    return found
