"""What a worker cannot send, and the trainer cannot take, is an error, and no wait."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from functools import partial
from typing import Any

import numpy as np
import pytest

from gulpio2.sampling import sample_window
from gulpio2.torch import (
    GulpClipDataset,
    GulpLoader,
    RecyclingCollate,
    ResumableSampler,
    default_collate,
    pseudo_collate,
)

pytestmark = pytest.mark.torch
window = partial(sample_window, clip_length=2)


@pytest.fixture
def dataset_of(make_directory):
    """Make a dataset whose items have these targets."""

    def make(target, num_items=6):
        folder = make_directory(counts=(4,) * num_items)
        return GulpClipDataset(folder, window, target=target)

    return make


def loader_of(dataset, collate, **options):
    from torch.utils.data import DataLoader

    options = {"batch_size": 2, "num_workers": 1, **options}
    options["timeout"] = 60 if options["num_workers"] else 0
    loader: Any = DataLoader(dataset, collate_fn=collate, **options)
    return loader


def view_of_values(_info):
    return {"a": 1}.values()


def function(_info):
    return lambda: None


def local_tuple(_info):
    made: Any = namedtuple("made", ["left"])  # of no module
    return made(1)


def computed(_info):
    import torch

    return torch.ones(3, requires_grad=True) * 2


class Holder:
    """Of a client, with something in it."""

    def __init__(self, value):
        self.value = value


def holder_of_computed(info):
    return Holder(computed(info))


def with_default(_info):
    return defaultdict(lambda: 0, a=1)


def local_mapping(_info):
    class Own(dict[str, int]):
        pass

    return Own(a=1)


def local_text(_info):
    class Own(str):
        __slots__ = ()

    return Own("a")


def objects(info):
    made = np.empty(1, object)
    made[0] = function(info)
    return made


@pytest.mark.parametrize("collate", [default_collate, pseudo_collate, "recycling"])
@pytest.mark.parametrize(
    "target",
    [
        *(view_of_values, function, local_tuple, holder_of_computed, with_default),
        *(local_mapping, local_text, objects),
    ],
)
def test_what_no_worker_can_send_is_an_error(dataset_of, collate, target):
    dataset = dataset_of(target)
    made: Any = RecyclingCollate() if collate == "recycling" else collate
    if target is not local_tuple:
        assert len(list(loader_of(dataset, made, num_workers=0))) == 3
    with pytest.raises(TypeError, match=r"target of a sample, .* cannot be sent"):
        list(loader_of(dataset, made))


def all_kinds(info):
    import torch

    return {
        "id": info["id"],
        "box": [1, 2.5],
        "mask": Holder(torch.zeros(3)),
        "parameter": Holder(torch.nn.Parameter(torch.ones(2))),
        "array": Holder(np.zeros(3)),
        "none": None,
        "bytes": b"b",
    }


@pytest.mark.parametrize("collate", [default_collate, pseudo_collate, "recycling"])
def test_what_can_be_sent_comes(dataset_of, collate):
    made: Any = RecyclingCollate() if collate == "recycling" else collate
    for batch in loader_of(dataset_of(all_kinds), made):
        target = batch[1]
        assert target["mask"][1].value.tolist() == [0, 0, 0]
        assert target["parameter"][0].value.tolist() == [1, 1]
        assert target["bytes"] == [b"b", b"b"]


def test_a_tensor_that_torch_does_not_send_is_an_error(dataset_of):
    with pytest.raises(TypeError, match="requires a gradient"):
        list(loader_of(dataset_of(computed), pseudo_collate))


class Narrow(Exception):  # noqa: N818  # of somebody's own
    """Is pickled as made of one argument, and needs two."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def narrow(info):
    return Narrow(3, "no label") if info["id"] == "clip4" else 0


def test_what_the_trainer_cannot_take_is_told_with_its_samples(dataset_of):
    loader = GulpLoader(
        dataset_of(narrow), batch_size=2, num_workers=1, shuffle=False, output="numpy"
    )
    with loader:
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(TypeError, match=r"samples 4.* cannot be unpickled"):
            next(batches)


@pytest.mark.parametrize(
    "target",
    [
        lambda info: np.zeros((1 + (info["id"] == "clip1"), 4)),
        lambda info: __import__("torch").zeros((1 + (info["id"] == "clip1"), 4)),
    ],
    ids=["arrays", "tensors"],
)
@pytest.mark.parametrize("num_workers", [0, 1])
def test_targets_of_several_shapes_are_told_with_theirs(
    dataset_of, target, num_workers
):
    loader = loader_of(dataset_of(target), default_collate, num_workers=num_workers)
    with pytest.raises(RuntimeError, match=r"\(1, 4\), \(2, 4\).*Pad them to one"):
        list(loader)


def test_arrays_of_texts_of_several_shapes_stay_a_list():
    texts = [np.array(["a"]), np.array(["b", "c"])]
    assert default_collate(texts) is not None
    assert [text.tolist() for text in default_collate(texts)] == [["a"], ["b", "c"]]


class Ends:
    """A loader whose worker ends after so many batches."""

    num_workers, dataset = 0, None

    def __init__(self, loader, count):
        self.loader, self.count = loader, count
        self.sampler, self.batch_sampler = loader.sampler, loader.batch_sampler

    def __iter__(self):
        for number, batch in enumerate(self.loader, start=1):
            yield batch
            if number == self.count:
                raise RuntimeError("a worker is killed")


@pytest.mark.parametrize(("num_items", "epoch", "left"), [(4, 1, 4), (40, 0, 36)])
def test_a_worker_that_ends_behind_the_last_batch_costs_no_epoch(
    dataset_of, num_items, epoch, left
):
    dataset = dataset_of(lambda info: info["id"], num_items=num_items)
    sampler = ResumableSampler(dataset, seed=3)
    loader = loader_of(dataset, default_collate, sampler=sampler, num_workers=0)
    seen = []

    def run(loader):
        for _, ids in sampler.track(loader):
            seen.extend(ids)

    with pytest.raises(RuntimeError, match="a worker is killed"):
        run(Ends(loader, 2))
    assert (sampler.epoch, sampler.samples_left) == (epoch, left)
    while sampler.epoch < 1:
        run(loader)
    assert len(set(seen)) == len(seen) == num_items
