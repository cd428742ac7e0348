"""Reading ahead: bounded, while storage is fast, and never another sample's bytes."""

from __future__ import annotations

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import StorageError
from gulpio2.torch import ahead as ahead_module
from gulpio2.torch.ahead import ReadAhead
from gulpio2.torch.profile import Clock
from gulpio2.torch.stored import StoredClip, locate_clip

KB = 1024


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let no read be slow because something else had the processor meanwhile."""
    monkeypatch.setattr(ahead_module, "_SLOW_READ", 60.0)


@pytest.fixture
def directory(make_directory):
    with GulpDirectory(make_directory(counts=(8,) * 6)) as opened:
        yield opened


def clip_of(directory: GulpDirectory, number: int, frames: range) -> StoredClip:
    """Find where the frames of a clip are."""
    clip = locate_clip(directory, f"clip{number}", frames, frames)
    assert clip is not None
    return clip


def jpegs_of(clip: StoredClip) -> list[bytes]:
    """Read a clip as a loader does, and take its frames out of the blocks."""
    found = []
    for block, read in clip.each(Clock()):
        for offset, length in read.spans:
            found.append(bytes(block[offset - read.offset :][:length]))
    clip.drop()
    return found


def test_what_was_read_ahead_is_what_is_stored(directory):
    ahead, clock = ReadAhead(), Clock()
    clips = [clip_of(directory, number, range(2, 7)) for number in range(6)]
    for clip in clips:
        assert ahead.read(clip, clock)
    num_bytes = clock.num_bytes
    assert num_bytes == sum(read.length for clip in clips for read in clip.reads)
    for number, clip in enumerate(clips):
        stored = directory.read_jpegs(f"clip{number}", range(2, 7))
        assert jpegs_of(clip) == stored
        assert not clip.blocks
        assert jpegs_of(clip) == stored  # read in its turn
    assert clock.num_bytes == num_bytes


def test_memory_is_bounded_and_used_again(directory):
    ahead = ReadAhead(2 * 64 * KB)
    clips = [clip_of(directory, number, range(8)) for number in range(6)]
    assert [ahead.read(clip, Clock()) for clip in clips[:3]] == [True, True, False]
    assert [len(clip.blocks) for clip in clips[:3]] == [1, 1, 0]
    memory = clips[0].blocks[0]
    jpegs_of(clips[0])
    assert ahead.read(clips[3], Clock())
    assert clips[3].blocks[0] is memory
    ahead.begin()  # what the others hold is forgotten
    others = (clips[2], clips[4], clips[5])
    assert [ahead.read(clip, Clock()) for clip in others] == [True, True, False]


def test_a_clip_of_several_reads_gives_all_its_memory_back(directory):
    whole = clip_of(directory, 0, range(8))
    parts = [
        read._replace(length=span[1], offset=span[0], rows=(row,), spans=(span,))
        for read in whole.reads
        for row, span in zip(read.rows, read.spans, strict=True)
    ]
    ahead = ReadAhead(8 * 64 * KB)
    for _ in range(3):
        clip = StoredClip(whole.item, parts)
        assert ahead.read(clip, Clock())
        assert len(clip.blocks) == 8
        assert jpegs_of(clip) == directory.read_jpegs("clip0")
        assert not clip.blocks


def test_a_storage_with_memory_of_its_own_is_read_in_turn(directory):
    clip = clip_of(directory, 0, range(8))
    clip.item.handles = None  # as of a reader whose bytes come from somewhere else
    ahead = ReadAhead(64 * KB)
    for _ in range(3):
        assert not ahead.read(clip, Clock())
        assert type(clip.blocks[0]) is bytes  # what came is used
        assert jpegs_of(clip) == directory.read_jpegs("clip0")


def test_longer_clips_take_the_place_of_shorter_ones(directory):
    clip = clip_of(directory, 0, range(8))
    ahead = ReadAhead(4 * 64 * KB)
    ahead.give_back(bytearray(10))
    assert ahead.read(clip, Clock())
    assert len(clip.blocks[0]) == 64 * KB
    assert not ahead._spare


def test_memory_of_one_long_clip_does_not_stand_for_short_ones(directory):
    ahead = ReadAhead(16 * 64 * KB)
    ahead.give_back(bytearray(12 * 64 * KB))
    clips = [clip_of(directory, number, range(8)) for number in range(6)]
    assert all(ahead.read(clip, Clock()) for clip in clips)
    assert [len(clip.blocks[0]) for clip in clips] == [64 * KB] * 6


def test_slow_storage_is_left_to_all_threads(directory, monkeypatch):
    monkeypatch.setattr(ahead_module, "_SLOW_READ", -1.0)
    clip = clip_of(directory, 0, range(8))
    assert not ReadAhead().read(clip, Clock())
    assert len(clip.blocks) == 1  # what came is used
    assert jpegs_of(clip) == directory.read_jpegs("clip0")


def test_what_cannot_be_read_is_told_in_its_turn(directory, monkeypatch):
    clip = clip_of(directory, 0, range(8))
    read_into = type(clip.item).read_into

    def fail(*_args):
        raise StorageError(5, "no answer")

    monkeypatch.setattr(type(clip.item), "read_into", fail)
    ahead = ReadAhead(64 * KB)
    assert not ahead.read(clip, Clock())
    with pytest.raises(StorageError, match="no answer"):
        jpegs_of(clip)
    monkeypatch.setattr(type(clip.item), "read_into", read_into)
    assert ahead.read(clip, Clock())  # the memory was given back
    assert jpegs_of(clip) == directory.read_jpegs("clip0")
