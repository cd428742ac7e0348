"""Blocks of frames: which reads they need, and the memory that those go into."""

from __future__ import annotations

import dataclasses
import gc
import sys
import threading
from contextlib import suppress
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import blocks, jobs, threads
from gulpio2.blocks import Block, FrameRequest, plan_blocks, verify_crc32
from gulpio2.errors import CorruptFrameError, FormatError, StorageError
from gulpio2.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gulpio2.format.plan import Read
    from gulpio2.jobs import Decode

KB = 1024


def request_of(*spans: tuple[int, int], data: bytes = b"") -> FrameRequest:
    """Ask for spans of some bytes."""

    def read_into(reads: Sequence[Read], memory: bytearray) -> None:
        start = 0
        for offset, length, _ in reads:
            memory[start : start + length] = data[offset : offset + length]
            start += length

    return FrameRequest(
        lambda offset, length: data[offset : offset + length],
        spans,
        lambda position: f"frame {position}",
        None,
        read_into,
    )


def planned(threads: int, *spans: tuple[int, int]) -> list[tuple[int, int, list[int]]]:
    """Give the reads, and the frames in each."""
    return [
        (block.offset, block.length, list(block.members))
        for block in plan_blocks(request_of(*spans), 0, {}, threads)
    ]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_neighbours_are_one_read_however_many_and_for_however_many_threads(threads):
    spans = [(k * 20 * KB, 20 * KB - 3) for k in range(60)]
    ((offset, length, frames),) = planned(threads, *spans)
    assert (offset, length, frames) == (0, 1200 * KB - 3, list(range(60)))


def test_every_second_frame_is_one_read_or_one_for_each_thread():
    spans = [(k * 40 * KB, 20 * KB) for k in range(10)]
    assert planned(1, *spans) == [(0, 380 * KB, list(range(10)))]
    assert planned(2, *spans) == [
        (0, 180 * KB, [0, 1, 2, 3, 4]),
        (200 * KB, 180 * KB, [5, 6, 7, 8, 9]),
    ]


def test_a_small_read_is_not_split():
    assert len(planned(4, (0, KB), (2 * KB, KB), (4 * KB, KB))) == 1


def test_parts_of_a_split_read_cover_every_frame_once():
    spans = [(k * 40 * KB, 20 * KB) for k in (5, 3, 9, 1, 7, 11, 0)]
    parts = planned(3, *spans)
    assert sorted(k for _, _, frames in parts for k in frames) == list(range(7))
    assert all(a[0] + a[1] <= b[0] for a, b in pairwise(parts))
    for offset, length, frames in parts:
        for k in frames:
            assert offset <= spans[k][0]
            assert spans[k][0] + spans[k][1] <= offset + length


def test_frames_that_are_apart_are_read_together_some_for_each_thread():
    spans = [(k * 200 * KB, 20 * KB) for k in range(8)]
    assert planned(1, *spans) == [(0, 160 * KB, list(range(8)))]
    assert planned(3, *spans) == [
        (0, 60 * KB, [0, 3, 6]),
        (0, 60 * KB, [1, 4, 7]),
        (0, 40 * KB, [2, 5]),
    ]
    # Not so many that the first frame would have to wait for long,
    many = [(k * 200 * KB, 20 * KB) for k in range(80)]
    assert [len(frames) for _, _, frames in planned(2, *many)] == [16] * 5
    # nor where there is one for each thread, or as many bytes as are not kept.
    assert planned(8, *spans) == [(*span, [k]) for k, span in enumerate(spans)]
    large = [(k * KB * KB, 700 * KB) for k in range(8)]
    assert planned(1, *large) == [(*span, [k]) for k, span in enumerate(large)]


def test_where_frames_are_in_a_block_is_counted_through_all_its_reads():
    spans = [(900_000, 5), (10, 4), (400_000, 7), (16, 3)]
    (block,) = plan_blocks(request_of(*spans), 0, {}, 1)
    assert block.spans == {1: (0, 4), 3: (6, 3), 2: (9, 7), 0: (16, 5)}
    assert (block.offset, block.length) == (0, 21)


