"""Crafted files: an error of ours, in short time, with little memory, and nothing else.

``GULPIO2_HYPOTHESIS=long`` and ``bin/fuzz`` look for more than the quick form does.
"""

import json
import shutil
import struct
import time
import zlib
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.errors import GulpError
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.journal import dump_line
from gulpio2.ingest.facts import ask_for_facts
from gulpio2.ingest.preflight import arguments_of
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.faults import parsers
from tests.faults.operations import content, end_of_small_child

JPEG = encode_frame(make_frames(1)[0], EncoderSettings())


def open_and_read(folder):
    """Do what a reader and a careful user do; only errors of ours may come."""
    for verify in (False, True):
        try:
            directory = GulpDirectory(folder, verify=verify, threads=1)
        except GulpError:
            continue
        with directory:
            for id_ in list(directory.chunk_lookup):
                with suppress(GulpError):
                    directory.read_clip(id_)
                with suppress(GulpError):
                    directory.read_frames(id_, slice(0, 3))
                with suppress(GulpError):
                    directory.read_frames_at(id_, 0)
                with suppress(GulpError):
                    assert directory.item(id_).duration != 0.5
    str(check_directory(folder, deep=True))
    with suppress(GulpError):
        str(repair_directory(folder, folder.parent / "mended", dry_run=True))
    with suppress(GulpError):
        compact_directory(folder, dry_run=True)
    with suppress(GulpError):
        delete_items(folder, ["item0"], dry_run=True)


def gmeta(**entry):
    """Make a map with one item whose entry has these parts."""
    infos = [[0, 0, len(JPEG)]]
    return {"item0": {"frame_info": infos, "meta_data": [{}], **entry}}


HUGE = 2**62
MAPS = {
    "a span far behind the end": gmeta(frame_info=[[HUGE, 0, HUGE]]),
    "a long span": gmeta(frame_info=[[0, 0, HUGE]]),
    "a negative place": gmeta(frame_info=[[-8, 0, 8]]),
    "no length": gmeta(frame_info=[[0, 3, 3]]),
    "many spans at one place": gmeta(frame_info=[[0, 0, 4]] * 20_000),
    "numbers that are none": gmeta(frame_info=[[True, None, 1e300]]),
    "a number of many digits": '{"a": {"frame_info": [[' + "9" * 5000 + "]]}}",
    "deep lists": "[" * 100_000,
    "deep metadata": '{"a": {"frame_info": [], "meta_data": [' + '{"a":' * 90_000,
    "deep metadata that ends": '{"a": {"frame_info": [], "meta_data": [{"a": '
    + "[" * 900
    + "]" * 900
    + "}]}}",
    "many times from few bytes": gmeta(
        gulp2={"time_base": [1, 1], "pts": [[0, 1, HUGE]], "crc32": "AAAAAA=="}
    ),
    "times that cancel out": gmeta(
        gulp2={
            "time_base": [1, 1],
            "pts": [[0, 1, HUGE], [0, 1, 1 - HUGE]],
            "crc32": "AAAAAA==",
        }
    ),
    "a time base of zero": gmeta(
        gulp2={"time_base": [0, 0], "pts": [[0, 0, 1]], "crc32": "AAAAAA=="}
    ),
    "enormous ticks": gmeta(
        gulp2={
            "time_base": [10**400, 1],
            "pts": [[10**400, 0, 1]],
            "crc32": "AAAAAA==",
        }
    ),
    "checksums that are no base64": gmeta(gulp2={"crc32": "\u00e9", "check": 7}),
    "a list": "[]",
    "half a surrogate": '{"\\ud800": {"frame_info": [], "meta_data": [{}]}}',
    "an id that is a path": '{"../../x": {"frame_info": [], "meta_data": [{}]}}',
    "nothing": "",
    "zeros": "\0" * 1000,
}


@pytest.mark.parametrize("name", MAPS)
def test_a_crafted_map_is_refused_or_read_within_bounds(tmp_path, name):
    value = MAPS[name]
    data = value.encode() if isinstance(value, str) else dump_gmeta(value)
    (tmp_path / "data_0.gulp").write_bytes(JPEG)
    (tmp_path / "meta_0.gmeta").write_bytes(data)
    assert end_of_small_child(lambda: open_and_read(tmp_path)) == 0


def sized(height, width):
    """Make the same JPEG declare another size."""
    at = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:at] + struct.pack(">HH", height, width) + JPEG[at + 4 :]


