"""The journal of a task: what it says is taken as far as it is true."""

import fcntl
import json
import os
import signal
from pathlib import Path

import pytest

from gulpio2.errors import LockedError, StorageError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import dump_extras
from gulpio2.format.journal import dump_line, load_lines
from gulpio2.ingest.task_journal import TaskJournal
from gulpio2.storage.local import open_store
from tests.faults.operations import before_each_operation
from tests.forking import forked, status_of

OPEN_FILES = Path("/proc/self/fd")
DATA = "chunk_0.gulp.a.partial"
STAGED = {"data": DATA, "meta": "chunk_0.gmeta.b.partial"}
# The checksum of a frame.
ZEROS = crc32_of(bytes(8))
FAILED = {
    "position": 3,
    "id": "z",
    "source": None,
    "error": "ValueError",
    "message": "no",
}


def entry(number, place, *, crc32=ZEROS, second=8, lengths=(8, 8)):
    """Give the entry of an item of two frames of eight zeros, at a place in a file."""
    begin = 16 * place
    infos = [[begin, 0, lengths[0]], [begin + second, 0, lengths[1]]]
    extras = dump_extras(crc32=[crc32, crc32])
    return {"frame_info": infos, "meta_data": [{"n": number}], "gulp2": extras}


@pytest.fixture
def journal_file(tmp_path):
    """Write the journal of a task whose run was interrupted."""
    (tmp_path / DATA).write_bytes(bytes(80))
    (tmp_path / STAGED["meta"]).write_bytes(b"{}")
    journal = TaskJournal(open_store(tmp_path), "chunk_0", 0, 100, resume=False)
    journal.write({"data": DATA})
    for number in range(2):
        journal.add_item(number, f"item{number}", json.dumps(entry(number, number)))
    journal.write_items()
    journal.write_items()  # nothing is left
    journal.write({"at": 2, "skipped": "y"})
    journal.write({"at": 3, "failed": FAILED})
    journal.write({"staged": STAGED})
    journal.write({"data": DATA})
    journal.add_item(4, "item4", json.dumps(entry(4, 0)))
    journal.write_items()
    journal.close()
    return tmp_path / journal.name


def resumed(path):
    """Take the journal up, and give what it says."""
    journal = TaskJournal(open_store(path.parent), "chunk_0", 0, 100, resume=True)
    journal.close()
    assert journal.name == path.name
    return journal.record


def test_what_was_written_is_read(journal_file):
    lines, _ = load_lines(journal_file.read_bytes())
    assert [next(iter(line)) for line in lines] == [
        *("data", "items", "at", "at"),
        *("staged", "data", "items"),
    ]
    record = resumed(journal_file)
    assert record.next_position == 5
    assert (record.skipped, [f.position for f in record.failures]) == (1, [3])
    (part,) = record.parts
    assert (part.ids, part.frames, part.num_bytes) == (("item0", "item1"), 4, 32)
    assert record.open_part is not None
    assert dict(record.open_part.meta_dict) == {"item4": entry(4, 0)}
    assert (record.open_part.size, record.open_part.frames) == (16, 2)


def item(number, place=1, **changes):
    return {"at": number, "id": "x", "entry": entry(number, place, **changes)}


UNTRUE = {
    "an item with other bytes": {"items": [item(7, crc32=5)]},
    "one good item and one that lies past the end": {
        "items": [item(7), item(8, 2, lengths=(8, 80))]
    },
    "an item whose frames lie the other way round": {"items": [item(7, second=-8)]},
    "an item whose frames lie far apart": {"items": [item(7, second=24)]},
    "one good item and one after a gap": {"items": [item(7), item(8, 3)]},
    "an item where another is": {"items": [item(7, 0)]},
    "an item that was done before": {"items": [item(4)]},
    "one good item and one that was done before": {"items": [item(7), item(4, 2)]},
    "a position that is none": {"items": [{**item(7), "at": 7.5}]},
    "checksums that are none": {
        "items": [{**item(7), "entry": {**entry(7, 1), "gulp2": {"crc32": "?"}}}]
    },
    "items that are none": {"items": 7},
    "a failure without a position": {"failed": FAILED},
    "a failure that is none": {"at": 7, "failed": {}},
    "a failure that was told before": {"at": 2, "failed": FAILED},
    "nothing that is known": {"at": 7},
    "no object": [7],
}


def test_items_that_lie_one_after_another_are_taken(journal_file):
    # What the cases of UNTRUE take for good.
    sound = journal_file.read_bytes()
    journal_file.write_bytes(sound + dump_line({"items": [item(7), item(8, 2)]}))
    assert resumed(journal_file).next_position == 9


@pytest.mark.parametrize("what", UNTRUE)
def test_a_line_that_is_not_true_ends_it(journal_file, what):
    sound = journal_file.read_bytes()
    expected = resumed(journal_file)
    after = dump_line({"at": 20, "skipped": "after"})
    journal_file.write_bytes(sound + dump_line(UNTRUE[what]) + after)
    assert resumed(journal_file) == expected
    assert journal_file.read_bytes() == sound


