"""Frames of an item as image files."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gulpio2.errors import FormatError, GulpError, StorageError
from gulpio2.storage.refusals import cannot
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from gulpio2.item import StoredItem
    from gulpio2.types import Progress

    Frame = npt.NDArray[np.uint8]

__all__ = [
    "BLOCK",
    "OutputError",
    "encode_image",
    "file_name",
    "new_file",
    "video_path",
    "write_file",
    "write_images",
]

# Frames that are in memory together.
BLOCK = 32
# Bytes of a file name that every file system takes, with room for an ending.
_MAX_NAME = 200


def file_name(id_: str) -> str:
    """Make one file name out of any id, a different one for each.

    Parameters
    ----------
    id_ : str
        May hold slashes, dots, control characters, or nothing.

    Returns
    -------
    str
        Letters and digits of any language, ``-`` and ``_`` stay, dots too but for a
        first one; all else becomes ``%XX`` as in a URL. Long ones are cut, and end with
        a digest.

    Examples
    --------
    >>> file_name("../a b"), file_name("clip.mp4")
    ('%2E.%2Fa%20b', 'clip.mp4')
    """
    parts = [
        char
        if char.isalnum() or char in "-_" or (char == "." and position)
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for position, char in enumerate(id_)
    ]
    name = "".join(parts) or "%"
    if len(name.encode()) <= _MAX_NAME:
        return name
    digest = hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    # Two signs that no other name has behind one another.
    kept = name.encode()[: _MAX_NAME - len(digest) - 2].decode("utf-8", "ignore")
    return f"{kept}%%{digest}"


def video_path(folder: Path, id_: str, directory: Container[object]) -> Path:
    """Give the file for the video of an item, a different one for each.

    Parameters
    ----------
    folder : Path
        Where it is to be.
    id_ : str
        Of the item.
    directory : GulpDirectory
        What tells which other ids there are.

    Returns
    -------
    Path
        The ID and ``.mp4``; the ID alone where it ends so, unless that is the name of
        another item's video, or of a folder, as of the item's images.
    """
    name = file_name(id_)
    path = folder / name
    # The name with the ending twice stays this item's: of two ids, one of which is the
    # other and .mp4, the longer has no video that is called as the id.
    if (
        name.endswith(".mp4")
        and id_.removesuffix(".mp4") not in directory
        and not os.path.isdir(path)  # noqa: PTH112  # Path's raises
    ):
        return path
    return folder / f"{name}.mp4"


class OutputError(StorageError):
    """What is to be written cannot be, which is no fault of what was read for it."""

    @classmethod
    def of(cls, error: StorageError) -> OutputError:
        """Give an error of this class that says the same."""
        return cls(error.errno, error.strerror)


def write_images(
    item: StoredItem,
    indices: Sequence[int],
    paths: Sequence[Path],
    *,
    overwrite: bool,
    progress: Progress = no_progress,
) -> None:
    """Write frames as image files.

    Parameters
    ----------
    item : StoredItem
        The item.
    indices : sequence of int
        Its frames.
    paths : sequence of Path
        A file for each; the ending decides: ``.jpg`` gets the stored bytes as they
        are, anything else is encoded by OpenCV.
    overwrite : bool
        Files that are there are replaced.
    progress : Progress, optional
        Called for each frame.

    Raises
    ------
    StorageError
        A file is there already, or cannot be written.
    """
    for start in range(0, len(indices), BLOCK):
        block = list(indices[start : start + BLOCK])
        files = paths[start : start + BLOCK]
        if files[0].suffix == ".jpg":
            contents = item.read_jpegs(block)
        else:
            contents = [
                encode_image(frame, path.suffix)
                for frame, path in zip(item.read_frames(block), files, strict=True)
            ]
        for path, content in zip(files, contents, strict=True):
            write_file(path, content, overwrite=overwrite)
            progress(frames=1, num_bytes=len(content))


def write_file(path: Path, content: bytes, *, overwrite: bool) -> None:
    """Write one file.

    Raises
    ------
    StorageError
        It is there already, or cannot be written.
    """
    with new_file(path, overwrite=overwrite) as partial:
        partial.write_bytes(content)


@contextmanager
def new_file(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a name to write to; what is there gets its own name when all went well.

    Parameters
    ----------
    path : Path
        The file in the end.
    overwrite : bool
        A file that is there is replaced.

    Yields
    ------
    Path
        In the same folder; removed if the block fails, or a SIGTERM or SIGHUP, for
        which nobody else has set anything, ends the program.

    Raises
    ------
    StorageError
        `path` is there already, or cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        if path.exists() and not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        with _removing_when_ended(partial):
            yield partial
            if overwrite or not _give_name(partial, path):
                partial.replace(path)
    except GulpError:
        raise
    except OSError as cause:
        raise OutputError.of(_refused(path, cause)) from cause
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def _removing_when_ended(partial: Path) -> Iterator[None]:
    """Have the signals that end a program by default remove a file before."""

    def end(number: int, _: object) -> None:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # the parent sees by what it ended

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    changed = [n for n in numbers if signal.getsignal(n) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _give_name(partial: Path, path: Path) -> bool:
    """Give a file its name unless another has come to have it meanwhile.

    Returns
    -------
    bool
        False where the file system has no links, by which alone it can be done.

    Raises
    ------
    FileExistsError
        There is one.
    """
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:
        return False
    return True


def encode_image(frame: Frame, suffix: str) -> bytes:
    """Encode RGB or grey pixels as an image file.

    Parameters
    ----------
    frame : numpy.ndarray
        ``(H, W, 3)`` RGB or ``(H, W)``, uint8.
    suffix : str
        Ending of the format, with its dot.
    """
    import cv2

    pixels = frame if frame.ndim == 2 else cv2.cvtColor(frame, cv2.COLOR_RGB2BGR)
    good, encoded = cv2.imencode(suffix, pixels)
    if not good:
        raise FormatError(
            f"OpenCV, as it is installed here, cannot write {suffix} images. Install "
            "its wheel again (pip install --force-reinstall opencv-python-headless); "
            "gulp2 extract --format jpg does without"
        )
    return encoded.tobytes()


def _refused(path: Path, cause: OSError) -> StorageError:
    if isinstance(cause, FileExistsError):
        return StorageError(
            cause.errno, f"{path} is there already; --overwrite replaces it"
        )
    return cannot(cause, "write", path, writing=True)
