"""What the system refused, and what a person can do about it."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.errors import StorageError, UnreadablePlaceError

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = [
    "absolute",
    "broken_link",
    "cannot",
    "left_without_map",
    "local_path",
    "nearest_there",
    "not_opened",
    "not_read",
    "refuse_unwritable",
    "refused",
]

# Error number -> what to do; the first where nothing is written.
_READING = {
    errno.EACCES: "Make it readable for you (chmod), or ask its owner to",
    errno.EIO: "The disk may be failing: copy what can still be read",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENOTDIR: "A part of this path is a file: give the path of a folder",
    errno.ENAMETOOLONG: "A part of this path is too long: give a shorter one",
    errno.ELOOP: "Its links lead in a circle: give another path",
}
_INTACT = "What was committed before is intact"
_MAKE_ROOM = "Make room there and go on, or give another folder"
_WRITING = {
    **_READING,
    errno.EACCES: "Make the folder writable for you (chmod), or give another",
    errno.EPERM: "Make the folder writable for you, or give another",
    errno.EROFS: "It is mounted for reading only: give another folder",
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "No file may be so large there: give another folder",
    errno.EEXIST: "A file has this name, or a link that leads nowhere: give another",
}
# What is said of a link that leads to nothing, or in a circle.
_TO_NOTHING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
# A path object has one slash of the two. One letter would be a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)/")
# In place of that, for what is in chunks.
_OF_CHUNKS = {errno.EFBIG: "No file may be so large there: write smaller chunks"}
_EXTENDING = {
    **_WRITING,
    errno.EACCES: "Make the file writable for you (chmod), or ask its owner to",
    errno.EPERM: "The file itself may not be changed (lsattr): ask its owner",
}


def refused(
    cause: OSError,
    what: str,
    path: StrPath,
    *,
    writing: bool = False,
    extending: bool = False,
) -> StorageError:
    """Make the error that says what could not be done, where, and what to do.

    Parameters
    ----------
    cause : OSError
        What the system said; its number is kept.
    what : str
        A verb: ``open``.
    path : str or path
        With what.
    writing : bool, keyword-only
        It was to be written to.
    extending : bool, keyword-only
        As `writing`, and it was there: its own permissions count, not the folder's.

    Examples
    --------
    >>> print(refused(OSError(13, "Permission denied"), "read", "a").strerror)
    cannot read a: Permission denied. Make it readable for you (chmod), or ask its \
