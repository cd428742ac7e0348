"""The inputs of the golden directories: what was given to GulpIO2 0.0.4.

Run by two interpreters, the original's and ours, so it needs numpy alone, and gives
the same arrays in every version of it (integer arithmetic, no random generator).
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["CASES", "colour", "grey"]


def colour(height, width, seed):
    """Give a smooth coloured frame with one sharp edge, ``(height, width, 3)``."""
    rows, columns = np.mgrid[0:height, 0:width]
    planes = [
        rows * 5 + seed * 29,
        columns * 7 + seed * 13,
        (rows + columns) * 3 + seed * 53,
    ]
    frame = np.stack(planes, axis=-1) % 256
    frame[height // 2 :, width // 2 :] = 255 - frame[height // 2 :, width // 2 :]
    return frame.astype(np.uint8)


def grey(height, width, seed):
    """Give a smooth grey frame, ``(height, width)``."""
    rows, columns = np.mgrid[0:height, 0:width]
    return ((rows * 4 + columns * 6 + seed * 37) % 256).astype(np.uint8)


def _clip(count, height, width, seed, make=colour):
    return [make(height, width, seed + k) for k in range(count)]


# A case is a list of chunks, a chunk is a list of sessions (one `open` each), and a
# session is its flag and the `append` calls made in it: (id, metadata, frames).


def _colour_and_grey():
    odd = [(1, 1), (7, 5), (8, 8), (13, 17), (16, 33), (33, 16)]
    return [
        [
            (
                "wb",
                [
                    ("colour", {"label": "a"}, _clip(12, 24, 32, 1)),
                    ("grey", {"label": "b"}, _clip(5, 24, 32, 2, grey)),
                    (
                        "odd_sizes",
                        {"sizes": [list(s) for s in odd]},
                        [colour(h, w, 3) for h, w in odd],
                    ),
                    (
                        "odd_sizes_grey",
                        {"sizes": odd},
                        [grey(h, w, 4) for h, w in odd],
                    ),
                    (
                        "mixed",
                        {},
                        [colour(16, 16, 5), grey(16, 16, 5), colour(9, 20, 6)],
                    ),
                    ("black", {}, [np.zeros((16, 16, 3), np.uint8)]),
                    ("white", {}, [np.full((16, 16, 3), 255, np.uint8)]),
                    ("boolean", {}, [grey(16, 16, 1) > 99]),
                ],
            )
        ]
    ]


_IDS = [
    7,
    "07",
    0,
    -3,
    10**20,
    np.int64(12),
    1.5,
    None,
    ("a", 1),
    "",
    " ",
    "P01_103_96",
    "brush_hair/clip1",
    "../up",
    "C:\\dir\\file",
    'say "hi"',
    "line\nbreak\ttab",
    "grüße",
    "日本語",
    "😀",
    "frame_info",
    "meta_data",
    "gulp2",
    "x" * 200,
]


def _ids():
    half = len(_IDS) // 2
    return [
        [("wb", [(id_, {"id": str(id_)}, [grey(8, 8, k)]) for k, id_ in enumerate(p)])]
        for p in (_IDS[:half], _IDS[half:])
    ]


def _metadata():
    metas = [
        ("not_finite", {"nan": math.nan, "inf": math.inf, "minus": -math.inf}),
        ("scalars", {"t": True, "f": False, "n": None, "i": 3, "x": 0.1, "e": 1e-300}),
        ("big", {"int": 2**70, "float": 1.7976931348623157e308, "neg": -(2**63)}),
        (
            "text",
            {"empty": "", "utf8": "grüße 日本語 😀", "esc": '"\\/\b\f\n\r\t\x00\x7f'},
        ),
        ("lists", {"tuple": (1, 2, (3,)), "list": [1, [2, [3, []]]], "empty": []}),
        ("nested", {"a": {"z": 1, "b": {"y": [{"k": None}, {}]}}, "empty": {}}),
        ("key_types", {1: "int", None: "none", True: "bool", 2.5: "float", "s": "str"}),
        ("key_order", {"z": 0, "a": 1, "m": 2, "B": 3, "": 4, "é": 5}),
        ("like_the_format", {"frame_info": [[0, 0, 0]], "meta_data": [{}], "gulp2": 1}),
        ("empty", {}),
    ]
    return [[("wb", [(id_, m, [grey(8, 8, k)]) for k, (id_, m) in enumerate(metas)])]]


def _appended_twice():
    return [
        [
            (
                "wb",
                [
                    ("a", {"part": 1}, _clip(3, 16, 24, 1)),
                    ("b", {"part": 1}, _clip(2, 16, 24, 20)),
                    ("a", {"part": 2}, _clip(2, 16, 24, 4)),
                    ("a", {"part": 3}, []),
                    ("c", {}, _clip(1, 16, 24, 40)),
                ],
            ),
            (
                "ab",
                [
                    ("b", {"part": 2}, _clip(2, 16, 24, 22)),
                    (9, {"new": True}, _clip(2, 16, 24, 50, grey)),
                ],
            ),
            ("ab", []),
            ("ab", [("9", {"new": False}, _clip(1, 16, 24, 52, grey))]),
        ]
    ]


def _no_frames():
    return [
        [
            (
                "wb",
                [
                    ("first", {"n": 0}, []),
                    ("middle", {"n": 1}, _clip(1, 8, 8, 1)),
                    ("last", {"n": 0}, []),
                ],
            )
        ],
        [("wb", [("alone", {"n": 0}, [])])],
    ]


def _empty_chunk():
    return [
        [("wb", [("before", {}, _clip(1, 8, 8, 1))])],
        [("wb", [])],
        [("wb", [("after", {}, _clip(1, 8, 8, 2))])],
    ]


def _many_chunks():
    return [
        [("wb", [(f"item{k:02d}", {"k": k}, _clip(2, 8, 12, 2 * k))])]
        for k in range(13)
    ]


def _flow():
    pairs = [grey(16, 20, 2 * i + axis) for i in range(6) for axis in (0, 1)]
    meta = {"num_frames": 12, "frame_size": (16, 20), "uid": 11}
    return [[("wb", [("P01_103_96", meta, pairs)])]]


CASES = {
    "appended_twice": _appended_twice,
    "colour_and_grey": _colour_and_grey,
    "empty_chunk": _empty_chunk,
    "flow": _flow,
    "ids": _ids,
    "many_chunks": _many_chunks,
    "metadata": _metadata,
    "no_frames": _no_frames,
}
"""Name of a golden directory -> function that gives its chunks."""
