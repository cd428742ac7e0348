"""The decoders that were used last, for the next frames like theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.codecs.decode import FrameDecoder

if TYPE_CHECKING:
    from gulpio2.codecs.options import DecodeOptions

__all__ = ["decoder_for"]

# The decoder last used with each of the last options: most clips of a dataset begin
# with the same header, and making a decoder costs as much as reading two frames. By
# the identity of the options, which takes a tenth of their hash, and with them, so that
# no others can come to have it.
_RECENT: dict[int, tuple[DecodeOptions, FrameDecoder]] = {}
_MAX_RECENT = 16


def decoder_for(
    block: bytes | bytearray, start: int, stop: int, options: DecodeOptions
) -> FrameDecoder:
    """Give a decoder for frames that look like the one in ``block[start:stop]``.

    Raises
    ------
    CorruptFrameError, ValueError
        As `FrameDecoder`.
    """
    recent = _RECENT.get(id(options))
    if recent is not None and recent[1].fits(block, start):
        return recent[1]
    decoder = FrameDecoder(bytes(block[start:stop]), options)
    if len(_RECENT) >= _MAX_RECENT:
        _RECENT.clear()
    _RECENT[id(options)] = options, decoder
    return decoder
