"""Several threads decode what one thread decodes, of damaged files too."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import av
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media import threaded
from gulpio2.media.thread_choice import suits_threads
from gulpio2.media.threaded import held_back
from gulpio2.media.video import VideoFrames
from gulpio2.types import DeferredImage

CODECS = {
    "libx264": ("a.mp4", "yuv420p", {"g": "12", "bf": "2", "crf": "20"}),
    "mpeg2video": ("a.mpg", "yuv420p", {"g": "12", "bf": "2", "qscale": "3"}),
    "mpeg4": ("a.mkv", "yuv420p", {"g": "12", "qscale": "3"}),
    "libvpx": ("a.webm", "yuv420p", {"g": "12"}),
    "libvpx-vp9": ("a.webm", "yuv420p", {"g": "12"}),
    "libx265": ("a.mp4", "yuv420p", {"x265-params": "keyint=12:log-level=none"}),
    "utvideo": ("a.avi", "yuv420p", {}),
    "ffv1": ("a.mkv", "yuv420p", {"level": "1"}),
    "prores_ks": ("a.mov", "yuv422p10le", {}),
}


@pytest.fixture
def write_as(tmp_path, write_video, pictures):
    """Write a video of 24 frames with one of the codecs above."""

    def write(codec, **more):
        name, pix_fmt, options = CODECS[codec]
        frames = pictures(24, 48, 64)
        more = {"pix_fmt": pix_fmt, "options": options, **more}
        return write_video(tmp_path / name, frames, codec=codec, **more)

    return write


def damages(path):
    """Flip bits of a file, behind its beginning, in 25 ways one after the other."""
    whole = path.read_bytes()
    rng = random.Random(1)
    for number in range(25):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 5])):
            data[rng.randrange(len(data) // 10, len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        yield number


def told(path, threads, **options):
    """Give all that is told of a file: times, planes, and the error at the end."""
    frames = []
    try:
        for frame in VideoFrames(path, threads=threads, **options).stored():
            planes = (frame.image.y, frame.image.u, frame.image.v)
            frames.append(
                (frame.pts, [zlib.crc32(plane.tobytes()) for plane in planes])
            )
    except SourceReadError as error:
        return frames, str(error)
    return frames, None


def assert_threads_do_not_matter(path, **options):
    one = told(path, 1, **options)
    for threads in (3, 5):
        assert told(path, threads, **options) == one, threads
    return one


def places_of_packets(path):
    """Give where the packets of a video are in its file, and how long they are."""
    with av.open(str(path)) as container:
        return [
            (packet.pos, packet.size)
            for packet in container.demux(container.streams.video[0])
            if packet.size
        ]


@pytest.mark.parametrize("codec", list(CODECS))
def test_flipped_bits_are_told_of_alike(write_as, codec):
    path = write_as(codec)
    frames, error = assert_threads_do_not_matter(path)
    assert len(frames) == 24
    assert error is None
    for _ in damages(path):
        assert_threads_do_not_matter(path)


def crc_of(frame):
    image = (
        frame.image.make() if isinstance(frame.image, DeferredImage) else frame.image
    )
    return [zlib.crc32(plane.tobytes()) for plane in (image.y, image.u, image.v)]


def deferred(path, *, kept):
    """Give what is told of a file to who keeps some frames before they are made."""
    made = []
    waiting = []
    error = None
    try:
        for frame in VideoFrames(path).deferred():
            waiting.append(frame)
            if len(waiting) > kept:
                made.append(crc_of(waiting.pop(0)))
    except SourceReadError as cause:
        error = str(cause)
    return error or made + [crc_of(frame) for frame in waiting]


@pytest.mark.parametrize("codec", ["libvpx", "libx265", "ffv1", "mpeg2video"])
@pytest.mark.parametrize("full_range", [False, True])
def test_damage_that_is_not_noticed_looks_alike_however_many_frames_are_kept(
    write_as, codec, full_range
):
    path = write_as(codec, full_range=full_range)
    for _ in damages(path):
        assert deferred(path, kept=12) == deferred(path, kept=0)


@pytest.mark.parametrize("codec", ["prores_ks", "utvideo", "libx264"])
def test_damage_in_the_last_frames_is_told(write_as, codec):
    path = write_as(codec)
    data = bytearray(path.read_bytes())
    for start, size in places_of_packets(path)[-2:]:
        data[start : start + size // 2] = b"\xff" * (size // 2)
    path.write_bytes(data)
    _, error = assert_threads_do_not_matter(path)
    assert error is not None


def test_damage_in_large_frames_that_are_reordered_is_told(
    tmp_path, write_video, pictures
):
    options = {"g": "12", "bf": "2", "crf": "20"}
    path = write_video(tmp_path / "a.mp4", pictures(12, 720, 1280), options=options)
    whole = path.read_bytes()
    for start, size in places_of_packets(path)[-4:]:
        data, at = bytearray(whole), start + size * 19 // 20
        data[at : at + 4] = bytes(byte ^ 0x5A for byte in data[at : at + 4])
        path.write_bytes(data)
        _, error = told(path, 1)
        assert error is not None
        for threads in (3, 8, 3, 8):
            assert told(path, threads)[1] == error


@pytest.mark.parametrize("rate", [None, 8])
@pytest.mark.parametrize("lost", [{1}, {7}, {19, 20}, {35}])
def test_packets_that_are_lost_are_made_up_alike(
    tmp_path, write_video, pictures, lost, rate
):
    whole = write_video(
        tmp_path / "whole.mkv",
        pictures(36, 48, 64),
        options={"g": "12", "bf": "2", "crf": "20", "refs": "3"},
    )
    path = tmp_path / "a.mkv"
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = source.streams.video[0]
        copy = target.add_stream_from_template(stream)
        for number, packet in enumerate(source.demux(stream)):
            if packet.size and number not in lost:
                packet.stream = copy
                target.mux(packet)
    assert_threads_do_not_matter(path, frame_rate=rate)


def suits(path, threads=3):
    with VideoFrames(path)._open() as video:
        return suits_threads(video, threads)


def test_only_what_has_no_gap_is_decoded_by_threads(tmp_path, write_video, pictures):
    images = pictures(12, 48, 64)
    assert suits(write_video(tmp_path / "a.mp4", images))
    assert suits(write_video(tmp_path / "one.mp4", images[:1]))
    times = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
    assert not suits(write_video(tmp_path / "gap.mp4", images, pts=times))
    assert not suits(write_video(tmp_path / "a.h264", images)), "it has no times"
    assert not suits(write_video(tmp_path / "a.webm", images, codec="libvpx"))


UNNOTICED = [
    ("utvideo", "a.avi", "yuv420p", {}),
    ("jpeg2000", "a.mov", "yuv420p", {}),
    ("dnxhd", "a.mov", "yuv422p", {"profile": "dnxhr_lb"}),
]


@pytest.mark.parametrize(("codec", "name", "pix_fmt", "options"), UNNOTICED)
def test_what_leaves_old_memory_in_damaged_frames_is_decoded_by_one_thread(
    tmp_path, write_video, pictures, codec, name, pix_fmt, options
):
    path = write_video(
        tmp_path / name,
        pictures(6, 128, 256),
        codec=codec,
        pix_fmt=pix_fmt,
        options=options,
    )
    assert not suits(path)
    whole = path.read_bytes()
    for start, size in places_of_packets(path):
        data = bytearray(whole)
        data[start + size // 3 : start + size // 2] = bytes(size // 2 - size // 3)
        path.write_bytes(data)
        assert_threads_do_not_matter(path)


def test_reordered_frames_are_decoded_by_threads_where_none_comes_too_early(
    tmp_path, write_video, pictures
):
    images = pictures(12, 48, 64)
    for codec, reordered in [("libx264", False), ("mpeg4", True)]:
        for number in ("0", "2"):
            path = tmp_path / f"{codec}{number}.mp4"
            write_video(path, images, codec=codec, options={"bf": number})
            assert suits(path) == (reordered or number == "0")


def test_two_threads_are_for_large_frames_only(tmp_path, write_video, pictures):
    small = write_video(tmp_path / "small.mp4", pictures(3, 256, 340))
    large = write_video(tmp_path / "large.mp4", pictures(3, 720, 1280))
    assert [suits(small, threads) for threads in (0, 2, 3)] == [True, False, True]
    assert [suits(large, threads) for threads in (0, 2, 3)] == [True, True, True]


def test_frames_are_held_back_for_those_that_are_decoded_before_them():
    class Frame:
        def __init__(self, number, width):
            self.number, self.width, self.height = number, width, 2160

    def taken(width):
        """Say how many frames were taken when the first one is given."""
        taken = 0

        def frames():
            nonlocal taken
            for taken in range(1, 101):
                yield Frame(taken, width)

        given = held_back(frames())
        first = next(given)
        before = taken
        rest = [frame.number for frame in given]
        assert [first.number, *rest] == list(range(1, 101))
        return before

    assert taken(64) == threaded.REORDERED + 1
    assert taken(3840) == 6


def test_threads_that_log_their_errors_are_waited_for(tmp_path, write_video, pictures):
    options = {"codec": "mpeg4", "options": {"g": "12", "qscale": "1"}}
    path = write_video(tmp_path / "a.mp4", pictures(40, 240, 320), **options)
    data = bytearray(path.read_bytes())
    rng = random.Random(2)
    for at in rng.sample(range(len(data) // 20, 9 * len(data) // 10), 2000):
        data[at] ^= 0xFF
    path.write_bytes(data)
    script = f"""
import av
from gulpio2.errors import GulpError
from gulpio2.media.video import VideoFrames

av.logging.set_level(av.logging.PANIC)
for _ in range(20):
    try:
        list(VideoFrames({str(path)!r}, threads=4).stored())
    except GulpError:
        continue
    raise AssertionError("nothing is wrong with the video")
"""
    # A process of its own: one that waits for ever can only be killed.
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
