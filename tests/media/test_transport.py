"""Packets that are missing from MPEG transport streams, by their counters."""

from __future__ import annotations

import logging

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.transport import missing_packets
from gulpio2.media.video import VideoFrames

SIZE = 188
PID = 0x100


def packets_of(data):
    return [data[at : at + SIZE] for at in range(0, len(data), SIZE)]


def pid_of(packet):
    return int.from_bytes(packet[1:3], "big") & 0x1FFF


@pytest.fixture(params=["libx264", "libx265", "mpeg2video"])
def whole(request, tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "a.ts", pictures(12, 96, 128), codec=request.param,
        options={"g": "6"},
    )  # fmt: skip
    assert missing_packets(str(path), PID) is None
    return path


def test_each_packet_of_the_video_that_is_missing_is_noticed(whole):
    packets = packets_of(whole.read_bytes())
    places = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    for lost in places[1:-1]:
        whole.write_bytes(b"".join(packets[:lost] + packets[lost + 1 :]))
        with pytest.raises(SourceReadError, match=r"missing|damaged|Invalid|gone"):
            list(VideoFrames(whole))
        assert missing_packets(str(whole), PID) is not None


def test_what_is_missing_of_others_does_no_harm(whole):
    packets = packets_of(whole.read_bytes())
    for lost in [i for i, packet in enumerate(packets) if pid_of(packet) != PID]:
        whole.write_bytes(b"".join(packets[:lost] + packets[lost + 1 :]))
        assert missing_packets(str(whole), PID) is None


def test_packets_are_found_again_behind_other_bytes(whole):
    packets = packets_of(whole.read_bytes())
    middle = len(packets) // 2
    odd = b"".join(packets[:middle]) + b"x" * 77 + b"".join(packets[middle:])
    whole.write_bytes(odd)
    assert missing_packets(str(whole), PID) is None
    whole.write_bytes(odd[: -20 * SIZE] + odd[-19 * SIZE :])
    is_of_video = pid_of(packets[-20]) == PID
    assert (missing_packets(str(whole), PID) is not None) is is_of_video


def test_a_jump_that_is_told_of_is_none(whole):
    """Behind a discontinuity flag the counter begins anew."""
    packets = packets_of(whole.read_bytes())
    own = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    told = next(i for i in own[5:] if packets[i][3] & 0x20 and packets[i][4])
    flagged = bytearray(packets[told])
    flagged[5] |= 0x80
    whole.write_bytes(
        b"".join([*packets[: own[4]], bytes(flagged), *packets[told + 1 :]])
    )
    assert missing_packets(str(whole), PID) is None


def told_of(path, caplog, **options):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "gulpio2"):
        number = sum(1 for _ in VideoFrames(path, **options).stored())
    return number, caplog.text


def test_a_video_that_goes_on_in_another_stream_is_told_of(
    tmp_path, write_video, pictures, caplog
):
    parts = [
        write_video(
            tmp_path / f"{pid}.ts",
            pictures(number, 96, 128),
            options={"g": "6"},
            mux_options={"mpegts_start_pid": str(pid)},
        ).read_bytes()
        for number, pid in ((12, 256), (8, 512))
    ]
    path = tmp_path / "joined.ts"
    path.write_bytes(b"".join(parts))
    number, text = told_of(path, caplog, stream=0)
    assert number == 12
    assert f"{str(path)!r} is stored from its stream 0 alone" in text
    assert "stream 1, which comes behind it, is left out" in text
    assert "VideoFrames(path, stream=1)" in text
    number, text = told_of(path, caplog, stream=1)
    assert number == 8
    assert "stream 0, which comes before it, is left out" in text
    # Of programs that are sent at the same time nobody expects more than one.
    one, other = (packets_of(part) for part in parts)
    beside = [packet for pair in zip(one, other, strict=False) for packet in pair]
    path.write_bytes(b"".join(beside + one[len(other) :]))
    assert told_of(path, caplog, stream=0) == (12, "")


def test_what_is_no_file_tells_nothing(tmp_path):
    assert missing_packets(str(tmp_path / "none.ts"), PID) is None
    (tmp_path / "a.ts").write_bytes(b"nothing")
    assert missing_packets(str(tmp_path / "a.ts"), PID) is None


LONG = [70_000, 7_000_000]


@pytest.mark.parametrize("length", LONG)
def test_a_long_stretch_without_packets_costs_no_frame(whole, length):
    """FFmpeg looks through some of it at a time, and then wants to be asked again."""
    packets = packets_of(whole.read_bytes())
    own = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    begins = [i for i in own if packets[i][1] & 0x40]
    for at in (len(packets), begins[1], begins[7]):
        whole.write_bytes(b"".join([*packets[:at], bytes(length), *packets[at:]]))
        assert sum(1 for _ in VideoFrames(whole).stored()) == 12


@pytest.mark.parametrize("length", LONG)
def test_a_long_stretch_inside_of_a_frame_is_noticed(whole, length):
    packets = packets_of(whole.read_bytes())
    own = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    at = next(i for i in own[len(own) // 2 :] if not packets[i][1] & 0x40)
    whole.write_bytes(b"".join([*packets[:at], bytes(length), *packets[at:]]))
    assert "goes through a frame" in (missing_packets(str(whole), PID) or "")
    with pytest.raises(SourceReadError):
        list(VideoFrames(whole).stored())


def test_a_long_stretch_in_which_packets_may_begin_costs_no_frame(whole):
    packets = packets_of(whole.read_bytes())
    own = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    at = next(i for i in own[len(own) // 2 :] if not packets[i][1] & 0x40)
    # Each may be a packet of no stream, until the next one is looked at.
    odd = (b"G\x1f\xff\x10" + bytes(30_000)) * 4
    whole.write_bytes(b"".join([*packets[:at], odd, *packets[at:]]))
    assert missing_packets(str(whole), PID) is None
    assert sum(1 for _ in VideoFrames(whole).stored()) == 12


@pytest.mark.parametrize("length", [70_000, 7_000_000])
def test_packets_that_are_missing_at_a_long_stretch_are_noticed(whole, length):
    packets = packets_of(whole.read_bytes())
    own = [i for i, packet in enumerate(packets) if pid_of(packet) == PID]
    lost = own[len(own) // 2]
    parts = [*packets[:lost], bytes(length), *packets[lost + 1 :]]
    whole.write_bytes(b"".join(parts))
    assert "are missing" in (missing_packets(str(whole), PID) or "")
    with pytest.raises(SourceReadError, match=r"missing|damaged|Invalid"):
        list(VideoFrames(whole).stored())


def test_nothing_but_zeros_from_a_place_on_has_an_end(whole):
    with whole.open("r+b") as file:
        file.truncate(1 << 26)  # where no file system keeps the zeros
    assert sum(1 for _ in VideoFrames(whole).stored()) == 12
