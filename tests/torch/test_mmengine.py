"""Registered with MMEngine: built, wrapped and trained on by the real package."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import subprocess
import sys
from typing import Any

import pytest

from gulpio2.errors import MissingDependencyError

INSTALLED = importlib.util.find_spec("mmengine") is not None

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
needs_mmengine = pytest.mark.skipif(not INSTALLED, reason="mmengine is not installed")

SAMPLER = {"type": "sample_window", "clip_length": 3}


@pytest.mark.skipif(INSTALLED, reason="mmengine is installed")
def test_without_mmengine_the_missing_package_is_named():
    module = importlib.import_module("gulpio2.torch.mmengine")
    with pytest.raises(MissingDependencyError, match=r"install .gulpio2\[mmengine\]."):
        module.GulpClipDataset  # noqa: B018  # asking for it is what is tested
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        module.Other  # noqa: B018  # asking for it is what is tested


@pytest.mark.parametrize(
    ("absent", "named"),
    [("torch", "torch"), ("mmengine torch", "mmengine and torch")],
)
def test_what_is_missing_for_mmengine_is_named(absent, named):
    # MMEngine is there without torch after `pip install mmengine`.
    program = f"""if True:
        import importlib.machinery as machinery, importlib.util as util

        find_spec = util.find_spec
        def pretend(name):
            there = machinery.ModuleSpec(name, None) if name == "mmengine" else None
            return None if name in {absent.split()} else there or find_spec(name)
        util.find_spec = pretend

        import gulpio2.torch.mmengine as module
        try:
            module.GulpDataset
        except module.MissingDependencyError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        f"GulpDataset for MMEngine needs {named}, which is not installed. Install it "
        "with: pip install 'gulpio2[mmengine]'\n"
    )


@pytest.fixture
def build():
    """Build from a config as MMEngine does."""
    importlib.import_module("gulpio2.torch.mmengine")
    from mmengine.registry import DATASETS

    return DATASETS.build


@needs_mmengine
def test_a_config_builds_a_dataset_of_mmengine(build, make_directory):
    from mmengine.dataset import BaseDataset

    import gulpio2.torch

    folder = str(make_directory(labels={"a": 0, "b": 1}))
    options: dict[str, Any] = {
        "source": folder,
        "sampler": SAMPLER,
        "test_mode": True,
        "target": "idx",
    }
    dataset = build({"type": "GulpClipDataset", **options})
    assert isinstance(dataset, BaseDataset)
    ours = gulpio2.torch.GulpClipDataset(**options)
    assert dataset.metainfo == ours.metainfo == {"classes": ["a", "b"]}
    for sample, expected in zip(dataset, ours, strict=True):
        assert sample[0].equal(expected[0])
        assert sample[1] == expected[1]
    assert len(pickle.loads(pickle.dumps(dataset))) == 3
    assert len(dataset.get_subset([0, 1])) == 2
    images = build({"type": "GulpImageDataset", "source": folder})
    assert tuple(images[0].shape) == (3, 8, 12)


@needs_mmengine
def test_the_wrappers_of_mmengine_take_it(build, make_directory):
    options = {
        "type": "GulpDataset",
        "source": str(make_directory()),
        "lazy_init": True,
    }

    def ids(dataset):
        return [dataset[index]["id"] for index in range(len(dataset))]

    repeated = build({"type": "RepeatDataset", "times": 2, "dataset": options})
    assert ids(repeated) == ["clip0", "clip1", "clip2"] * 2
    joined = build({"type": "ConcatDataset", "datasets": [options, options]})
    assert ids(joined) == ["clip0", "clip1", "clip2"] * 2
    balanced = build(
        {"type": "ClassBalancedDataset", "oversample_thr": 1.0, "dataset": options}
    )
    assert ids(balanced) == ["clip0"] * 2 + ["clip1"] * 2 + ["clip2"] * 2


@needs_mmengine
def test_the_pipeline_is_of_transforms_that_mmengine_knows(build, make_directory):
    from mmengine.registry import TRANSFORMS

    @TRANSFORMS.register_module(force=True)
    class GulpTestCount:
        def __call__(self, results):
            return {"inputs": results["frames"], "data_samples": results["target"]}

    dataset = build(
        {
            "type": "GulpClipDataset",
            "source": str(make_directory()),
            "sampler": SAMPLER,
            "target": "label",
            "pipeline": [{"type": "GulpTestCount"}],
        }
    )
    assert dataset[1]["data_samples"] == "b"
    assert tuple(dataset[1]["inputs"].shape) == (3, 3, 8, 12)


@needs_mmengine
def test_the_runner_of_mmengine_trains_on_it(build, make_directory, tmp_path):
    import torch
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

    seen = []

    class Model(BaseModel):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.zeros(()))

        def forward(self, clips, labels, mode="tensor"):
            seen.append((torch.stack(clips).shape, sorted(labels)))
            loss = (self.scale - torch.tensor(labels).float()).square().mean()
            return {"loss": loss}

    runner = Runner(
        model=Model(),
        work_dir=str(tmp_path / "work"),
        train_dataloader={
            "dataset": {
                "type": "GulpClipDataset",
                "source": str(make_directory(counts=[5] * 4)),
                "sampler": SAMPLER,
                "target": "idx",
            },
            "sampler": {"type": "DefaultSampler", "shuffle": True},
            "collate_fn": {"type": "pseudo_collate"},
            "batch_size": 4,
            "num_workers": 0,
        },
        train_cfg={"by_epoch": True, "max_epochs": 2},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1}},
        default_hooks={"checkpoint": None, "logger": None},
        log_level="ERROR",
    )
    runner.train()
    assert seen == [(torch.Size([4, 3, 3, 8, 12]), [0, 0, 1, 1])] * 2
