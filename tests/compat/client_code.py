"""Client code, written as the programs that use GulpIO2 are written.

What it does with the package is taken from published code bases that train on video:
an RGB and a flow dataset with its own metadata handling, and adapters that walk a table
of segments. None of it is changed to please this package.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from gulpio2 import GulpDirectory
from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.utils import find_images_in_folder, resize_images


class MissingFramesError(Exception):
    """An adapter's own exception."""

    def __init__(self, folder):
        super().__init__(f"no frames in {folder}")
        self.folder = folder


class RgbDataset:
    """Single colour frames as PIL images, and the metadata in the map."""

    def __init__(self, gulp_path):
        self.gulp_dir = GulpDirectory(str(Path(gulp_path).absolute()))
        self.ids = list(self.gulp_dir.merged_meta_dict.keys())
        for id_ in self.gulp_dir.merged_meta_dict:
            meta = self.gulp_dir.merged_meta_dict[id_]["meta_data"][0]
            for key in list(meta):
                if isinstance(meta[key], float) and math.isnan(meta[key]):
                    meta[key] = "none"
                elif meta[key] is None or isinstance(meta[key], list):
                    del meta[key]

    def __len__(self):
        return len(self.gulp_dir.merged_meta_dict)

    def __getitem__(self, index):
        id_ = self.ids[index]
        frames, meta = self.gulp_dir[id_, slice(0, 2)]
        return np.stack(frames), meta

    def load_frame(self, id_, idx):
        from PIL import Image

        return Image.fromarray(self.gulp_dir[id_, slice(idx, idx + 1)][0][0]).convert(
            "RGB"
        )


class FlowDataset(RgbDataset):
    """Flow: u and v interleaved as grey frames."""

    def load_flow(self, id_, idx):
        from PIL import Image

        frames, _ = self.gulp_dir[id_, slice(2 * idx, 2 * idx + 2)]
        return [Image.fromarray(frame).convert("L") for frame in frames]

    def load_pairs(self, id_, start, count):
        frames, _ = self.gulp_dir[id_, slice(2 * start, 2 * (start + count))]
        return frames[::2], frames[1::2]


class SegmentAdapter(AbstractDatasetAdapter):
    """Segments of a table, a folder of images each; facts go into the shared dict."""

    def __init__(self, root, meta_data, frame_size=-1, required=True):
        self.root = root
        self.meta_data = meta_data
        self.frame_size = int(frame_size)
        self.required = required

    def __len__(self):
        return len(self.meta_data)

    def iter_data(self, slice_element=None):
        slice_element = slice_element or slice(0, len(self))
        for meta in self.meta_data[slice_element]:
            folder = str(Path(self.root) / meta["folder"])
            paths = find_images_in_folder(folder, formats={"jpg", "jpeg", "png"})
            frames = list(resize_images(map(str, paths), self.frame_size))
            if not frames and self.required:
                raise MissingFramesError(folder)
            meta["frame_size"] = frames[0].shape
            meta["num_frames"] = len(frames)
            yield {"meta": meta, "frames": frames, "id": meta["uid"]}


class ArrayAdapter(AbstractDatasetAdapter):
    """Items given as ``(id, meta, frames)``; extra keys, facts set after the yield."""

    def __init__(self, items, note_afterwards=False):
        self.items = items
        self.note_afterwards = note_afterwards

    def __len__(self):
        return len(self.items)

    def iter_data(self, slice_element=None):
        slice_element = slice_element or slice(0, len(self))
        for id_, meta, frames in self.items[slice_element]:
            yield {"meta": meta, "frames": frames, "id": id_, "extra": "ignored"}
            if self.note_afterwards:
                meta["noted_after_the_yield"] = True


class FailingAdapter(ArrayAdapter):
    """An adapter whose own code fails at one item, named by its position."""

    def __init__(self, items, fails_at):
        super().__init__(items)
        self.fails_at = fails_at

    def iter_data(self, slice_element=None):
        start, stop, _ = (slice_element or slice(None)).indices(len(self))
        for position in range(start, stop):
            if position == self.fails_at:
                raise MissingFramesError(f"folder{position}")
            id_, meta, frames = self.items[position]
            yield {"meta": meta, "frames": frames, "id": id_}


class CountingAdapter(ArrayAdapter):
    """Notes in a file each time that it is pickled."""

    def __init__(self, items, note):
        super().__init__(items)
        self.note = note

    def __getstate__(self):
        with open(self.note, "a") as file:  # noqa: PTH123  as clients do
            file.write("pickled\n")
        return self.__dict__


class IncompleteAdapter(ArrayAdapter):
    """An adapter that forgets a key of the item."""

    def __init__(self, items, without):
        super().__init__(items)
        self.without = without

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            del item[self.without]
            yield item