@pytest.mark.parametrize(
    "jpeg",
    [
        sized(65535, 65535),
        sized(0, 0),
        sized(1, 65535),
        sized(24, 33),
        JPEG[: len(JPEG) // 2],
        JPEG[:20],
        b"\xff\xd8\xff\xd9",
        b"\xff\xd8" + b"\xff\xe0\xff\xff" * 5000,
        JPEG[:-2] + JPEG,
    ],
    ids=["huge", "empty", "wide", "other", "half", "head", "no", "segments", "two"],
)
def test_a_crafted_jpeg_is_refused_or_read_within_bounds(tmp_path, jpeg):
    def attempt():
        (tmp_path / "data_0.gulp").write_bytes(jpeg + bytes(-len(jpeg) % 4))
        infos = [[0, -len(jpeg) % 4, len(jpeg) + -len(jpeg) % 4]]
        (tmp_path / "meta_0.gmeta").write_bytes(dump_gmeta(gmeta(frame_info=infos)))
        open_and_read(tmp_path)

    assert end_of_small_child(attempt) == 0


def checked(value):
    """Sign a small JSON file as the package does."""
    crc32 = zlib.crc32(json.dumps(value).encode("ascii"))
    return json.dumps({**value, "check": f"{crc32:08x}"}, indent=1).encode() + b"\n"


MANIFEST = {"format": "gulp2", "format_version": 1, "runs": [], "metainfo": {}}
# An infinity is a number in Python's JSON.
RUN = {"adapter": "A", "options": {}, "encoder": {}, "package": "1", "chunks": [1e999]}


@pytest.mark.parametrize(
    "files",
    [
        {"gulp.json": checked({**MANIFEST, "runs": 7})},
        {"gulp.json": checked({**MANIFEST, "runs": [[]]})},
        {"gulp.json": checked({**MANIFEST, "runs": [RUN]})},
        {"gulp.json": checked({**MANIFEST, "metainfo": 7})},
        {"gulp.json": checked({**MANIFEST, "files": {"../../x": 7}})},
        {"gulp.json": checked({**MANIFEST, "files": 7})},
        {"gulp.json": b"{" * 100_000},
        {"deleted.json": checked({"deleted": {"0": 7}, "erased": {}})},
        {"deleted.json": checked({"deleted": {}, "erased": {"0": [[0, HUGE]]}})},
        {"deleted.json": checked({"deleted": {}, "erased": {"0": [[-9, -1]]}})},
        {"deleted.json": checked({"deleted": [], "erased": []})},
        {"label2idx.json": b"[" * 100_000},
        {"label2idx.json": b'{"a": ' + b"9" * 6000 + b"}"},
        {"failures.jsonl": b"\n" * 100_000},
    ],
    ids=lambda files: " ".join(f"{k} {v[-40:]!r}" for k, v in files.items()),
)
def test_crafted_small_files_are_refused_or_read_within_bounds(tmp_path, files):
    make_gulp_directory(tmp_path, num_items=1).close()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)

    def attempt():
        open_and_read(tmp_path)
        with suppress(GulpError):
            dict(GulpDirectory(tmp_path).metainfo)

    assert end_of_small_child(attempt) == 0


TASK = {
    "task": 0,
    "parts": [],
    "skipped": 0,
    "not_given": 0,
    "failures": [],
    "raised_behind": 0,
    "error_behind": None,
}
JOURNALS: dict[str, list[Any]] = {
    "no task": [{**TASK, "task": "x"}],
    "no parts": [{**TASK, "parts": [{}]}],
    "a path": [
        {
            **TASK,
            "parts": [
                {
                    "data": "../victim",
                    "meta": "../victim",
                    "number": 0,
                    "ids": 1,
                    "frames": 1,
                    "num_bytes": 1,
                }
            ],
        }
    ],
    "not a line": [7],
    "no failure": [{**TASK, "failures": [{"x": 1}]}],
    "numbers": [{**TASK, "task": 10**30, "skipped": "x", "failures": 7}],
}


def head_of(ingestor):
    """Give the first line of the journal that an ingest would take up."""
    ingestor._num_items = len(ingestor.adapter)  # counted where a run begins
    plan = ingestor._plan(frozenset()).digest()
    facts = ask_for_facts(ingestor.adapter)
    arguments = arguments_of(ingestor, facts, ingestor._num_items)
    head = {"first_number": 0, "plan": plan, "cut_for": 1, "files": {}}
    return {"run": arguments, **head}


