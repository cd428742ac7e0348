"""An FLV whose tags do not lead to its end is damaged."""

from __future__ import annotations

import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media.video import VideoFrames
from tests.media.conftest import find_damage


@pytest.fixture
def whole(tmp_path, write_video, pictures):
    path = write_video(tmp_path / "a.flv", pictures(12, 48, 64), options={"g": "4"})
    assert find_damage(path) is None
    return path


def tags_of(data):
    """Give where the tags begin, and the end."""
    places = [13]
    while places[-1] < len(data):
        at = places[-1]
        places.append(at + 15 + int.from_bytes(data[at + 1 : at + 4], "big"))
    return places


def test_a_cut_inside_of_a_tag_is_noticed(whole):
    data = whole.read_bytes()
    *tags, end = tags_of(data)
    assert end == len(data)
    for tag in tags[3:]:
        for more in (1, 10, 11, 20):
            whole.write_bytes(data[: tag + more])
            if tag + more < end - 4:
                with pytest.raises(SourceReadError, match="is cut off: its last tag"):
                    list(VideoFrames(whole))
        whole.write_bytes(data[:tag])
        assert find_damage(whole) is None  # which nothing tells


def test_a_damaged_header_of_a_tag_is_noticed(whole):
    data = whole.read_bytes()
    for tag in tags_of(data)[3:-2]:
        for at, bit in ((0, 4), (1, 64), (2, 1), (3, 2), (9, 4)):
            damaged = bytearray(data)
            damaged[tag + at] ^= bit
            whole.write_bytes(damaged)
            with pytest.raises(SourceReadError):
                list(VideoFrames(whole))


def test_tags_may_all_have_another_number_of_a_stream(whole):
    data = bytearray(whole.read_bytes())
    *tags, _ = tags_of(data)
    for tag in tags:
        data[tag + 10] = 1
    whole.write_bytes(data)
    assert len(list(VideoFrames(whole))) == 12


def test_zeros_behind_the_last_tag_do_no_harm(whole):
    data = whole.read_bytes()
    whole.write_bytes(data + bytes(3000))
    assert find_damage(whole) is None
    whole.write_bytes(data + bytes(3000) + data[-3000:])
    damage = find_damage(whole)
    assert damage is not None
    assert "no tag begins" in damage.message


def test_one_behind_another_is_noticed(whole):
    whole.write_bytes(2 * whole.read_bytes())
    with pytest.raises(SourceReadError, match="no tag begins"):
        list(VideoFrames(whole))


@pytest.mark.parametrize("more", [b"TAG of a player", b"\xff" * 3000, b"\r\n", b"\1"])
def test_what_holds_no_tag_behind_the_last_one_does_no_harm(whole, more):
    whole.write_bytes(whole.read_bytes() + more)
    assert find_damage(whole) is None
    assert sum(1 for _ in VideoFrames(whole).stored()) == 12


def test_a_last_tag_of_another_type_is_no_junk(whole):
    data = bytearray(whole.read_bytes())
    data[tags_of(data)[-3]] ^= 4
    whole.write_bytes(data)
    damage = find_damage(whole)
    assert damage is not None
    assert "no tag begins" in damage.message


@pytest.mark.parametrize("with_audio", [False, True])
def test_a_tag_of_video_that_became_one_of_sound_is_noticed(
    tmp_path, write_video, pictures, with_audio
):
    path = write_video(
        tmp_path / "a.flv",
        pictures(24, 48, 64),
        options={"g": "4"},
        with_audio=with_audio,
    )
    data = path.read_bytes()
    assert find_damage(path) is None
    for tag in [tag for tag in tags_of(data)[3:-2] if data[tag] == 9]:
        path.write_bytes(data[:tag] + b"\x08" + data[tag + 1 :])
        damage = find_damage(path)
        assert damage is not None
        assert f"its tag at byte {tag} holds no sound" in damage.message


def test_tags_that_are_missing_between_two_others_are_noticed(whole):
    data = whole.read_bytes()
    tags = tags_of(data)
    # The same number of bytes from each header on, so that the walk goes on.
    whole.write_bytes(data[: tags[4] + 11] + data[tags[5] + 11 :])
    damaged = bytearray(whole.read_bytes())
    damaged[tags[4] + 1 : tags[4] + 4] = data[tags[5] + 1 : tags[5] + 4]
    damaged[
        tags[4] + 11 + int.from_bytes(data[tags[5] + 1 : tags[5] + 4], "big") + 3
    ] ^= 1
    whole.write_bytes(damaged)
    damage = find_damage(whole)
    assert damage is not None
    assert "a tag ends elsewhere" in damage.message


def test_a_script_behind_the_last_frame_costs_none(tmp_path, write_video, pictures):
    """It is a stream of which FFmpeg tells only then, as yamdi and flvmeta write it.

    In a shorter file it finds it when it opens that.
    """
    path = write_video(
        tmp_path / "a.flv", pictures(160, 16, 32), options={"g": "4"}, with_audio=True
    )
    content = b"\2\0\x0conLastSecond\x08\0\0\0\0\0\0\x09"
    tag = b"\x12" + len(content).to_bytes(3, "big") + b"\0\x0f\x96\0\0\0\0" + content
    path.write_bytes(path.read_bytes() + tag + len(tag).to_bytes(4, "big"))
    assert sum(1 for _ in VideoFrames(path).stored()) == 160
    assert len(VideoFrames(path).source_times() or ()) == 160
