"""Every exception and warning of the package, and a word of their messages.

::

    GulpError
      FormatError (ValueError)         what is on disk is not what the format says
        MetaFileError                  a .gmeta or gulp.json cannot be understood
        ChunkMismatchError             a data file and its map do not belong together
        CorruptFrameError              a record is not the frame that was stored
        AnnotationError                an annotation lacks what a dataset was to use
      GulpLookupError (LookupError)    asked for something that is not there
        ItemNotFoundError (KeyError)   no item has this id
        FrameIndexError (IndexError)   the item has no frame at this index
        FrameTimeError                 the item has no frame at this time, or no times
        SampleIndexError (IndexError, ValueError)  a dataset has no such sample
      IngestError                      an item or a run could not be ingested
        DuplicateIdError               two items have one id
        SourceReadError                a source file cannot be read
        ImageNotFoundError             an image file is missing or is no image
        NotOneVideoError               a folder holds no video, or several
        UnknownFileFormatError (RuntimeError)  an ending that tells no known format
        AdapterContractError (ValueError)  an adapter gave something it must not give
        IngestSettingError (ValueError)    no workers, empty chunks, nothing to ingest
      StorageError (OSError)           the storage refused
        ReadRangeError                 bytes outside of a file were asked for
        LockedError                    another writer holds the directory
      EmptySampleError                 a pipeline gave no sample
    MissingDependencyError (ImportError)   an optional package is not installed
        FfmpegNotFoundError                  the ffmpeg program is not installed
    GulpWarning (UserWarning)          a caller's mistake that was survived
    GulpDeprecationWarning (DeprecationWarning)   will go in a later release

A message says what happened, where, and what to do next. Where GulpIO2 0.0.4 let
a built-in exception through, the class here derives from it as well.
"""

from __future__ import annotations

__all__ = [
    "AdapterContractError",
    "AnnotationError",
    "ChunkMismatchError",
    "CorruptFrameError",
    "DuplicateIdError",
    "EmptySampleError",
    "FfmpegNotFoundError",
    "FormatError",
    "FrameIndexError",
    "FrameTimeError",
    "GulpDeprecationWarning",
    "GulpError",
    "GulpLookupError",
    "GulpWarning",
    "ImageNotFoundError",
    "IngestError",
    "IngestSettingError",
    "ItemNotFoundError",
    "LockedError",
    "MetaFileError",
    "MissingDependencyError",
    "NotOneVideoError",
    "ReadRangeError",
    "SampleIndexError",
    "SourceReadError",
    "StorageError",
    "UnknownFileFormatError",
    "with_article",
]


class GulpError(Exception):
    """Base of every error that this package raises on purpose."""


class FormatError(GulpError, ValueError):
    """What is on disk, or in memory, is not what the format says."""


class MetaFileError(FormatError):
    """A ``.gmeta`` map or a ``gulp.json`` manifest cannot be understood."""


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


class ImageNotFoundError(SourceReadError, FileNotFoundError):
    """An image file is missing, or is no image.

    Also a ``FileNotFoundError``, which is what GulpIO2 0.0.4 let through.
    """

    def __str__(self) -> str:
        """Give the message, which ``OSError`` would take apart."""
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
    """The storage refused: no space, no permission, an I/O error."""

    def __str__(self) -> str:
        """Leave an error number out that is none."""
        if self.errno is None and self.strerror and not self.filename:
            return str(self.strerror)
        return super().__str__()


class ReadRangeError(StorageError):
    """Bytes outside of a file were asked for."""


class LockedError(StorageError):
    """Another writer holds the directory."""


class EmptySampleError(GulpError):
    """A pipeline gave None: in testing, or as often as it was allowed to."""


class MissingDependencyError(GulpError, ImportError):
    """An optional package is not installed."""


class FfmpegNotFoundError(MissingDependencyError):
    """The ``ffmpeg`` program is not installed."""


class GulpWarning(UserWarning):
    """A caller's mistake that was survived."""


class GulpDeprecationWarning(DeprecationWarning):
    """Something that will be gone in a later release."""


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
