"""Settings are compared by what they do to frames."""

from __future__ import annotations

import pytest

from gulpio2.format.manifest import Run
from gulpio2.format.other_settings import changed_settings


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"img_size": 64}, {"frame_size": 64}, []),
        ({"img_size": 64}, {"frame_size": 32}, ["frame_size 32 (until now 64)"]),
        ({"frame_size": 32}, {"img_size": 0},
         ["img_size as in the source (until now 32)"]),
        ({"frame_size": "128"}, {"frame_size": 128}, []),
        ({"frame_size": 128}, {"frame_size": 128.0}, []),
        ({"frame_size": "-1"}, {"frame_size": 0}, []),
        ({"frame_size": "128"}, {"frame_size": "64"},
         ["frame_size 64 (until now 128)"]),
        ({"frame_size": "large"}, {"frame_size": [1]},
         ["frame_size [1] (until now large)"]),
        ({"frame_rate": 8}, {}, []),
        ({}, {"frame_rate": 8}, []),
        ({"frame_rate": "29.97"}, {"frame_rate": 29.97}, []),
        ({"frame_rate": "each key frame"}, {"frame_rate": ["a"]},
         ["frame_rate ['a'] (until now each key frame)"]),
        ({"image_rate": "25"}, {"image_rate": 25.0}, []),
        ({"image_rate": 25}, {"image_rate": None}, ["image_rate none (until now 25)"]),
        ({"first_number": "1"}, {"first_number": 1}, []),
        ({"first_number": None}, {"first_number": 0},
         ["first_number 0 (until now none)"]),
        ({"prefix": "img_", "image_rate": 0}, {"prefix": "", "image_rate": None},
         ["prefix none (until now img_)"]),
        ({"prefix": "a/"}, {"prefix": "b/"}, []),
    ],
)  # fmt: skip
def test_settings_are_compared_by_what_they_mean(old, new, told):
    runs = [Run("A", old, {}, "1", chunks=(0,)), Run("A", {"img_size": 1}, {}, "1", ())]
    assert [str(change) for change in changed_settings(runs, new, {})] == told
