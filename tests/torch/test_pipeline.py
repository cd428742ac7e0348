"""Transforms in a row, and things built from configs."""

from __future__ import annotations

import functools

import pytest

from gulpio2.torch import Compose, build, register


class Add:
    """Add a number."""

    def __init__(self, amount=1):
        self.amount = amount

    def __call__(self, value):
        return value + self.amount

    def __repr__(self):
        return f"Add({self.amount})"


@register
class RegisteredTriple:
    """Triple a number."""

    def __call__(self, value):
        return value * 3


@pytest.mark.parametrize(
    ("transforms", "result"),
    [
        (None, 1),
        ([], 1),
        ([Add(), Add(2)], 4),
        ((Add(), str), "2"),
        ([{"type": Add, "amount": 5}], 6),
        ([{"type": "RegisteredTriple"}, Add()], 4),
        ([lambda value: None, Add()], None),
    ],
)
def test_transforms_are_applied_one_after_the_other(transforms, result):
    assert Compose(transforms)(1) == result


@pytest.mark.parametrize(
    ("transforms", "error", "message"),
    [
        ([3], TypeError, "transform 3 cannot be called"),
        ([None], TypeError, "transform None cannot be called"),
        ("ab", TypeError, "transform 'a' cannot be called"),
        (3, TypeError, "transforms are 3, expected a sequence"),
        ([{"type": dict}], TypeError, "transform {} cannot be called"),
        ([{"type": "NoSuchThing"}], KeyError, "nothing is registered as 'NoSuchThing'"),
        ([{"type": "os.system"}], KeyError, "nothing is registered as 'os.system'"),
        ([{"amount": 1}], KeyError, "has no 'type'"),
        ([{"type": 3}], TypeError, "expected a class or a registered name"),
    ],
)
def test_what_makes_no_transform_is_refused(transforms, error, message):
    with pytest.raises(error, match=message):
        Compose(transforms)


def test_a_pipeline_shows_a_transform_per_line():
    assert repr(Compose([Add(1), Add(2)])) == "Compose(\n    Add(1)\n    Add(2)\n)"
    assert repr(Compose(None)) == "Compose(\n)"


def test_a_pipeline_keeps_its_transforms_in_a_list_of_its_own():
    given = [Add()]
    pipeline = Compose(given)
    pipeline.transforms.append(Add(2))
    assert len(given) == 1
    assert pipeline(0) == 3


def test_a_config_is_not_changed_by_building_it():
    config = {"type": Add, "amount": 2}
    assert build(config)(1) == build(config)(1) == 3
    assert config == {"type": Add, "amount": 2}


def test_a_name_means_one_thing():
    assert register(RegisteredTriple) is RegisteredTriple  # again is harmless

    def other():
        return 0

    other.__name__ = "RegisteredTriple"
    with pytest.raises(KeyError, match="'RegisteredTriple' is registered already"):
        register(other)


def test_what_has_no_name_cannot_be_registered():
    with pytest.raises(TypeError, match="has no name of its own"):
        register(functools.partial(dict, a=1))


@pytest.mark.parametrize("wrong", ["sample_window", None, [("type", "dict")]])
def test_what_is_no_config_is_named(wrong):
    with pytest.raises(TypeError, match=r"config is .*, expected a mapping such as"):
        build(wrong)
