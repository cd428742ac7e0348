"""The names of ``gulpio2.fileio`` in GulpIO2 0.0.4."""

from gulpio2.chunk import GulpChunk
from gulpio2.codecs.jpeg import img_to_jpeg_bytes, jpeg_bytes_to_img
from gulpio2.directory import GulpDirectory
from gulpio2.format.plan import calculate_chunk_slices
from gulpio2.format.records import FrameInfo as ImgInfo
from gulpio2.ingest.ingestor import GulpIngestor
from gulpio2.ingest.writer import ChunkWriter
from gulpio2.request import extract_input_for_getitem
from gulpio2.serializers import (
    AbstractSerializer,
    JSONSerializer,
    PickleSerializer,
    json_serializer,
    pickle_serializer,
)

__all__ = [
    "AbstractSerializer",
    "ChunkWriter",
    "GulpChunk",
    "GulpDirectory",
    "GulpIngestor",
    "ImgInfo",
    "JSONSerializer",
    "PickleSerializer",
    "calculate_chunk_slices",
    "extract_input_for_getitem",
    "img_to_jpeg_bytes",
    "jpeg_bytes_to_img",
    "json_serializer",
    "pickle_serializer",
]
