"""Video datasets as JPEG frames in few files: written once, read at random.

`GulpIngestor` writes what an adapter yields into a directory of chunks,
`GulpDirectory` reads any frames of any item by id and slice.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gulpio2.__version__ import __version__

if TYPE_CHECKING:
    from gulpio2.chunk import GulpChunk
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.directory import GulpDirectory
    from gulpio2.ingest.ingestor import GulpIngestor
    from gulpio2.ingest.writer import ChunkWriter

__all__ = [
    "ChunkWriter",
    "EncoderSettings",
    "GulpChunk",
    "GulpDirectory",
    "GulpIngestor",
    "__version__",
]

# Loaded when first asked for, so that importing the package costs next to nothing.
_HOME = {
    "ChunkWriter": "gulpio2.ingest.writer",
    "EncoderSettings": "gulpio2.codecs.jpeg",
    "GulpChunk": "gulpio2.chunk",
    "GulpDirectory": "gulpio2.directory",
    "GulpIngestor": "gulpio2.ingest.ingestor",
}


# Modules that 0.0.4 loads with the package: programs use them without an import.
_MODULES = frozenset({"fileio", "utils"})


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names too."""
    return sorted(set(globals()) | set(__all__))
