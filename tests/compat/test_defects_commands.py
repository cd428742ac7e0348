"""Defects 23 to 28 of GulpIO2 0.0.4, checks and command line: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

import gulpio2
from gulpio2 import GulpChunk, GulpDirectory, utils
from gulpio2.adapters import (
    ActivitynetAdapter,
)
from tests.compat.folders import ids_in, printed_mapping, save_image

if TYPE_CHECKING:
    from pathlib import Path


INGEST_SCRIPTS = [
    "gulp2_20bn_csv_jpeg",
    "gulp2_20bn_csv_webm",
    "gulp2_20bn_json_videos",
    "gulp2_activitynet",
    "gulp2_image_folder",
    "gulp2_image_list",
    "gulp2_kinetics",
    "gulp2_video_folder",
]


# ------------------------------------------------------------------ 23
def write_raw(folder: Path, number: int, data: bytes, index: dict[str, Any]) -> None:
    """Write a chunk's files as they are given."""
    (folder / f"data_{number}.gulp").write_bytes(data)
    (folder / f"meta_{number}.gmeta").write_text(json.dumps(index))


def entry(*infos: list[int]) -> dict[str, Any]:
    """Make an entry of the map."""
    return {"frame_info": [list(info) for info in infos], "meta_data": [{}]}


def make_broken(folder: Path, kind: str, jpeg: bytes) -> str:
    """Add a chunk 1 that is broken in one way; give what a report must name."""
    pad = -len(jpeg) % 4
    record, info = jpeg + b"\0" * pad, [0, pad, len(jpeg) + pad]
    if kind == "empty map file":
        (folder / "data_1.gulp").write_bytes(record)
        (folder / "meta_1.gmeta").write_bytes(b"")
        return "meta_1.gmeta"
    if kind == "empty data file":
        write_raw(folder, 1, b"", {"x": entry(info)})
        return "data_1.gulp"
    if kind == "cut data file":
        write_raw(folder, 1, record[:-4], {"x": entry(info)})
        return "data_1.gulp"
    if kind == "bytes after the end":
        write_raw(folder, 1, record + b"junk", {"x": entry(info)})
        return "data_1.gulp"
    if kind == "duplicate id":
        write_raw(folder, 1, record, {"a": entry(info)})
        return "a"
    if kind == "zeroed frame":
        write_raw(folder, 1, bytes(len(record)), {"x": entry(info)})
        return "x"
    if kind == "no data file":
        (folder / "meta_1.gmeta").write_text(json.dumps({"x": entry(info)}))
        return "meta_1.gmeta"
    raise AssertionError(kind)


BROKEN = [
    "empty map file",
    "empty data file",
    "cut data file",
    "bytes after the end",
    "duplicate id",
    "zeroed frame",
    "no data file",
]


@pytest.mark.parametrize("kind", BROKEN)
def test_defect_23_the_check_reports_each_fault_and_ends_nonzero(
    make_directory, grey, script, kind
):
    folder = make_directory({"a": [grey(1)], "b": [grey(2)]})
    jpeg = utils.img_to_jpeg_bytes(grey(3))
    name = make_broken(folder, kind, jpeg)
    result = script("gulp2_sanity_check", folder)
    assert result.code == 1
    assert "Traceback" not in result.err
    assert name in result.out
    assert "Test failed for:" in result.out


@pytest.mark.parametrize(
    "kind", ["empty chunk", "last item empty", "last id not last", "whole"]
)
def test_defect_23_the_check_passes_what_is_whole(
    make_directory, grey, frame, script, kind
):
    folder = make_directory({"a": [grey(1)], "b": [frame(2)]})
    if kind == "empty chunk":
        write_raw(folder, 1, b"", {})
    elif kind == "last item empty":
        chunk = GulpChunk(str(folder / "data_1.gulp"), str(folder / "meta_1.gmeta"))
        with chunk.open("wb"):
            chunk.append("full", {}, [grey(1)])
            chunk.append("empty", {}, [])
    elif kind == "last id not last":
        (chunk, *_) = GulpDirectory(folder)
        with chunk.open("ab"):
            chunk.append("a", {}, [grey(5)])
    result = script("gulp2_sanity_check", folder)
    assert (result.code, result.out.count("Test failed")) == (0, 0), result.out


