"""Annotation files: samples and metadata of a dataset, in JSON, YAML or pickle."""

from __future__ import annotations

import importlib
import io
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MissingDependencyError, with_article

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = ["load_annotations"]

# All that a pickle of plain values and arrays names. Whatever else one could name, a
# function to be called above all, is refused: reading must not run what was read.
_HARMLESS = {
    ("_codecs", "encode"),  # how old protocols write bytes
    ("collections", "OrderedDict"),
    *(
        (module, name)
        for module in ("builtins", "__builtin__")
        for name in ("bytearray", "bytes", "complex", "frozenset", "set")
    ),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *(
        (f"{module}.{name}", function)
        for module in ("numpy.core", "numpy._core")
        for name, function in (
            ("multiarray", "_reconstruct"),
            ("multiarray", "scalar"),
            ("numeric", "_frombuffer"),
        )
    ),
}


def load_annotations(path: StrPath) -> tuple[dict[str, Any], list[Any]]:
    """Read an annotation file.

    Parameters
    ----------
    path : str or path
        ``.json``, ``.yaml``, ``.yml``, ``.pickle`` or ``.pkl``: a dict with the keys
        ``metainfo``, a dict, and ``data_list``, a list of dicts.

    Returns
    -------
    metainfo : dict
        Metadata of the dataset.
    data_list : list
        Its raw samples.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    TypeError
        Another format, or other types inside.
    ValueError
        A key is missing, or the file is damaged.
    MissingDependencyError
        It is YAML, and PyYAML is not installed.

    Notes
    -----
    Nothing that is read is run. A pickle may hold plain values and numpy arrays; one
    that names anything else is refused.
    """
    given, path = path, Path(path)
    load = _LOADERS.get(path.suffix.lower())
    if load is None:
        raise TypeError(
            f"unsupported format of annotation file {str(given)!r}: expected its "
            f"ending to be one of {', '.join(_LOADERS)}"
        )
    content = load(path.read_bytes(), path)
    if not isinstance(content, dict):
        raise TypeError(
            f"annotation file {path} holds {with_article(type(content).__name__)}, "
            "expected a dict with 'metainfo' and 'data_list'"
        )
    for key, kind in (("metainfo", dict), ("data_list", list)):
        if key not in content:
            raise ValueError(f"annotation file {path} has no {key!r}")
        if not isinstance(content[key], kind):
            raise TypeError(
                f"{key!r} of annotation file {path} is a "
                f"{type(content[key]).__name__}, expected a {kind.__name__}"
            )
    return content["metainfo"], content["data_list"]


def _load_json(data: bytes, path: Path) -> Any:
    try:
        return json.loads(data)
    except ValueError as cause:
        raise ValueError(f"annotation file {path} is no JSON: {cause}") from cause


def _load_yaml(data: bytes, path: Path) -> Any:
    try:
        yaml = importlib.import_module("yaml")  # few have files of it
    except ImportError as cause:
        raise MissingDependencyError(
            f"PyYAML is needed to read {path}. Install it with: pip install pyyaml"
        ) from cause
    try:
        return yaml.safe_load(data)
    except yaml.YAMLError as cause:
        raise ValueError(f"annotation file {path} is no YAML: {cause}") from cause


class _PlainUnpickler(pickle.Unpickler):
    """Reads pickles of plain values and arrays, and runs nothing."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) not in _HARMLESS:
            raise pickle.UnpicklingError(
                f"it names {module_name}.{global_name}, and only plain values and "
                "numpy arrays are read. Write the annotations as JSON"
            )
        return super().find_class(module_name, global_name)


def _load_pickle(data: bytes, path: Path) -> Any:
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError) as cause:
        raise ValueError(f"annotation file {path} cannot be read: {cause}") from cause


_LOADERS = {
    ".json": _load_json,
    ".yaml": _load_yaml,
    ".yml": _load_yaml,
    ".pickle": _load_pickle,
    ".pkl": _load_pickle,
}
