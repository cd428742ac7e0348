"""Modules that are loaded when they are first needed.

``import gulpio2`` must stay light. An optional module comes in through `require`, which
says how to install it. A heavy one is imported inside the function that needs it, or
by a module that is so imported itself: av and cv2 by those of ``gulpio2.media``, click
by those of ``gulpio2.cli``.
"""

from __future__ import annotations

import importlib
from typing import Any

from gulpio2.errors import MissingDependencyError

__all__ = ["require"]


def require(module: str, *, extra: str | None = None) -> Any:
    """Import a module, or say how to install it.

    Parameters
    ----------
    module : str
        Dotted module name.
    extra : str, optional
        The extra of this package that brings it; the module's own top-level name
        is proposed where there is none.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingDependencyError
        It is not installed; the message gives the line that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as cause:
        package = module.partition(".")[0]
        target = f"'gulpio2[{extra}]'" if extra else package
        raise MissingDependencyError(
            f"{package} is needed for this and cannot be imported ({cause}). "
            f"Install it with: pip install {target}"
        ) from cause
