"""What a file may be opened as, and what is missing from it before it is."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av

from gulpio2.errors import SourceReadError
from gulpio2.media.wholeness import look_through

if TYPE_CHECKING:
    from gulpio2.media.cut import Damage, Found

__all__ = ["found_in", "open_container"]

# Demuxers that open what their file names: other files, this one again without end, or
# the network.
_REFERRING = frozenset(
    {"applehttp", "concat", "dash", "hls", "imf", "rtp", "rtsp", "sdp"}
    | {"webm_dash_manifest"}
)


def open_container(name: str, damage: Damage | None, options: dict[str, str]) -> Any:
    """Open a file, to be closed by the caller.

    Parameters
    ----------
    name : str
        The file.
    damage : Damage or None
        What is missing from it.
    options : dict
        Of its streams.

    Returns
    -------
    av.container.InputContainer

    Raises
    ------
    SourceReadError
        It is no video, or too damaged.
    """
    try:
        return av.open(
            f"file:{name}",  # an explicit protocol: a file may be called "a:b.mp4"
            options=options,
            container_options=_container_options(),
        )
    except (av.FFmpegError, ValueError) as cause:
        if damage:
            reason = f"it {damage.message}. {damage.advice}"
        else:
            said = getattr(cause, "strerror", None) or cause.args[-1]
            reason = f"{said}. It is no video, or damaged: leave it out"
            if _is_empty(Path(name)):
                reason = "the file is empty. Get it anew, or leave it out"
        raise SourceReadError(f"Video {name!r} cannot be opened: {reason}.") from cause


def _is_empty(path: Path) -> bool:
    """Tell whether it is a file of no bytes, as a download leaves that failed."""
    try:
        return path.is_file() and not path.stat().st_size
    except OSError:  # gone meanwhile, or not to be looked at
        return False


@functools.cache
def _container_options() -> dict[str, str]:
    """List the formats that a video may have; an image "a%d.png" is no series."""
    formats = sorted(av.formats_available - _REFERRING)
    return {"format_whitelist": ",".join(formats), "pattern_type": "none"}


def found_in(name: str, *, cached: bool = False) -> Found:
    """Tell what is missing from a file; and what else is known of it.

    Parameters
    ----------
    name : str
        The file.
    cached : bool
        Whether an earlier look at the unchanged file will do, for files that are opened
        many times: of a long Matroska a look takes a read for each of its blocks.

    Raises
    ------
    SourceReadError
        It cannot be read.
    """
    try:
        if cached:
            state = Path(name).stat()
            times = state.st_mtime_ns, state.st_ctime_ns
            return _found_before(name, state.st_dev, state.st_ino, state.st_size, times)
        return look_through(name)
    except FileNotFoundError as cause:
        raise SourceReadError(
            f"Video {name!r} does not exist. Check the folder and the name."
        ) from cause
    except OSError as cause:
        raise SourceReadError(
            f"Video {name!r} cannot be read: {cause.strerror or cause}. "
            "Mend that, or leave it out."
        ) from cause


@functools.lru_cache(maxsize=64)
def _found_before(name: str, *_: object) -> Found:
    return look_through(name)
