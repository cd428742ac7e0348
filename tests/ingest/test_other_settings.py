"""Appending with other settings than before: allowed, and said once."""

from __future__ import annotations

import logging

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.removal import delete_items
from gulpio2.testing import FrameAdapter


class Sized(FrameAdapter):
    """Frames with the options of an adapter of videos."""

    def __init__(
        self, first, *, frame_size=-1, frame_rate=None, shuffle=False, metainfo=None
    ):
        super().__init__(num_items=2, num_frames=1)
        self.first = first
        self.metainfo = metainfo
        self.settings = {
            "folder": str(first),
            "frame_size": frame_size,
            "frame_rate": frame_rate,
            "shuffle": shuffle,
        }

    def describe(self):
        return self.settings

    def item_ids(self):
        return [f"item{self.first + n}" for n in range(len(self))]

    def iter_data(self, slice_element=None):
        for n, item in enumerate(super().iter_data(slice_element)):
            start = 0 if slice_element is None else slice_element.start or 0
            yield {**item, "id": f"item{self.first + start + n}"}


def ingest(folder, adapter, num_workers=1, **encoder):
    settings = EncoderSettings(**encoder)
    return GulpIngestor(adapter, folder, 1, num_workers, encoder=settings).run()


def warnings_of(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def test_other_settings_are_told_once_with_old_and_new_values(tmp_path, caplog):
    ingest(tmp_path, Sized(0, frame_size=128, frame_rate=8))
    assert warnings_of(caplog) == []
    ingest(tmp_path, Sized(2, frame_rate="30000/1001"), quality=80, subsampling="420")
    (text,) = warnings_of(caplog)
    assert str(tmp_path) in text
    assert "quality 80 (until now 90)" in text
    assert "subsampling 420 (until now source)" in text
    assert "frame_size as in the source (until now 128)" in text
    assert "frame_rate 30000/1001 (until now 8)" in text
    assert "another folder" in text


def test_other_metainfo_is_told_before_it_takes_the_place_of_the_old(tmp_path, caplog):
    for first, metainfo in (
        (0, {"classes": ["run", "walk"], "scale": float("nan")}),
        (2, {"classes": ["run", "walk"], "scale": float("nan"), "year": 2026}),
        (4, {}),
    ):
        ingest(tmp_path, Sized(first, metainfo=metainfo))
    assert warnings_of(caplog) == []
    ingest(tmp_path, Sized(6, metainfo={"classes": ["run"], "year": 2026}))
    (text,) = warnings_of(caplog)
    assert "gulp.json has another 'classes' in its metainfo" in text
    assert GulpDirectory(tmp_path).metainfo["classes"] == ["run"]


def test_what_changes_no_frame_is_not_told(tmp_path, caplog):
    ingest(tmp_path, Sized(0, frame_rate=8))
    ingest(tmp_path, Sized(2, frame_size=0, frame_rate="8", shuffle=True), 2)
    assert warnings_of(caplog) == []


def test_a_mixture_is_told_with_all_that_there_is(tmp_path, caplog):
    ingest(tmp_path, Sized(0))
    ingest(tmp_path, Sized(2), quality=80)
    caplog.clear()
    ingest(tmp_path, Sized(4), quality=80)
    assert "quality 80 (until now 90 and 80)" in warnings_of(caplog)[0]


def test_a_run_that_has_nothing_to_add_or_to_differ_from_is_quiet(tmp_path, caplog):
    ingest(tmp_path, Sized(0))
    skipping = GulpIngestor(
        Sized(0), tmp_path, 1, 1, on_duplicate="skip", encoder=EncoderSettings(50)
    )
    assert skipping.run().skipped == 2
    delete_items(tmp_path, ["item0", "item1"])
    ingest(tmp_path, Sized(2), quality=80)
    assert warnings_of(caplog) == []
