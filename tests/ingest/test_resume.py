"""Resuming: what it goes on with, and what it refuses."""

import os

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import DuplicateIdError, IngestError, MetaFileError
from gulpio2.staging import ChunkSession
from gulpio2.testing import FrameAdapter
from gulpio2.testing.faults import content, in_child, kill_at_operation


def ingest(folder, *, resume=False, num_items=6, items_per_chunk=2, **options):
    adapter = FrameAdapter(num_items=num_items, num_frames=2)
    return GulpIngestor(adapter, folder, items_per_chunk, 1, resume=resume, **options)


@pytest.fixture
def interrupted(tmp_path):
    """Make a directory whose ingest was killed when it had one chunk of three."""
    folder = tmp_path / "interrupted"

    def killed():
        kill_at_operation(60)
        ingest(folder).run()

    assert os.WIFSIGNALED(in_child(killed))
    assert 0 < len(GulpDirectory(folder)) < 6
    return folder


def test_a_run_without_resume_is_refused_and_spoils_nothing(interrupted, tmp_path):
    before = content(interrupted)
    with pytest.raises(DuplicateIdError, match="was interrupted: resume=True"):
        ingest(interrupted).run()
    assert content(interrupted) == before
    ingest(interrupted, resume=True).run()
    ingest(tmp_path / "whole").run()
    assert content(interrupted) == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_items": 7}, "items was 6 and is 7"),
        ({"items_per_chunk": 3}, "videos_per_chunk was 2 and is 3"),
        ({"on_duplicate": "skip"}, "on_duplicate was 'raise' and is 'skip'"),
        ({"chunk_bytes": 10}, "chunk_bytes was None and is 10"),
    ],
)
def test_other_arguments_are_refused_and_named(interrupted, options, message):
    before = content(interrupted)
    with pytest.raises(IngestError, match=message):
        ingest(interrupted, resume=True, **options).run()
    assert content(interrupted) == before


def test_resuming_what_is_complete_does_nothing(tmp_path):
    ingest(tmp_path).run()
    before = content(tmp_path)
    assert ingest(tmp_path, resume=True).run().items == 0
    assert content(tmp_path) == before


def test_resuming_where_nothing_was_begun_is_a_run(tmp_path):
    assert ingest(tmp_path, resume=True).run().items == 6


def test_a_damaged_journal_is_named_and_the_rest_can_be_done_anew(interrupted):
    path = interrupted / "ingest.journal"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(MetaFileError, match=r"ingest.journal is damaged.*done again"):
        ingest(interrupted, resume=True).run()
    ingest(interrupted, on_duplicate="skip").run()
    assert len(GulpDirectory(interrupted)) == 6
    assert not path.exists()


def test_a_run_that_ended_before_a_full_chunk_was_closed_closes_it(
    tmp_path, monkeypatch
):
    adapter = FrameAdapter(num_items=6, num_frames=3)
    GulpIngestor(adapter, tmp_path / "whole", 6, 1, chunk_bytes=4000).run()

    def stop(*_):
        raise KeyboardInterrupt

    ingestor = GulpIngestor(adapter, tmp_path / "cut", 6, 1, chunk_bytes=4000)
    with monkeypatch.context() as patch:
        patch.setattr(ChunkSession, "stage", stop)
        with pytest.raises(KeyboardInterrupt):
            ingestor.run()
    report = GulpIngestor(
        adapter, tmp_path / "cut", 6, 1, chunk_bytes=4000, resume=True
    ).run()
    assert 0 < report.resumed < 6
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
