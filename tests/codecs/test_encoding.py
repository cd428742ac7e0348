"""`FrameEncoder`: the same frames, in the same order, for any number of threads."""

import threading
import time
from functools import partial
from queue import SimpleQueue

import numpy as np
import pytest

from gulpio2.codecs.encoding import MAX_HELPERS, FrameEncoder
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import AdapterContractError, SourceReadError
from gulpio2.testing import make_frames
from gulpio2.types import DeferredImage, StoredFrame, YuvFrame
from tests.interrupts import interrupted

SETTINGS = EncoderSettings()


def stored(num_frames):
    return [StoredFrame(frame, n) for n, frame in enumerate(make_frames(num_frames))]


@pytest.fixture(params=[None, 0, 1, 3, 100], ids=lambda n: f"{n} helpers")
def encoder(request):
    helpers = request.param
    made = FrameEncoder(None if helpers is None else lambda: helpers)
    yield made
    made.close()


def test_frames_come_out_in_order_as_the_codec_gives_them(encoder):
    frames = stored(40)
    expected = [(f.pts, encode_frame(f.image, SETTINGS)) for f in frames]
    assert list(encoder.encode(frames, lambda: SETTINGS)) == expected


def test_a_second_item_uses_the_same_threads(encoder):
    list(encoder.encode(stored(20), lambda: SETTINGS))
    before = set(threading.enumerate())
    assert len(list(encoder.encode(stored(20), lambda: SETTINGS))) == 20
    assert set(threading.enumerate()) <= before


def test_a_source_that_fails_gives_the_frames_before(encoder):
    def frames():
        yield from stored(10)
        raise SourceReadError("no more")

    got = []
    with pytest.raises(SourceReadError, match="no more"):
        got.extend(encoder.encode(frames(), lambda: SETTINGS))
    assert [pts for pts, _ in got] == list(range(10))


class SlowQueue(SimpleQueue):
    """A queue in which things arrive late, as on a machine that does much else."""

    def put(self, item, block=True, timeout=None):
        time.sleep(0.02)
        super().put(item)


def encoded_in_time(encoder, frames):
    """Encode in another thread, which must end; give the times, and what it raised."""
    got: list[int | None] = []
    raised: list[BaseException] = []

    def run():
        try:
            got.extend(pts for pts, _ in encoder.encode(frames, lambda: SETTINGS))
        except BaseException as error:  # noqa: BLE001  # for the test to compare
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    return got, raised


@pytest.mark.parametrize("end", [None, SourceReadError("no more"), SystemExit(3)])
def test_no_frame_is_left_to_a_thread_that_has_ended(end):
    def frames():
        yield from stored(3)
        if end is not None:
            raise end

    made = FrameEncoder(lambda: 1)
    made._jobs = SlowQueue()
    got, raised = encoded_in_time(made, frames())
    assert got == [0, 1, 2]
    assert raised == ([] if end is None else [end])
    made.close()


def test_a_bad_frame_is_named_before_a_later_fault_of_the_source(encoder):
    def frames():
        yield from stored(3)
        yield StoredFrame(None, 3)
        raise SourceReadError("this comes later")

    got = []
    with pytest.raises(AdapterContractError, match="NoneType"):
        got.extend(encoder.encode(frames(), lambda: SETTINGS))
    assert [pts for pts, _ in got] == [0, 1, 2]


class Ending:
    """An image that ends the program where it is looked at."""

    def __array__(self, *args, **kwargs):
        time.sleep(0.05)  # so that other threads have taken the frames around it
        raise SystemExit(3)


def test_a_frame_that_ends_the_program_is_raised_in_its_turn(encoder):
    frames = stored(12)
    frames[5] = StoredFrame(Ending(), 5)
    got, raised = encoded_in_time(encoder, frames)
    assert got == [0, 1, 2, 3, 4]
    assert [type(error) for error in raised] == [SystemExit]


def test_few_frames_are_under_way(encoder):
    taken = 0

    def frames():
        nonlocal taken
        for frame in stored(200):
            taken += 1
            yield frame

    given = 0
    for _ in encoder.encode(frames(), lambda: SETTINGS):
        given += 1
        assert taken - given <= 2 * (MAX_HELPERS + 1) + 1
    assert given == 200


