"""An ASF of which parts of frames are missing, or belong to others, is damaged."""

from __future__ import annotations

import random

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage

NUM_FRAMES = 30
DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")


@pytest.fixture(params=["1000", "3200"])
def whole(request, tmp_path, write_video, pictures):
    return write_video(
        tmp_path / "a.wmv",
        pictures(NUM_FRAMES, 96, 128),
        codec="wmv2",
        options={"g": "6"},
        mux_options={"packet_size": request.param},
        with_audio=request.param == "1000",
    )


def test_a_whole_file_is_whole(whole):
    assert find_damage(whole) is None
    assert sum(1 for _ in VideoFrames(whole).stored()) == NUM_FRAMES


@pytest.mark.parametrize("with_zeros", [False, True])
def test_damage_costs_no_frame_without_a_word(whole, with_zeros):
    data = whole.read_bytes()
    rng = random.Random(0)
    start = data.index(DATA) + 50
    for _ in range(150):
        damaged = bytearray(data)
        at = rng.randrange(start + 3, len(data) - 200)
        if with_zeros:
            damaged[at : at + 16] = bytes(16)
        else:
            damaged[at] ^= 1 << rng.randrange(8)
        whole.write_bytes(damaged)
        try:
            found = sum(1 for _ in VideoFrames(whole).stored())
        except SourceReadError:
            continue
        assert found == NUM_FRAMES


@pytest.mark.parametrize(
    ("field", "bit"), [("stream", 2), ("number", 1), ("offset", 4), ("size", 1)]
)
def test_a_damaged_header_of_a_part_is_noticed(whole, field, bit):
    data = bytearray(whole.read_bytes())
    start = data.index(DATA) + 50
    start = data.index(data[start : start + 3], start + 900)  # the second packet
    # Behind the correction of errors, flags, padding and times.
    flags = data[start + 3]
    at = start + 5 + (flags >> 3 & 3) + 6 + (flags & 1)
    data[at + {"stream": 0, "number": 1, "offset": 2, "size": 7}[field]] ^= bit
    whole.write_bytes(data)
    damage = find_damage(whole)
    assert damage is not None
    assert "parts of frames are missing" in damage.message


def test_sound_that_is_missing_costs_no_video(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "a.wmv",
        pictures(NUM_FRAMES, 96, 128),
        codec="wmv2",
        mux_options={"packet_size": "1000"},
        with_audio=True,
    )
    data = bytearray(path.read_bytes())
    first = data.index(DATA) + 50
    changed = 0
    for start in range(first, len(data) - 1000, 1000):
        flags = data[start + 3]
        at = start + 5 + (flags >> 3 & 3) + 6 + (flags & 1)
        if data[at] & 0x7F == 2:  # the stream of sound
            data[at + 1] ^= 1  # the number of the object
            changed += 1
    assert changed
    path.write_bytes(data)
    assert find_damage(path) is None
    assert sum(1 for _ in VideoFrames(path).stored()) == NUM_FRAMES


def without_correction(data):
    """Take the room for the correction of errors out, as GStreamer writes it."""
    step, start = 1000, data.index(DATA) + 50
    properties = data.index(bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365"))
    packets = [data[at : at + step] for at in range(start, len(data) - step + 1, step)]
    packets = [packet for packet in packets if packet.startswith(b"\x82\0\0")]
    header = bytearray(data[:start])
    for at in (92, 96):
        header[properties + at : properties + at + 4] = (step - 3).to_bytes(4, "little")
    length = 50 + (step - 3) * len(packets)
    header[start - 34 : start - 26] = length.to_bytes(8, "little")
    return bytes(header), [packet[3:] for packet in packets]


def with_length(packet, said):
    """Give a packet a length without what fills it up, of which it says something."""
    assert packet[0] & 0x78 == 0x10  # no length, and two bytes for what fills it up
    filled = int.from_bytes(packet[2:4], "little")
    rest = packet[4 : len(packet) - filled]
    numbers = (6 + len(rest)).to_bytes(2, "little") + said.to_bytes(2, "little")
    return bytes([packet[0] | 0x40, packet[1]]) + numbers + rest + bytes(filled - 2)


@pytest.fixture
def uncorrected(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "a.wmv",
        pictures(NUM_FRAMES, 48, 64),
        codec="wmv2",
        options={"g": "6"},
        mux_options={"packet_size": "1000"},
    )
    header, packets = without_correction(path.read_bytes())
    path.write_bytes(header + b"".join(packets))
    return path, header, packets


def test_packets_need_no_room_for_the_correction_of_errors(uncorrected):
    path, header, packets = uncorrected
    assert find_damage(path) is None
    assert sum(1 for _ in VideoFrames(path).stored()) == NUM_FRAMES
    lost = len(packets) // 2
    path.write_bytes(
        header + b"".join([*packets[:lost], bytes(997), *packets[lost + 1 :]])
    )
    with pytest.raises(SourceReadError, match="parts of frames are missing"):
        list(VideoFrames(path).stored())
    odd = b"\x90" + packets[lost][1:]
    path.write_bytes(header + b"".join([*packets[:lost], odd, *packets[lost + 1 :]]))
    with pytest.raises(SourceReadError, match="no packet begins"):
        list(VideoFrames(path).stored())


def test_no_part_is_lost_silently_where_a_length_is_without_what_fills_up(uncorrected):
    """FFmpeg takes off from the length what is told of, unless a part is there."""
    path, header, packets = uncorrected
    refused = []
    for said in range(0, 999, 9):
        changed = with_length(packets[-1], said)
        assert len(changed) == len(packets[-1])
        path.write_bytes(header + b"".join([*packets[:-1], changed]))
        if damage := find_damage(path):
            assert "FFmpeg leaves out some" in damage.message
            refused.append(said)
        else:
            assert sum(1 for _ in VideoFrames(path).stored()) == NUM_FRAMES
    assert 0 < len(refused) < 111
    with pytest.raises(SourceReadError, match="Write it anew with another program"):
        list(VideoFrames(path).stored())
