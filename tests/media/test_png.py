"""PNG: the picture of an animated one, and chunks that are longer than the file."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import ImageNotFoundError, SourceReadError
from gulpio2.media.image_files import read_image
from gulpio2.media.png import without_animation


@pytest.fixture
def animated(tmp_path, pictures):
    """Give the path of an animated PNG, its first picture and its bytes."""
    path = tmp_path / "a.png"
    first, second = pictures(2, 20, 31)
    Image.fromarray(first).save(
        path, save_all=True, append_images=[Image.fromarray(second)]
    )
    return path, first, path.read_bytes()


@pytest.mark.parametrize("is_apart", [True, False])
def test_an_animated_one_is_its_picture(tmp_path, pictures, is_apart):
    first, *others = pictures(3, 20, 31)
    path = tmp_path / "a.png"
    Image.fromarray(first).save(
        path,
        save_all=True,
        default_image=is_apart,
        append_images=[Image.fromarray(other) for other in others],
    )
    assert np.array_equal(read_image(path), first)


def test_any_beginning_is_taken_or_refused(animated):
    path, first, data = animated
    assert without_animation(data) == data[:33] + data[53:]
    for end in range(8):
        assert without_animation(data[:end]) == data[:end]
    whole = {8, 33}  # what ends with a chunk
    for end in range(8, 60):
        if end in whole:
            assert without_animation(data[:end]) == data[:end]
        elif end != 53:
            with pytest.raises(ValueError, match="damaged PNG: it is cut off"):
                without_animation(data[:end])
    path.write_bytes(data + b"more\xff\xff")
    assert np.array_equal(read_image(path), first)


def test_a_chunk_that_is_longer_than_the_file_is_refused(animated):
    path, _, data = animated
    at = data.index(b"IDAT") - 4
    path.write_bytes(data[:at] + b"\x7f\xff\xff\xf0" + data[at + 4 :])
    with pytest.raises(ImageNotFoundError, match=f"the length at byte {at} is wrong"):
        read_image(path)


def test_no_memory_is_set_aside_for_what_is_not_there(
    tmp_path, pictures, python, repository
):
    path = tmp_path / "a.png"
    Image.fromarray(pictures(1, 20, 31)[0]).save(path)
    data = path.read_bytes()
    at = data.index(b"IDAT") - 4
    path.write_bytes(data[:at] + b"\x7f\0\0\0" + data[at + 4 :])
    # The most memory of this program alone, and not of the one that has started it.
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "import cv2\n"
        "from gulpio2.errors import ImageNotFoundError\n"
        "from gulpio2.media.image_files import read_image\n"
        "def most():\n"
        "    text = Path('/proc/self/status').read_text()\n"
        "    return int(text.partition('VmHWM:')[2].split()[0])\n"
        "before = most()\n"
        "try:\n    read_image(sys.argv[1])\nexcept ImageNotFoundError:\n    pass\n"
        "print(most() - before)"
    )
    done = subprocess.run(
        [python, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=repository,
    )
    assert int(done.stdout) < 100 * 1024  # kilobytes


def test_damage_is_told_by_its_place_and_not_printed(tmp_path, pictures, capfd):
    """Lines of libpng have no name of a file."""
    path = tmp_path / "a.png"
    Image.fromarray(pictures(1, 20, 31)[0]).save(path)
    data = bytearray(path.read_bytes())
    start = data.index(b"IDAT") - 4
    length = int.from_bytes(data[start : start + 4], "big")
    for place in (start + 8, start + 8 + length // 2, start + 8 + length):
        data[place] ^= 1
        path.write_bytes(data)
        with pytest.raises(SourceReadError, match=rf"a\.png.*at byte {start} is wrong"):
            read_image(path)
        data[place] ^= 1
    assert capfd.readouterr().err == ""
