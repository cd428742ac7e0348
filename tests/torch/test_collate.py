"""Samples to batches."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest

from gulpio2.torch import default_collate, pseudo_collate
from gulpio2.torch.collate import array_collate, collate_targets


class Pair(NamedTuple):
    """A sample with names."""

    left: object
    right: object


class Named(dict[str, str]):
    """A mapping that is not made from a dict, and can be changed."""

    def __init__(self, *, name: str) -> None:
        super().__init__()
        self.name = name


class Frozen(Mapping[str, str]):
    """A mapping that is not made from a dict alone, and cannot be changed."""

    def __init__(self, *, of: dict[str, str]) -> None:
        self.of = of

    def __getitem__(self, key: str) -> str:
        return self.of[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.of)

    def __len__(self) -> int:
        return len(self.of)


@pytest.mark.parametrize(
    ("batch", "collated"),
    [
        ([1, 2], [1, 2]),
        (["ab", "cd"], ["ab", "cd"]),
        ([b"a", b"b"], [b"a", b"b"]),
        ([None, None], [None, None]),
        ([{"a": 1}, {"a": 2}], {"a": [1, 2]}),
        ([(1, "x"), (2, "y")], [[1, 2], ["x", "y"]]),
        ([[1, [2, 3]], [4, [5, 6]]], [[1, 4], [[2, 5], [3, 6]]]),
        ([{"a": ({"b": 1},)}, {"a": ({"b": 2},)}], {"a": [{"b": [1, 2]}]}),
        ([[], []], []),
        ([Pair(1, "x"), Pair(2, "y")], Pair([1, 2], ["x", "y"])),
        ([OrderedDict(a=1)], OrderedDict(a=[1])),
        # the type checker knows that lists are no counts
        ([Counter(a=1), Counter(a=2)], Counter(a=[1, 2])),  # type: ignore[call-overload]
        ([MappingProxyType({"a": 1})], MappingProxyType({"a": [1]})),
        ([bytearray(b"ab"), bytearray(b"cd")], [bytearray(b"ab"), bytearray(b"cd")]),
    ],
)
def test_samples_become_one_whose_leaves_are_lists(batch, collated):
    result = pseudo_collate(batch)
    assert result == collated
    assert type(result) is type(collated)


@pytest.mark.torch
@pytest.mark.parametrize("collate", [pseudo_collate, default_collate, array_collate])
def test_a_mapping_keeps_what_it_was_made_with(collate):
    with_default = [defaultdict(str, a="x"), defaultdict(str, a="y")]
    result = collate(with_default)
    assert result == {"a": ["x", "y"]}
    assert result.default_factory is str
    assert with_default[0] == {"a": "x"}
    named = [Named(name="of it"), Named(name="other")]
    for sample in named:
        sample["a"] = "x"
    assert collate(named) == {"a": ["x", "x"]}
    assert collate(named).name == "of it"
    # What cannot be made from a dict becomes one.
    assert collate([Frozen(of={"a": "x"})]) == {"a": ["x"]}


@pytest.mark.parametrize("collate", [pseudo_collate, default_collate])
def test_unequal_lengths_at_one_place_are_refused(collate):
    with pytest.raises(RuntimeError, match=r"sequences of \[1, 2\] elements"):
        collate([{"a": ["x"]}, {"a": ["x", "y"]}])


@pytest.mark.parametrize(
    "batch",
    [
        [[1, 2], None],
        [[1], 2],
        [["b"], "a"],
        [{"a": 1}, None],
        [{"a": 1}, [1]],
        [{"a": 1}, {"b": 1}],
        [{"a": 1, "b": 1}, {"a": 1}],
        [{"a": 1}, {"a": 1, "b": 1}],
    ],
    ids=str,
)
@pytest.mark.parametrize("collate", [pseudo_collate, default_collate, array_collate])
def test_samples_that_are_not_nested_alike_are_refused(collate, batch):
    with pytest.raises(RuntimeError, match=r"samples are not nested alike: .* and "):
        collate([{"of": value} for value in batch])


@pytest.mark.torch
@pytest.mark.parametrize("collate", [default_collate, array_collate])
@pytest.mark.parametrize("batch", [[2**70, 1], [2**63 + 1, -1]], ids=str)
def test_whole_numbers_of_more_than_64_bits_stay_a_list(collate, batch):
    assert collate(batch) == batch


@pytest.mark.torch
@pytest.mark.parametrize(
    "batch",
    [
        [16777217, np.float32(0.5)],
        [np.int64(16777217), 0.5],
        [np.float32(1), 1e300],
        [np.float32(0.5), 0.1],
    ],
    ids=str,
)
def test_numbers_of_several_kinds_keep_their_digits(batch):
    for ordered in (batch, batch[::-1]):
        collated = default_collate(ordered)
        assert str(collated.dtype) == "torch.float64"
        assert collated.tolist() == array_collate(ordered).tolist() == ordered


@pytest.mark.torch
@pytest.mark.parametrize("collate", [default_collate, array_collate])
@pytest.mark.parametrize("batch", [[1.0, 2**70], [1, np.uint64(2**63)]], ids=str)
def test_numbers_that_no_type_holds_stay_a_list(collate, batch):
    assert collate(batch) is not batch
    assert collate(batch) == batch


@pytest.mark.torch
@pytest.mark.parametrize("batch", [[0, 1234567.891], [1234567.891, 0]], ids=str)
def test_floats_have_64_bits_wherever_the_first_is(batch):
    collated = default_collate(batch)
    assert str(collated.dtype) == "torch.float64"
    assert collated.tolist() == batch


@pytest.mark.torch
def test_leaves_are_stacked():
    import torch

    batch = [
        {"clip": torch.full((2, 3), n), "label": n, "id": f"v{n}", "mask": np.ones(2)}
        for n in (1, 2)
    ]
    result = default_collate(batch)
    assert result["clip"].tolist() == [[[1] * 3] * 2, [[2] * 3] * 2]
    assert result["label"].tolist() == [1, 2]
    assert result["id"] == ["v1", "v2"]
    assert result["mask"].shape == (2, 2)
    assert result["mask"].dtype is torch.float64


@pytest.mark.torch
def test_leaves_that_cannot_be_stacked_stay_a_list():
    result = default_collate([{"a": None, "b": {1}}, {"a": None, "b": {2}}])
    assert result == {"a": [None, None], "b": [{1}, {2}]}


@pytest.mark.torch
@pytest.mark.parametrize("kind", [">i4", "<i4", ">f8", "<f8"])
def test_arrays_of_any_byte_order_are_stacked(kind):
    stacked = default_collate([np.array([1, 2], kind), np.array([3, 4], kind)])
    assert stacked.tolist() == [[1, 2], [3, 4]]
    texts = [np.array(["a"], ">U1"), np.array(["b"], ">U1")]
    assert [text.tolist() for text in default_collate(texts)] == [["a"], ["b"]]


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["<i8", ">i8"])
def test_arrays_that_are_read_backwards_are_stacked(kind):
    lines = [np.array([1, 2], kind)[::-1], np.array([3, 4], kind)]
    assert default_collate(lines).tolist() == [[2, 1], [3, 4]]
    table = np.array([[1, 2], [3, 4]], kind)
    assert default_collate([table[:, ::-1]]).tolist() == [[[2, 1], [4, 3]]]
    assert default_collate([np.array(1, kind)]).tolist() == [1]


@pytest.mark.torch
def test_tensors_among_others_stay_a_list():
    import torch

    batch = [torch.ones(2), None]
    assert default_collate(batch) == batch


@pytest.mark.torch
def test_clips_keep_the_memory_order_of_frames():
    import torch

    frames = np.random.default_rng(0).integers(0, 255, (2, 4, 5, 6, 3), np.uint8)
    clips = [torch.from_numpy(clip).movedim(-1, -3) for clip in frames]
    result = default_collate(clips)
    assert torch.equal(result, torch.from_numpy(frames).movedim(-1, -3))
    assert result.movedim(-3, -1).is_contiguous()
    plain = default_collate([clip.contiguous() for clip in clips])
    assert torch.equal(plain, result)
    assert plain.is_contiguous()


@pytest.mark.torch
def test_tensors_of_different_shapes_are_refused():
    import torch

    with pytest.raises(RuntimeError):
        default_collate([torch.ones(2), torch.ones(3)])


@pytest.mark.torch
@pytest.mark.parametrize(
    ("shapes", "advice"),
    [
        (((4, 3, 16, 16), (4, 3, 16, 20)), "brings all to one size"),
        (((4, 3, 16, 16), (5, 3, 16, 16)), "chooses as many frames"),
        (((4, 3, 16, 16), (3, 16, 16)), "chooses as many frames"),
        (((4, 3, 16, 16), (5, 1, 16, 16)), "chooses as many frames"),
        (((4, 3, 16, 16), (4, 1, 16, 16)), "repeats the one channel"),
        (((3, 16, 16), (1, 16, 16)), "repeats the one channel"),
    ],
    ids=str,
)
def test_what_makes_tensors_alike_is_said(shapes, advice):
    import torch

    with pytest.raises(RuntimeError, match=advice):
        default_collate([torch.ones(shape) for shape in shapes])


@pytest.mark.torch
@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(
    ("targets", "kind"),
    [
        ([[1, 2], [3, 4], [5, 6]], "int64"),
        ([[1], [2], [3]], "int64"),
        ([(1, 2), (3, 4)], "int64"),
        ([(1, 2), [3, 4]], "int64"),
        ([[1, 2.5], [3, 4]], "float64"),
        ([[True, False]], "bool"),
        ([[np.float32(1.5)], [np.float32(2)]], "float32"),
    ],
    ids=str,
)
def test_targets_of_as_many_numbers_are_stacked(targets, kind, tensors):
    stacked = collate_targets(targets, tensors=tensors)
    assert stacked.tolist() == [list(target) for target in targets]
    assert stacked.shape == (len(targets), len(targets[0]))
    assert str(stacked.dtype).removeprefix("torch.") == kind


@pytest.mark.torch
@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
@pytest.mark.parametrize(
    "targets",
    [
        [[1, 2], [3]],
        [[], []],
        [[1, 2], None],
        [(1, "a"), (2, "b")],
        [["a", "b"], ["c", "d"]],
        [[np.str_("a")], [np.str_("b")]],
        [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
        [[2**70, 1], [2, 3]],
    ],
    ids=str,
)
def test_other_targets_that_are_sequences_are_a_list(targets, tensors):
    assert collate_targets(targets, tensors=tensors) == targets


@pytest.mark.torch
@pytest.mark.parametrize("label", [np.uint16(3), np.uint32(3), np.uint64(3)], ids=repr)
def test_targets_of_kinds_that_torch_does_not_bring_to_one_are_a_list(label):
    targets = [(label, 1), (label, 2)]
    assert collate_targets(targets, tensors=True) == targets
    assert collate_targets(targets, tensors=False).tolist() == [[3, 1], [3, 2]]


@pytest.mark.torch
@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
def test_targets_with_names_are_stacked_by_name(tensors):
    assert collate_targets(["a", "b"], tensors=tensors) == ["a", "b"]
    left, right = collate_targets([Pair(1, "x"), Pair(2, "y")], tensors=tensors)
    assert (left.tolist(), right) == ([1, 2], ["x", "y"])
    found = collate_targets([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], tensors=tensors)
    assert (found["a"].tolist(), found["b"]) == ([1, 2], ["x", "y"])
