"""Directories of any number of frames, whose maps are as the package writes them.

The data files are one file under many names (hard links), so that each frame is a real
JPEG.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRAMES, VIDEOS = 300, 100  # of a video, of a chunk
LABELS = 400
KINDS = 64  # different JPEGs
SOURCE = {"width": 340, "height": 256, "codec": "h264", "frame_rate": [25, 1]}


def make_directory(
    folder: Path,
    num_frames: int,
    *,
    per_item: int = FRAMES,
    per_chunk: int = VIDEOS,
    extras: bool = True,
) -> int:
    """Write a directory; give the number of its items.

    Every chunk has the same records under other ids, so that one data file does for
    all of them.
    """
    from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
    from gulpio2.format.entry import verify_entry
    from gulpio2.format.gmeta import dump_gmeta, load_gmeta
    from gulpio2.testing import make_frames

    folder.mkdir(parents=True)
    num_items = num_frames // per_item
    jpegs = [
        encode_frame(frame, EncoderSettings()) for frame in make_frames(KINDS, 256, 340)
    ]
    first = folder / "data_0.gulp"
    starts = _write_data(first, jpegs, per_chunk * per_item)
    for number in range(-(-num_items // per_chunk)):
        ids = range(number * per_chunk, min((number + 1) * per_chunk, num_items))
        entries = [
            _entry(item, place * per_item, per_item, jpegs, starts, extras=extras)
            for place, item in enumerate(ids)
        ]
        text = "{" + ", ".join(entries) + "}"
        if number == 0:
            as_written = dump_gmeta(load_gmeta(text.encode(), where="the first map"))
            for id_, entry in json.loads(text).items():
                verify_entry(id_, entry, where="the first map")
            if as_written != text.encode("ascii"):
                sys.exit("the maps are not those that the package writes")
        else:
            os.link(first, folder / f"data_{number}.gulp")
        (folder / f"meta_{number}.gmeta").write_text(text, "ascii")
    return num_items


def item_id(number: int) -> str:
    """Name an item, as datasets of actions do."""
    return f"class_{number % LABELS:03}/clip_{number:08}"


def _write_data(path: Path, jpegs: Sequence[bytes], count: int) -> list[int]:
    """Write the records; give the offset of each, and the end."""
    starts = [0]
    with path.open("wb") as file:
        for number in range(count):
            jpeg = jpegs[number % KINDS]
            padded = jpeg + bytes(-len(jpeg) % 4)
            file.write(padded)
            starts.append(starts[-1] + len(padded))
    return starts


_SPANS: dict[tuple[int, int], tuple[str, str]] = {}


def _entry(
    item: int,
    first: int,
    count: int,
    jpegs: Sequence[bytes],
    starts: Sequence[int],
    *,
    extras: bool,
) -> str:
    """Write an entry of a map, with its id."""
    if (first, count) not in _SPANS:
        infos = []
        crc32 = b""
        for place in range(first, first + count):
            jpeg = jpegs[place % KINDS]
            length = starts[place + 1] - starts[place]
            infos.append([starts[place], length - len(jpeg), length])
            crc32 += zlib.crc32(jpeg).to_bytes(4, "little")
        packed = base64.b64encode(crc32).decode("ascii")
        _SPANS[first, count] = json.dumps(infos), packed
    spans, packed = _SPANS[first, count]
    meta = {"label": f"label_{item % LABELS}", "fps": 25.0, "number": item}
    entry = f'{{"frame_info": {spans}, "meta_data": [{json.dumps(meta)}]'
    id_ = json.dumps(item_id(item))
    if not extras:
        return f"{id_}: {entry}}}"
    entry += (
        f', "gulp2": {{"crc32": "{packed}", "time_base": [1, 12800], '
        f'"pts": [[0, 512, {count}]], "source": {json.dumps(SOURCE)}'
    )
    check = zlib.crc32(f"[{id_}, {entry}}}}}]".encode("ascii"))
    return f'{id_}: {entry}, "check": "{check:08x}"}}}}'
