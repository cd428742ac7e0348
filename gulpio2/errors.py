"""Every exception and warning of the package, and a word of their messages.

::

    GulpError
      FormatError (ValueError)         what is on disk is not what the format says
        MetaFileError                  a .gmeta or gulp.json cannot be understood
          MapChangedError              a map is another than when it was opened
          UnknownVersionError          the directory has another version of the format
        ChunkMismatchError (AssertionError)  a data file and its map do not fit
        CorruptFrameError              a record is not the frame that was stored
        AnnotationError (AssertionError)  an annotation lacks what was to be used
      GulpLookupError (LookupError)    asked for something that is not there
        ItemNotFoundError (KeyError)   no item has this id
        FrameIndexError (IndexError)   the item has no frame at this index
        FrameTimeError                 the item has no frame at this time, or no times
        SampleIndexError (IndexError, ValueError)  a dataset has no such sample
      IngestError                      an item or a run could not be ingested
        DuplicateIdError (AssertionError)  two items have one id
        SourceReadError                a source file cannot be read
          SourceNotFoundError (FileNotFoundError)  it is not there
            ImageNotFoundError         an image file is missing
              DamagedImageError        it is no image, or a damaged one
          SourceFormatError (ValueError)  a list or annotation file is none
            SourceFieldError (KeyError, IndexError)  an entry of it lacks a field
          NotOneVideoError (AssertionError)  a folder holds no video, or several
          UnknownFileFormatError (RuntimeError)  an ending that tells no known format
        AdapterContractError (ValueError)  an adapter gave something it must not give
        IngestSettingError (ValueError, AssertionError)  a run that cannot be
      StorageError (OSError)           the storage refused
        StorageNotFoundError (FileNotFoundError)  a file or folder is missing
        StorageExistsError (FileExistsError)  something else has the name
        StorageDeniedError (PermissionError)  the system does not permit it
        StorageNotFolderError (NotADirectoryError)  a part of the path is a file
        ReadRangeError (ValueError)    bytes outside of a file were asked for
        UnreadablePlaceError           the medium cannot be read at a place of a file
        LockedError                    another writer holds the directory
      EmptySampleError                 a pipeline gave no sample
      WorkerEndedError (RuntimeError)  a worker process of a loader was killed
      MissingDependencyError (ImportError)  an optional package is not installed
        FfmpegNotFoundError            the ffmpeg program is not installed
    GulpWarning (UserWarning)          a caller's mistake that was survived

A message says what happened, where, and what to do next. Where GulpIO2 0.0.4 let
a built-in exception through, the class here derives from it as well; the few that do
not are named in ``docs/compatibility.md``.
"""

from __future__ import annotations

__all__ = [
    "AdapterContractError",
    "AnnotationError",
    "ChunkMismatchError",
    "CorruptFrameError",
    "DamagedImageError",
    "DuplicateIdError",
    "EmptySampleError",
    "FfmpegNotFoundError",
    "FormatError",
    "FrameIndexError",
    "FrameTimeError",
    "GulpError",
    "GulpLookupError",
    "GulpWarning",
    "ImageNotFoundError",
    "IngestError",
    "IngestSettingError",
    "ItemNotFoundError",
    "LockedError",
    "MapChangedError",
    "MetaFileError",
    "MissingDependencyError",
    "NotOneVideoError",
    "ReadRangeError",
    "SampleIndexError",
    "SourceFieldError",
    "SourceFormatError",
    "SourceNotFoundError",
    "SourceReadError",
    "StorageDeniedError",
    "StorageError",
    "StorageExistsError",
    "StorageNotFolderError",
    "StorageNotFoundError",
    "UnknownFileFormatError",
    "UnknownVersionError",
    "UnreadablePlaceError",
    "WorkerEndedError",
    "of_zeros",
    "unreadable",
    "with_article",
]


class GulpError(Exception):
    """Base of every error that this package raises on purpose."""


class FormatError(GulpError, ValueError):
    """What is on disk, or in memory, is not what the format says."""


class MetaFileError(FormatError):
    """A ``.gmeta`` map or a ``gulp.json`` manifest cannot be understood."""