def test_defect_23_the_check_prints_the_four_tests_of_the_original_in_order(
    make_directory, grey, script
):
    result = script("gulp2_sanity_check", make_directory({"a": [grey(1)]}))
    messages = [
        "Check for empty meta files",
        "Check for empty data files",
        "Check data file size equals size in meta file",
        "Check presence of duplicate ids",
    ]
    lines = result.out.splitlines()
    at = [lines.index(f"Sanity Check: {message}") for message in messages]
    assert at == sorted(at)
    assert [lines[position + 1] for position in at] == ["Test passed"] * 4


def test_defect_23_a_missing_directory_fails_the_check(tmp_path, script):
    result = script("gulp2_sanity_check", tmp_path / "missing")
    assert result.code != 0
    assert "missing" in result.out + result.err
    assert "Traceback" not in result.err


# ------------------------------------------------------------------ 24
def test_defect_24_the_image_list_has_no_root_by_default(tmp_path, frame, script):
    save_image(tmp_path / "pictures" / "x.png", frame())
    (tmp_path / "list.txt").write_text("pictures/x.png,a\n")
    result = script("gulp2_image_list", "list.txt", "out", cwd=tmp_path)
    assert result.code == 0, result.err
    assert ids_in(tmp_path / "out") == ["x.png"]
    assert printed_mapping(result.out)["--root_path"] in ("", None)


# ------------------------------------------------------------------ 25
def test_defect_25_activitynet_takes_the_training_phase_by_default(
    tmp_path, make_video, script
):
    for name in ("v_train", "v_val"):
        make_video(tmp_path / "vids" / f"{name}.mp4", num_frames=3)
    records = {"v_train": {"subset": "training"}, "v_val": {"subset": "validation"}}
    (tmp_path / "a.json").write_text(json.dumps({"database": records}))
    result = script("gulp2_activitynet", "a.json", "vids", "out", cwd=tmp_path)
    assert result.code == 0, result.err
    assert ids_in(tmp_path / "out") == ["v_train"]
    assert printed_mapping(result.out)["--phase"] == "training"
    adapter = ActivitynetAdapter(
        str(tmp_path / "a.json"), str(tmp_path / "vids"), phase="validation"
    )
    assert [item["id"] for item in adapter.iter_data()] == ["v_val"]


# ------------------------------------------------------------------ 26
@pytest.mark.parametrize("name", INGEST_SCRIPTS)
def test_defect_26_version_prints_the_version_and_ends(name, script):
    result = script(name, "--version")
    assert result.code == 0
    assert gulpio2.__version__ in result.out
    assert result.err == ""


# ------------------------------------------------------------------ 27
def test_defect_27_extend_is_accepted_and_extends(tmp_path, make_video, script):
    for k, flags in ((1, []), (2, ["--extend"])):
        make_video(tmp_path / "videos" / f"{k}.webm", num_frames=12)
        (tmp_path / f"{k}.csv").write_text(f"{k};label{k}\n")
        result = script(
            "gulp2_20bn_csv_webm", *flags, f"{k}.csv", "videos", "out", cwd=tmp_path
        )
        assert result.code == 0, result.err
    assert ids_in(tmp_path / "out") == ["1", "2"]


# ------------------------------------------------------------------ 28
ADAPTER_MODULE = '''
from gulpio2.adapters import AbstractDatasetAdapter

import numpy as np


class {name}(AbstractDatasetAdapter):
    """An adapter of a client."""

    def __init__(self, {parameters}):
        self.seen = dict(locals())
        self.seen.pop("self")

    def __len__(self):
        return 1

    def iter_data(self, slice_element=None):
        meta = {{key: repr(value) for key, value in self.seen.items()
                if not key.startswith("__")}}
        yield {{"meta": meta, "frames": [np.zeros((8, 8), np.uint8)], "id": "x"}}
'''


