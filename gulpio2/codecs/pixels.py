"""Whatever a caller calls an image, as an array that can be stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import AdapterContractError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["resample_plane", "to_storable"]


def to_storable(frame: Any) -> npt.NDArray[np.uint8]:
    """Make an array that the encoder takes."""
    array = np.asarray(frame)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype == np.bool_:
        array = array.view(np.uint8)
    if (
        array.dtype != np.uint8
        or array.ndim not in (2, 3)
        or (array.ndim == 3 and array.shape[2] != 3)
    ):
        raise AdapterContractError(
            f"a frame of shape {array.shape} and type {array.dtype} cannot be stored"
        )
    return np.ascontiguousarray(array)


def resample_plane(
    plane: npt.NDArray[np.uint8], shape: tuple[int, int]
) -> npt.NDArray[np.uint8]:
    """Resize a chroma plane."""
    import cv2

    return np.asarray(
        cv2.resize(plane, shape[::-1], interpolation=cv2.INTER_AREA), np.uint8
    )
