"""Sizes, frames and numbers on the command line."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import click
import hypothesis
import pytest
from hypothesis import strategies as st

from gulpio2.cli.parameter_types import (
    ByteSize,
    FrameChoice,
    InputFolder,
    Items,
    NumberOrText,
    OrNone,
    OutputFolder,
)


@pytest.mark.parametrize("function", ["stat", "access"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_folder_that_does_not_answer_for_a_moment_is_not_called_missing(
    tmp_path, monkeypatch, function, nth
):
    real, calls = getattr(os, function), itertools.count(1)

    def fail_once(path, *arguments, **options):
        if str(path) == str(tmp_path) and next(calls) == nth:
            if function == "access":  # which does not raise
                return False
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, function, fail_once)
    if (function, nth) == ("stat", 1):
        with pytest.raises(click.BadParameter, match=r"cannot look at .*: Stale"):
            InputFolder().convert(str(tmp_path), None, None)
    assert InputFolder().convert(str(tmp_path), None, None) == tmp_path


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_folder_to_write_to_that_does_not_answer_is_called_no_other_thing(
    tmp_path, monkeypatch, nth
):
    real, calls = os.stat, itertools.count(1)

    def fail_once(path, *arguments, **options):
        if str(path) == str(tmp_path) and next(calls) == nth:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", fail_once)
    assert OutputFolder().convert(str(tmp_path), None, None) == tmp_path


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [("1", 1), ("512MB", 512_000_000), ("2 GiB", 2**31), ("1.5k", 1500), ("3b", 3)],
)
def test_a_size_has_decimal_and_binary_units(text, num_bytes):
    assert ByteSize().convert(text, None, None) == num_bytes


@pytest.mark.parametrize("text", ["", "MB", "-1", "5 apples", "0", "1e3", "0.1"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(
        click.BadParameter, match=r"(no size|less than one byte); write 800000"
    ):
        ByteSize().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("7", [7]),
        ("-1", [-1]),
        (":", [slice(None)]),
        ("::", [slice(None)]),
        ("0:16:2", [slice(0, 16, 2)]),
        ("::-1", [slice(None, None, -1)]),
        ("0, 5,10:20", [0, 5, slice(10, 20)]),
    ],
)
def test_frames_are_chosen_as_in_python(text, chosen):
    assert FrameChoice().convert(text, None, None) == chosen


@pytest.mark.parametrize(
    "text", ["", "a", "1.5", "1:2:3:4", "::0", "::00", "::-0", "1,,2", "0x1"]
)
def test_what_chooses_no_frames_is_refused(text):
    with pytest.raises(click.BadParameter, match="chooses no frames"):
        FrameChoice().convert(text, None, None)


@hypothesis.given(
    st.lists(st.one_of(st.none(), st.integers(-99, 99)), min_size=2, max_size=3).filter(
        lambda bounds: bounds[2:] != [0]
    )
)
def test_every_slice_is_read_as_it_is_written(bounds):
    text = ":".join("" if bound is None else str(bound) for bound in bounds)
    (chosen,) = FrameChoice().convert(text, None, None)
    assert list(range(50))[chosen] == list(range(50))[slice(*bounds)]


def test_a_number_is_a_number_and_a_text_a_text():
    values = [NumberOrText().convert(t, None, None) for t in ("8", "2.5", "30/1")]
    assert values == [8, 2.5, "30/1"]
    assert [type(value) for value in values] == [int, float, str]


def test_values_are_split_at_commas():
    assert Items(click.STRING).convert(".mp4, .webm", None, None) == [".mp4", ".webm"]
    assert Items(click.INT).convert("1,2", None, None) == [1, 2]
    with pytest.raises(click.BadParameter, match="'x' is not a valid integer"):
        Items(click.INT).convert("1,x", None, None)


def test_an_empty_text_can_stand_for_none():
    assert OrNone(click.INT).convert("", None, None) is None
    assert OrNone(click.INT).convert("3", None, None) == 3


def test_an_output_folder_has_a_name():
    assert OutputFolder().convert(".", None, None) == Path()
    with pytest.raises(click.BadParameter, match="It is empty"):
        OutputFolder().convert("", None, None)
    with pytest.raises(click.BadParameter, match="cannot write to s3://b/a: it is a U"):
        OutputFolder().convert("s3://b/a", None, None)


def test_an_input_folder_is_there_and_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    convert = InputFolder().convert
    assert convert(".", None, None) == Path()
    with pytest.raises(click.BadParameter, match="It is empty"):
        convert("", None, None)
    with pytest.raises(click.BadParameter, match="'nowhere' does not exist"):
        convert("nowhere", None, None)
    with pytest.raises(click.BadParameter, match="cannot read s3://b/a: it is a URL"):
        convert("s3://b/a", None, None)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    assert convert("s3://b", None, None) == Path("s3:/b")


@pytest.mark.usefixtures("permissions")
def test_a_folder_that_nobody_may_look_for_is_not_called_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closed" / "gulped").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o600)
    try:
        with pytest.raises(click.BadParameter) as caught:
            InputFolder().convert("closed/gulped", None, None)
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert str(caught.value).startswith(
        "cannot look into closed: Permission denied. Make it readable"
    )
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(click.BadParameter, match="Too many levels of symbolic links"):
        InputFolder().convert("circle", None, None)


@pytest.mark.parametrize("text", ["9" * 400 + "GB", "1." + "0" * 5000 + "GB"])
def test_a_size_of_any_length_is_refused_in_words(text):
    with pytest.raises(click.BadParameter, match="is no size"):
        ByteSize().convert(text, None, None)


def test_a_large_size_is_exact():
    assert ByteSize().convert("9007199254740993", None, None) == 9007199254740993


def test_an_index_of_any_length_is_refused_in_words():
    with pytest.raises(click.BadParameter, match="chooses no frames"):
        FrameChoice().convert("9" * 5000, None, None)
