"""Colours that only the container declares.

HEVC, VP9 and ProRes have a place for the matrix in their frames, and many encoders
leave it unspecified. FFmpeg's decoders then forget what the container says (``colr`` of
MP4 and MOV, ``Colour`` of Matroska and WebM), which players go by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["in_declared_colours"]

# Of AVColorSpace.
_UNSPECIFIED = 2


def in_declared_colours(frames: Iterable[Any], matrix: int) -> Iterator[Any]:
    """Give frames such that they say which matrix their container says they have.

    Parameters
    ----------
    frames : iterable of av.VideoFrame
        Decoded when they are asked for, and not before.
    matrix : int
        Of AVColorSpace: what the container says of the stream, which its decoder may
        forget with the first frame.

    Returns
    -------
    iterator of av.VideoFrame
        Each with that matrix, where it has none itself.
    """
    # Of most files neither says anything: nothing is to be done for each frame then.
    return iter(frames) if matrix == _UNSPECIFIED else _with_matrix(frames, matrix)


def _with_matrix(frames: Iterable[Any], matrix: int) -> Iterator[Any]:
    for frame in frames:
        if frame.colorspace == _UNSPECIFIED:
            frame.colorspace = matrix
        yield frame