def resume(ingestor):
    """Resume by a journal, which may be refused, but not as that of another run."""
    refusal = ""
    try:
        ingestor.run()
    except GulpError as error:
        refusal = str(error)
    assert "had other arguments" not in refusal


@pytest.mark.parametrize("name", JOURNALS)
def test_a_crafted_journal_is_an_error_and_changes_nothing_outside(tmp_path, name):
    folder = tmp_path / "gulped"
    (tmp_path / "victim").write_bytes(b"precious")
    adapter = FrameAdapter(num_items=4)

    def attempt():
        ingestor = GulpIngestor(adapter, folder, 2, 1, resume=True)
        head = head_of(ingestor)
        folder.mkdir()
        lines = [head, *JOURNALS[name]]
        (folder / "ingest.journal").write_bytes(b"".join(map(dump_line, lines)))
        resume(ingestor)

    assert end_of_small_child(attempt) == 0
    assert (tmp_path / "victim").read_bytes() == b"precious"
    assert {path.name for path in tmp_path.iterdir()} == {"gulped", "victim"}


@pytest.mark.parametrize(
    "line",
    [
        {"data": "victim.link"},
        {"data": "chunk_0.gulp.abc.partial"},
        {"data": ["x"]},
        {"staged": {"data": "x"}},
        {"staged": {"data": "x", "meta": "y", "more": 1}},
        {"items": [{"at": "x", "id": 7, "entry": {}}]},
        {"items": 7},
        {"at": 0},
        {"at": 0, "failed": 7},
        {"at": 0, "skipped": 7},
        {"nothing": 0},
        7,
        [],
    ],
    ids=str,
)
def test_a_crafted_item_journal_reaches_no_other_file(tmp_path, line):
    folder = tmp_path / "gulped"
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 100)
    adapter = FrameAdapter(num_items=4)

    def attempt():
        ingestor = GulpIngestor(adapter, folder, 2, 1, resume=True)
        head = head_of(ingestor)
        folder.mkdir()
        (folder / "ingest.journal").write_bytes(dump_line(head))
        (folder / "victim.link").symlink_to(victim)
        (folder / "chunk_0.gulp.abc.partial").symlink_to(victim)
        (folder / "chunk_0.journal.abc.partial").write_bytes(dump_line(line))
        resume(ingestor)

    assert end_of_small_child(attempt) == 0
    assert victim.read_bytes() == b"precious" * 100


def test_a_frame_above_the_ceiling_is_refused_and_the_ceiling_can_be_raised():
    large = encode_frame(make_frames(1, 400, 400)[0], EncoderSettings())
    with pytest.raises(GulpError, match="above the limit"):
        decode_frame(large, max_pixels=400 * 400 - 1)
    assert decode_frame(large, max_pixels=400 * 400).shape == (400, 400, 3)


def unexpected_error(act):
    """Give what something raised that is no error of ours."""
    try:
        act()
    except GulpError:
        return None
    except Exception as error:  # noqa: BLE001  # what is looked for
        return error
    return None


def assert_harmless(parser, data):
    """See that a parser takes these bytes, or refuses them with an error of ours."""
    assert unexpected_error(lambda: parsers.PARSERS[parser](data)) is None


@pytest.mark.parametrize("parser", sorted(parsers.PARSERS))
@given(data=st.data())
def test_no_bytes_make_a_parser_fail_in_another_way(parser, data):
    seeds = parsers.seeds()[parser]
    kind = data.draw(st.sampled_from(["random", "changed"]))
    if kind == "random":
        assert_harmless(parser, data.draw(st.binary(max_size=200)))
        return
    content_ = bytearray(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content_)))
        stop = start + data.draw(st.integers(0, 8))
        content_[start:stop] = data.draw(st.binary(max_size=8))
    assert_harmless(parser, bytes(content_))


@settings(max_examples=40)
@given(data=st.data())
def test_no_change_of_a_directory_makes_reading_fail_in_another_way(
    tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("fuzz") / "gulped"
    make_gulp_directory(folder, num_items=2, num_frames=2).close()
    files = content(folder)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(files)))
        changed = bytearray(files[name])
        start = data.draw(st.integers(0, len(changed)))
        stop = start + data.draw(st.integers(0, 30))
        changed[start:stop] = data.draw(st.binary(max_size=10))
        files[name] = bytes(changed)
        (folder / name).write_bytes(changed)
    assert unexpected_error(lambda: open_and_read(folder)) is None
    assert content(folder) == files  # and no reader changes anything
    shutil.rmtree(folder)


