"""Idle cores help with the tasks that are left; the bytes stay the same."""

import threading
from concurrent.futures import Future
from functools import partial
from typing import ClassVar

import av
import numpy as np
import pytest

from gulpio2 import GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter, DeferredFrames
from gulpio2.codecs.encoding import FrameEncoder
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import StorageError
from gulpio2.ingest.jobs import Job, Task
from gulpio2.ingest.task import run_task
from gulpio2.ingest.workers import SharedCores
from gulpio2.media.video import VideoFrames
from gulpio2.testing import make_frames
from tests.faults.operations import content
from tests.written_once import written_once


class Videos(AbstractDatasetAdapter):
    """Whole video files."""

    def __init__(self, paths, frame_size=-1, *, deferred=False, source=VideoFrames):
        self.paths = sorted(paths)
        self.frame_size = frame_size
        self.deferred = deferred
        self.source = source

    def __len__(self):
        return len(self.paths)

    def item_ids(self):
        return [path.name for path in self.paths]

    def iter_data(self, slice_element=None):
        for path in self.paths[slice_element or slice(None)]:
            find = partial(self.source, path, frame_size=self.frame_size)
            frames = DeferredFrames(find) if self.deferred else find()
            yield {"meta": {}, "frames": frames, "id": path.name}


@written_once
def write_video(path, *, num_frames=40, codec="libx264", seed=0):
    rng = np.random.default_rng(seed)
    picture = rng.integers(0, 256, (8, 10, 3), np.uint8).repeat(12, 0).repeat(12, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 120, 96, "yuv420p"
        for number in range(num_frames):
            moved = np.ascontiguousarray(np.roll(picture, 3 * number, axis=1))
            for packet in stream.encode(av.VideoFrame.from_ndarray(moved)):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def damage(path, seed):
    """Overwrite some bytes in the middle of a file."""
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(len(data) // 4, len(data) * 3 // 4, 40):
        data[place] ^= 0x55
    path.write_bytes(data)


@pytest.fixture
def videos(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(3):
        write_video(folder / f"whole_{number}.mp4", seed=number)
    write_video(folder / "mpeg4.avi", codec="mpeg4")
    for number in range(6):
        path = folder / f"damaged_{number}.mp4"
        write_video(path, seed=number)
        damage(path, number)
    return list(folder.iterdir())


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("frame_size", [-1, 64])
def test_one_chunk_is_the_same_bytes_for_1_2_and_8_workers(
    tmp_path, videos, frame_size, deferred
):
    folders = [tmp_path / str(workers) for workers in (1, 2, 8)]
    for folder in folders:
        report = GulpIngestor(
            Videos(videos, frame_size, deferred=deferred),
            *(folder, 100, int(folder.name)),
        ).run()
        assert report.items >= 4
        assert report.failures
    one, *others = map(content, folders)
    assert len([name for name in one if name.endswith(".gulp")]) == 1
    assert all(other == one for other in others)


@pytest.mark.parametrize("per_chunk", [2, 100])
def test_real_videos_are_the_same_bytes_for_1_2_and_8_workers(
    tmp_path, shared_videos, per_chunk
):
    # Damaged, 10 bit, odd sizes, rotated, several streams, several codecs.
    adapter = Videos(shared_videos.glob("*.*"), frame_size=64)
    for workers in (1, 2, 8):
        folder = tmp_path / str(workers)
        report = GulpIngestor(adapter, folder, per_chunk, workers).run()
        assert [failure.id for failure in report.failures] == ["corrupted.mp4"]
    one = content(tmp_path / "1")
    assert content(tmp_path / "2") == one
    assert content(tmp_path / "8") == one


def test_a_task_asks_for_idle_cores_and_leaves_no_thread(tmp_path, videos):
    asked = []

    def idle():
        asked.append(set(threading.enumerate()))
        return 2

    folder = tmp_path / "out"
    folder.mkdir()
    whole = [path for path in videos if "whole" in path.name]
    job = Job(Videos(whole), str(folder), EncoderSettings(), "raise", None, frozenset())
    before = set(threading.enumerate())
    result = run_task(job, Task(0, 0, 3), lambda **_: None, idle_cores=idle)
    assert len(result.parts[0].ids) == 3
    assert result.parts[0].frames == 120
    assert max(len(threads - before) for threads in asked) >= 2
    assert set(threading.enumerate()) <= before
    assert VideoFrames(whole[0]).threads == 1


class Watched(VideoFrames):
    """Notes with how many threads it is decoded."""

    threads_used: ClassVar[list[int]] = []

    def deferred(self, is_wanted=None):
        self.threads_used.append(self.threads)
        return super().deferred(is_wanted)


@pytest.mark.parametrize("deferred", [False, True])
def test_idle_cores_decode_a_video_also_where_it_is_found_late(
    tmp_path, videos, deferred
):
    (tmp_path / "out").mkdir()
    Watched.threads_used.clear()
    whole = [path for path in videos if "whole" in path.name]
    adapter = Videos(whole, 64, deferred=deferred, source=Watched)
    job = Job(
        adapter, str(tmp_path / "out"), EncoderSettings(), "raise", None, frozenset()
    )
    run_task(job, Task(0, 0, 3), lambda **_: None, idle_cores=lambda: 2)
    assert Watched.threads_used == [3, 3, 3]


def test_a_source_that_is_not_found_costs_its_item(tmp_path):
    def find():
        raise StorageError(5, "the disk of the sources does not answer")

    class Lost(AbstractDatasetAdapter):
        def __len__(self):
            return 2

        def iter_data(self, slice_element=None):
            for number in range(2)[slice_element or slice(None)]:
                found = DeferredFrames(find) if number else make_frames(1)
                yield {"meta": {}, "frames": found, "id": str(number)}

    (tmp_path / "out").mkdir()
    job = Job(
        Lost(), str(tmp_path / "out"), EncoderSettings(), "raise", None, frozenset()
    )
    result = run_task(job, Task(0, 0, 2), lambda **_: None, idle_cores=lambda: 2)
    assert list(result.parts[0].ids) == ["0"]
    assert "does not answer" in result.failures[0].message


@pytest.mark.parametrize(
    ("workers", "tasks", "idle"),
    [(1, 1, 0), (2, 2, 0), (2, 5, 0), (2, 1, 1), (8, 3, 2), (8, 7, 1), (4, 0, 3)],
)
def test_cores_are_shared_by_the_tasks_that_are_under_way(workers, tasks, idle):
    cores = SharedCores(workers)
    for _ in range(tasks + 2):
        cores.begin()
    for _ in range(2):
        cores.end(Future())
    assert cores.idle() == idle


def test_arrays_that_are_reused_by_an_adapter_are_not_encoded_ahead(tmp_path):
    class Reusing(AbstractDatasetAdapter):
        def __len__(self):
            return 1

        def iter_data(self, slice_element=None):
            def frames():
                frame = np.zeros((32, 32, 3), np.uint8)
                for number in range(50):
                    frame[:] = number * 5
                    yield frame

            yield {"meta": {}, "frames": frames(), "id": "a"}

    results = []
    for name, idle in (("one", None), ("more", lambda: 3)):
        (tmp_path / name).mkdir()
        job = Job(
            Reusing(),
            str(tmp_path / name),
            EncoderSettings(),
            "raise",
            None,
            frozenset(),
        )
        result = run_task(job, Task(0, 0, 1), lambda **_: None, idle_cores=idle)
        results.append((tmp_path / name / result.parts[0].staged.data).read_bytes())
    assert results[0] == results[1]


def test_an_encoder_without_idle_cores_starts_no_thread():
    encoder = FrameEncoder(lambda: 0)
    before = set(threading.enumerate())
    assert not list(encoder.encode([], EncoderSettings))
    assert set(threading.enumerate()) <= before
