"""What cannot be read to its end is an error that says what, where and why."""

from __future__ import annotations

import random
import re
import struct
import wave
from typing import Any

import av
import numpy as np
import pytest
from av.stream import Disposition
from PIL import Image

from gulpio2.errors import SourceReadError
from gulpio2.media.streams import choose_stream
from gulpio2.media.video import VideoFrames
from tests.written_once import written_once

CONTAINERS = {
    "mp4": ("libx264", "clip.mp4", {}),
    "index first": ("libx264", "clip.mp4", {"movflags": "faststart"}),
    "fragments": ("libx264", "clip.mp4", {"movflags": "frag_keyframe+empty_moov"}),
    "mkv": ("libx264", "clip.mkv", {}),
    "webm": ("libvpx", "clip.webm", {}),
    "live webm": ("libvpx", "clip.webm", {"live": "1"}),
    "avi": ("mpeg4", "clip.avi", {}),
    "mjpeg": ("mjpeg", "clip.avi", {}),
    "gif": ("gif", "clip.gif", {}),
    "flv": ("flv", "clip.flv", {}),
}


@written_once
def write_whole(path, kind, write_video, pictures):
    codec, _, mux_options = CONTAINERS[kind]
    pix_fmt = {"gif": "rgb8", "mjpeg": "yuvj420p"}.get(codec, "yuv420p")
    return write_video(
        path,
        pictures(24, 48, 64),
        codec=codec,
        pix_fmt=pix_fmt,
        options={"g": "6"},
        mux_options=mux_options,
    )


@pytest.fixture(params=CONTAINERS)
def whole(request, tmp_path, write_video, pictures):
    kind = request.param
    return write_whole(tmp_path / CONTAINERS[kind][1], kind, write_video, pictures)


def read(path, **options):
    return sum(1 for _ in VideoFrames(path, **options).stored())


def test_a_whole_file_is_read(whole):
    assert read(whole) == 24


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75, 0.9])
def test_a_cut_file_is_never_just_shorter(whole, part):
    data = whole.read_bytes()
    whole.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(SourceReadError, match=whole.name):
        read(whole)
    with pytest.raises(SourceReadError, match=whole.name):
        len(VideoFrames(whole))


def test_a_real_webm_cut_to_60000_bytes_is_an_error(tmp_path, shared_videos):
    path = tmp_path / "cut.webm"
    data = (shared_videos / "vp8_audio_30fps.webm").read_bytes()
    path.write_bytes(data[:60_000])
    with pytest.raises(SourceReadError, match="byte 179885 and the file at 60000"):
        read(path)


def test_a_real_damaged_file_gives_frame_and_cause(shared_videos):
    with pytest.raises(SourceReadError) as error:
        read(shared_videos / "corrupted.mp4")
    message = str(error.value)
    assert "corrupted.mp4' cannot be read at frame 28: Invalid data" in message
    assert isinstance(error.value.__cause__, av.InvalidDataError)


@pytest.mark.parametrize("frame_rate", [None, 5])
def test_the_frames_before_the_damage_come_first(tmp_path, shared_videos, frame_rate):
    path = shared_videos / "corrupted.mp4"
    given: list[object] = []
    with pytest.raises(SourceReadError):
        given.extend(VideoFrames(path, frame_rate=frame_rate).stored())
    assert len(given) >= 14


@pytest.mark.parametrize(
    ("codec", "pix_fmt"),
    [
        ("libx264", "yuv420p"),
        ("mpeg4", "yuv420p"),
        ("mpeg2video", "yuv420p"),
        ("mjpeg", "yuvj420p"),
    ],
)
def test_bits_that_flip_inside_of_frames_are_noticed(
    tmp_path, write_video, pictures, codec, pix_fmt
):
    path = write_video(
        tmp_path / "a.mov",
        pictures(24, 96, 128),
        codec=codec,
        pix_fmt=pix_fmt,
        options={"crf": "10", "g": "24", "qscale": "3"},
    )
    assert read(path) == 24
    data = bytearray(path.read_bytes())
    start = data.index(b"mdat") + 1000
    rng = random.Random(0)
    for place in range(start, start + 400):
        data[place] = rng.randrange(256)
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match="at frame"):
        read(path)


def test_blocks_that_are_lost_in_matroska_are_noticed(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "a.webm", pictures(24, 48, 64), codec="libvpx", options={"g": "6"}
    )
    data = bytearray(path.read_bytes())
    middle, length = len(data) // 2, len(data) // 3
    data[middle : middle + length] = bytes(length)
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match=r"a\.webm"):
        read(path)


