"""Rules for damaged frames."""

import errno
import pickle

import numpy as np
import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import (
    CorruptFrameError,
    ItemNotFoundError,
    ReadRangeError,
    StorageError,
    UnreadablePlaceError,
)
from gulpio2.record import EntryRecord
from gulpio2.testing import make_gulp_directory
from gulpio2.tolerant import DamageReport, TolerantReader, _by_distance, is_damage
from tests.torch.troubles import fail_reads


@pytest.fixture
def folder(tmp_path):
    make_gulp_directory(tmp_path, num_items=3, num_frames=8).close()
    return tmp_path


def damage(folder, id_, *indices):
    with GulpDirectory(folder) as directory:
        number = directory.chunk_lookup[id_]
        infos = directory.item(id_).entry["frame_info"]
    path = folder / f"data_{number}.gulp"
    data = bytearray(path.read_bytes())
    for index in indices:
        data[infos[index][0] + infos[index][2] // 2] ^= 4
    path.write_bytes(data)


def reader_of(folder, **options):
    return TolerantReader(GulpDirectory(folder, verify=True), **options)


def good(folder):
    return [frame.copy() for frame in GulpDirectory(folder)["item0"][0]]


def test_sound_frames_are_read_as_they_are(folder):
    for rule in ("raise", "skip", "substitute"):
        reader = reader_of(folder, on_damage=rule, ceiling=0)
        frames, meta = reader.read_frames("item0", slice(1, 6, 2))
        assert np.array_equal(frames, GulpDirectory(folder)["item0", 1:6:2][0])
        assert meta == {"number": 0}
        assert reader.damage.count == 0


def test_a_damaged_frame_is_an_error_by_default(folder):
    damage(folder, "item0", 2)
    with pytest.raises(CorruptFrameError, match="item 'item0', frame 2"):
        reader_of(folder).read_frames("item0")


def test_damaged_frames_are_left_out_and_counted_once(folder):
    expected = good(folder)
    damage(folder, "item0", 2, 5)
    reader = reader_of(folder, on_damage="skip")
    for _ in range(2):
        frames, _ = reader.read_frames("item0")
        assert np.array_equal(frames, [expected[n] for n in (0, 1, 3, 4, 6, 7)])
    assert reader.damage.frames == {"item0": {2, 5}}
    assert (reader.damage.count, reader.damage.reads) == (2, 4)
    assert str(reader.damage) == "2 damaged frames in 1 item"


def test_the_nearest_good_frame_takes_the_place_the_earlier_of_two(folder):
    expected = good(folder)
    damage(folder, "item0", 0, 3, 4)
    frames, _ = reader_of(folder, on_damage="substitute").read_frames("item0")
    assert np.array_equal(frames, [expected[n] for n in (1, 1, 2, 2, 5, 5, 6, 7)])


def test_order_repeats_and_negative_indices_hold(folder):
    expected = good(folder)
    damage(folder, "item0", 3)
    frames, _ = reader_of(folder, on_damage="substitute").read_frames(
        "item0", [-1, 3, 0, 3]
    )
    assert np.array_equal(frames, [expected[n] for n in (7, 2, 0, 2)])


def test_past_the_ceiling_it_raises_after_all(folder):
    damage(folder, "item0", 1)
    damage(folder, "item1", 1, 2)
    reader = reader_of(folder, on_damage="skip", ceiling=2)
    reader.read_frames("item0")
    with pytest.raises(CorruptFrameError, match="ceiling of 2 damaged") as caught:
        reader.read_frames("item1")
    assert "item 'item1', frame 2" in str(caught.value)


def test_an_item_without_a_good_frame_cannot_be_substituted(folder):
    damage(folder, "item0", *range(8))
    with pytest.raises(CorruptFrameError, match="no good frame"):
        reader_of(folder, on_damage="substitute").read_frames("item0", 4)
    assert reader_of(folder, on_damage="skip").read_frames("item0")[0] == []


def test_frames_behind_a_cut_count_as_damaged(folder):
    path = folder / "data_1.gulp"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ReadRangeError):
        reader_of(folder).read_frames("item2")
    frames, _ = reader_of(folder, on_damage="skip").read_frames("item2")
    assert len(frames) == 7
    with pytest.raises(ReadRangeError, match="ceiling of 0"):
        reader_of(folder, on_damage="skip", ceiling=0).read_frames("item2")


@pytest.mark.parametrize(("times", "count"), [(1, 0), (2, 0), (3, 1)])
def test_an_error_of_reading_is_damage_unless_it_passes(
    folder, monkeypatch, times, count
):
    reader = reader_of(folder, on_damage="skip")
    fail_reads(monkeypatch, "pread", "preadv", times=times)  # first all frames at once
    frames, _ = reader.read_frames("item0")
    assert (len(frames), reader.damage.count) == (8 - count, count)


def test_a_file_that_cannot_be_opened_is_no_damage(folder, monkeypatch):
    reader = reader_of(folder, on_damage="skip")
    fail_reads(monkeypatch, "open", times=1)
    with pytest.raises(StorageError, match=r"cannot open .*: Input/output") as caught:
        reader.read_frames("item0")
    assert caught.value.errno == errno.EIO
    assert not is_damage(caught.value)


def test_a_place_that_cannot_be_read_is_told_from_all_else(folder, monkeypatch):
    with GulpDirectory(folder) as directory:
        item = directory.item("item0")
        item.read_at(0, 1)
        fail_reads(monkeypatch, "pread", "preadv", times=1)
        with pytest.raises(UnreadablePlaceError, match="at byte 0: Input/") as caught:
            item.read_at(0, 1)
    assert is_damage(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))  # our own
    assert type(again) is UnreadablePlaceError
    assert again.args == caught.value.args


def test_other_errors_come_through(folder):
    with pytest.raises(ItemNotFoundError):
        reader_of(folder, on_damage="skip").read_frames("nobody")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_damage": "ignore"}, "'ignore'"),
        ({"ceiling": -1}, "at least 0"),
        ({"ceiling": None}, "ceiling is None; it must be at least 0"),
        ({"ceiling": "7"}, "ceiling is '7'; it must be at least 0"),
    ],
)
def test_wrong_settings_are_refused(folder, options, message):
    with pytest.raises(ValueError, match=message):
        reader_of(folder, **options)


def test_the_nearest_frame_is_found_from_any_place():
    for number in range(1, 8):
        for index in range(number):
            others = [n for n in range(number) if n != index]
            others.sort(key=lambda other: (abs(other - index), other))
            assert [*_by_distance(index, number)] == others


def test_a_report_that_is_emptied_begins_again(folder):
    damage(folder, "item0", 1, 2)
    reader = reader_of(folder, on_damage="skip", ceiling=2)
    for again in range(3):
        assert len(reader.read_frames("item0")[0]) == 6
        assert reader.damage.count == 2
        if again:
            reader.damage.frames.clear()
        else:
            reader.damage = DamageReport()


def test_a_call_asks_once_whether_an_item_was_edited(folder, monkeypatch):
    damage(folder, "item0", *range(8))
    asked = []
    is_edited = EntryRecord.is_edited

    def note(record, id_):
        asked.append(id_)
        return is_edited(record, id_)

    monkeypatch.setattr(EntryRecord, "is_edited", note)
    reader_of(folder, on_damage="skip").read_frames("item0")
    assert len(asked) == 2  # by the first try, and for all frames one at a time
