"""What a training script needs between gulp directories and its model.

Torch itself is needed where tensors are made, and for nothing else here.

- `gulpio2.torch.base`: `BaseDataset`, samples of an annotation file.
- `gulpio2.torch.gulp`: `GulpDataset`, items of gulp directories.
- `gulpio2.torch.clips`: `GulpClipDataset` and `GulpImageDataset`, their frames.
- `gulpio2.torch.wrappers`, `balanced`, `mixture`: datasets made of datasets.
- `gulpio2.torch.loader`: `GulpLoader`, batches decoded by threads or processes of its
  own, in an order.
  `plan`, `views`: which frames, which part of them, at which size.
  `stored`, `ahead`, `pixels`, `filling`: a sample's frames into its place in a batch.
  `ring`, `batch_memory`: the memory. `batch`: what comes out.
  `prefetch`: the threads. `job`: a batch under way. `turns`: threads of the program
  that share a loader.
  `worker_pool`, `worker_process`: processes that do what else the threads do.
  `profile`: where the time went. `measure`, `limit`, `workers`: how fast it is.
- `gulpio2.torch.samplers`, `collate`, `recycling`: for ``torch.utils.data.DataLoader``;
  `shared` for the memory of its batches, `damaged` for its damaged samples, `timed` and
  `working` for where their time goes, `closed` for what comes with batches, `sending`
  for what cannot come.
- `gulpio2.torch.pipeline`, `registry`: transforms in a row, and things out of configs.
- `gulpio2.torch.mmengine`: the same as registered MMEngine dataset; imported by itself.
- `annotations`, `plain_pickle`, `listing`, `lazy`, `metainfo`, `selection`, `packing`,
  `source`, `choosing`, `seeding`, `ranks`, `damage`, `substitutes`, `resuming`,
  `arguments`: what these are made of.
"""

from __future__ import annotations

from gulpio2.errors import AnnotationError, EmptySampleError, SampleIndexError
from gulpio2.torch.balanced import ClassBalancedDataset
from gulpio2.torch.base import BaseDataset
from gulpio2.torch.batch import Batch
from gulpio2.torch.clips import GulpClipDataset, GulpImageDataset
from gulpio2.torch.collate import default_collate, pseudo_collate
from gulpio2.torch.damage import merge_states
from gulpio2.torch.damaged import TolerantCollate, TolerantDataset
from gulpio2.torch.gulp import GulpDataset
from gulpio2.torch.lazy import force_full_init
from gulpio2.torch.loader import GulpLoader
from gulpio2.torch.mixture import MixtureDataset
from gulpio2.torch.pipeline import Compose
from gulpio2.torch.profile import LoaderProfile
from gulpio2.torch.recycling import RecyclingCollate
from gulpio2.torch.registry import build, register
from gulpio2.torch.samplers import (
    DefaultSampler,
    InfiniteSampler,
    ResumableSampler,
    worker_init_fn,
)
from gulpio2.torch.seeding import SampleIndex
from gulpio2.torch.source import FrameReader, GulpSource
from gulpio2.torch.timed import TimedCollate
from gulpio2.torch.views import CenterCrop, FrameView, RandomResizedCrop, Region
from gulpio2.torch.wrappers import ConcatDataset, DatasetWrapper, RepeatDataset

__all__ = [
    "AnnotationError",
    "BaseDataset",
    "Batch",
    "CenterCrop",
    "ClassBalancedDataset",
    "Compose",
    "ConcatDataset",
    "DatasetWrapper",
    "DefaultSampler",
    "EmptySampleError",
    "FrameReader",
    "FrameView",
    "GulpClipDataset",
    "GulpDataset",
    "GulpImageDataset",
    "GulpLoader",
    "GulpSource",
    "InfiniteSampler",
    "LoaderProfile",
    "MixtureDataset",
    "RandomResizedCrop",
    "RecyclingCollate",
    "Region",
    "RepeatDataset",
    "ResumableSampler",
    "SampleIndex",
    "SampleIndexError",
    "TimedCollate",
    "TolerantCollate",
    "TolerantDataset",
    "build",
    "default_collate",
    "force_full_init",
    "merge_states",
    "pseudo_collate",
    "register",
    "worker_init_fn",
]
