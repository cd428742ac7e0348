"""A task that goes on after its run has ended: on a cluster nobody can stop it."""

from dataclasses import replace

import pytest

from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import IngestError
from gulpio2.ingest.jobs import Job, Task
from gulpio2.ingest.task import run_task
from gulpio2.staging import ChunkSession
from gulpio2.testing import FrameAdapter

SIGN = "ingest.run.0a.partial"


@pytest.fixture
def job(tmp_path):
    (tmp_path / SIGN).touch()
    adapter = FrameAdapter(num_items=3)
    return Job(
        adapter, str(tmp_path), EncoderSettings(), "raise", None, frozenset(), sign=SIGN
    )


def end_run(folder):
    """Remove what is unfinished, as a run does at its end."""
    for path in folder.glob("*.partial"):
        path.unlink()


def run_on(job):
    message = r"does not find .*ingest\.run\.0a.*If the run goes on"
    with pytest.raises(IngestError, match=message):
        run_task(job, Task(0, 0, 3), lambda **_: None)


def test_one_that_is_begun_late_makes_no_file(job, tmp_path):
    end_run(tmp_path)
    run_on(job)
    assert not list(tmp_path.iterdir())


class Ending(FrameAdapter):
    """Its run ends when the last item was given."""

    folder = None

    def iter_data(self, slice_element=None):
        yield from super().iter_data(slice_element)
        end_run(self.folder)


def test_one_whose_run_ends_before_its_chunk_is_closed_leaves_nothing(job, tmp_path):
    adapter = Ending(num_items=3)
    adapter.folder = tmp_path
    run_on(replace(job, adapter=adapter))
    assert not list(tmp_path.iterdir())


def test_one_whose_run_ends_while_its_chunk_is_closed_leaves_nothing(
    job, tmp_path, monkeypatch
):
    real = ChunkSession.stage

    def stage(self, name):
        end_run(tmp_path)
        return real(self, name)

    monkeypatch.setattr(ChunkSession, "stage", stage)
    run_on(job)
    assert not list(tmp_path.iterdir())
