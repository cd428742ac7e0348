"""Whatever a caller calls an image, as an array that can be stored: RGB or grey bytes.

Transparency is dropped, never blended: the colour that a pixel has is stored whether
or not it could be seen, as ``convert("RGB")`` of Pillow does it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import AdapterContractError, with_article

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "cmyk_to_rgb",
    "is_grey_pil",
    "is_pil_image",
    "resample_plane",
    "to_eight_bits",
    "to_storable",
]

# Modes of Pillow, and what they are converted to. "I;16" and "I" have their own rule.
_PIL_TARGETS = {
    "L": "L",
    "1": "L",
    "LA": "L",
    "La": "L",
    "RGB": "RGB",
    "P": "RGB",
    "PA": "RGB",
    "RGBA": "RGB",
    "RGBX": "RGB",
    "RGBa": "RGB",
    "CMYK": "RGB",
    "YCbCr": "RGB",
    "LAB": "RGB",
    "HSV": "RGB",
}
_PIL_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N", "I")


def to_storable(frame: Any) -> npt.NDArray[np.uint8]:
    """Make an array that can be stored as a frame.

    Parameters
    ----------
    frame : array_like or PIL image
        An array ``(H, W)``, ``(H, W, 1)``, ``(H, W, 3)`` or ``(H, W, 4)`` of uint8 or
        bool, of any strides; the fourth channel is dropped, bool becomes 0 and 1. A
        PIL image of any mode but ``F``: grey for ``L``, ``LA``, ``1``, ``I``, ``I;16``,
        which is scaled from 16 bits; RGB for all others.

    Returns
    -------
    numpy.ndarray
        uint8, C-contiguous: ``(H, W)`` grey or ``(H, W, 3)`` RGB. The argument itself
        where it already is that.

    Raises
    ------
    AdapterContractError
        A ``ValueError``: no image, or values that have no obvious place in 0 to 255
        (float, wider integers); the message gives shape and type.

    Examples
    --------
    >>> to_storable(np.zeros((4, 6, 4), np.uint8)[::2]).shape
    (2, 6, 3)
    """
    if is_pil_image(frame):
        return _from_pil(frame)
    array = np.asarray(frame)
    if array.dtype.kind in "OSU":
        of_files = ""
        if isinstance(frame, (str, os.PathLike)):
            of_files = "; files are given as VideoFrames(path) or ImageFrames(paths)"
        raise AdapterContractError(
            f"{with_article(type(frame).__name__)} is no frame: give an array, a "
            f"PIL image or the bytes of a JPEG{of_files}"
        )
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)  # as 0.0.4 did
    if array.dtype != np.uint8:
        raise AdapterContractError(
            f"a frame of shape {array.shape} and type {array.dtype} cannot be stored: "
            "frames are uint8 from 0 to 255. Scale it and convert it with "
            ".astype(numpy.uint8)"
        )
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    elif array.ndim == 3 and array.shape[2] == 4:
        array = array[..., :3]
    if array.ndim != 2 and (array.ndim != 3 or array.shape[2] != 3):
        raise AdapterContractError(
            f"a frame of shape {array.shape} is no image: it must be (H, W), "
            "(H, W, 1), (H, W, 3) or (H, W, 4)"
        )
    if 0 in array.shape:
        raise AdapterContractError(f"a frame of shape {array.shape} has no pixels")
    return np.ascontiguousarray(array)


def is_pil_image(value: Any) -> bool:
    """Tell whether something is a PIL image, without importing Pillow."""
    return hasattr(value, "getbands") and hasattr(value, "convert")


def is_grey_pil(image: Any) -> bool:
    """Tell whether a PIL image is stored as a grey frame."""
    return image.mode in _PIL_SIXTEEN_BITS or _PIL_TARGETS.get(image.mode) == "L"


def _from_pil(image: Any) -> npt.NDArray[np.uint8]:
    mode = image.mode
    if mode in _PIL_SIXTEEN_BITS:
        return _from_pil_sixteen(image)
    if mode == "La":
        image, mode = image.convert("LA"), "LA"
    target = _PIL_TARGETS.get(mode)
    if target is None:
        raise AdapterContractError(
            f"a PIL image of mode {mode!r} cannot be stored: its values have no "
            "obvious place in 0 to 255. Convert it to 'L' or 'RGB'"
        )
    converted = image if mode == target else image.convert(target)
    return to_storable(np.asarray(converted))


def _from_pil_sixteen(image: Any) -> npt.NDArray[np.uint8]:
    """Scale a 16-bit grey image; mode ``I`` is one where its values are such."""
    values = np.asarray(image)
    if values.size and not 0 <= values.min() <= values.max() <= 0xFFFF:
        raise AdapterContractError(
            f"a PIL image of mode {image.mode!r} has values from {values.min()} to "
            f"{values.max()}; as a frame they must be within 16 bits, 0 to 65535"
        )
    return to_storable(to_eight_bits(values.astype(np.uint16), 0xFFFF))


def to_eight_bits(
    values: npt.NDArray[np.unsignedinteger[Any]], most: int
) -> npt.NDArray[np.uint8]:
    """Scale 0 to `most`, at most 65535, to 0 to 255, rounded; what is above is cut.

    Examples
    --------
    >>> to_eight_bits(np.array([0, 2, 3, 1023], np.uint16), 1023).tolist()
    [0, 0, 1, 255]
    """
    wide: npt.NDArray[np.uint32] = np.minimum(values, most).astype(np.uint32)
    return ((wide * 510 + most) // (2 * most)).astype(np.uint8)


def cmyk_to_rgb(cmyk: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Show in RGB what is inked in CMYK: each colour is what its ink and black let by.

    Parameters
    ----------
    cmyk : numpy.ndarray
        ``(H, W, 4)`` uint8, inverted as JPEG files have it: 255 is no ink.

    Returns
    -------
    numpy.ndarray
        ``(H, W, 3)`` uint8 RGB, without a colour profile.
    """
    product = cmyk[..., :3].astype(np.uint16) * cmyk[..., 3:]
    return ((product + 127) // 255).astype(np.uint8)


def resample_plane(
    plane: npt.NDArray[np.uint8], shape: tuple[int, int]
) -> npt.NDArray[np.uint8]:
    """Double or halve the edges of a chroma plane, for another subsampling.

    Parameters
    ----------
    plane : numpy.ndarray
        ``(h, w)`` uint8.
    shape : (int, int)
        Rows and columns to be: as many as there are, half of them, rounded up, or
        twice as many, or one less than that.

    Returns
    -------
    numpy.ndarray
        Of `shape`, uint8, with adjacent columns: linear between samples where it grows,
        and the mean of two where it shrinks.

    Notes
    -----
    A sample that hangs over an odd edge of the picture is cut, or the last one counts
    for the place beside it, so that all others stay where their pixels are.
    """
    import cv2

    factors = [
        0.5 if want < have else 2.0 if want > have else 1.0
        for have, want in zip(plane.shape, shape, strict=True)
    ]
    below, beside = (
        have % 2 if factor < 1 else 0
        for have, factor in zip(plane.shape, factors, strict=True)
    )
    if below or beside:
        border = cv2.copyMakeBorder(plane, 0, below, 0, beside, cv2.BORDER_REPLICATE)
        plane = np.asarray(border, np.uint8)
    columns, rows = (round(factors[i] * plane.shape[i]) for i in (1, 0))
    # Half way between two samples linear is faster, but rounds every half up.
    grows = max(factors) > 1
    resized = cv2.resize(
        plane,
        (columns, rows),
        interpolation=cv2.INTER_LINEAR if grows else cv2.INTER_AREA,
    )
    return np.asarray(resized, np.uint8)[: shape[0], : shape[1]]
