"""How large a frame of a video may be before memory is set aside for it.

For images the limit is that of the reader, `gulpio2.codecs.jpeg.MAX_PIXELS`: what is
stored must be readable.
"""

from __future__ import annotations

from gulpio2.codecs.jpeg import ceiling

__all__ = ["MAX_VIDEO_PIXELS"]

# Twice a frame of 8K. A header of some bytes can declare far more, and a decoder keeps
# up to 17 frames.
MAX_VIDEO_PIXELS = ceiling(2**26)
