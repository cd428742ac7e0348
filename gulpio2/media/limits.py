"""How large a picture may be before memory is set aside for it."""

from __future__ import annotations

from gulpio2.codecs.jpeg import ceiling

__all__ = ["MAX_IMAGE_PIXELS", "MAX_VIDEO_PIXELS"]

# Twice a frame of 8K. A header of some bytes can declare far more, and a decoder keeps
# up to 17 frames.
MAX_VIDEO_PIXELS = ceiling(2**26)
# That of the reader (`gulpio2.codecs.jpeg`): what is stored must be readable.
MAX_IMAGE_PIXELS = ceiling(2**27)
