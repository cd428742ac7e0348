"""Source datasets, and how to bring one's own.

Every class of GulpIO2 0.0.4 is here under its name, and what an adapter of one's own
is made of. The modules, from the bottom:

* `description`, `labels`, `label_numbers`, `cells`, `tables`, `endings`, `templates`,
  `settings`, `naming`, `sources`, `image_folders`, `path_sources`, `duplicates`: what
  adapters share
* `base`: the contract, `AbstractDatasetAdapter`
* `trees`: folders as labels, which `frame_folders`, `images` and `videos` build on
* `frame_folders`: videos whose frames are image files already
* `images`, `videos`, `twentybn`, `activitynet`, `kinetics`: the datasets of 0.0.4
* `table`: any table with paths and ids; `table_columns`: what its columns hold
* `gulp_directories`: a gulp directory, for a part of it or a smaller copy

Adapters for single datasets are in the folder ``adapters`` of the repository.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.activitynet import ActivitynetAdapter
from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.adapters.cells import parse_column
from gulpio2.adapters.frame_folders import FrameFolderAdapter
from gulpio2.adapters.images import ImageFolderAdapter, ImageListAdapter
from gulpio2.adapters.kinetics import KineticsAdapter
from gulpio2.adapters.label_numbers import number_labels
from gulpio2.adapters.labels import Custom20BNAdapterMixin
from gulpio2.adapters.sources import DeferredFrames
from gulpio2.adapters.table import TableAdapter
from gulpio2.adapters.tables import Table, read_table
from gulpio2.adapters.twentybn import (
    Custom20BNCsvJpegAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
)
from gulpio2.adapters.videos import VideoFolderAdapter
from gulpio2.errors import ImageNotFoundError

if TYPE_CHECKING:
    from gulpio2.adapters.gulp_directories import GulpDirectoryAdapter
    from gulpio2.media.images import ImageFrames
    from gulpio2.media.video import VideoFrames

__all__ = [
    "AbstractDatasetAdapter",
    "ActivitynetAdapter",
    "Custom20BNAdapterMixin",
    "Custom20BNCsvJpegAdapter",
    "Custom20BNCsvWebmAdapter",
    "Custom20BNJsonVideoAdapter",
    "DeferredFrames",
    "FrameFolderAdapter",
    "GulpDirectoryAdapter",
    "ImageFolderAdapter",
    "ImageFrames",
    "ImageListAdapter",
    "KineticsAdapter",
    "Table",
    "TableAdapter",
    "VideoFolderAdapter",
    "VideoFrames",
    "number_labels",
    "parse_column",
    "read_table",
]

# They bring the decoders, which listing a dataset does not need, and what reads.
_LATER = {
    "GulpDirectoryAdapter": "gulpio2.adapters.gulp_directories",
    "ImageFrames": "gulpio2.media.images",
    "VideoFrames": "gulpio2.media.video",
    # What adapters are written with: programs took it from here as well as from utils.
    "burst_video_into_frames": "gulpio2.media.bursting",
    "find_images_in_folder": "gulpio2.media.folders",
    "get_single_video_path": "gulpio2.media.folders",
    "remove_entries_with_duplicate_ids": "gulpio2.adapters.duplicates",
    "resize_by_short_edge": "gulpio2.media.resize",
    "resize_images": "gulpio2.media.resize",
    "temp_dir_for_bursting": "gulpio2.media.bursting",
}

ImageNotFound = ImageNotFoundError  # name of 0.0.4


def __getattr__(name: str) -> Any:
    """Load the frame sources, and names of 0.0.4, when they are first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