def register(
    tmp_path: Path, script: Any, parameters: str, name: str = "MyGreatAdapter"
) -> Path:
    """Register an adapter with this constructor and give the generated program."""
    source = ADAPTER_MODULE.format(name=name, parameters=parameters)
    (tmp_path / "their_module.py").write_text(source)
    result = script("gulp2_register_adapter", "their_module", name, cwd=tmp_path)
    assert result.code == 0, result.err
    (program,) = (
        path
        for path in tmp_path.iterdir()
        if path.is_file() and path.name != "their_module.py"
    )
    assert program.stat().st_mode & stat.S_IXUSR
    return program


def run_program(program: Path, fresh_python: Any, *arguments: str) -> dict[str, str]:
    """Run a generated program and give what its adapter was built with."""
    code = (
        "import runpy, sys; sys.argv = sys.argv[1:]; sys.path.insert(0, '.'); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    result = fresh_python(code, program, *arguments, cwd=program.parent)
    assert result.code == 0, result.err
    (id_,) = ids_in(program.parent / "out")
    meta: dict[str, str] = GulpDirectory(program.parent / "out")[id_][1]
    return meta


@pytest.mark.parametrize(
    ("name", "expected"),
    [("MyGreatAdapter", "my_great_adapter"), ("Custom20BNX", "custom20_b_n_x")],
)
def test_defect_28_the_program_is_named_from_the_class(
    tmp_path, script, name, expected
):
    assert register(tmp_path, script, "folder", name).name == expected


@pytest.mark.parametrize(
    ("parameters", "arguments", "expected"),
    [
        (
            "first, second",
            ["one", "two", "out"],
            {"first": "'one'", "second": "'two'"},
        ),
        (
            "first, output_folder, second",
            ["one", "out", "two"],
            {"first": "'one'", "output_folder": "'out'", "second": "'two'"},
        ),
        (
            "folder, output_folder, shuffle=False, size=-1, label='', rate=2.5, more=None",  # noqa: E501  one constructor
            ["f", "out"],
            {
                "shuffle": "False",
                "size": "-1",
                "label": "''",
                "rate": "2.5",
                "more": "None",
            },
        ),
        (
            "folder, output_folder, shuffle=False, size=-1, label='', rate=2.5, more=None",  # noqa: E501  one constructor
            ["--shuffle", "--size", "8", "f", "--label=x", "out", "--rate", "1.5"],
            {"shuffle": "True", "size": "8", "label": "'x'", "rate": "1.5"},
        ),
        ("", ["out"], {}),
        (
            "output_folder, num_workers=2, videos_per_chunk=7",
            ["out", "--videos_per_chunk", "3"],
            {"output_folder": "'out'", "num_workers": "2", "videos_per_chunk": "3"},
        ),
    ],
    ids=["no defaults", "own output_folder", "defaults", "given", "none", "own counts"],
)
def test_defect_28_the_program_gives_the_constructor_what_its_user_gives(
    tmp_path, script, fresh_python, parameters, arguments, expected
):
    program = register(tmp_path, script, parameters)
    meta = run_program(program, fresh_python, *arguments)
    assert {key: meta[key] for key in expected} == expected


def test_defect_28_the_program_ingests_under_the_main_guard_only(
    tmp_path, script, fresh_python
):
    program = register(tmp_path, script, "folder")
    text = program.read_text()
    assert text.startswith("#!")
    assert "<>" not in text
    compile(text, str(program), "exec")
    result = fresh_python(
        "import runpy, sys; runpy.run_path(sys.argv[1], run_name='imported')",
        program,
        cwd=tmp_path,
    )
    assert result.code == 0, result.err
    assert not (tmp_path / "out").exists()
