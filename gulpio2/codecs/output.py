"""Memory that the codec decodes into."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["empty_frames", "have_heap_keep", "lead_of"]

# Bytes of a frame. Up to here decoding is 1 to 16 % faster at odd addresses; above, 1 %
# faster or slower, where a processor's second cache is of 1 MB. See docs/decisions.md.
_MAX_ODD_BYTES = 512 * 1024

# Bytes. glibc never keeps blocks above 32 MiB (DEFAULT_MMAP_THRESHOLD_MAX).
_MAX_KEPT_BYTES = 32 * 1024 * 1024 - 64 * 1024
_is_kept = False


def have_heap_keep() -> None:
    """Have the system's allocator keep what is freed, for the frames that come next.

    Notes
    -----
    glibc gives memory at the end of its heap back to the system once more than twice
    the largest block that it ever mapped and freed is free there (mallopt(3),
    M_TRIM_THRESHOLD). Frames that are freed together, those of a call or of a batch,
    go back each time, then, and come again page by page: that takes up to a quarter of
    the time of decoding them. One large block, freed without having been touched, has
    it keep 64 MB. Elsewhere this does nothing.
    """
    global _is_kept
    if not _is_kept:
        _is_kept = True
        with suppress(MemoryError):  # it was not needed
            np.empty(_MAX_KEPT_BYTES, np.uint8)


def empty_frames(shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Give memory for frames, in which small ones begin at odd addresses.

    Parameters
    ----------
    shape : tuple of int
        ``(..., H, W, C)``.

    Returns
    -------
    numpy.ndarray
        uint8, C-contiguous; what is in it is anybody's guess.

    Notes
    -----
    libjpeg-turbo writes pixels past the processor's caches (``vmovntdq``) wherever a
    vector of them begins at a multiple of its length (jdmrgext-avx2.asm,
    jdcolext-avx2.asm): in memory that begins at one, that is in every row of 224 pixels
    and in every eighth of 340. Of small frames that takes longer than the caches do. At
    an odd address no row of an even number of bytes ever does.
    """
    have_heap_keep()
    lead = lead_of(shape)
    # Memory comes at even addresses: at multiples of 16, mostly.
    return np.empty(lead + math.prod(shape), np.uint8)[lead:].reshape(shape)


def lead_of(shape: tuple[int, ...]) -> int:
    """Give the bytes to leave free where frames are put to an even address.

    Parameters
    ----------
    shape : tuple of int
        As for `empty_frames`.

    Returns
    -------
    int
        1 for small frames, else 0.
    """
    return int(math.prod(shape[-3:]) <= _MAX_ODD_BYTES)