class MapChangedError(MetaFileError):
    """A map is not any more what it was when its directory was opened."""


class UnknownVersionError(MetaFileError):
    """A directory follows a version of the format that this package does not know."""


class ChunkMismatchError(FormatError, AssertionError):
    """A data file and its map do not belong together, or one is missing.

    Also an ``AssertionError``, which is what GulpIO2 0.0.4 raised.
    """


class CorruptFrameError(FormatError):
    """A record is not the frame that was stored: no JPEG, or a wrong checksum."""


class AnnotationError(FormatError, AssertionError):
    """An entry of an annotation file lacks what the dataset was told to use."""


class GulpLookupError(GulpError, LookupError):
    """Something was asked for that is not there."""


class ItemNotFoundError(GulpLookupError, KeyError):
    """No item has this id.

    Parameters
    ----------
    message : str
        What to say.
    id_ : str, optional
        The id, where it is one. It is the argument that a ``KeyError`` has.
    """

    def __init__(self, message: str = "", id_: str | None = None) -> None:
        super().__init__(message if id_ is None else id_)
        self._message = message

    def __str__(self) -> str:
        """Give the message itself, where ``KeyError`` gives its repr."""
        return self._message

    def __reduce__(self) -> tuple[object, ...]:
        """Keep both on the way to another process."""
        return type(self), (self._message, self.args[0]), self.__dict__


class FrameIndexError(GulpLookupError, IndexError):
    """The item has no frame at this index."""


class FrameTimeError(GulpLookupError):
    """The item has no frame at this time, or carries no presentation times."""


class SampleIndexError(GulpLookupError, IndexError, ValueError):
    """A dataset has no sample at this index, from the beginning or from the end."""


class IngestError(GulpError):
    """An item, or a whole run, could not be ingested."""


class DuplicateIdError(IngestError, AssertionError):
    """Two items have the same id.

    Also an ``AssertionError``, which is what GulpIO2 0.0.4 raised on opening.
    """


class SourceReadError(IngestError):
    """A source file cannot be read, or gave fewer frames than it has."""


class SourceNotFoundError(SourceReadError, FileNotFoundError):
    """A list, an annotation file or a folder of sources is not there.

    Also a ``FileNotFoundError``, which is what GulpIO2 0.0.4 let through.
    """

    def __str__(self) -> str:
        """Give the message, which ``OSError`` would take apart."""
        return str(self.args[0]) if self.args else ""


class ImageNotFoundError(SourceNotFoundError):
    """An image file is missing."""


class DamagedImageError(ImageNotFoundError):
    """An image file is no image, or a damaged one, as where it is cut off.

    GulpIO2 0.0.4 says that such an image is not found.
    """


class SourceFormatError(SourceReadError, ValueError):
    """A list or an annotation file cannot be understood.

    Also a ``ValueError``, which is what GulpIO2 0.0.4 let through.
    """


class SourceFieldError(SourceFormatError, KeyError, IndexError):
    """An entry of a list or of an annotation file lacks a field.

    Also a ``KeyError`` and an ``IndexError``: GulpIO2 0.0.4 let the first through for
    an object without a key, and the second for a row that is too short.
    """

    def __str__(self) -> str:
        """Give the message itself, where ``KeyError`` gives its repr."""
        return str(self.args[0]) if self.args else ""


class NotOneVideoError(SourceReadError, AssertionError):
    """A folder that must hold exactly one video holds none, or several.

    Also an ``AssertionError``, which is what GulpIO2 0.0.4 raised.
    """


class UnknownFileFormatError(SourceReadError, RuntimeError):
    """A file has an ending that tells no known format.

    Also a ``RuntimeError``, which is what GulpIO2 0.0.4 raised.
    """


class AdapterContractError(IngestError, ValueError):
    """An adapter gave something that it must not give.

    Also a ``ValueError``, which is what GulpIO2 0.0.4 raised for a frame of a wrong
    shape.
    """