def test_fewer_frames_than_the_container_promises_are_an_error(
    tmp_path, write_video, pictures
):
    path = write_video(tmp_path / "a.avi", pictures(24, 48, 64), codec="mpeg4")
    data = path.read_bytes()
    cut = data[: data.index(b"idx1") - 3000]
    path.write_bytes(cut)
    with pytest.raises(SourceReadError):
        read(path)


def test_a_cut_that_took_no_frame_is_no_error(tmp_path, write_video, pictures):
    path = write_video(tmp_path / "a.avi", pictures(24, 48, 64), codec="mpeg4")
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"idx1") + 40])
    assert read(path) == 24


def test_a_cut_through_a_frame_of_a_transport_stream_is_noticed(
    tmp_path, write_video, pictures
):
    path = write_video(tmp_path / "a.ts", pictures(6, 96, 128))  # large frames
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceReadError, match=r"a\.ts"):
        read(path)


def from_the_middle(path):
    """Cut the beginning off a transport stream, but for its tables."""
    data = path.read_bytes()
    start = data.index(b"\x00\x00\x01\x09", 3000) // 188 * 188
    path.write_bytes(data[: 3 * 188] + data[start:])
    return path


def test_a_stream_that_begins_between_two_key_frames_is_read_from_the_next_one(
    tmp_path, write_video, pictures
):
    path = write_video(
        tmp_path / "a.ts", pictures(24, 48, 64), options={"g": "6", "bf": "0"}
    )
    assert 12 <= read(from_the_middle(path)) < 24