def test_a_disk_that_refuses_leaves_no_journal_open(journal_file):
    data = journal_file.parent / DATA
    data.unlink()
    data.mkdir()  # as a file that cannot be read
    first = journal_file.with_name("chunk_0.journal.-.partial")  # by name
    first.write_bytes(dump_line({"at": 0, "skipped": "y"}))
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(3):
        with pytest.raises(StorageError, match="not a regular file"):
            resumed(journal_file)
    assert len(list(OPEN_FILES.iterdir())) == before


def test_a_journal_that_cannot_be_opened_leaves_none_before_it_open(journal_file):
    link = journal_file.with_name("chunk_0.journal.zz.partial")
    link.symlink_to(journal_file)  # which may lead to another disk
    before = len(list(OPEN_FILES.iterdir()))
    with pytest.raises(StorageError, match="cannot open for writing"):
        resumed(journal_file)
    assert len(list(OPEN_FILES.iterdir())) == before


def test_a_journal_that_another_took_up_before_it_was_locked_is_left_to_that(tmp_path):
    store = open_store(tmp_path)

    def begin_late():  # a worker that outlives its run, which is killed meanwhile
        def stop(_):
            os.kill(os.getpid(), signal.SIGSTOP)

        before_each_operation(stop, (), [(fcntl, "flock")])
        with pytest.raises(LockedError, match="one of a run that was"):
            TaskJournal(store, "chunk_0", 0, 9, resume=False)

    late = forked(begin_late)
    os.waitpid(late, os.WUNTRACED)
    (path,) = tmp_path.iterdir()
    journal = TaskJournal(store, "chunk_0", 0, 9, resume=True)
    assert journal.name == path.name
    journal.write({"at": 0, "skipped": "x"})
    journal.close()
    os.kill(late, signal.SIGCONT)
    assert status_of(late) == 0
    assert path.read_bytes() == dump_line({"at": 0, "skipped": "x"})


def test_a_journal_that_is_gone_before_it_is_opened_is_passed_over(journal_file):
    expected = resumed(journal_file)
    other = journal_file.with_name("chunk_0.journal.-.partial")  # by name the first
    other.write_bytes(dump_line({"at": 0, "skipped": "y"}))

    def take_up():
        def stop(_):
            os.kill(os.getpid(), signal.SIGSTOP)

        before_each_operation(stop, ["open"])
        assert resumed(journal_file) == expected

    late = forked(take_up)
    os.waitpid(late, os.WUNTRACED)
    other.unlink()
    for _ in range(9):
        os.kill(late, signal.SIGCONT)
        _, status = os.waitpid(late, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
    assert status == 0


def test_a_staged_chunk_that_is_gone_is_done_again_from_its_beginning(journal_file):
    (journal_file.parent / STAGED["meta"]).unlink()
    record = resumed(journal_file)
    assert (record.next_position, record.parts, record.open_part) == (0, [], None)
    assert journal_file.read_bytes() == b""


def test_a_torn_line_was_never_written(journal_file):
    sound = journal_file.read_bytes()
    journal_file.write_bytes(sound[:-1])
    record = resumed(journal_file)
    assert record.next_position == 4
    assert record.open_part is not None
    assert (record.open_part.size, dict(record.open_part.meta_dict)) == (0, {})
    assert sound.startswith(journal_file.read_bytes())


def test_the_last_item_and_what_was_raised_behind_it_are_written_at_once(journal_file):
    store = open_store(journal_file.parent)
    journal = TaskJournal(store, "chunk_0", 0, 100, resume=True)
    before = journal_file.read_bytes()
    journal.add_item(99, "item99", json.dumps(entry(99, 1)))
    journal.note_raised(98, "ValueError: of an item")
    journal.note_raised(100, "OSError: of the end")
    journal.note_ended()
    assert journal_file.read_bytes() == before
    journal.write_items()
    lines, _ = load_lines(journal_file.read_bytes())
    assert [next(iter(line)) for line in lines[-2:]] == ["items", "raised_behind"]
    journal.close()
    record = resumed(journal_file)
    assert (record.next_position, record.is_ended) == (100, True)
    assert record.error_behind == "OSError: of the end"


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ({"ended": 100}, (True, None)),
        ({"ended": 50}, (False, None)),
        ({"raised_behind": 50, "error": "of a first piece"}, (False, None)),
        ({"raised_behind": 100}, (False, None)),
        ({"raised_behind": 100, "error": "an error"}, (True, "an error")),
        ({"raised_behind": 100, "error": 7}, (False, None)),
        ({"ended": "never"}, (False, None)),
    ],
    ids=str,
)
def test_what_was_behind_the_last_item_is_read(journal_file, line, known):
    with journal_file.open("ab") as file:
        file.write(dump_line(line))
    record = resumed(journal_file)
    assert (record.is_ended, record.error_behind) == known
