"""A dry run that looks at its sample in several processes."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import time
from typing import Any

import numpy as np
import pytest

from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import IngestError
from gulpio2.ingest.lookers import Lookers
from gulpio2.ingest.looking import LookJob, Settings
from gulpio2.ingest.survey import survey
from gulpio2.testing import FrameAdapter


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """Have two processes on a machine of one core as well."""
    monkeypatch.setattr("gulpio2.ingest.survey.usable_cores", lambda: 2)


class Ending(FrameAdapter):
    """Frames like ramps, but for items that end the process that reads them."""

    def __init__(self, end: Any, *positions: int, num_items: int = 30) -> None:
        super().__init__(num_items=num_items, num_frames=3)
        self.end, self.positions = end, positions

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] in self.positions:
                item = {**item, "frames": self._ended()}
            yield item

    def _ended(self):
        yield np.zeros((8, 8, 3), np.uint8)
        self.end()


def fault():
    faulthandler.disable()  # that of the tests, which would write where this one is
    os.kill(os.getpid(), signal.SIGSEGV)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def exited():
    os._exit(3)


def look(adapter, num_workers=2, **options):
    return survey(
        adapter, EncoderSettings(), share=1, num_workers=num_workers, **options
    )


class Odd(FrameAdapter):
    """Some items without frames, some that are no pictures, and ids that come again."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            number = item["meta"]["number"]
            frames = item["frames"]
            if number % 7 == 3:
                frames = [np.zeros((8, 8), np.complex64)]
            if number % 7 == 5:
                frames = []
            yield {**item, "frames": frames, "id": f"item{max(number, 2)}"}


def test_several_processes_find_what_one_finds():
    told: list[int] = []
    alone = look(Odd(num_items=40, num_frames=30), 1)
    both = look(
        Odd(num_items=40, num_frames=30), progress=lambda items: told.append(items)
    )
    assert told == 40 * [1]
    assert (both.sampled, both.frames) == (alone.sampled, alone.frames)
    assert (both.num_bytes, both.error) == (alone.num_bytes, alone.error)
    assert both.oddities == alone.oddities
    kinds = {each.kind: each.sampled for each in both.oddities}
    assert kinds == {"id taken": 2, "no frames": 5, "unreadable": 6}
    for here, there in zip(alone.variants, both.variants, strict=True):
        assert (here.quality, here.short_edge) == (there.quality, there.short_edge)
        assert there.num_bytes == pytest.approx(here.num_bytes, rel=0.02)
        assert there.read_frames_per_second > 0


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (fault, "reading it ended the process by SIGSEGV, as a fault in a decoder"),
        (exited, "reading it ended the process twice (exit status 3)"),
        (killed, "the process that read it was killed twice (SIGKILL)"),
    ],
)
def test_an_item_that_ends_its_process_is_one_that_will_fail(end, told, caplog):
    found = look(Ending(end, 4, 17))
    (oddity,) = found.oddities
    assert (oddity.kind, oddity.sampled, oddity.fails) == ("unreadable", 2, True)
    assert all(told in example for example in oddity.examples)
    assert ["position 4", "position 17"] == [
        example[example.index("position") : example.index(")")]
        for example in oddity.examples
    ]
    assert (found.sampled, found.frames) == (30, 28 * 3)
    warned = [each for each in caplog.messages if "tried once more" in each]
    assert len(warned) == (0 if end is fault else 2)


class KilledBehind(FrameAdapter):
    """Its process is killed behind the items, which is the fault of none."""

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
        killed()


def test_processes_that_are_killed_again_and_again_end_the_dry_run():
    with pytest.raises(IngestError, match="ended without a word"):
        look(KilledBehind(num_items=30))


def told_to_end():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_process_that_others_end_ends_the_dry_run():
    """It is the fault of no item, which would be tried again for ever."""
    with pytest.raises(IngestError, match="ended without a word"):
        look(Ending(told_to_end, 4))


def test_no_process_is_left():
    look(Ending(fault, 3))
    assert multiprocessing.active_children() == []


