"""What a constructor takes, read from its signature and docstring."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable  # noqa: TC003  # evaluated by the code under test
from typing import TYPE_CHECKING, Any, Literal, Optional

import pytest

from gulpio2 import adapters
from gulpio2.cli.constructor import constructor_parameters, summary_of

if TYPE_CHECKING:
    from gulpio2.types import StrPath

Mode = Literal["a", "b"]


class Typed:
    """What it is.

    Parameters
    ----------
    plain, other : str
        Two of
        a kind.
    mode : 'a' or 'b'
        Which ``one``.

    Notes
    -----
    mode : nothing
        Not this.
    """

    def __init__(
        self,
        plain: str,
        other: StrPath,
        number: int = 3,
        rate: float | str | None = 8,
        mode: Mode = "a",
        modes: Optional[Mode] = None,  # noqa: UP045  # as older code writes it
        flag: bool = False,
        extensions: Iterable[str] = (".x",),
        numbers: list[int] | None = None,
        path: pathlib.Path | None = None,
        strange: Any = object,
        unknown: Nowhere = 2.5,  # type: ignore[name-defined]  # noqa: F821  # the point
        *,
        keyword: bool = True,
        **more: int,
    ) -> None:
        raise AssertionError("nothing is called")


PARAMETERS = {p.name: p for p in constructor_parameters(Typed)}


def test_the_order_is_kept_and_keyword_arguments_are_left_out():
    assert list(PARAMETERS)[:3] == ["plain", "other", "number"]
    assert "self" not in PARAMETERS
    assert "more" not in PARAMETERS


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("plain", {str}),
        ("other", {str}),
        ("number", {int}),
        ("rate", {float, str}),
        ("flag", {bool}),
        ("extensions", {str}),
        ("numbers", {int}),
        ("path", {pathlib.Path}),
        ("unknown", {float}),
    ],
)
def test_the_types_come_from_the_annotation_or_the_default(name, kinds):
    assert PARAMETERS[name].kinds == kinds


def test_required_optional_and_several_are_told_apart():
    assert [n for n, p in PARAMETERS.items() if p.required] == ["plain", "other"]
    assert [n for n, p in PARAMETERS.items() if p.optional] == [
        "rate",
        "modes",
        "numbers",
        "path",
    ]
    several = [n for n, p in PARAMETERS.items() if p.is_sequence]
    assert several == ["extensions", "numbers"]
    assert [n for n, p in PARAMETERS.items() if p.is_flag] == ["flag", "keyword"]


def test_a_literal_gives_the_choices():
    assert PARAMETERS["mode"].choices == ("a", "b")
    assert PARAMETERS["modes"].choices == ("a", "b")
    assert PARAMETERS["number"].choices == ()


def test_the_help_is_the_paragraph_of_the_docstring():
    assert PARAMETERS["plain"].help == PARAMETERS["other"].help == "Two of a kind."
    assert PARAMETERS["mode"].help == "Which one."
    assert PARAMETERS["number"].help == ""


def test_without_annotations_the_defaults_tell():
    class Bare:
        def __init__(self, a, b=1, c="", d=None, e=[".jpg"], f=True):  # noqa: B006  # one of the cases
            pass

    kinds = {p.name: p.kinds for p in constructor_parameters(Bare)}
    assert kinds == {
        "a": {str}, "b": {int}, "c": {str}, "d": {str}, "e": {str}, "f": {bool},
    }  # fmt: skip
    assert summary_of(Bare) == "Items of Bare."


def test_a_class_without_a_constructor_takes_nothing():
    class Empty:
        pass

    assert constructor_parameters(Empty) == []


def test_a_constructor_that_is_not_written_in_python_takes_what_it_says():
    class Listed(list):
        pass

    assert [p.name for p in constructor_parameters(Listed)] == ["args"]


def test_a_docstring_of_the_constructor_counts_too():
    class Documented:
        def __init__(self, a=1):
            """Make it.

            Parameters
            ----------
            a : int
                How many.
            """

    assert [p.help for p in constructor_parameters(Documented)] == ["How many."]


@pytest.mark.parametrize("name", [n for n in adapters.__all__ if n.endswith("Adapter")])
def test_every_parameter_of_our_own_adapters_is_documented(name):
    cls = getattr(adapters, name)
    assert [p.name for p in constructor_parameters(cls) if not p.help] == []
    assert summary_of(cls).endswith(".")