def test_an_empty_record_is_named():
    with pytest.raises(CorruptFrameError, match="frame 1: the record is empty"):
        plan_blocks(request_of((0, 4), (4, 0), (4, 4)), 0, {}, 1)


def run_job(
    request: FrameRequest, threads: int, wrong: dict[bytes, BaseException] | None = None
) -> list[bytes]:
    """Give what a job makes of a request, whose decoder only copies."""
    found = [b""] * len(request.spans)

    def prepare(block: Block) -> tuple[Decode, range]:
        block.load()

        def decode(
            data: bytes | bytearray,
            frames: Iterable[tuple[int, int, int]],
            *,
            sound: bool,
        ) -> None:
            assert not sound
            for start, stop, target in frames:
                piece = bytes(data[start:stop])
                if wrong and piece in wrong:
                    raise wrong[piece]
                found[target] = piece

        return decode, range(len(found))

    Job(plan_blocks(request, 0, {}, threads)).run(threads, prepare)
    return found


@pytest.mark.parametrize(("num_frames", "starts_with"), [(8, 1), (7, 0), (20, 1)])
def test_the_caller_reads_a_block_for_who_wakes_where_both_have_as_many_frames(
    num_frames, starts_with, monkeypatch
):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    step = 100 * KB
    spans = [(k * step, 8) for k in range(num_frames)]
    request = request_of(*spans, data=bytes(num_frames * step))
    reads: list[tuple[int, bool]] = []
    decoded: list[int] = []
    inner, caller = request.read_into, threading.get_ident()
    assert inner is not None
    # The other thread wakes when the first block was read, and its frames take it
    # longer than the caller needs to begin: a busy machine may wake it earlier.
    is_read, is_begun = threading.Event(), threading.Event()

    def read_into(made: Sequence[Read], memory: bytearray) -> None:
        reads.append((made[0].offset // step, threading.get_ident() == caller))
        inner(made, memory)

    def wake_late(help_: Callable[[], None], helpers: int, **others: Any) -> None:
        def help_late() -> None:
            assert is_read.wait(30)
            help_()

        threads.work_together(help_late, helpers, **others)

    def prepare(block: Block) -> tuple[Decode, range]:
        block.load()
        is_read.set()

        def decode(
            data: bytes | bytearray,
            frames: Iterable[tuple[int, int, int]],
            *,
            sound: bool,
        ) -> None:
            assert not sound
            for _, _, target in frames:
                if threading.get_ident() == caller:
                    decoded.append(target)
                    is_begun.set()
                else:
                    assert is_begun.wait(30)

        return decode, range(num_frames)

    monkeypatch.setattr(jobs, "work_together", wake_late)
    request = dataclasses.replace(request, read_into=read_into)
    Job(plan_blocks(request, 0, {}, 2)).run(2, prepare)
    assert (0, True) in reads
    assert decoded[0] == starts_with


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_memory_is_used_again_and_never_by_two_at_once(threads, monkeypatch):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    monkeypatch.setattr(blocks, "_kept", blocks._Kept())
    data = bytes(range(256)) * 400
    spans = [(k * 100, 50 + k % 40) for k in range(0, 1000, 3)]
    far = [(offset * 7919 % 99_000, length) for offset, length in spans]
    for chosen in (spans, far, spans[:4], far[:9]):
        expected = [data[offset : offset + length] for offset, length in chosen]
        assert run_job(request_of(*chosen, data=data), threads) == expected
    # This thread reads the first block of each, whoever is done with it last.
    assert 1 <= len(blocks._kept.memory) <= 2


def test_bytes_are_taken_as_they_come_where_nothing_reads_into_memory():
    data = bytes(range(100))
    request = dataclasses.replace(
        request_of((4, 6), (20, 8), data=data), read_into=None
    )
    assert run_job(request, 1) == [data[4:10], data[20:28]]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CorruptFrameError("cut"), (CorruptFrameError, "frame 2: cut")),
        (
            ValueError("a shape"),
            (FormatError, "frame 2: a shape. The frames of a clip"),
        ),
        (StorageError("gone"), (StorageError, "gone")),
    ],
)
def test_the_error_of_the_first_bad_frame_comes_out(
    threads, error, expected, monkeypatch
):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    data = bytes(range(80))
    request = request_of(*((k * 10, 10) for k in range(8)), data=data)
    wrong = {data[20:30]: error, data[30:40]: CorruptFrameError("later")}
    for _ in range(20):
        with pytest.raises(expected[0], match=expected[1]):
            run_job(request, threads, wrong)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_job_that_cannot_be_prepared_ends(threads, monkeypatch):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    request = request_of(*((k * 10, 10) for k in range(8)), data=bytes(100))
    far = request_of(*((k * 100_000, 10) for k in range(8)), data=bytes(800_000))

    def prepare(block: Block) -> tuple[Decode, range]:
        raise FormatError("out does not fit")

    for wanted in (request, far):
        with pytest.raises(FormatError, match="out does not fit"):
            Job(plan_blocks(wanted, 0, {}, threads)).run(threads, prepare)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_job_that_fails_reads_nothing_more(threads, monkeypatch):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    far = [(k * 70_000, 10) for k in range(400)]
    request = request_of(*far, data=bytes(28_000_000))
    read_into, made, begun = request.read_into, [], threading.Event()

    def counted(reads: Sequence[Read], memory: bytearray) -> None:
        assert read_into is not None
        made.append(reads[0])
        begun.set()
        read_into(reads, memory)

    def prepare(block: Block) -> tuple[Decode, range]:
        assert threads == 1 or begun.wait(10)
        raise FormatError("out does not fit")

    wanted = plan_blocks(dataclasses.replace(request, read_into=counted), 0, {}, 1)
    assert len(wanted) == 25
    with pytest.raises(FormatError, match="out does not fit"):
        Job(wanted).run(threads, prepare)
    assert len(made) < threads  # each of the others reads one ahead


