"""The reader in ``docs/format.md``: short, alone, and right."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.ingest.shard import Shard
from gulpio2.removal import delete_items
from gulpio2.repair import repair_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import FrameAdapter, make_frames
from tests.chunks import Timed

GOLDEN = Path(__file__).parent / "golden"
TICK = Fraction(1001, 30_000)
CASES = sorted(p.stem for p in GOLDEN.glob("*.json") if p.stem != "pickled")


@pytest.fixture(scope="module")
def source(repository: Path) -> str:
    """Cut the reader out of the specification."""
    text = (repository / "docs/format.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return str(block)


@pytest.fixture(scope="module")
def reader(source: str) -> ModuleType:
    """Give the reader as a module."""
    module = ModuleType("reader")
    exec(compile(source, "docs/format.md", "exec"), module.__dict__)  # noqa: S102  # the page is what is tested
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write two chunks with every kind of item, and what a reader must ignore."""
    path = tmp_path / "out"
    path.mkdir()
    timed = Timed([-3, 0, 1, 2, 9], TICK, width=32)
    chunks: dict[int, list[Any]] = {
        2: [
            ("variable", {"label": 1, "x": float("nan")}, timed),
            ("grey", {}, make_frames(2, grey=True)),
            ("ü/\n7", {"n": None}, make_frames(1, 5, 7)),
        ],
        10: [(7, {}, make_frames(3)), ("empty", {}, []), (7, {"second": 1}, [])],
    }
    for number, items in chunks.items():
        chunk = GulpChunk(path / f"data_{number}.gulp", path / f"meta_{number}.gmeta")
        with chunk.open("wb"):
            for item in items:
                chunk.append(*item)
    for name in ("data_00.gulp", "data_3.gulp", "meta_2.gmeta.0a.partial", "gulp.json"):
        (path / name).write_bytes(b"nothing to read")
    return path


def test_it_has_at_most_sixty_lines(source):
    assert len(source.splitlines()) <= 60


def test_it_needs_the_standard_library_and_a_jpeg_decoder_only(source):
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert imported - sys.stdlib_module_names == {"simplejpeg"}


def test_it_finds_the_items_in_order(reader, folder):
    expected = list(GulpDirectory(folder).merged_meta_dict)
    assert list(reader.Reader(folder).items) == expected
    assert expected == ["variable", "grey", "ü/\n7", "7", "empty"]


def test_it_reads_the_stored_bytes_frames_and_metadata(reader, folder):
    theirs, ours = reader.Reader(folder), GulpDirectory(folder)
    for id_ in ours.merged_meta_dict:
        assert list(theirs.jpegs(id_)) == ours.read_jpegs(id_)
        assert json.dumps(theirs.meta(id_)) == json.dumps(ours.item(id_).meta)
        expected, _ = ours[id_]
        got = list(theirs.frames(id_))
        assert [frame.shape for frame in got] == [frame.shape for frame in expected]
        for one, two in zip(got, expected, strict=True):
            # Its decoder takes the slower and more exact ways.
            assert np.abs(one.astype(int) - two).max() <= 6


def test_it_reads_checksums_and_times(reader, folder):
    theirs, ours = reader.Reader(folder), GulpDirectory(folder)
    for id_ in ours.merged_meta_dict:
        extras = ours.item(id_).extras
        assert list(theirs.extras(id_)["crc32"]) == extras.crc32.tolist()
        assert theirs.damaged(id_) == []
    assert theirs.times("variable") == [TICK * n for n in (-3, 0, 1, 2, 9)]
    assert theirs.times("grey") == []


def test_it_finds_a_damaged_frame(reader, folder):
    info = GulpDirectory(folder).merged_meta_dict["variable"]["frame_info"][3]
    path = folder / "data_2.gulp"
    data = bytearray(path.read_bytes())
    data[info[0] + 300] ^= 1
    path.write_bytes(data)
    assert reader.Reader(folder).damaged("variable") == [3]