@pytest.mark.parametrize(("num", "level"), [(24, "INFO"), (10, "WARNING")])
def test_what_is_left_out_at_the_beginning_is_told(
    tmp_path, write_video, pictures, caplog, num, level
):
    path = write_video(
        tmp_path / "a.ts",
        pictures(num, 48, 64),
        options={"g": "8", "bf": "0", "sc_threshold": "0"},
    )
    caplog.set_level("INFO", "gulpio2")
    assert read(path) == num
    assert not caplog.records
    data = path.read_bytes()
    starts = [at.start() // 188 for at in re.finditer(b"\0\0\1\x09", data)]
    path.write_bytes(data[: 3 * 188] + data[starts[2] * 188 :])
    assert read(path) == num - 8
    (record,) = caplog.records
    assert record.levelname == level
    assert f"6 of its {num - 2} packets come before" in record.getMessage()


def test_a_stream_without_a_frame_that_can_be_decoded_is_an_error(
    tmp_path, write_video, pictures
):
    path = write_video(
        tmp_path / "a.ts", pictures(24, 48, 64), options={"g": "250", "bf": "0"}
    )
    from_the_middle(path)
    for use in (read, lambda p: len(VideoFrames(p))):
        with pytest.raises(SourceReadError, match="has no frame in stream 0"):
            use(path)


NOT_VIDEOS = [
    pytest.param("none.mp4", None, "does not exist", id="missing"),
    pytest.param(
        "empty.mp4", b"", "cannot be opened: the file is empty. Get it anew", id="empty"
    ),
    pytest.param("text.mp4", b"no video at all\n" * 50, "cannot be opened", id="text"),
    pytest.param("notes.txt", b"a plain text\n" * 50, "is no video", id="text art"),
    pytest.param("zeros.webm", bytes(5000), "cannot be opened", id="zeros"),
]


@pytest.mark.parametrize(("name", "data", "message"), NOT_VIDEOS)
def test_what_is_no_video_is_named(tmp_path, name, data, message):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    for use in (
        read,
        lambda p: VideoFrames(p).source_info(),
        lambda p: len(VideoFrames(p)),
    ):
        with pytest.raises(SourceReadError, match=message) as error:
            use(path)
        assert repr(str(path)) in str(error.value)


def test_a_cut_video_that_cannot_be_opened_is_told_what_is_missing_alone(
    tmp_path, write_video, pictures
):
    path = write_video(tmp_path / "a.mp4", pictures(6, 48, 64))
    path.write_bytes(path.read_bytes()[:-1000])  # without its index, which is the end
    with pytest.raises(SourceReadError) as error:
        read(path)
    said = str(error.value).partition("cannot be opened: ")[2]
    assert re.fullmatch(r"it is cut off: .* Get a whole copy of it, or .*\.", said)


def test_an_animated_webp_is_called_that_and_a_single_picture_is_read(
    tmp_path, pictures
):
    first, *others = map(Image.fromarray, pictures(3, 48, 64))
    path = tmp_path / "sticker.webp"
    first.save(path, lossless=True, exact=True)
    assert len(VideoFrames(path)) == 1
    first.save(path, lossless=True, save_all=True, append_images=others)
    with pytest.raises(SourceReadError, match=r"sticker\.webp' is an animated WebP"):
        read(path)


def test_a_folder_is_no_video(tmp_path):
    with pytest.raises(SourceReadError, match=r"cannot be read: Is a directory"):
        read(tmp_path)


def test_a_file_with_sound_only_has_no_video_stream(tmp_path):
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        sound.writeframes(bytes(16000))
    with pytest.raises(SourceReadError, match="has no video stream"):
        read(path)


def test_the_cover_of_a_song_is_no_video_stream(tmp_path):
    path = tmp_path / "song.mp4"
    with av.open(str(path), "w") as container:
        sound: Any = container.add_stream("aac", rate=8000)
        cover: Any = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 32, 32, "yuvj420p"
        cover.disposition = Disposition.attached_pic
        silence = av.AudioFrame.from_ndarray(
            np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
        )
        silence.rate = 8000
        picture = av.VideoFrame(32, 32, "yuvj420p")
        picture.pts = 0
        for stream, frame in ((sound, silence), (cover, picture)):
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    with pytest.raises(SourceReadError, match="has no video stream"):
        read(path)


def test_a_file_without_frames_is_an_error(tmp_path):
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        container.start_encoding()
    with pytest.raises(SourceReadError, match="cannot be opened: End of file"):
        read(path)


@pytest.mark.parametrize(("stream", "have"), [(1, r"\[0\]"), (7, r"\[0\]"), (-1, "0")])
def test_a_stream_that_is_not_there_is_named_with_those_that_are(
    tmp_path, write_video, pictures, stream, have
):
    path = write_video(tmp_path / "a.mp4", pictures(3, 48, 64), with_audio=True)
    with pytest.raises(SourceReadError, match=f"no video stream {stream}; .*{have}"):
        read(path, stream=stream)


def test_frames_above_the_limit_are_refused(clip):
    assert read(clip, max_pixels=64 * 48) == 30
    with pytest.raises(SourceReadError, match="max_pixels"):
        read(clip, max_pixels=64 * 48 - 1)


@pytest.mark.parametrize("kind", [*CONTAINERS, "ffv1"])
def test_frames_above_the_limit_are_called_that_whatever_the_codec(
    tmp_path, write_video, pictures, kind
):
    """Some decoders leave FFmpeg without a size then, and fail as at damage."""
    if kind == "ffv1":
        path = write_video(tmp_path / "a.mkv", pictures(3, 48, 64), codec="ffv1")
    else:
        path = tmp_path / CONTAINERS[kind][1]
        write_whole(path, kind, write_video, pictures)
    limit = 64 * 48 - 1
    message = f"64x48 pixels, above the limit of {limit}. Raise max_pixels"
    with pytest.raises(SourceReadError, match=message):
        read(path, max_pixels=limit)


def test_a_video_that_is_removed_while_it_is_opened_is_refused_as_others_are(
    tmp_path, write_video, pictures, monkeypatch
):
    """Where the decoder has left no size, the file is opened once more for it."""
    path = tmp_path / CONTAINERS["avi"][1]
    write_whole(path, "avi", write_video, pictures)

    def remove(*arguments):
        path.unlink()
        return choose_stream(*arguments)

    monkeypatch.setattr("gulpio2.media.decode.choose_stream", remove)
    with pytest.raises(SourceReadError, match="cannot be read at frame 0"):
        read(path, max_pixels=64 * 48 - 1)


def test_a_header_cannot_make_it_set_aside_gigabytes(tmp_path):
    # An AVI whose header declares 60000x60000 pixels of raw video.
    strf = struct.pack("<IiiHH4sIiiII", 40, 60000, 60000, 1, 24, b"MJPG", 0, 0, 0, 0, 0)
    strh = b"vidsMJPG" + struct.pack("<IHHIIIIIIII", 0, 0, 0, 0, 1, 25, 0, 1, 0, 0, 0)

    def chunk(name, content):
        return name + struct.pack("<I", len(content)) + content

    strl = chunk(
        b"LIST", b"strl" + chunk(b"strh", strh + bytes(8)) + chunk(b"strf", strf)
    )
    avih = struct.pack("<14I", 40000, 0, 0, 0, 1, 0, 1, 0, 60000, 60000, 0, 0, 0, 0)
    header = chunk(b"LIST", b"hdrl" + chunk(b"avih", avih) + strl)
    movie = chunk(b"LIST", b"movi" + chunk(b"00dc", b"\xff\xd8\xff\xd9"))
    path = tmp_path / "huge.avi"
    path.write_bytes(chunk(b"RIFF", b"AVI " + header + movie))
    with pytest.raises(SourceReadError, match=r"huge\.avi"):
        read(path)


def test_a_gap_of_hours_is_not_filled_with_repeats(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "gap.mkv", pictures(3, 48, 64), pts=[0, 1, 25 * 3600 * 50]
    )
    assert read(path) == 3
    with pytest.raises(SourceReadError, match="a gap in its times"):
        read(path, frame_rate=30)


@pytest.mark.parametrize("rate", ["fast", -1, "-2"])
def test_a_rate_that_is_none_is_refused_at_once(rate):
    with pytest.raises(ValueError, match="frame_rate is"):
        VideoFrames("a.mp4", frame_rate=rate)


def test_transport_streams_that_were_joined_are_named_as_a_cause(
    tmp_path, write_video, pictures
):
    parts = [
        write_video(tmp_path / f"{number}.ts", pictures(30, 48, 64)).read_bytes()
        for number in range(2)
    ]
    path = tmp_path / "joined.ts"
    path.write_bytes(b"".join(parts))
    with pytest.raises(SourceReadError, match="transport streams were joined") as error:
        read(path)
    assert "ffmpeg -f concat" in str(error.value)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("excerpt", [{}, {"start": 0.6, "end": 1.2}])
@pytest.mark.parametrize(
    ("codec", "ending", "size"),
    [
        ("libsvtav1", ".mp4", None),
        ("libsvtav1", ".mkv", None),
        ("mpeg2video", ".mov", 64),
        ("libx265", ".mp4", 5),
        ("libx265", ".mkv", 16),
    ],
)
def test_a_packet_that_gives_no_frame_is_an_error(
    tmp_path, write_video, pictures, codec, ending, size, excerpt, threads
):
    if codec not in av.codecs_available:
        pytest.skip(f"this build of FFmpeg has no {codec}")
    options = {
        "libsvtav1": {"preset": "10", "crf": "50"},
        "libx265": {"x265-params": "log-level=none:open-gop=1:keyint=12"},
    }.get(codec, {"bf": "2"})
    path = write_video(
        tmp_path / f"a{ending}", pictures(50, 96, 128), codec=codec, options=options
    )
    with av.open(str(path)) as container:
        packets = [
            (packet.pos, bytes(packet))
            for packet in container.demux(video=0)
            if packet.size
        ]
    whole = len(list(VideoFrames(path, threads=threads, **excerpt)))
    data = path.read_bytes()
    refused = 0
    for pos, packet in packets[18:26]:
        at = data.index(packet, pos)
        length = size or len(packet)
        path.write_bytes(data[:at] + bytes(length) + data[at + length :])
        try:
            found = len(list(VideoFrames(path, threads=threads, **excerpt)))
        except SourceReadError:
            refused += 1
        else:
            assert found == whole
    assert refused


def test_a_slice_of_hevc_in_a_transport_stream_that_gives_no_frame_is_an_error(
    tmp_path, write_video, pictures
):
    path = write_video(
        tmp_path / "a.ts",
        pictures(24, 48, 64),
        codec="libx265",
        options={"x265-params": "log-level=none:open-gop=1:keyint=8"},
    )
    data = path.read_bytes()
    for type_ in (b"\0", b"\2"):  # B-frames that none leans on, and others
        places = [at.start() for at in re.finditer(b"\0\0\1" + type_ + b"\1", data)]
        assert places
        for at in places:
            path.write_bytes(data[: at + 5] + b"\xff\xff\xff" + data[at + 8 :])
            try:
                found = read(path)
            except SourceReadError:
                continue
            assert found == 24
    # Of one that begins later, what leans on what is gone is no loss.
    for packet in range(3, len(data) // 188, 5):
        path.write_bytes(data[packet * 188 :])
        try:
            assert 0 < read(path) <= 24
        except SourceReadError as error:
            assert "gave no frame" not in str(error)  # noqa: PT017  # either outcome is right


def test_leading_frames_of_an_open_group_with_odd_times_are_no_loss(
    tmp_path, write_video, pictures
):
    """As of MPEG-2 that is cut out of a program stream: times are those of decoding."""
    whole = write_video(
        tmp_path / "whole.mov",
        pictures(40, 96, 128),
        codec="mpeg2video",
        options={"bf": "2", "g": "12"},
    )
    path = tmp_path / "cut.mov"
    with av.open(str(whole)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        begun = 0
        for packet in source.demux(video=0):
            if not packet.size:
                continue
            begun += packet.is_keyframe
            if begun < 2:
                continue
            if packet.pts is not None and not packet.is_keyframe:
                packet.pts = (packet.dts or 0) + 3 * 512
            packet.stream = stream
            target.mux(packet)
    assert len(list(VideoFrames(path))) > 20