class Interrupted(FrameAdapter):
    """An interrupt comes while an item is looked at."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["meta"]["number"] == 5:
                raise KeyboardInterrupt
            yield item


def test_an_interrupt_ends_a_look_at_items_and_what_was_found_is_kept_where_asked():
    adapter = Interrupted(num_items=30, bad=[2])
    with pytest.raises(KeyboardInterrupt):
        look(adapter, 1)
    found = look(adapter, 1, keep_interrupted=True)
    assert (found.unfinished, found.sampled) == (True, 5)
    (oddity,) = found.oddities
    assert (oddity.kind, oddity.sampled) == ("unreadable", 1)


class Meeting(FrameAdapter):
    """What an item does before it gives frames is a function's business.

    Parameters
    ----------
    folder : Path
        Has a file for each item, with a byte for each time that it was begun.
    act : callable
        Called with the adapter and the number of an item that was begun.
    """

    def __init__(self, folder, act, num_items=8):
        super().__init__(num_items=num_items, num_frames=2)
        self.folder, self.act = folder, act

    def _frames(self, number):
        with (self.folder / str(number)).open("ab") as file:
            file.write(b".")
        self.act(self, number)
        yield from super()._frames(number)

    def times(self, number):
        path = self.folder / str(number)
        return path.stat().st_size if path.exists() else 0

    def wait_for(self, number):
        """Wait until an item was begun, which may take a minute and no longer."""
        for _ in range(6000):
            if self.times(number):
                return
            time.sleep(0.01)
        raise TimeoutError(number)


def wait_for_the_fourth(adapter, number):
    if number == 0:
        adapter.wait_for(3)
        assert not adapter.times(4), "looked further ahead than two for each process"


def test_processes_look_a_few_items_ahead_of_what_is_taken(tmp_path):
    found = look(Meeting(tmp_path, wait_for_the_fourth))
    assert found.oddities == ()
    assert found.sampled == 8


def end_at_the_first(adapter, number):
    if number == 0:
        adapter.wait_for(3)  # by when the other process has given back 1 and 2
        fault()


def test_what_was_looked_at_is_not_looked_at_again_where_a_process_has_ended(tmp_path):
    adapter = Meeting(tmp_path, end_at_the_first)
    found = look(adapter)
    assert [each.sampled for each in found.oddities] == [1]
    assert found.sampled == 8
    assert [adapter.times(number) for number in (0, 1, 2)] == [1, 1, 1]
    assert [adapter.times(number) for number in range(4, 8)] == [1, 1, 1, 1]


def end_behind_the_first(adapter, number):
    if number == 0 and adapter.times(0) == 1:
        time.sleep(60)  # ended with the other process, long before
    elif number == 1:
        adapter.wait_for(0)
        fault()


def test_an_item_may_end_its_process_while_one_before_it_is_looked_at(tmp_path):
    found = look(Meeting(tmp_path, end_behind_the_first))
    (oddity,) = found.oddities
    assert "position 1" in oddity.examples[0]
    assert (oddity.sampled, found.sampled) == (1, 8)


def killed_the_first_time(adapter, number):
    if adapter.times(number) == 1:
        killed()


def test_where_processes_are_killed_at_one_item_after_the_other_one_is_named(tmp_path):
    """Whoever kills them means it, or something else has no memory left."""
    text = r"without a word at item 'item\d+' \(position \d+\)"
    with pytest.raises(IngestError, match=text):
        look(Meeting(tmp_path, killed_the_first_time))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_processes_end_with_the_block_and_not_when_nobody_has_them_any_more(
    num_workers,
):
    settings = (Settings(EncoderSettings(), None),)
    job = LookJob(FrameAdapter(num_items=4), settings)
    lookers = Lookers(job, num_workers, apart=True)
    with lookers:
        assert [each.id_ for each in lookers.look([1, 3])] == ["item1", "item3"]
        assert multiprocessing.active_children() != []
    assert multiprocessing.active_children() == []
