"""The manifest (rules 18, 19 and 29)."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import MetaFileError
from gulpio2.format.manifest import Manifest, Run, dump_manifest, load_manifest

RUN = Run(
    adapter="VideoFolderAdapter",
    options={"folder": "videos", "frame_size": -1},
    encoder={"codec": "jpeg", "quality": 90},
    package="1.2.3",
    chunks=(0, 1),
)
MANIFEST = Manifest(runs=(RUN,), metainfo={"classes": ["a", "ü"]})
options = st.dictionaries(st.text(), st.none() | st.integers() | st.text())


def remade(**change: Any) -> bytes:
    """Give a manifest with other values and a check that fits them."""
    body = {**json.loads(dump_manifest(MANIFEST)), **change}
    del body["check"]
    check = f"{zlib.crc32(json.dumps(body).encode()):08x}"
    return (json.dumps({**body, "check": check}, indent=1) + "\n").encode()


def test_a_manifest_is_these_bytes():
    manifest = Manifest(
        runs=(Run(adapter="A", options={}, encoder={}, package="1", chunks=(0,)),)
    )
    body = (
        '{"format": "gulp2", "format_version": 1, "runs": [{"adapter": "A", '
        '"options": {}, "encoder": {}, "package": "1", "chunks": [0]}], "metainfo": {}}'
    )
    assert dump_manifest(manifest).decode() == (
        "{\n"
        ' "format": "gulp2",\n'
        ' "format_version": 1,\n'
        ' "runs": [\n'
        "  {\n"
        '   "adapter": "A",\n'
        '   "options": {},\n'
        '   "encoder": {},\n'
        '   "package": "1",\n'
        '   "chunks": [\n'
        "    0\n"
        "   ]\n"
        "  }\n"
        " ],\n"
        ' "metainfo": {},\n'
        f' "check": "{zlib.crc32(body.encode()):08x}"\n'
        "}\n"
    )


@given(st.lists(st.tuples(options, st.lists(st.integers(0, 99)))), options)
def test_a_manifest_reads_back_as_it_was_written(runs, metainfo):
    manifest = Manifest(
        runs=tuple(
            Run(
                "A",
                options=given_options,
                encoder={},
                package="1",
                chunks=tuple(chunks),
            )
            for given_options, chunks in runs
        ),
        metainfo=metainfo,
    )
    assert load_manifest(dump_manifest(manifest), where="x") == manifest


def test_an_empty_manifest_reads_back():
    assert load_manifest(dump_manifest(Manifest()), where="x") == Manifest()


def test_every_changed_byte_is_found():
    data = dump_manifest(MANIFEST)
    for place in range(len(data)):
        for bit in (0, 3, 5):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            with pytest.raises(MetaFileError, match=r"^out/gulp\.json: "):
                load_manifest(bytes(damaged), where="out/gulp.json")


def test_every_cut_is_found():
    data = dump_manifest(MANIFEST)
    for length in range(len(data)):
        with pytest.raises(MetaFileError):
            load_manifest(data[:length], where="x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "are not JSON"),
        (b"{}", "the content does not fit its check: it was damaged or edited. It can"),
        (b"[]", "holds no JSON object. It can be removed"),
        (remade(format="zarr"), "not the manifest of a gulp directory. It can be"),
        (remade(format_version=2), "format version 2; this package reads 1. Install"),
        (remade(format_version="1"), "format version '1'"),
        (remade(runs=None), "a part is missing"),
        (remade(runs=[{"adapter": "A"}]), "a part is missing: 'options'"),
        (remade(runs=[3]), "a part is missing"),
        (remade(metainfo=3), "a part is missing: '3' is no object"),
        (remade(files=["a"]), "is no object"),
        (remade(runs=[{**json.loads(remade())["runs"][0], "options": 3}]), "no object"),
        (
            remade(runs=[{**json.loads(remade())["runs"][0], "chunks": "a"}]),
            "no number",
        ),
        (remade(runs=[{**json.loads(remade())["runs"][0], "chunks": [1e999]}]), "inf"),
        (remade(runs=[{**json.loads(remade())["runs"][0], "chunks": [True]}]), "True"),
        (remade(runs=[{**json.loads(remade())["runs"][0], "chunks": 3}]), "is missing"),
        (
            b'{"format": "gulp2", "format_version": 1, "a": ' + b"[" * 900 + b"]" * 900,
            "",
        ),
    ],
)
def test_what_is_no_manifest_is_an_error_that_says_what_to_do(data, message):
    with pytest.raises(MetaFileError) as caught:
        load_manifest(data, where="out/gulp.json")
    assert message in str(caught.value)
    assert str(caught.value).startswith("out/gulp.json: ")


@pytest.mark.parametrize("depth", [100, 300, 500, 900, 990, 2000, 100_000])
def test_a_manifest_nested_deeply_is_an_error_and_no_crash(depth):
    nested = b"[" * depth + b"]" * depth
    data = b'{"format": "gulp2", "format_version": 1, "runs": [], "a": ' + nested + b"}"
    with pytest.raises(MetaFileError):
        load_manifest(data, where="x")
