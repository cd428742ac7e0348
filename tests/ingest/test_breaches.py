"""Adapters, tables and folders that break what is agreed cost items, never the run."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import ImageFolderAdapter, TableAdapter
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import IngestSettingError, SourceReadError
from gulpio2.ingest.parent import hold_interrupts
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames


class Mislisted(FrameAdapter):
    """Items whose ids are not those that are listed: i0, i1 and i2 again and again."""

    def item_ids(self):
        return [f"z{number}" for number in range(len(self))]

    def iter_data(self, slice_element=None):
        numbers = range(len(self))[slice_element or slice(None)]
        items = super().iter_data(slice_element)
        for number, item in zip(numbers, items, strict=True):
            yield {**item, "id": f"i{number % 3}" if number != 4 else "z4"}


class Noted(FrameAdapter):
    """Items with this metadata."""

    def __init__(self, meta):
        super().__init__(num_items=2, num_frames=1)
        self.meta = meta

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": self.meta if item["id"] == "item1" else {}}


class WordlessError(Exception):
    """An error whose message is one itself."""

    def __str__(self):
        raise ValueError


class Speechless(FrameAdapter):
    """Items of which one fails with such an error."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] == "item1":
                raise WordlessError
            yield item


def ingest(adapter, folder, workers=1, **options):
    return GulpIngestor(
        adapter, folder, 2, workers, allow_failures=True, **options
    ).run()


@pytest.mark.parametrize("workers", [1, 2])
def test_ids_that_were_not_listed_are_not_stored(tmp_path, workers):
    report = ingest(Mislisted(num_items=6, num_frames=2), tmp_path, workers)
    assert report.items == 1
    assert len(report.failures) == 5
    assert "'i0', which its item_ids() does not list" in str(report.failures[0])
    assert set(GulpDirectory(tmp_path).merged_meta_dict) == {"z4"}


def test_a_further_run_cannot_store_an_id_twice_by_listing_others(tmp_path):
    ingest(FrameAdapter(num_items=3, num_frames=2), tmp_path)

    class Again(FrameAdapter):
        def item_ids(self):
            return [f"new{number}" for number in range(len(self))]

    assert len(ingest(Again(num_items=3, num_frames=2), tmp_path).failures) == 3
    assert len(GulpDirectory(tmp_path)) == 3


@pytest.mark.parametrize(
    ("meta", "stored"),
    [
        ({"x": np.longdouble("1.5")}, {"x": 1.5}),
        ({"x": np.ones(2, np.longdouble)}, {"x": [1.0, 1.0]}),
        ({1: 2, None: 3, 2.5: 4}, {"1": 2, "null": 3, "2.5": 4}),
        ({True: 5}, {"true": 5}),
    ],
)
def test_metadata_is_stored_as_json_has_it(tmp_path, meta, stored):
    assert ingest(Noted(meta), tmp_path).failures == []
    assert GulpDirectory(tmp_path)["item1"][1] == stored
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("meta", [{1: 2, "1": 3}, {"x": 10**5000}])
def test_metadata_that_json_cannot_hold_costs_its_item(tmp_path, meta):
    report = ingest(Noted(meta), tmp_path)
    assert [failure.id for failure in report.failures] == ["item1"]
    assert set(GulpDirectory(tmp_path).merged_meta_dict) == {"item0"}
    assert check_directory(tmp_path, deep=True).problems == []


def test_an_error_that_cannot_be_shown_costs_its_item(tmp_path):
    report = ingest(Speechless(num_items=3, num_frames=1), tmp_path)
    assert [failure.error for failure in report.failures] == ["WordlessError"]
    assert report.items == 2


def test_a_link_that_leads_in_a_circle_costs_its_item(tmp_path):
    folder = tmp_path / "images" / "walk"
    folder.mkdir(parents=True)
    jpeg = encode_frame(make_frames(1, 24, 32)[0], EncoderSettings())
    (folder / "1.jpg").write_bytes(jpeg)
    (folder / "2.jpg").symlink_to(folder / "2.jpg")
    adapter = ImageFolderAdapter(str(tmp_path / "images"), str(tmp_path / "out"))
    report = ingest(adapter, tmp_path / "out")
    assert [failure.id for failure in report.failures] == ["walk-2.jpg"]
    assert report.items == 1


def test_a_quote_that_nobody_closes_is_refused(tmp_path):
    table = tmp_path / "clips.csv"
    table.write_text('id,path,note\n1,a.mp4,ok\n2,b.mp4,"a 5 inch cup\n3,c.mp4,x\n')
    with pytest.raises(SourceReadError, match="line 4: unexpected end of data"):
        TableAdapter(str(table))


def test_a_delimiter_is_one_character(tmp_path):
    table = tmp_path / "clips.csv"
    table.write_text("id,path\n1,a.mp4\n")
    with pytest.raises(IngestSettingError, match="must be one character"):
        TableAdapter(str(table), delimiter=";;")


def test_a_tab_may_be_written_as_a_shell_gives_it(tmp_path):
    table = tmp_path / "clips.txt"
    table.write_text("id\tpath\n1\ta.mp4\n")
    assert len(TableAdapter(str(table), delimiter="\\t")) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_an_interrupt_is_put_off_until_the_process_is_forked():
    reached = []

    def interrupt():
        with hold_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append(True)

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
