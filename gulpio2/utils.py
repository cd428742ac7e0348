"""The names of ``gulpio2.utils`` in GulpIO2 0.0.4."""

import sys
from types import ModuleType

from gulpio2.adapters.duplicates import remove_entries_with_duplicate_ids
from gulpio2.codecs import jpeg
from gulpio2.codecs.jpeg import img_to_jpeg_bytes, jpeg_bytes_to_img
from gulpio2.errors import DuplicateIdError as DuplicateIdException
from gulpio2.errors import FfmpegNotFoundError as FFMPEGNotFound
from gulpio2.errors import ImageNotFoundError as ImageNotFound
from gulpio2.media.bursting import (
    burst_frames_to_shm,
    burst_video_into_frames,
    check_ffmpeg_exists,
    temp_dir_for_bursting,
)
from gulpio2.media.folders import find_images_in_folder, get_single_video_path
from gulpio2.media.resize import resize_by_short_edge, resize_images

__all__ = [
    "DuplicateIdException",
    "FFMPEGNotFound",
    "ImageNotFound",
    "burst_frames_to_shm",
    "burst_video_into_frames",
    "check_ffmpeg_exists",
    "find_images_in_folder",
    "get_single_video_path",
    "img_to_jpeg_bytes",
    "jpeg_bytes_to_img",
    "remove_entries_with_duplicate_ids",
    "resize_by_short_edge",
    "resize_images",
    "temp_dir_for_bursting",
]


_INITIAL_QUALITY = jpeg.DEFAULT_QUALITY


class _Utils(ModuleType):
    """Makes ``utils._JPEG_WRITE_QUALITY = 100`` reach the encoder, as it always did."""

    # Whether it was deleted, as mock.patch does when it ends. It then asks whether the
    # name is there, and where it is not, sets what was there before.
    _is_gone = False

    @property
    def _JPEG_WRITE_QUALITY(self) -> int:  # noqa: N802  # name of 0.0.4
        if self._is_gone:
            raise AttributeError("_JPEG_WRITE_QUALITY was deleted")
        return jpeg.DEFAULT_QUALITY

    @_JPEG_WRITE_QUALITY.setter
    def _JPEG_WRITE_QUALITY(self, quality: int) -> None:  # noqa: N802  # the name in 0.0.4
        jpeg.DEFAULT_QUALITY, self._is_gone = quality, False

    @_JPEG_WRITE_QUALITY.deleter
    def _JPEG_WRITE_QUALITY(self) -> None:  # noqa: N802  # the name in 0.0.4
        jpeg.DEFAULT_QUALITY, self._is_gone = _INITIAL_QUALITY, True


sys.modules[__name__].__class__ = _Utils
