"""Who may read a file that takes another's place, or is made of other files."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["permit_copy", "settle_permissions", "withhold"]


def settle_permissions(
    path: Path, replaced: Path | os.stat_result, made_of: Iterable[Path]
) -> None:
    """Give a file the permissions of the one that it replaces, and no more readers.

    And its owner and group, where this process may: an administrator's change of a map
    of mode 0600 would take it from who reads it. Where the file system knows no
    permissions, all stays as it is.

    Parameters
    ----------
    path : Path
        The file, under the name that it is written by.
    replaced : Path or os.stat_result
        Its name to be, which another file may have; or what was seen of one that had
        it, and is gone.
    made_of : iterable of Path
        Files whose content is in it: nobody may read it who may not read each of them.
        Where they have one owner or group, it gets that, too.

    Notes
    -----
    Where it cannot get the group, its own group may do no more than everybody.
    """
    # Where there is no such file, or there are no permissions, it stays as made.
    with contextlib.suppress(OSError):
        own = path.lstat()
        if not isinstance(replaced, os.stat_result):
            replaced = _regular_state(replaced.lstat) or own
        model = replaced
        mode, owner, group = model.st_mode & 0o777, model.st_uid, model.st_gid
        # A map may be a link; what it leads to is read.
        found = [state for each in made_of if (state := _regular_state(each.stat))]
        owners = {state.st_uid for state in found}
        groups = {state.st_gid for state in found or [model]}
        for state in found:
            mode &= state.st_mode
        owner = min(owners) if len(owners) == 1 else owner
        group = min(groups) if len(groups) == 1 else group
        if (owner, group) != (own.st_uid, own.st_gid):
            _give(path, owner, group)
        if groups - {path.lstat().st_gid}:
            mode &= ~0o070 | (mode & 0o007) << 3
        if mode != stat.S_IMODE(own.st_mode):
            path.chmod(mode)


def permit_copy(path: Path, sources: Iterable[Path]) -> None:
    """Let nobody read a copy who may not read all that it is made of.

    Its owner may write to it, also where they may not write to those.

    Parameters
    ----------
    path : Path
        The copy, before anything is written to it.
    sources : iterable of Path
        What it will be made of.
    """
    settle_permissions(path, path, sources)
    with contextlib.suppress(OSError):  # where there are no permissions
        path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IWUSR)


def withhold(path: Path, replaced: Path) -> None:
    """Let nobody read a file while it is written who may not read what it replaces.

    Its owner may write to it all the same, as others do to lock it.

    Parameters
    ----------
    path : Path
        The file, under the name that it is written by.
    replaced : Path
        Its name to be, which another file may have.
    """
    with contextlib.suppress(OSError):
        if (model := _regular_state(replaced.lstat)) is not None:
            mode = stat.S_IMODE(path.lstat().st_mode)
            path.chmod(mode & (model.st_mode | 0o600))


def _regular_state(look: Callable[[], os.stat_result]) -> os.stat_result | None:
    """Look at a file; None where there is none, or it is no file."""
    with contextlib.suppress(OSError):
        state = look()
        if stat.S_ISREG(state.st_mode):
            return state
    return None


def _give(path: Path, owner: int, group: int) -> None:
    """Give a file away, or if this process may not, to the group alone."""
    try:
        os.chown(path, owner, group)
    except OSError:
        with contextlib.suppress(OSError):
            os.chown(path, -1, group)
