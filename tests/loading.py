"""Files that are no modules of a package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

__all__ = ["load"]


def load(path: Path, name: str = "") -> ModuleType:
    """Load a file as a module, under a name by which pickle finds its classes."""
    spec = importlib.util.spec_from_file_location(name or f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
