"""Errors of datasets; each is also the built-in kind that the interface promises."""

from __future__ import annotations

from gulpio2.errors import FormatError, GulpError, GulpLookupError

__all__ = ["AnnotationError", "EmptySampleError", "SampleIndexError"]


class AnnotationError(FormatError, AssertionError):
    """An entry of an annotation file lacks what the dataset was told to use."""


class EmptySampleError(GulpError):
    """A pipeline gave None: in testing, or as often as it was allowed to."""


class SampleIndexError(GulpLookupError, IndexError, ValueError):
    """A dataset has no sample at this index, from the beginning or from the end."""
