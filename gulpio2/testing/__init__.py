"""Helpers for tests of programs that use this package.

* `directories`: small gulp directories, made at once.
* `adapters`: a suite that shows that an adapter keeps its contract.
"""

import sys

from gulpio2.testing.directories import (
    FrameAdapter,
    make_frames,
    make_gulp_directory,
)

__all__ = ["FrameAdapter", "make_frames", "make_gulp_directory"]

# So that a test of the suite that fails shows the values that it compared.
if "pytest" in sys.modules:
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.adapters")
