"""A constructor as arguments and options, and back."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Literal

import click
import pytest
from click.core import ParameterSource

from gulpio2.adapters import ImageFolderAdapter, TableAdapter, VideoFolderAdapter
from gulpio2.cli.adapter_options import adapter_options, make_adapter


class Recorder:
    """Keeps what it was made with."""

    def __init__(
        self,
        first,
        output_folder,
        second: int,
        size=-1,
        rate: float | str | None = 8,
        label: str | None = "label",
        extensions=(".a", ".b"),
        numbers: list[int] | None = None,
        shuffle=False,
        parse=True,
        function=len,
        *,
        mode="x",
    ):
        values = dict(locals())
        del values["self"]
        self.values = values


class Variadic:
    def __init__(self, first, /, *rest, last=0):
        self.values = (first, rest, last)


def parse(cls, *arguments, taken=()):
    """Make an adapter out of a command line."""
    command = click.Command("x", params=adapter_options(cls, taken))
    with command.make_context("x", [*map(str, arguments)]) as ctx:
        given = {
            name: value
            for name, value in ctx.params.items()
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
    return make_adapter(cls, given, Path("out")).values


DEFAULTS = {
    "first": "f",
    "output_folder": "out",
    "second": 2,
    "size": -1,
    "rate": 8,
    "label": "label",
    "extensions": (".a", ".b"),
    "numbers": None,
    "shuffle": False,
    "parse": True,
    "function": len,
    "mode": "x",
}


def test_what_is_not_given_is_the_constructors_own_default():
    assert parse(Recorder, "f", 2) == DEFAULTS


def test_help_says_how_none_is_given():
    """The text `None` would be a text like any other, as the name of a column."""
    (label,) = (o for o in adapter_options(Recorder) if "--label" in o.opts)
    assert isinstance(label, click.Option)
    assert label.help == "Empty (''): None.  [default: label]"


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        (["--size", "8"], {"size": 8}),
        (["--size=-3"], {"size": -3}),
        (["--rate", "2.5"], {"rate": 2.5}),
        (["--rate", "30/1"], {"rate": "30/1"}),
        (["--rate", ""], {"rate": None}),
        (["--label", ""], {"label": None}),
        (["--label", "x"], {"label": "x"}),
        (["--extensions", ".c,.d"], {"extensions": [".c", ".d"]}),
        (["--extensions", ".c", "--extensions", ".d"], {"extensions": [".c", ".d"]}),
        (["--numbers", "1,2", "--numbers", "3"], {"numbers": [1, 2, 3]}),
        (["--shuffle"], {"shuffle": True}),
        (["--no-parse"], {"parse": False}),
        (["--mode", "y"], {"mode": "y"}),
    ],
)
def test_an_option_changes_its_own_parameter(arguments, changed):
    assert parse(Recorder, *arguments, "f", 2) == {**DEFAULTS, **changed}
    assert parse(Recorder, "f", 2, *arguments) == {**DEFAULTS, **changed}


def test_a_wrong_type_is_wrong_usage():
    for arguments in (["f", "two"], ["f", 2, "--size", "big"], ["f"]):
        with pytest.raises(click.UsageError):
            parse(Recorder, *arguments)


def test_positional_only_and_variadic_parameters_are_handed_over():
    assert parse(Variadic, "a") == ("a", (), 0)
    assert parse(Variadic, "a", "b", "c", "--last", 4) == ("a", ("b", "c"), 4)
    assert parse(Variadic, "a", "b,c.mp4") == ("a", ("b,c.mp4",), 0)  # a word is one
    (first, rest) = adapter_options(Variadic)[:2]
    assert [first.metavar, rest.metavar] == ["FIRST", "[REST]..."]


class Numbers:
    def __init__(self, *numbers: int):
        self.values = numbers


def test_each_of_several_words_is_of_the_type_of_the_annotation():
    assert parse(Numbers, "1", "2") == (1, 2)
    with pytest.raises(click.BadParameter):
        parse(Numbers, "1,2")


def test_an_option_of_the_command_keeps_its_name():
    options = adapter_options(Recorder, {"size"})
    names = [word for option in options for word in option.opts]
    assert "--adapter-size" in names
    assert "--size" not in names
    assert parse(Recorder, "f", 2, "--adapter-size", 9, taken={"size"})["size"] == 9


def test_what_has_no_effect_is_accepted_and_not_shown():
    option = next(
        o for o in adapter_options(VideoFolderAdapter) if "--shm-dir-path" in o.opts
    )
    assert isinstance(option, click.Option)
    assert option.hidden


def test_choices_come_from_the_annotation():
    for cls, name in ((ImageFolderAdapter, "--id-rule"), (TableAdapter, "--media")):
        option = next(o for o in adapter_options(cls) if name in o.opts)
        assert isinstance(option.type, click.Choice)


class Words:
    def __init__(
        self,
        level: Literal[1, 2] = 1,
        flip: Literal[True, False] = True,
        rate: Literal[5, "auto"] = "auto",
        which: list[Literal[1, "a"]] | None = None,
        either: Literal[3, None] = 3,
        size: Literal["source"] | int = "source",
    ):
        self.values = (level, flip, rate, which, either, size)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ([], (1, True, "auto", None, 3, "source")),
        (["--level", 2, "--no-flip"], (2, False, "auto", None, 3, "source")),
        (["--rate", 5, "--which", "1,a"], (1, True, 5, [1, "a"], 3, "source")),
        (["--either", "", "--size", 8], (1, True, "auto", None, None, 8)),
    ],
)
def test_a_choice_is_handed_over_as_the_annotation_has_it(arguments, values):
    found = parse(Words, *arguments)
    assert found == values
    assert [*map(type, found)] == [*map(type, values)]


def test_what_is_no_choice_is_wrong_usage():
    for arguments in (["--level", 3], ["--rate", "no"], ["--which", "1,b"]):
        with pytest.raises(click.BadParameter):
            parse(Words, *arguments)


class Paths:
    def __init__(
        self,
        folder: Path,
        other: str | Path,
        several: list[Path] | None = None,
        default=Path("a"),
    ):
        self.values = (folder, other, several, default)


def test_a_parameter_that_is_a_path_gets_one():
    found = parse(Paths, "x", "y", "--several", "p,q", "--default", "b")
    assert found == (Path("x"), "y", [Path("p"), Path("q")], Path("b"))
    assert parse(Paths, "x", "y") == (Path("x"), "y", None, Path("a"))


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Kinds(enum.Flag):
    RGB = 1
    FLOW = 2


@dataclasses.dataclass
class Painted:
    first: Color
    second: Color = Color.RED
    several: list[Color] = dataclasses.field(default_factory=list)
    others: Color | None = None
    kinds: Kinds = Kinds.RGB

    @property
    def values(self):
        return self.first, self.second, self.several, self.others, self.kinds


def test_a_member_of_an_enumeration_is_given_by_its_name():
    assert parse(Painted, "BLUE") == (Color.BLUE, Color.RED, [], None, Kinds.RGB)
    words = ["RED", "--second", "BLUE", "--several", "RED,BLUE", "--others", "RED"]
    words += ["--kinds", "FLOW"]
    found = (Color.RED, Color.BLUE, [Color.RED, Color.BLUE], Color.RED, Kinds.FLOW)
    assert parse(Painted, *words) == found
    for value in ("r", "Color.RED", "GREEN"):
        with pytest.raises(click.BadParameter):
            parse(Painted, "RED", "--second", value)
    options = [
        option for option in adapter_options(Painted) if option.opts[0][0] == "-"
    ]
    texts = {option.opts[0]: option.help for option in options}
    assert texts["--second"] == "[default: RED]"
    assert not texts["--several"], "there is no default to be shown"
