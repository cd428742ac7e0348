"""``gulp2 check``: findings, exit status, JSON."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

from gulpio2 import GulpChunk
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.format.checked_json import dump_checked
from gulpio2.format.manifest import Manifest, dump_manifest
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_gulp_directory
from tests.faults.rot import rot


def test_a_whole_directory_is_exit_status_0(gulp2, gulped):
    for option, is_deep in ([], False), (["--deep"], True):
        result = gulp2("check", *option, gulped)
        assert "no problem in 24 frames of 4 items in 2 chunks" in result.stdout
        assert ("was not compared (--deep)" in result.stdout) is not is_deep
        assert result.stderr == ""


def test_decoding_is_a_deep_check_and_advises_no_repair(gulp2, gulped):
    assert "no problem" in gulp2("check", "--decode", gulped).stdout
    chunk = GulpChunk(gulped / "data_1.gulp", gulped / "meta_1.gmeta")
    jpeg = encode_frame(np.zeros((16, 16, 3), np.uint8), EncoderSettings())
    end = jpeg.index(b"\xff\xda") + 14
    with chunk.open("ab"):
        chunk.append("cut", {}, [jpeg[:end] + b"\xff\xd9"])
    assert "no problem" in gulp2("check", "--deep", gulped).stdout
    result = gulp2("check", "--decode", gulped, status=1)
    (line, summary) = result.stdout.splitlines()
    assert "data_1.gulp, item 'cut', frame 0" in line
    assert "[stored-damaged]" in line
    assert "1 problem in 25 frames" in summary
    report = json.loads(gulp2("check", "--decode", "--json", gulped, status=1).stdout)
    assert (report["deep"], report["decoded"], report["ok"]) == (True, True, False)


def test_each_finding_is_a_line_with_file_item_and_frame(gulp2, gulped):
    data = bytearray((gulped / "data_1.gulp").read_bytes())
    data[0:2] = b"\0\0"
    (gulped / "data_1.gulp").write_bytes(data)
    (gulped / "meta_0.gmeta").unlink()
    result = gulp2("check", gulped, status=1)
    lines = result.stdout.splitlines()
    assert any("data_1.gulp, item 'item2', frame 0" in line for line in lines)
    assert any("data_0.gulp" in line for line in lines)
    assert "2 problems" in lines[-2]
    assert "(--deep)" in lines[-2]
    assert lines[-1].startswith("`gulp2 repair`")


def test_frames_lost_in_a_row_take_two_lines_an_item(gulp2, gulped):
    (gulped / "data_1.gulp").write_bytes(b"")
    result = gulp2("check", gulped, status=1)
    lines = result.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[1:-2]] == [
        "data_1.gulp, item 'item2', frame 0, byte 0",
        "data_1.gulp, item 'item2', frames 1 to 5",
        lines[3].partition(": ")[0],
        "data_1.gulp, item 'item3', frames 1 to 5",
    ]
    assert lines[3].startswith("data_1.gulp, item 'item3', frame 0, byte ")
    assert "gulped: 13 problems in 24 frames" in lines[-2]
    result = gulp2("check", "--limit", "2", gulped, status=1)
    assert result.stdout.splitlines()[2].startswith("and 11 more: ")


def test_a_hole_takes_few_lines_an_item_so_that_all_are_named(gulp2, tmp_path):
    folder = tmp_path / "holed"
    make_gulp_directory(folder, num_items=12, num_frames=30, items_per_chunk=12).close()
    path = folder / "data_0.gulp"
    path.write_bytes(bytes(path.stat().st_size))
    words = ["check", "--deep", "--limit", "0", folder]
    lines = gulp2(*words, status=1).stdout.splitlines()
    assert len(lines) < 100
    for item in range(12):
        assert sum(f"item 'item{item}', frames 1 to 29" in line for line in lines) == 3


def test_a_fault_of_many_items_of_a_file_hides_no_other(gulp2, tmp_path):
    folder = tmp_path / "cut"
    make_gulp_directory(folder, num_items=160, num_frames=1, items_per_chunk=80).close()
    (folder / "data_0.gulp").write_bytes(b"")
    (folder / "data_1.gulp").write_bytes((folder / "data_1.gulp").read_bytes()[:-4])
    lines = gulp2("check", folder, status=1).stdout.splitlines()
    assert lines[0].endswith("[empty-data-file]")
    assert [line.partition(": ")[0] for line in lines[1:6]] == [
        f"data_0.gulp, item 'item{n}', frame 0, byte {offset}"
        for n, offset in enumerate(offsets(folder, 5))
    ]
    assert lines[6] == (
        "data_0.gulp: and 75 more, of 75 items: --limit 0 or --json gives all of them "
        "[span-outside-file]"
    )
    assert lines[7].startswith("data_1.gulp, byte ")
    assert lines[8].startswith("data_1.gulp, item 'item159', frame 0, byte ")
    assert "cut: 83 problems in 160 frames" in lines[9]
    whole = gulp2("check", "--limit", "0", folder, status=1).stdout.splitlines()
    assert sum("data_0.gulp, item " in line for line in whole) == 80
    report = json.loads(gulp2("check", "--json", folder, status=1).stdout)
    assert len(report["problems"]) == 83
    # A line that stands for others stands for them behind the limit as well.
    last = gulp2("check", "--limit", "6", folder, status=1).stdout.splitlines()[6]
    assert last == "and 77 more: --limit 0 or --json gives all of them"


def test_all_faults_of_an_item_that_is_told_are_told(gulp2, tmp_path):
    folder = tmp_path / "holed"
    make_gulp_directory(folder, num_items=7, num_frames=5, items_per_chunk=7).close()
    entries = json.loads((folder / "meta_0.gmeta").read_text())
    with (folder / "data_0.gulp").open("r+b") as file:
        for entry in entries.values():
            for number in (0, 2, 4):
                offset, _, _ = entry["frame_info"][number]
                file.seek(offset)
                file.write(b"\0\0")
    lines = gulp2("check", "--deep", folder, status=1).stdout.splitlines()
    code = lines[0].rpartition(" ")[2]
    told = [line for line in lines if line.endswith(code)]
    assert len(told) == 5 * 3 + 1
    assert "and 6 more, of 2 items: " in told[-1]


def offsets(folder, count):
    """Give where the first frames of the first chunk begin."""
    entries = json.loads((folder / "meta_0.gmeta").read_text()).values()
    return [entry["frame_info"][0][0] for entry in entries][:count]


def test_items_that_are_counted_only_are_said_to_be_more(gulp2, tmp_path, monkeypatch):
    monkeypatch.setattr("gulpio2.sanity.report._MOST", 7)
    make_gulp_directory(tmp_path, num_items=9, num_frames=1, items_per_chunk=9).close()
    (tmp_path / "data_0.gulp").write_bytes(b"")
    lines = gulp2("check", tmp_path, status=1).stdout.splitlines()
    assert lines[6] == (
        "data_0.gulp: and 4 more, of 2 items or more: --limit 0 or --json gives 2 of "
        "them, the rest is counted only [span-outside-file]"
    )


def test_spans_of_no_item_are_counted_behind_the_first_ones(gulp2, tmp_path):
    make_gulp_directory(tmp_path, num_items=16, num_frames=1, items_per_chunk=16)
    entries = json.loads((tmp_path / "meta_0.gmeta").read_text())
    kept = {id_: entry for id_, entry in entries.items() if int(id_[4:]) % 2}
    (tmp_path / "meta_0.gmeta").write_text(json.dumps(kept))
    lines = gulp2("check", tmp_path, status=1).stdout.splitlines()
    spans = [line for line in lines if line.endswith("[unreferenced-bytes]")]
    assert len(spans) == 6
    assert spans[5].startswith("data_0.gulp: and 3 more: --limit 0 or --json gives all")


def test_what_is_counted_only_is_not_promised(gulp2, gulped, monkeypatch):
    monkeypatch.setattr("gulpio2.sanity.report._MOST", 2)
    (gulped / "data_1.gulp").write_bytes(b"")
    lines = gulp2("check", "--limit", "2", gulped, status=1).stdout.splitlines()
    wanted = "--limit 0 or --json gives 2 of them, the rest is counted only"
    assert lines[2] == f"and 11 more: {wanted}"
    lines = gulp2("check", "--limit", "4", gulped, status=1).stdout.splitlines()
    assert lines[4] == "and 9 more, which are counted only"
    lines = gulp2("check", "--limit", "3", gulped, status=1).stdout.splitlines()
    wanted = "--limit 0 or --json gives 1 of them, the rest is counted only"
    assert lines[3] == f"and 10 more: {wanted}"
    found = json.loads(gulp2("check", "--json", gulped, status=1).stdout)["problems"]
    assert sum(problem["count"] for problem in found) == 13
    assert [problem["count"] for problem in found] == [1, 1, 1, 1, 9]


def test_a_flipped_bit_is_found_by_the_deep_check_only(gulp2, gulped):
    data = bytearray((gulped / "data_0.gulp").read_bytes())
    data[500] ^= 1
    (gulped / "data_0.gulp").write_bytes(data)
    gulp2("check", gulped)
    result = gulp2("check", "--deep", gulped, status=1)
    assert "item 'item0', frame 0" in result.stdout


def test_the_report_is_json_on_request(gulp2, gulped):
    report = json.loads(gulp2("check", "--json", gulped).stdout)
    assert (report["ok"], report["items"], report["frames"]) == (True, 4, 24)
    (gulped / "data_0.gulp").write_bytes(b"")
    report = json.loads(gulp2("check", "--json", gulped, status=1).stdout)
    assert not report["ok"]
    assert report["problems"][0]["file"] == "data_0.gulp"


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_what_is_no_directory_is_wrong_usage(gulp2, tmp_path, name):
    (tmp_path / "file").write_text("")
    result = gulp2("check", name, status=2)
    assert name in result.stderr
    assert result.stdout == ""


def test_quiet_leaves_the_findings(gulp2, gulped):
    assert gulp2("check", "-q", gulped).stdout == ""
    (gulped / "data_0.gulp").write_bytes(b"")
    assert "data_0.gulp" in gulp2("check", "-q", gulped, status=1).stdout


def test_a_data_file_that_is_none_is_a_finding(gulp2, gulped):
    (gulped / "data_0.gulp").unlink()
    (gulped / "data_0.gulp").symlink_to("nowhere")
    result = gulp2("check", gulped, status=1)
    assert "data_0.gulp: cannot be read" in result.stdout
    gulp2("repair", gulped, gulped.parent / "mended", status=1)


def test_a_folder_without_chunks_is_not_to_be_repaired(gulp2, tmp_path):
    (tmp_path / "empty").mkdir()
    result = gulp2("check", tmp_path / "empty", status=1)
    assert "no complete chunk" in result.stdout
    assert "copies what is undamaged" not in result.stdout


# ---------------------------------------------------------------- what to do
def last_lines(result):
    """Give what follows the line that counts the problems."""
    lines = result.stdout.splitlines()
    counted = next(n for n, line in enumerate(lines) if " problem" in line)
    return lines[counted + 1 :]


def spoil_index(folder):
    """Let the index say of an item what its map does not say."""
    build_index(folder)
    path = folder / "index.arrow"
    path.write_bytes(path.read_bytes().replace(b"item3", b"itemX"))


def test_an_interrupted_ingest_is_to_be_resumed(gulp2, gulped):
    (gulped / "ingest.journal").write_text("")
    (gulped / "meta_1.gmeta").rename(gulped / "meta_1.gmeta.12345678.partial")
    result = gulp2("check", gulped, status=1)
    assert last_lines(result) == [
        "if none is at work, `gulp2 ingest` with --resume goes on, or the same merge; "
        "a repair begins anew, in an empty folder"
    ]
    (gulped / "data_0.gulp").write_bytes(b"")
    resumed, repaired = last_lines(gulp2("check", gulped, status=1))
    assert "--resume" in resumed
    assert repaired.startswith("`gulp2 repair` copies")


def test_an_index_that_is_wrong_is_to_be_made_anew(gulp2, gulped):
    folder = gulped.rename(gulped.parent / "of mine")
    spoil_index(folder)
    result = gulp2("check", "--deep", folder, status=1)
    assert last_lines(result) == [
        f"`gulp2 index '{folder}'` makes the index anew from the maps"
    ]
    gulp2("index", folder)
    gulp2("check", "--deep", folder)


def test_a_repair_comes_before_the_index_is_made_anew(gulp2, gulped):
    gulp2("index", gulped)
    rot(gulped / "meta_0.gmeta", b'"number": 1', b'"number": 7')
    repaired, indexed = last_lines(gulp2("check", "--deep", gulped, status=1))
    assert repaired.startswith("`gulp2 repair` copies")
    assert indexed.startswith(f"after that, `gulp2 index {gulped}` makes")


def test_a_manifest_of_a_newer_format_wants_a_newer_package(gulp2, gulped):
    body = json.loads(dump_manifest(Manifest()))
    del body["check"]
    body["format_version"] += 1
    (gulped / "gulp.json").write_bytes(dump_checked(body))
    result = gulp2("check", gulped, status=1)
    assert last_lines(result) == [
        "check it with a newer gulpio2, which knows the format that it has"
    ]
    (gulped / "gulp.json").write_text("{")  # this one is damaged
    (line,) = last_lines(gulp2("check", gulped, status=1))
    assert line.startswith("`gulp2 repair` copies")


def test_an_interrupted_compaction_is_to_be_gone_on_with(gulp2, gulped):
    gulp2("delete", gulped, "item1")
    compacted = gulped.parent / "compacted"
    shutil.copytree(gulped, compacted)
    gulp2("compact", compacted)
    shutil.copy(compacted / "data_0.gulp", gulped)
    (line,) = last_lines(gulp2("check", gulped, status=1))
    assert line == f"`gulp2 compact {gulped}` goes on where it was interrupted"


def without_checksums(folder, num_chunks):
    """Write what GulpIO2 0.0.4 would have written: chunks of an item of a frame."""
    jpeg = encode_frame(np.zeros((16, 16, 3), np.uint8), EncoderSettings())
    padded = jpeg + bytes(-len(jpeg) % 4)
    for number in range(num_chunks):
        info = [0, len(padded) - len(jpeg), len(padded)]
        entry = {"frame_info": [info], "meta_data": [{}]}
        (folder / f"data_{number}.gulp").write_bytes(padded)
        (folder / f"meta_{number}.gmeta").write_text(json.dumps({f"i{number}": entry}))


def test_many_notes_of_one_kind_take_two_lines(gulp2, tmp_path):
    without_checksums(tmp_path, 6)
    first, more, summary = gulp2("check", tmp_path).stdout.splitlines()
    assert first.startswith("note: meta_0.gmeta: 1 of 1 frames have no usable checksum")
    assert more == "note: and 5 more like it: --limit 0 or --json gives all of them"
    assert "no problem in 6 frames" in summary
    every = gulp2("check", tmp_path, "--limit", "0").stdout.splitlines()[:-1]
    told = json.loads(gulp2("check", tmp_path, "--json").stdout)["notes"]
    assert [line.split(":")[1].strip() for line in every] == [n["file"] for n in told]
    assert len(told) == 6


def test_a_few_notes_of_one_kind_are_all_told(gulp2, tmp_path):
    without_checksums(tmp_path, 3)
    assert gulp2("check", tmp_path).stdout.count("note: meta_") == 3


def test_a_folder_of_shares_is_told_from_an_empty_one(gulp2, tmp_path):
    for k in (1, 2):
        make_gulp_directory(tmp_path / f"shard_{k}_of_2")
    (line, *_) = gulp2("check", tmp_path, status=1).stdout.splitlines()
    assert "from shard_1_of_2 to shard_2_of_2: `gulp2 merge` makes one" in line


@pytest.mark.parametrize("kind", ["pipe", "device", "file"])
def test_what_is_no_folder_is_wrong_usage(gulp2, tmp_path, kind):
    path = {"pipe": tmp_path / "p", "device": "/dev/null", "file": tmp_path / "f"}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "file":
        path.write_text("")
    for words in (["check", path], ["repair", tmp_path, path], ["ls", path]):
        result = gulp2(*map(str, words), status=2)
        assert str(path) in result.stderr


def test_swapped_data_files_are_to_be_renamed_before_anything_else(gulp2, tmp_path):
    make_gulp_directory(tmp_path / "made", num_items=5, items_per_chunk=2).close()
    first, last = (tmp_path / "made" / f"data_{n}.gulp" for n in (0, 2))
    first.rename(tmp_path / "away")
    last.rename(first)
    (tmp_path / "away").rename(last)
    result = gulp2("check", "--deep", tmp_path / "made", status=1)
    assert "note: data_0.gulp: has the length that meta_2.gmeta" in result.stdout
    assert result.stdout.splitlines()[-1].startswith(
        "first of all give the data files their names back"
    )
    assert "copies what is undamaged" not in result.stdout
