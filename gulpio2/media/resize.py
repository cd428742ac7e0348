"""Resizing by the short edge, with OpenCV."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gulpio2.arguments import whole_number
from gulpio2.codecs.jpeg import MAX_PIXELS
from gulpio2.codecs.pixels import to_storable
from gulpio2.errors import IngestSettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from gulpio2.types import StrPath

__all__ = ["resize_by_short_edge", "resize_images", "resize_pixels", "resized_shape"]

# What OpenCV resizes as it is.
_RESIZABLE = frozenset(
    map(np.dtype, (np.uint8, np.uint16, np.int16, np.float32, np.float64))
)


def resized_shape(height: int, width: int, short_edge: int) -> tuple[int, int]:
    """Give the size of an image whose short edge has a given length.

    The other edge is cut to a whole number, not rounded, as in GulpIO2 0.0.4.

    Parameters
    ----------
    height, width : int
        Pixels.
    short_edge : int
        Pixels; below 1 for no change.

    Returns
    -------
    height, width : int
        Pixels; larger than before where the short edge is.

    Raises
    ------
    IngestSettingError
        A ``ValueError``: it would be too large for memory.

    Examples
    --------
    >>> resized_shape(480, 640, 256), resized_shape(240, 427, 256)
    ((256, 341), (256, 455))
    >>> resized_shape(480, 640, -1)
    (480, 640)
    """
    if short_edge < 1:
        return height, width
    # In this order and in doubles: another order gives other sizes.
    if height < width:
        shape = short_edge, int(short_edge * (width / height))
    else:
        shape = int(short_edge * (height / width)), short_edge
    if shape[0] * shape[1] > MAX_PIXELS:
        raise IngestSettingError(
            f"a frame of {height}x{width} (height x width) would become one of "
            f"{shape[0]}x{shape[1]} with a short edge of {short_edge}: more than "
            f"{MAX_PIXELS} pixels. Give a smaller size, or set GULPIO2_MAX_PIXELS"
        )
    return shape


def resize_pixels(pixels: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[Any]:
    """Resize an image or a single plane.

    Parameters
    ----------
    pixels : numpy.ndarray
        ``(H, W)`` or ``(H, W, C)``, uint8 or uint16.
    shape : tuple of int
        New height and width.

    Returns
    -------
    numpy.ndarray
        Of the same type; the argument itself where it has that size.

    Notes
    -----
    Pixels are averaged over their areas where the image shrinks, and are linear
    between their centres where it grows.
    """
    import cv2

    height, width = pixels.shape[:2]
    if shape == (height, width):
        return pixels
    shrinks = shape[0] <= height and shape[1] <= width
    interpolation = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    size = (shape[1], shape[0])
    return np.asarray(cv2.resize(pixels, size, interpolation=interpolation))


def resize_by_short_edge(img: Any, size: int) -> npt.NDArray[np.uint8]:
    """Resize an image so that its short edge has a given length.

    Parameters
    ----------
    img : numpy.ndarray, PIL image, str, path object or binary file object
        A path or file is read; an array or PIL image may be whatever `to_storable`
        takes, and an array also of other numbers, or of two or four channels (depth,
        flow).
    size : int
        Pixels; below 1 for no change.

    Returns
    -------
    numpy.ndarray
        uint8: ``(H, W, 3)`` RGB, or ``(H, W)`` grey; of the type and the channels of
        an array that is no frame.

    Raises
    ------
    ImageNotFoundError
        A ``FileNotFoundError``: there is no such file, or it is no image, or a damaged
        one.
    AdapterContractError
        A ``ValueError``: neither a path nor an image.
    TypeError
        The size is no whole number.

    Notes
    -----
    GulpIO2 0.0.4 resized with Pillow, so pixels differ by some levels; sizes do not.
    """
    if size >= 1:
        size = whole_number("size", size)
    if isinstance(img, (str, os.PathLike)):
        from gulpio2.media.image_files import read_image

        pixels = read_image(img)
    elif hasattr(img, "read"):
        from gulpio2.media.image_files import read_open_image

        pixels = read_open_image(img)
    elif _is_no_frame(img):
        return _resize_numbers(img, resized_shape(img.shape[0], img.shape[1], size))
    else:
        pixels = to_storable(img)
    height, width = pixels.shape[:2]
    return resize_pixels(pixels, resized_shape(height, width, size))


def _is_no_frame(img: Any) -> bool:
    """Tell an array of numbers that cannot be stored, but resized."""
    if not isinstance(img, np.ndarray) or img.dtype.kind not in "biuf":
        return False
    if img.ndim == 2:
        return bool(img.dtype != np.uint8)
    return bool(img.ndim == 3 and img.dtype == np.uint8 and img.shape[2] in (2, 4))


def _resize_numbers(
    array: npt.NDArray[Any], shape: tuple[int, int]
) -> npt.NDArray[Any]:
    if array.dtype in _RESIZABLE:
        return resize_pixels(array, shape)
    resized = resize_pixels(array.astype(np.float64), shape)
    if array.dtype.kind != "f":
        resized = np.rint(resized)
    return resized.astype(array.dtype)


def resize_images(
    imgs: Iterable[StrPath | IO[bytes]], img_size: int = -1
) -> Iterator[npt.NDArray[np.uint8]]:
    """Read and resize image files, one at a time as they are asked for.

    Parameters
    ----------
    imgs : iterable of str, path object or binary file object
        Files, such as those of an archive that are open; also a generator.
    img_size : int
        Length of the short edge in pixels; below 1 for no change.

    Yields
    ------
    numpy.ndarray
        As `resize_by_short_edge` gives it.

    Raises
    ------
    ImageNotFoundError
        A ``FileNotFoundError``: there is no such file, or it is no image, or a damaged
        one.
    """
    for img in imgs:
        yield resize_by_short_edge(img, img_size)
