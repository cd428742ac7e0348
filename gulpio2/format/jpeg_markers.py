"""The markers of a JPEG that tell its parts apart: ITU-T T.81, table B.1."""

from __future__ import annotations

import re

__all__ = ["EOI", "NEXT_MARKER", "SOI", "START_OF_FRAME", "START_OF_SCAN"]

SOI = b"\xff\xd8"
"""Start of image: the first two bytes."""
EOI = b"\xff\xd9"
"""End of image."""
# C4, C8 and CC in between mean tables and the reserved JPG.
START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Second bytes of frame headers, SOF0 to SOF15: they have the size and components."""
START_OF_SCAN = 0xDA
"""Second byte: entropy-coded data follow."""
# Not `\xff+`: where a long run of FF is followed by none of these, each of its bytes
# would be the beginning of a search to its end.
NEXT_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")
"""A marker that ends entropy-coded data, with its second byte as group 1: neither a
stuffed FF 00, nor a restart, nor an FF that fills the room before another one."""