class IngestSettingError(IngestError, ValueError, AssertionError):
    """A run that cannot be: no workers, empty chunks, or nothing to ingest.

    Also an ``AssertionError``, which is what GulpIO2 0.0.4 raised.
    """


class StorageError(GulpError, OSError):
    """The storage refused: no space, no permission, an I/O error.

    One with the number of a missing file is a `StorageNotFoundError`, and so on for
    the classes below, as with ``OSError`` itself.
    """

    def __new__(cls, *args: object) -> StorageError:
        """Give the class that belongs to the error number, where there is one."""
        if cls is StorageError:
            cls = _OF_BUILT_IN.get(type(OSError(*args)), cls)
        return super().__new__(cls, *args)

    def __str__(self) -> str:
        """Leave an error number out that is none."""
        if self.errno is None and self.strerror and not self.filename:
            return str(self.strerror)
        return super().__str__()


class StorageNotFoundError(StorageError, FileNotFoundError):
    """A file that is to be read, or a folder to be written to, is not there."""


class StorageExistsError(StorageError, FileExistsError):
    """A file has the name that another file or a folder was to get."""


class StorageDeniedError(StorageError, PermissionError):
    """The system does not permit it to this user."""


class StorageNotFolderError(StorageError, NotADirectoryError):
    """A part of the path is a file, where a folder must be."""


_OF_BUILT_IN: dict[type[OSError], type[StorageError]] = {
    FileExistsError: StorageExistsError,
    FileNotFoundError: StorageNotFoundError,
    NotADirectoryError: StorageNotFolderError,
    PermissionError: StorageDeniedError,
}


class ReadRangeError(StorageError, ValueError):
    """Bytes outside of a file were asked for.

    Also a ``ValueError``, which is what GulpIO2 0.0.4 raised for a frame that was cut.
    """


class UnreadablePlaceError(StorageError):
    """The medium cannot be read at a place of a file that is open (``EIO``).

    It may pass, as of a network; what stays is damage of what lies there. An error of
    opening the file says nothing of its frames, and is another one.
    """


class LockedError(StorageError):
    """Another writer holds the directory, or appends to the chunk."""


class EmptySampleError(GulpError):
    """A pipeline gave None: in testing, or as often as it was allowed to."""


class WorkerEndedError(GulpError, RuntimeError):
    """A worker process of a loader has ended, and nobody asked it to."""


class MissingDependencyError(GulpError, ImportError):
    """An optional package is not installed."""


class FfmpegNotFoundError(MissingDependencyError):
    """The ``ffmpeg`` program is not installed."""


class GulpWarning(UserWarning):
    """A caller's mistake that was survived."""


def unreadable(cause: Exception, message: str) -> SourceReadError:
    """Make the error of a source file or folder that cannot be read.

    Parameters
    ----------
    cause : Exception
        What was raised on reading it; it decides the class.
    message : str
        What to say.

    Examples
    --------
    >>> unreadable(FileNotFoundError(), "there is no list")
    SourceNotFoundError('there is no list')
    """
    if isinstance(cause, FileNotFoundError):
        return SourceNotFoundError(message)
    if isinstance(cause, ValueError):  # of JSON, or of a text's encoding
        return SourceFormatError(message)
    return SourceReadError(message)


def of_zeros(start: bytes) -> str:
    """Say what it may mean where there are zeros in place of a frame; else nothing.

    Parameters
    ----------
    start : bytes
        What the frame begins with.
    """
    if start[:2] != b"\0\0":
        return ""
    return (
        ". It is zeros: a damaged one, or one of an item that was deleted and "
        "compacted since the directory was opened, which is to be opened again"
    )


def with_article(noun: str) -> str:
    """Put "a" or "an" before a noun, such as the name of a type.

    Examples
    --------
    >>> with_article("int"), with_article("list")
    ('an int', 'a list')
    """
    # By the letter: of the names of types, those in "uint" and "user" sound otherwise.
    spoken = noun.lower()
    vowel = spoken.startswith(("a", "e", "i", "o", "u"))
    return f"{'an' if vowel and not spoken.startswith(('ui', 'use')) else 'a'} {noun}"