def test_it_takes_no_extras_from_an_item_that_another_program_appended_to(
    reader, folder
):
    path = folder / "meta_2.gmeta"
    meta_dict = json.loads(path.read_bytes())
    entry = meta_dict["variable"]
    entry["frame_info"].append(entry["frame_info"][0])
    entry["meta_data"].append({})
    path.write_text(json.dumps(meta_dict))
    theirs = reader.Reader(folder)
    assert theirs.extras("variable") == {}
    assert theirs.times("variable") == []
    assert len(list(theirs.frames("variable"))) == 6


@pytest.mark.parametrize("case", CASES)
def test_it_reads_what_the_original_wrote(reader, case):
    theirs, ours = reader.Reader(GOLDEN / case), GulpDirectory(GOLDEN / case)
    assert list(theirs.items) == list(ours.merged_meta_dict)
    for id_ in theirs.items:
        assert list(theirs.jpegs(id_)) == ours.read_jpegs(id_)
        assert theirs.damaged(id_) == theirs.times(id_) == []


def test_it_refuses_what_a_reader_has_to_refuse(reader, folder):
    (folder / "data_2.gulp").rename(folder / "data_4.gulp")
    with pytest.raises(ValueError, match=r"data_2\.gulp is missing"):
        reader.Reader(folder)
    (folder / "data_4.gulp").rename(folder / "data_2.gulp")
    (folder / "data_11.gulp").write_bytes((folder / "data_10.gulp").read_bytes())
    (folder / "meta_11.gmeta").write_bytes((folder / "meta_10.gmeta").read_bytes())
    with pytest.raises(ValueError, match="two items have the id '7'"):
        reader.Reader(folder)


def test_it_runs_as_a_program_without_this_package(source, folder, tmp_path, python):
    path = tmp_path / "reader.py"
    path.write_text(source, "utf-8")
    code = (
        "import runpy, sys; sys.modules['gulpio2'] = None; "
        f"sys.argv = ['reader.py', {str(folder)!r}]; "
        f"runpy.run_path({str(path)!r}, run_name='__main__')"
    )
    result = subprocess.run(
        [python, "-X", "utf8", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert result.stderr == ""
    assert result.stdout.splitlines()[:2] == [
        "variable 5 {'label': 1, 'x': nan} []",
        "grey 2 {} []",
    ]


def test_ids_in_the_index_are_hashed_as_the_specification_says(folder):
    (folder / "gulp.json").unlink()
    build_index(folder)
    ids = list(GulpDirectory(folder).merged_meta_dict)
    with pa.OSFile(str(folder / "index.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    hashes = [hashlib.blake2b(id_.encode(), digest_size=8).digest() for id_ in ids]
    rows = sorted((int.from_bytes(each, "little"), n) for n, each in enumerate(hashes))
    columns = table["id_hash"].to_pylist(), table["id_row"].to_pylist()
    assert list(zip(*columns, strict=True)) == rows


def test_only_an_undivided_run_that_stored_nothing_is_not_told_of(tmp_path):
    whole, share = tmp_path / "whole", tmp_path / "share"
    GulpIngestor(FrameAdapter(num_items=1), whole, 1, 1).run()
    GulpIngestor(FrameAdapter(num_items=1), share, 1, 1, shard=Shard(1, 2)).run()
    delete_items(whole, list(GulpDirectory(whole).merged_meta_dict))
    repair_directory(whole, tmp_path / "copy")
    GulpIngestor(FrameAdapter(num_items=1, bad=[0]), tmp_path / "none", 1, 1).run()
    chunks = {
        name: [
            run["chunks"]
            for run in json.loads((tmp_path / name / "gulp.json").read_bytes())["runs"]
        ]
        for name in ("whole", "share", "copy", "none")
    }
    assert chunks == {"whole": [[0]], "share": [[]], "copy": [[]], "none": []}