def test_a_checksum_that_differs_is_told_with_both():
    verify_crc32(b"abc", 0x352441C2)
    with pytest.raises(
        CorruptFrameError, match=r"is 352441c2, and 00000001 was stored"
    ):
        verify_crc32(b"abc", 1)


@pytest.mark.parametrize("distance", [10, 100_000])  # one read, and several
def test_an_interrupt_wherever_it_comes_leaves_no_thread_at_work(distance, monkeypatch):
    monkeypatch.setattr(jobs, "_SHARE_BYTES", 1)
    data = bytes(range(250)) * 3_200
    request = request_of(*((k * distance, 10) for k in range(8)), data=data)
    expected = run_job(request, 3)  # now the threads are there
    # Callbacks of the collector (Hypothesis has one) are functions too, out of which
    # Python lets nothing be raised: the interrupt would be lost there.
    gc.disable()
    try:
        for step in count():  # pragma: no branch
            steps = iter(range(step))

            def interrupt(
                _: object, event: str, __: object, steps: Any = steps
            ) -> None:
                # Where Python looks for signals: a function begins, or one of C ended.
                if event in ("call", "c_return") and next(steps, None) is None:
                    raise KeyboardInterrupt

            with suppress(KeyboardInterrupt):
                sys.setprofile(interrupt)
                found = run_job(request, 3)
                sys.setprofile(None)
                assert found == expected
                break
    finally:
        gc.enable()
    assert step > 25  # fewer of them are here where the other threads take more frames
    stopping = threading.Thread(target=threads._pool.stop, daemon=True)
    stopping.start()
    stopping.join(10)
    assert not stopping.is_alive()  # no thread is at a call that has ended
