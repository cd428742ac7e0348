"""The datasets of gulp directories as registered MMEngine datasets.

Importing this registers them, where MMEngine and torch are installed; in a config::

    custom_imports = dict(imports=["gulpio2.torch.mmengine"])
    train_dataloader = dict(
        dataset=dict(
            type="GulpClipDataset",
            source="data/train",
            sampler=dict(type="sample_window", clip_length=16, stride=2),
            target="idx",
            pipeline=[...],  # transforms of MMEngine's registry
        ),
        ...
    )

They are the classes of `gulpio2.torch`, with the pipeline built by MMEngine, and are
instances of its ``BaseDataset``, which its wrappers ask for.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from gulpio2.errors import MissingDependencyError
from gulpio2.torch import clips, gulp

__all__ = ["GulpClipDataset", "GulpDataset", "GulpImageDataset"]

# MMEngine imports torch and does not depend on it, so either may be missing.
_MISSING = [
    name for name in ("mmengine", "torch") if importlib.util.find_spec(name) is None
]

if _MISSING:

    def __getattr__(name: str) -> Any:
        """Say what is missing when one of the datasets is asked for."""
        if name in __all__:
            raise MissingDependencyError(
                f"{name} for MMEngine needs {' and '.join(_MISSING)}, which is not "
                "installed. Install it with: pip install 'gulpio2[mmengine]'"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

else:
    from mmengine.dataset import BaseDataset, Compose
    from mmengine.registry import DATASETS

    class _WithPipelineOfMMEngine:
        """Builds the pipeline out of MMEngine's registry of transforms."""

        def _build_pipeline(self, transforms: Any) -> Any:
            return Compose(transforms)

    @DATASETS.register_module()
    class GulpDataset(_WithPipelineOfMMEngine, gulp.GulpDataset, BaseDataset):
        """`gulpio2.torch.GulpDataset` for MMEngine."""

    @DATASETS.register_module()
    class GulpClipDataset(_WithPipelineOfMMEngine, clips.GulpClipDataset, BaseDataset):
        """`gulpio2.torch.GulpClipDataset` for MMEngine."""

    @DATASETS.register_module()
    class GulpImageDataset(
        _WithPipelineOfMMEngine, clips.GulpImageDataset, BaseDataset
    ):
        """`gulpio2.torch.GulpImageDataset` for MMEngine."""