def test_stopping_in_the_middle_leaves_no_thread_at_work(encoder):
    encoded = encoder.encode(stored(50), lambda: SETTINGS)
    next(encoded)
    encoded.close()
    encoder.close()
    ours = {"gulpio2-encoder", "gulpio2-feeder"}
    assert not [t for t in threading.enumerate() if t.name in ours]


def test_an_interrupt_while_frames_are_taken_keeps_nothing_from_ending():
    encoder = FrameEncoder(lambda: 2)
    taken, ended = [encoder.encode([], lambda: SETTINGS)], []

    def take():
        taken.append(encoder.encode(stored(9), lambda: SETTINGS))
        for _ in range(4):
            next(taken[-1])

    def interrupt() -> None:
        for number in interrupted(take):
            taken[-1].close()
            ended.append(number)

    # Where it would wait for ever, another thread than this one does.
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert len(ended) > 10
    encoder.close()


def test_a_source_is_taken_by_a_thread_of_its_own_and_closed():
    names, closed = set(), []

    def frames():
        try:
            for frame in stored(30):
                names.add(threading.current_thread().name)
                yield frame
        finally:
            closed.append(True)

    encoder = FrameEncoder(lambda: 1)
    encoded = encoder.encode(frames(), lambda: SETTINGS)
    assert [pts for pts, _ in encoded] == list(range(30))
    # The first one tells that there is something to do.
    assert names == {threading.current_thread().name, "gulpio2-feeder"}
    assert closed == [True]
    started = encoder.encode(frames(), lambda: SETTINGS)
    next(started)
    started.close()
    assert closed == [True, True]
    encoder.close()


def test_an_image_is_made_by_the_thread_that_encodes_it(encoder):
    frames = stored(30)
    made = []

    def make(image):
        made.append(threading.current_thread().name)
        return image

    deferred = [
        StoredFrame(DeferredImage(partial(make, frame.image)), frame.pts)
        for frame in frames
    ]
    expected = [(f.pts, encode_frame(f.image, SETTINGS)) for f in frames]
    assert list(encoder.encode(deferred, lambda: SETTINGS)) == expected
    assert len(made) == 30


def test_an_image_that_cannot_be_made_is_an_error_in_its_turn(encoder):
    def fail():
        raise SourceReadError("not this one")

    frames = stored(5)
    frames[3] = StoredFrame(DeferredImage(fail), 3)
    got = []
    with pytest.raises(SourceReadError, match="not this one"):
        got.extend(encoder.encode(frames, lambda: SETTINGS))
    assert [pts for pts, _ in got] == [0, 1, 2]


def test_threads_join_when_cores_become_idle():
    idle = 0
    encoder = FrameEncoder(lambda: idle)
    names = set()

    class Watched:
        def __array__(self, dtype=None, copy=None):
            names.add(threading.current_thread().name)
            time.sleep(0.002)
            return np.zeros((8, 8, 3), np.uint8)

    frames = [StoredFrame(Watched(), n) for n in range(30)]
    order = []
    for pts, _ in encoder.encode(frames, lambda: SETTINGS):
        order.append(pts)
        if pts == 5:
            assert names == {threading.current_thread().name}
            idle = 2
    encoder.close()
    assert order == list(range(30))
    assert "gulpio2-encoder" in names


@pytest.mark.parametrize("chroma", ["444", "422", "420"])
@pytest.mark.parametrize("height", [8, 9])
@pytest.mark.parametrize("width", [1, 16, 17, 85])
def test_planes_of_odd_sizes_do_not_depend_on_what_lies_beyond(height, width, chroma):
    small = {
        "444": (height, width),
        "422": (height, (width + 1) // 2),
        "420": ((height + 1) // 2, (width + 1) // 2),
    }[chroma]
    encoded = set()
    for beyond in (0, 77, 255):
        planes = []
        for rows, columns in ((height, width), small, small):
            memory = np.full((rows + 2, columns + 3), beyond, np.uint8)
            plane = memory[:rows, :columns]
            plane[:] = np.arange(rows * columns).reshape(rows, columns) % 200
            planes.append(plane)
        encoded.add(encode_frame(YuvFrame(*planes), SETTINGS))
    assert len(encoded) == 1
