"""The manifest (rules 18, 19 and 29)."""

from __future__ import annotations

import contextlib
import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import FormatError, MetaFileError
from gulpio2.format.joined_runs import join_runs
from gulpio2.format.layout import data_name, list_chunks
from gulpio2.format.manifest import (
    Manifest,
    Run,
    Shares,
    conflicting_runs,
    dump_manifest,
    free_number,
    load_manifest,
    missing_shares,
    source_of,
    without_complete_shares,
)
from gulpio2.format.map_checks import check_manifest

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


SHARE = replace(RUN, plan="0f1e", shares=Shares(3, (1, 3)))


def test_what_tells_of_plan_and_shares_reads_back():
    manifest = Manifest(runs=(RUN, replace(RUN, plan="0f1e"), SHARE))
    data = dump_manifest(manifest)
    assert load_manifest(data, where="x") == manifest
    plain, planned, share = json.loads(data)["runs"]
    assert "plan" not in plain
    assert "shares" not in planned
    assert list(share)[-2:] == ["plan", "shares"]
    assert share["shares"] == {"count": 3, "present": [1, 3]}


def with_shares(value: Any) -> bytes:
    return remade(runs=[{**json.loads(remade())["runs"][0], "shares": value}])


@pytest.mark.parametrize(
    "value",
    [
        3,
        {},
        {"count": 3},
        {"count": "3", "present": [1]},
        {"count": 3, "present": 1},
        {"count": 3, "present": [0, 1]},
        {"count": 3, "present": [4]},
        {"count": 3, "present": [2, 1]},
        {"count": 3, "present": [1, 1]},
        {"count": 3, "present": [True]},
        {"count": 0, "present": []},
        {"count": -4, "present": []},
    ],
)
def test_shares_that_cannot_be_are_refused(value):
    with pytest.raises(MetaFileError, match="a part is missing"):
        load_manifest(with_shares(value), where="x")


def share(*present: int, count: int = 3, plan: str = "p", **values: Any) -> Run:
    return replace(RUN, plan=plan, shares=Shares(count, present), **values)


def joined(*runs: Run) -> list[Run]:
    return join_runs([], runs)


def test_shares_of_a_run_become_one():
    assert joined(share(2, chunks=(4,)), share(1, chunks=(0, 7))) == [
        share(1, 2, chunks=(0, 4, 7))
    ]


def test_what_is_whole_stays_so():
    whole = replace(RUN, plan="p", chunks=(0, 1, 2))
    assert joined(whole, share(2, chunks=(1,))) == [whole]
    assert missing_shares([whole, share(2)]) == []


def test_other_runs_stay_apart():
    others = [share(1), share(1, plan="q"), share(1, count=4), share(1, package="2")]
    assert joined(*others) == others


def test_a_run_is_compared_with_those_of_its_source_only(monkeypatch):
    asked = []

    def noted(run: Run) -> str:
        asked.append(run)
        return source_of(run)

    monkeypatch.setattr("gulpio2.format.joined_runs.source_of", noted)
    runs = [replace(RUN, options={"folder": str(i)}, chunks=(i,)) for i in range(50)]
    assert join_runs(runs, runs) == runs
    assert len(asked) == 100


def test_all_shares_together_were_never_divided():
    first, rest = share(1, chunks=(0,)), share(2, 3, chunks=(5,), package="2")
    assert missing_shares([first, rest]) == []
    assert without_complete_shares([first, RUN, rest, share(1, plan="q")]) == (
        replace(first, shares=None),
        RUN,
        replace(rest, shares=None),
        share(1, plan="q"),
    )
    empty = share(2, 3, chunks=())
    assert without_complete_shares([first, empty]) == (replace(first, shares=None),)
    assert without_complete_shares([empty]) == (empty,)


def test_what_was_cut_otherwise_is_in_conflict_unless_it_is_whole():
    assert conflicting_runs([RUN, share(1), share(2, plan="q")]) == (1, 2)
    assert conflicting_runs([share(1), share(1, count=4)]) == (0, 1)
    turned = dict(reversed(list(RUN.options.items())))
    assert conflicting_runs([share(1), share(2, plan="q", options=turned)]) == (0, 1)
    assert conflicting_runs([share(1), share(2)]) is None
    assert conflicting_runs([share(1), share(1, 2, 3, plan="q")]) is None
    assert conflicting_runs([share(1), share(2, plan="q", adapter="B")]) is None
    assert conflicting_runs([share(1), share(2, plan="q", options={})]) is None


def test_an_empty_manifest_reads_back():
    assert load_manifest(dump_manifest(Manifest()), where="x") == Manifest()


def test_every_changed_byte_is_found():
    data = dump_manifest(MANIFEST)
    for place in range(len(data)):
        for bit in (0, 3, 5):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            assert_found(bytes(damaged))


def test_every_cut_is_found():
    data = dump_manifest(MANIFEST)
    for length in range(len(data)):
        assert_found(data[:length])


def assert_found(damaged: bytes) -> None:
    """Expect the check to find it, and a reader nothing but what was written."""
    written = {number for run in MANIFEST.runs for number in run.chunks}
    codes = [problem.code for problem in check_manifest(damaged, written)]
    assert codes in (["bad-manifest"], ["unknown-version"])
    with contextlib.suppress(MetaFileError):
        assert load_manifest(damaged, where="out/gulp.json") == MANIFEST


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
        (remade(metainfo=3), "a part is missing: 3 is no object"),
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


def test_a_free_number_is_behind_all_that_anything_tells_of():
    listing, run = list_chunks([data_name(3)]), replace(RUN, chunks=(2,))
    assert free_number(list_chunks([]), [], []) == 0
    assert free_number(listing, [run], [1]) == 4
    assert free_number(listing, [replace(RUN, chunks=(7,))], [1]) == 8
    assert free_number(listing, [run], [9]) == 10


@pytest.mark.parametrize(
    ("names", "chunks", "removed"),
    [
        ([data_name(10**18 - 1)], (), ()),
        ([], (10**18 - 1,), ()),
        ([], (10**18,), ()),
        ([], (), (10**18 - 1,)),
    ],
)
def test_behind_the_last_number_there_is_none(names, chunks, removed):
    runs = [replace(RUN, chunks=chunks)]
    with pytest.raises(FormatError, match="no chunk number behind that of data_"):
        free_number(list_chunks(names), runs, removed)
