"""Finding source files in folders with literal names, never patterns.

A folder may be called ``g[1]`` or ``a*``; nothing here takes its name for a glob.
Hidden files and folders (a leading dot) are left out, as GulpIO2 0.0.4 did. A link
whose target is gone is listed: its item fails later, which is better than silence.
"""

from __future__ import annotations

import fnmatch
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.errors import NotOneVideoError, unreadable
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.types import StrPath

__all__ = [
    "find_files",
    "find_images_in_folder",
    "get_single_video_path",
    "is_folder",
    "join_path",
    "walk_folders",
]


# What makes a format a pattern.
_PATTERN = re.compile(r"[*?\[]")


def find_images_in_folder(
    folder: StrPath, formats: Iterable[str] = ("jpg",)
) -> list[str]:
    """List the images that lie directly in a folder.

    Parameters
    ----------
    folder : str or path object
        Taken literally, whatever characters it holds. It may be missing.
    formats : iterable of str
        Endings without their dot, case-sensitive, or patterns of such
        (``"[jJ][pP][gG]"``); a single str is one format.

    Returns
    -------
    list of str
        Sorted paths, each beginning with `folder`; empty for a missing folder.
    """
    return _files_in_folder(folder, [formats] if isinstance(formats, str) else formats)


def get_single_video_path(folder_name: StrPath, format_: str = "mp4") -> str:
    """Find the only video of one format in a folder.

    Parameters
    ----------
    folder_name : str or path object
        Taken literally, whatever characters it holds.
    format_ : str
        Ending without its dot, case-sensitive, or a pattern of such.

    Returns
    -------
    str
        The path of the video, beginning with `folder_name`.

    Raises
    ------
    NotOneVideoError
        The folder is missing, or it holds no such file, or more than one. It is an
        ``AssertionError`` too.
    """
    found = _files_in_folder(folder_name, [format_])
    if len(found) != 1:
        folder = os.fspath(folder_name)
        what = (
            f"{counted(len(found), 'file')} *.{format_}"
            if found
            else f"no file *.{format_}"
        )
        where = "" if Path(folder).is_dir() else " (there is no such folder)"
        raise NotOneVideoError(
            f"{folder!r} holds {what}{where}; exactly one is expected. Put the one "
            "video of the item there, or take it out of the list of items."
        )
    return found[0]


def find_files(
    folder: StrPath, *, max_depth: int | None = None
) -> list[tuple[str, str]]:
    """List the files in a folder and below it.

    Parameters
    ----------
    folder : str or path object
        Taken literally; a trailing slash makes no difference.
    max_depth : int, optional
        How many folders down to look: 0 is the folder alone. Default: all.

    Returns
    -------
    list of (str, str)
        Parent folder as found and file name, sorted by the whole path. Names of
        parents are shared strings, so that a long list stays small.

    Raises
    ------
    SourceNotFoundError
        The folder is missing.
    SourceReadError
        It, or one below it, cannot be listed.

    Notes
    -----
    One listing per folder and no call per file on usual file systems. Links to
    folders are followed, except to a folder that they lie in.
    """
    found = [
        (parent, name)
        for parent, names, _ in walk_folders(folder, max_depth=max_depth)
        for name in names
    ]
    return sorted(found, key=lambda entry: join_path(*entry))


def walk_folders(
    folder: StrPath, *, max_depth: int | None = None
) -> Iterator[tuple[str, list[str], bool]]:
    """Give folders one by one: each with its files, and whether others are in it.

    Parameters, errors and links as of `find_files`. There may be millions of files,
    which a list of them does not have to hold.
    """
    root = str(Path(folder))
    # Folders to look into, each with those that it lies in: there may be more of these
    # than Python has room for calls.
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [(root, ())]
    while waiting:
        folder, ancestors = waiting.pop()
        try:
            status = Path(folder).stat()
            with os.scandir(folder) as listing:
                entries = [each for each in listing if not each.name.startswith(".")]
        except OSError as cause:
            advice = "Give the path of an existing folder"
            if folder != root or isinstance(cause, PermissionError):
                advice = "Mend that, or move it away"
            why = (
                f"The folder {folder!r} cannot be listed ({cause.strerror}). {advice}."
            )
            raise unreadable(cause, why) from cause
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            continue
        inside = (*ancestors, identity)
        files: list[str] = []
        below: list[str] = []
        for entry in entries:
            (below if is_folder(entry) else files).append(entry.name)
        if max_depth is None or len(ancestors) < max_depth:
            waiting += [(join_path(folder, name), inside) for name in below]
        yield folder, files, bool(below)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder; what cannot be looked at is none."""
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or into a folder that is closed to us
        return False


def _files_in_folder(folder: StrPath, formats: Iterable[str]) -> list[str]:
    path = os.fspath(folder)
    endings, patterns = [], []
    for each in formats:
        if _PATTERN.search(each):
            patterns.append(re.compile(fnmatch.translate(f"*.{each}")))
        else:
            endings.append(f".{each}")
    plain = tuple(endings)
    try:
        with os.scandir(path or ".") as listing:
            return sorted(
                join_path(path, entry.name)
                for entry in listing
                if (
                    entry.name.endswith(plain)
                    or any(pattern.match(entry.name) for pattern in patterns)
                )
                and not entry.name.startswith(".")
                and not is_folder(entry)
            )
    except (FileNotFoundError, NotADirectoryError):
        return []


def join_path(folder: str, name: str) -> str:
    """Join as ``os.path.join`` does, for names that are known to be relative.

    A dataset has millions of files, and `pathlib` takes several microseconds for each.
    """
    if not folder or folder.endswith(os.sep):
        return folder + name
    return f"{folder}{os.sep}{name}"