def test_problems_of_a_crafted_map_are_counted_where_they_are_too_many(tmp_path):
    count = 60_000
    (tmp_path / "data_0.gulp").write_bytes(bytes(4000))
    spans = ", ".join(["[0, 0, 8]"] * count)
    entry = f'{{"frame_info": [{spans}], "meta_data": [{{}}]}}'
    (tmp_path / "meta_0.gmeta").write_text(f'{{"a": {entry}}}')

    def attempt():
        problems = check_directory(tmp_path, deep=True).problems
        texts = [str(problem) for problem in problems if problem.item is None]
        assert len(problems) < 5000
        assert f"data_0.gulp: and {count - 501:,} more of these [overlap]" in texts

    assert end_of_small_child(attempt) == 0


def test_reading_a_crafted_map_takes_no_long_time(tmp_path):
    (tmp_path / "data_0.gulp").write_bytes(JPEG)
    infos = [[0, 0, len(JPEG)]] * 3000
    (tmp_path / "meta_0.gmeta").write_bytes(dump_gmeta(gmeta(frame_info=infos)))
    began = time.monotonic()
    check_directory(tmp_path, deep=True)
    assert time.monotonic() - began < 5


# What a terminal obeys, what turns text around, what a path is, and half of a pair.
STRANGE = "../../\x1b[2J\x1b]0;x\x07\r\n\u202e\x9b31m"


def strange_directory(folder):
    """Make a directory whose every text is strange."""
    folder.mkdir()
    for number in range(2):
        chunk = GulpChunk(
            folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta"
        )
        with chunk.open("wb"):
            meta = {STRANGE: STRANGE, "label": STRANGE}
            chunk.append(f"{STRANGE}{number}", meta, make_frames(2))
    (folder / "label2idx.json").write_text(json.dumps({STRANGE: 0}))
    failure = {"position": 0, "id": STRANGE, "error": STRANGE, "message": STRANGE}
    (folder / "failures.jsonl").write_text(json.dumps(failure) + "\n")
    run = {"adapter": STRANGE, "options": {STRANGE: STRANGE}, "encoder": {}}
    run |= {"package": STRANGE}
    manifest = {
        **MANIFEST,
        "runs": [{**run, "chunks": [0, 1]}],
        "metainfo": {STRANGE: STRANGE},
    }
    (folder / "gulp.json").write_bytes(checked(manifest))
    (folder / "data_1.gulp\x1b[2J").touch()
    return folder


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "ls D",
        "ls D --long",
        "ls D nothing\x1b[2J",
        "info D",
        "check D",
        "check D --deep",
        "index D",
        "index D --check",
        "delete D I",
        "delete D nobody\x1b[2J",
        "compact D",
        "repair D T",
        "merge D T",
        "extract D I --out T",
        "extract D I --out T --format mp4",
        "extract D nobody\x1b[2J",
        "sheet D I --out T.png",
    ],
)
def test_no_text_of_a_directory_reaches_the_terminal_as_it_is(
    tmp_path, monkeypatch, command, damaged
):
    from click.testing import CliRunner

    from gulpio2.cli.main import gulp2

    folder = strange_directory(tmp_path / "gulped")
    if damaged:
        for name in ("data_0.gulp", "data_1.gulp"):
            data = bytearray((folder / name).read_bytes())
            data[300:320] = bytes(20)
            (folder / name).write_bytes(data)
    outside = set(tmp_path.parent.iterdir())
    monkeypatch.chdir(tmp_path)
    words = {"D": "gulped", "I": f"{STRANGE}0", "T": "target", "T.png": "sheet.png"}
    arguments = [words.get(word, word) for word in command.split(" ")]
    result = CliRunner().invoke(gulp2, arguments)
    assert result.exit_code in (0, 1), result.output
    assert isinstance(result.exception, SystemExit | None), result.output
    text = result.stdout.replace("\n", "") + result.stderr.replace("\n", "")
    assert text.isprintable(), ascii(text)
    written = {path.name for path in tmp_path.iterdir()}
    assert written <= {"gulped", "target", "sheet.png"}
    assert set(tmp_path.parent.iterdir()) == outside
