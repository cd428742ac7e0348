"""What the codec is given of a frame: its bytes, and what lies behind them."""

from __future__ import annotations

from gulpio2.format.jpeg_markers import EOI

__all__ = ["NUM_BEHIND", "codec_input"]

# Bytes. The codec takes its quick way through the Huffman codes only while so much of
# its input is left: 512 for each block of a unit of ten at most (libjpeg-turbo,
# jdhuff.c: BUFSIZE, decode_mcu). Of a frame of 340x256 at quality 90 that is the last
# seventh, of a small one all of it.
NUM_BEHIND = 10 * 512
_ZEROS = bytes(NUM_BEHIND)


def codec_input(
    block: bytes | bytearray | memoryview, start: int, stop: int
) -> memoryview:
    """Give the bytes of a frame so that all of it is decoded the quick way.

    Parameters
    ----------
    block : bytes-like
        Holds the frame's JPEG.
    start, stop : int
        Where in it.

    Returns
    -------
    memoryview
        With `NUM_BEHIND` bytes behind the JPEG: those of the block, or zeros. Without
        any where the JPEG does not end with its end marker, since the codec would go on
        to look for one.

    Notes
    -----
    The codec stops at the end marker, so that what lies behind it is never decoded. But
    it has to be there each time: of what is damaged the two ways do not find the same,
    and whether a frame can be read must not depend on its neighbours.
    """
    if block[stop - 2 : stop] != EOI:
        return memoryview(block)[start:stop]
    if stop + NUM_BEHIND <= len(block):
        return memoryview(block)[start : stop + NUM_BEHIND]
    return memoryview(b"".join((memoryview(block)[start:stop], _ZEROS)))