owner to
    """
    known = _EXTENDING if extending else _WRITING if writing else _READING
    # Journals, indexes and the like are as large as they have to be.
    is_of_chunk = os.path.basename(path).startswith("data_")  # noqa: PTH119  # any StrPath
    error = _told(cause, what, path, {**known, **(_OF_CHUNKS if is_of_chunk else {})})
    if not (writing or extending):
        return error
    return StorageError(cause.errno, f"{error.strerror}. {_INTACT}")


def left_without_map(cause: StorageError, path: str, *, is_new: bool) -> StorageError:
    """As `refused`, where a chunk was replaced and its new map cannot get its name.

    Parameters
    ----------
    cause : StorageError
        Why not.
    path : str
        The data file.
    is_new : bool, keyword-only
        Whether it is the new one already.
    """
    state = (
        f"{path} has the new frames, and no map says which items they are of: write "
        "the chunk again (open('wb')), or have `gulp2 repair` salvage the frames"
        if is_new
        else f"{path} is as it was, and its map is removed: open('ab') of the chunk "
        "that was to be written stores it again; else `gulp2 repair` salvages the "
        "frames"
    )
    said = str(cause.strerror).removesuffix(f". {_INTACT}")
    return StorageError(cause.errno, f"{said}. {state}. Other chunks are intact")


def not_opened(cause: OSError, path: str) -> StorageError:
    """As `refused`, of a data file that was to be read."""
    if not isinstance(cause, FileNotFoundError) or broken_link(path):
        return refused(cause, "open", path)
    return StorageError(
        cause.errno,
        f"cannot open {path}: {cause.strerror}{_seen_from(path)}. Put the file back, "
        "or open its directory again, if it has changed",
    )


def not_read(cause: OSError, path: str, offset: int) -> StorageError:
    """As `refused`, of a read of a data file that is open.

    Where the medium is to blame, it is told from what says nothing of that place.
    """
    error = refused(cause, "read", f"{path} at byte {offset}")
    if cause.errno == errno.EIO:
        return UnreadablePlaceError(*error.args)
    return error


def cannot(
    cause: OSError, what: str, path: StrPath, *, writing: bool = False
) -> StorageError:
    """As `refused`, where nothing is committed: for files beside a directory."""
    return _told(cause, what, path, _WRITING if writing else _READING)


def absolute(path: StrPath) -> Path:
    """Give the absolute path; links in it stay.

    Raises
    ------
    StorageError
        The current folder is gone, and the path is relative to it.
    """
    try:
        return Path(path).absolute()
    except OSError as cause:
        raise cannot(cause, "find", path) from cause


def local_path(path: StrPath, what: str) -> Path:
    """Give the path of a folder of this machine, and refuse a URL.

    As a path it would be a folder called ``s3:`` below the current one.

    Parameters
    ----------
    path : str or path
        Where something is to be, or is looked for.
    what : str
        What is to be done there, a verb: ``write to``.

    Returns
    -------
    Path
        It.

    Raises
    ------
    StorageError
        It is a URL, also one that a path object was made of, unless there is a folder
        that has this name.

    Examples
    --------
    >>> local_path("videos/a:b", "read")
    PosixPath('videos/a:b')
    """
    text = os.fspath(path)
    found = _URL.match(text)
    if found and (text[found.end() :].startswith("/") or not os.path.lexists(found[1])):
        raise StorageError(
            errno.EINVAL,
            f"cannot {what} {text}: it is a URL, and a folder of this machine is "
            "wanted. Give the path of one, such as where the storage is mounted",
        )
    return Path(text)


def _told(
    cause: OSError, what: str, path: StrPath, known: dict[int, str]
) -> StorageError:
    advice = known.get(cause.errno or 0)
    why = cause.strerror or cause
    if isinstance(cause, FileNotFoundError) and (target := broken_link(path)):
        why = f"it is a link to {target}, which is not there"
        advice = "Bring back what it leads to"
    elif isinstance(cause, FileNotFoundError) and _begins_nowhere(path):
        why = "the current folder is gone"
        advice = "Change to another (cd), or give an absolute path"
    said = [f"cannot {what} {os.fspath(path)}: {why}"]
    return StorageError(cause.errno, ". ".join(said + ([advice] if advice else [])))


def broken_link(path: StrPath) -> str | None:
    """Say where a symbolic link leads that leads to nothing.

    Parameters
    ----------
    path : str or path
        Of anything.

    Returns
    -------
    str or None
        What the link says; None where the path is no link, or something is there.
    """
    try:
        target = os.readlink(path)  # noqa: PTH115  # any StrPath
    except OSError:
        return None
    try:
        os.stat(path)  # noqa: PTH116  # any StrPath
    except FileNotFoundError:
        return target
    except OSError:  # nobody may know, or it leads in a circle: told by who opens it
        return None
    return None


def _begins_nowhere(path: StrPath) -> bool:
    """Tell whether a path is relative to a current folder that is gone."""
    if os.path.isabs(path):  # noqa: PTH117  # as below
        return False
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    except OSError:  # it is there, below what may not be read
        return False
    return False


def _seen_from(path: str) -> str:
    """Say where a relative path begins: elsewhere, where the program has gone on."""
    if os.path.isabs(path):  # noqa: PTH117  # a tenth of Path's time
        return ""
    try:
        return f" in {Path.cwd()}, where this path begins"
    except OSError:
        return ": the folder where this path begins is gone"


def refuse_unwritable(folder: StrPath) -> None:
    """Refuse a folder that cannot be written to, or made, before any work is done.

    Raises
    ------
    StorageError
        It, or the nearest above it that is there, may not be written to, is no folder,
        is a link to nothing, or cannot be looked at.
    """
    there = nearest_there(folder)
    try:
        is_folder = stat.S_ISDIR(there.stat().st_mode)
    except OSError as error:
        if error.errno not in _TO_NOTHING:
            raise refused(error, "look at", there, writing=True) from error
        is_there = OSError(errno.EEXIST, os.strerror(errno.EEXIST))
        raise refused(is_there, "create the folder", there, writing=True) from error
    reason = 0 if is_folder else errno.ENOTDIR
    if not (reason or os.access(there, os.W_OK | os.X_OK)):
        is_mounted_so = os.statvfs(there).f_flag & os.ST_RDONLY
        reason = errno.EROFS if is_mounted_so else errno.EACCES
    if reason:
        cause = OSError(reason, os.strerror(reason))
        raise refused(cause, "write below", there, writing=True)


def nearest_there(folder: StrPath) -> Path:
    """Give a folder, or the nearest above it that is there, where it would be made."""
    path = Path(folder)
    paths = (path, *absolute(path).parents)
    return next(each for each in paths if os.path.lexists(each))
