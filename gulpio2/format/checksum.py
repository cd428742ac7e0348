"""The checksum of the format: the CRC-32 of ISO 3309, as PNG and zlib have it.

zlib-ng computes it at the speed of memory, ten times as fast as `zlib`, so that
verified reads cost next to nothing. Where it is not to be had, `zlib` gives the same
numbers.
"""

from __future__ import annotations

try:
    from zlib_ng.zlib_ng import crc32 as crc32_of
except ImportError:
    from zlib import crc32 as crc32_of

__all__ = ["crc32_of"]
