"""What the checker knows of names, spans and records."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.format.checks import (
    HEAD_BYTES,
    Record,
    check_checksum,
    check_head,
    check_ids,
    check_names,
    check_spans,
    check_tail,
    note_gaps,
    undecodable,
)
from gulpio2.format.layout import list_chunks
from gulpio2.format.problems import Problem, Tally, runs_of_frames
from gulpio2.format.records import record_of
from gulpio2.testing import make_frames

# Its bytes belong to no frame, then.
NO_JPEG_OF_THREE_BYTES = [("not-jpeg", 1), ("data-too-long", None)]
TWO_OVERLAPS = [("overlap", 1), ("overlap", 2)]
WHOLE = ["data_0.gulp", "meta_0.gmeta"]


def found(problems: list[Problem]) -> list[tuple[str, int | None]]:
    """Give code and frame of each problem."""
    return [(problem.code, problem.frame) for problem in problems]


def record(loc: int, length: int, frame: int = 0, *, pad: int = 0) -> Record:
    """Make a record of item "a"."""
    return Record(loc, pad, length, "a", frame)


def record_for(jpeg: bytes, crc32: int | None = None) -> Record:
    """Make the record of a JPEG at the beginning of a file."""
    return Record(*record_of(jpeg, 0)[0], "a", 0, crc32)


@pytest.fixture(scope="module")
def jpeg() -> bytes:
    """Give a real JPEG."""
    return encode_frame(make_frames(1)[0], EncoderSettings())


# --- problems -----------------------------------------------------------------------


def test_a_problem_is_one_line_with_place_message_and_code():
    problem = Problem("crc-mismatch", "it changed", "data_0.gulp", "v1", 3, 128)
    text = "data_0.gulp, item 'v1', frame 3, byte 128: it changed [crc-mismatch]"
    assert str(problem) == text
    assert str(Problem("no-chunks", "empty", ".")) == (
        "this directory: empty [no-chunks]"
    )


def test_a_problem_as_json_has_every_key():
    assert Problem("no-chunks", "empty", ".").to_json() == {
        "code": "no-chunks",
        "message": "empty",
        "file": ".",
        "item": None,
        "frame": None,
        "offset": None,
        "count": 1,
    }


def test_the_first_problem_of_each_item_is_listed():
    tally = Tally(3)
    problems = [
        Problem("overlap", "x", "data_0.gulp", item, frame)
        for item in "abcde"
        for frame in range(4)
    ]
    listed = [(problem.item, problem.frame) for problem in tally.admit(problems)]
    assert listed == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0)]
    (rest,) = tally.rest()
    assert (rest.count, rest.message) == (15, "and 15 more of these")


def test_what_comes_later_is_counted_with_what_came_before():
    tally = Tally(1)
    problem = Problem("overlap", "x", "data_0.gulp", "a", 0)
    assert tally.admit([problem]) == [problem]
    assert tally.admit([problem, problem]) == []
    assert [rest.count for rest in tally.rest()] == [2]


def test_runs_are_of_frames_that_follow_one_another_with_the_same_fault():
    def at(frame, item="a", code="overlap"):
        return Problem(code, "x", "data_0.gulp", item, frame)

    runs = [
        [at(3), at(4), at(5)],
        [at(7)],
        [at(8, "b")],
        [at(9, "b", "not-jpeg"), at(10, "b", "not-jpeg")],
        [Problem("data-too-short", "x", "data_0.gulp")],
        [Problem("data-too-short", "x", "data_0.gulp")],
    ]
    assert list(runs_of_frames(chain.from_iterable(runs))) == runs
    text = "data_0.gulp, item 'a', frames 4 to 5: likewise [overlap]"
    assert at(3).likewise(5) == text


def test_several_faults_of_each_frame_are_several_runs():
    def faults(frame, item):
        place = "data_0.gulp", item, frame
        begins = f"is no JPEG: it begins with {frame:02x} 0a and not with ff d8"
        return [
            Problem("not-jpeg", begins, *place),
            Problem("not-jpeg", "is cut: it ends with 00 00", *place),
            Problem("crc-mismatch", f"its checksum is {frame:08x}", *place),
        ]

    problems = [faults(frame, item) for item in "ab" for frame in range(20)]
    runs = list(runs_of_frames(chain.from_iterable(problems)))
    assert [(run[0].item, len(run)) for run in runs] == [
        *[("a", 20)] * 3,
        *[("b", 20)] * 3,
    ]
    assert [run[0].code for run in runs[:3]] == ["not-jpeg", "not-jpeg", "crc-mismatch"]


def test_frames_that_overlap_with_other_items_are_no_run():
    problems = [
        Problem("overlap", f"shares bytes {n} to 9 of item 'b{n // 3}'", "x", "a", n)
        for n in range(6)
    ]
    assert [len(run) for run in runs_of_frames(problems)] == [3, 3]


def test_what_stands_for_others_is_counted_as_what_it_stands_for():
    inner, outer = Tally(1), Tally(2)
    problem = Problem("overlap", "x", "data_0.gulp", "a", 0)
    found = [*inner.admit([problem] * 9), *inner.rest()]
    assert [one.is_count for one in found] == [False, True]
    listed = outer.admit([problem, problem, *found, found[1], problem])
    rest = outer.rest()
    assert sum(one.count for one in (*listed, *rest)) == 2 + 9 + 8 + 1


def test_names_from_the_disk_do_nothing_to_a_terminal():
    problem = Problem("stray-name", "x", "a\x1b[31m\n.gulp", item="b\u202e\x07")
    assert str(problem) == r"'a\x1b[31m\n.gulp', item 'b\u202e\x07': x [stray-name]"


# --- names --------------------------------------------------------------------------


def test_a_whole_chunk_has_no_problem_by_its_names():
    names = [*WHOLE, "gulp.json", "label2idx.json", "notes.txt"]
    listing = list_chunks(names)
    assert listing.chunks == (0,)
    assert listing.names == tuple(names)
    assert check_names(listing) == []


@pytest.mark.parametrize(
    ("more", "code", "file", "message"),
    [
        ("data_4.gulp", "data-without-map", "data_4.gulp", "has no meta_4.gmeta"),
        ("meta_4.gmeta", "map-without-data", "meta_4.gmeta", "has no data_4.gulp"),
        ("data_1.gulp.0a.partial", "partial-file", None, "so may you, once its writer"),
        ("data_00.gulp", "stray-name", None, "without leading zeros"),
        ("ingest.journal", "unfinished-ingest", None, "with --resume"),
    ],
)
def test_a_name_that_should_not_be_there_is_named(more, code, file, message):
    (problem,) = check_names(list_chunks([*WHOLE, more]))
    assert (problem.code, problem.file) == (code, file or more)
    assert message in problem.message


def test_what_an_ingest_has_not_finished_is_gone_on_with():
    more = ["chunk_1.gulp.0a.partial", "ingest.journal"]
    problems = check_names(list_chunks([*WHOLE, *more]))
    (partial,) = (problem for problem in problems if problem.code == "partial-file")
    assert "The same ingest with --resume goes on with it" in partial.message


@pytest.mark.parametrize("names", [[], ["gulp.json"], ["photo.jpg"]])
def test_a_folder_without_a_chunk_is_a_problem(names):
    (problem,) = check_names(list_chunks(names))
    assert str(problem) == (
        "this directory: holds no complete chunk: nothing can be read [no-chunks]"
    )


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [
        ([], None),
        ([0, 1, 2], None),
        ([0, 2], "no chunk 1, and"),
        ([9, 3, 2, 6, 10**12], "no chunk 0 to 1, 4 to 5, 7 to 8, 10 to 999999999999, "),
        (range(1, 60, 2), "34, 36, 38 and 10 more gaps, and"),
    ],
)
def test_numbers_that_are_left_out_are_noted(numbers, gaps):
    notes = note_gaps(numbers)
    assert [note.code for note in notes] == (["number-gap"] if gaps else [])
    assert not gaps or gaps in notes[0].message


def test_an_id_in_two_chunks_is_named_once_per_further_chunk():
    ids = {0: ["a", "b"], 3: ["c", "b", "b"], 10: ["b", "a"]}
    problems = check_ids(ids)
    assert [(problem.file, problem.item) for problem in problems] == [
        ("meta_3.gmeta", "b"),
        ("meta_10.gmeta", "b"),
        ("meta_10.gmeta", "a"),
    ]
    assert "is in meta_0.gmeta as well" in problems[0].message


# --- spans --------------------------------------------------------------------------


def test_records_in_a_row_have_no_problem():
    records = [record(0, 8, 0), record(8, 12, 1), record(20, 4, 2)]
    assert check_spans(reversed(records), 24, "data_0.gulp") == (records, [])


def test_no_records_in_an_empty_file_have_no_problem():
    assert check_spans([], 0, "data_0.gulp") == ([], [])


@given(st.lists(st.integers(1, 30).map(lambda words: 4 * words)), st.randoms())
def test_records_that_fill_a_file_in_any_order_have_no_problem(lengths, rng):
    offsets = [sum(lengths[:n]) for n in range(len(lengths))]
    records = [
        Record(offset, 0, length, str(n % 3), n)
        for n, (offset, length) in enumerate(zip(offsets, lengths, strict=True))
    ]
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert check_spans(shuffled, sum(lengths), "data_0.gulp") == (records, [])


@pytest.mark.parametrize(
    ("records", "size", "expected"),
    [
        # a gap, and bytes before the first record
        ([record(0, 8), record(12, 8, 1)], 20, [("unreferenced-bytes", None)]),
        ([record(4, 8)], 12, [("unreferenced-bytes", None)]),
        # the end
        ([record(0, 8)], 12, [("data-too-long", None)]),
        ([], 12, [("data-too-long", None)]),
        (
            [record(0, 8), record(8, 8, 1)],
            12,
            [("data-too-short", None), ("span-outside-file", 1)],
        ),
        ([record(0, 8)], 0, [("empty-data-file", None), ("span-outside-file", 0)]),
        # sharing bytes: partly, wholly, and the same ones twice
        ([record(0, 12), record(8, 8, 1)], 16, [("overlap", 1)]),
        ([record(0, 16), record(4, 4, 1), record(8, 4, 2)], 16, TWO_OVERLAPS),
        ([record(0, 8), record(0, 8, 1)], 8, [("overlap", 1)]),
        # numbers that do not fit each other
        ([record(0, 6, pad=1)], 6, [("bad-pad", 0)]),
        ([record(0, 7)], 7, [("bad-pad", 0)]),
        ([record(0, 6), record(6, 4, 1)], 10, [("bad-pad", 0), ("misaligned", 1)]),
        ([record(0, 4), record(4, 0, 1)], 4, [("not-jpeg", 1)]),
        ([record(0, 4), record(4, 4, 1, pad=1)], 8, NO_JPEG_OF_THREE_BYTES),
    ],
)  # fmt: skip
def test_records_that_do_not_fill_a_file_are_named(records, size, expected):
    _, problems = check_spans(records, size, "data_0.gulp")
    assert found(problems) == expected


def test_span_problems_say_where_and_how_much():
    records = [record(0, 8), record(12, 12, 1), record(20, 12, 2), record(32, 40, 3)]
    _, problems = check_spans(records, 40, "data_3.gulp")
    assert [str(problem) for problem in problems] == [
        "data_3.gulp, byte 40: holds 40 bytes, and the map speaks of 72: it was cut. "
        "Put the whole file back, or ingest its items again [data-too-short]",
        "data_3.gulp, byte 8: 4 bytes that belong to no frame of the map: an append "
        "goes on or was cut short, or a program has taken frames out of the map. Other "
        "frames are not concerned, and `gulp2 repair` leaves such bytes behind "
        "[unreferenced-bytes]",
        "data_3.gulp, item 'a', frame 2, byte 20: shares bytes 20 to 24 with frame 1 "
        "of item 'a': one of the two is not what was stored [overlap]",
        "data_3.gulp, item 'a', frame 3, byte 32: ends at byte 72 of a file of 40 "
        "bytes: the frame is lost [span-outside-file]",
    ]


def test_only_records_that_can_be_read_are_given_back():
    records = [record(0, 8), record(8, 0, 1), record(8, 99, 2), record(4, 8, 3)]
    inside, _ = check_spans(records, 12, "data_0.gulp")
    assert [r.frame for r in inside] == [0, 3]


# --- records ------------------------------------------------------------------------


def test_a_jpeg_begins_and_ends_well(jpeg):
    whole = record_for(jpeg)
    padded = jpeg + b"\0" * whole.pad
    assert check_head(whole, jpeg[:HEAD_BYTES], "data_0.gulp") == []
    assert check_tail(whole, padded[-whole.pad - 2 :], "data_0.gulp") == []


def test_real_jpegs_begin_well(shared_images):
    paths = sorted(shared_images.glob("*.jpg"))
    assert paths
    for path in paths:
        data = path.read_bytes()
        assert check_head(record_for(data), data[:HEAD_BYTES], "x") == [], path.name


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"\0" * 64, "is no JPEG: it begins with 00 00 and not with ff d8"),
        (b"\x89PNG" + b"\0" * 60, "begins with 89 50"),
        (b"\xff\xd8" + b"\0" * 62, "no marker at its byte 2"),
        # tables of 6 bytes, then nothing
        (b"\xff\xd8\xff\xdb\0\x04aa" + b"\0" * 56, "no marker at its byte 8"),
        # a segment of one byte, the image data, the end: before any size
        (b"\xff\xd8\xff\xdb\0\x01" + b"\0" * 58, "marker ff db at its byte 2"),
        (b"\xff\xd8\xff\xda\0\x04" + b"\0" * 58, "marker ff da at its byte 2"),
        (b"\xff\xd8\xff\x01\0\x04" + b"\0" * 58, "marker ff 01 at its byte 2"),
        (b"\xff\xd8\xff\xbf\0\x04" + b"\0" * 58, "marker ff bf at its byte 2"),
        # a frame header: length, 8 bits, height, width
        (b"\xff\xd8\xff\xc0\0\x11\x08\0\0\0\x20" + b"\0" * 53, "a JPEG of 32x0 pixels"),
        (b"\xff\xd8\xff\xc2\0\x11\x08\0\x20\0\0" + b"\0" * 53, "a JPEG of 0x32 pixels"),
        (b"\xff\xd8\xff\xd9", "is a JPEG without a size"),
    ],
)
def test_a_record_that_begins_as_no_jpeg_is_named(head, message):
    (problem,) = check_head(record_for(head), head, "data_0.gulp")
    assert (problem.code, problem.item, problem.frame) == ("not-jpeg", "a", 0)
    assert message in problem.message


def test_fill_bytes_before_a_marker_are_allowed():
    head = b"\xff\xd8\xff\xff\xff\xc0\0\x11\x08\0\x20\0\x20" + b"\0" * 51
    assert check_head(record_for(head), head, "x") == []


def test_nothing_is_said_about_a_size_behind_what_was_read(jpeg):
    comment = b"\xff\xfe" + (2 + 5000).to_bytes(2, "big") + b"c" * 5000
    long = jpeg[:2] + comment + jpeg[2:]
    assert check_head(record_for(long), long[:HEAD_BYTES], "x") == []
    assert check_head(record_for(long), long, "x") == []


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_can_be_looked_at(data, as_jpeg):
    data = (b"\xff\xd8" + data) if as_jpeg else data
    problems = check_head(record_for(data), data, "x")
    assert all(problem.code == "not-jpeg" for problem in problems)


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"\xff\xd9", []),
        (b"\xff\xd9\0\0\0", []),
        (b"\xff\xd8\0", [("not-jpeg", 8)]),
        (b"\0\0", [("not-jpeg", 8)]),
        (b"\xff\xd9\0\x01", [("pad-not-zero", 14)]),
        (b"\xd9\0\xff", [("not-jpeg", 8), ("pad-not-zero", 15)]),
    ],
)
def test_a_record_that_ends_wrongly_is_named(tail, expected):
    pad = len(tail) - 2
    ending = Record(8, pad, 8, "a", 0)
    problems = check_tail(ending, tail, "data_0.gulp")
    assert [(problem.code, problem.offset) for problem in problems] == expected


def test_a_checksum_is_compared_where_there_is_one(jpeg):
    assert check_checksum(record_for(jpeg), 1, "x") == []
    assert check_checksum(record_for(jpeg, 1), 1, "x") == []
    (problem,) = check_checksum(record_for(jpeg, 0xCBF43926), 1, "data_0.gulp")
    assert problem.code == "crc-mismatch"
    assert "is 00000001, and cbf43926 was stored" in problem.message


def test_a_frame_that_cannot_be_decoded_has_a_problem_with_the_cause(jpeg):
    problem = undecodable(record_for(jpeg), "cut short", "data_0.gulp")
    assert str(problem).endswith("cannot be decoded: cut short [not-decodable]")
