"""Annotation files: samples and metadata of a dataset, in JSON, YAML or pickle."""

from __future__ import annotations

import importlib
import json
import os
import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.errors import AnnotationError, MissingDependencyError, with_article
from gulpio2.torch.plain_pickle import load_plain

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = ["join_prefixes", "load_annotations"]


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
    Nothing that is read is run. A pickle may hold plain values and numpy arrays of
    booleans, numbers, texts, times and plain values; one that names anything else is
    refused.
    """
    given, path = path, Path(path)
    load = _LOADERS.get(path.suffix.lower())
    if load is None:
        raise TypeError(
            f"unsupported format of annotation file {str(given)!r}: expected its "
            f"ending to be one of {', '.join(_LOADERS)}"
        )
    data = path.read_bytes()
    try:
        content = load(data, path)
    except MissingDependencyError:
        raise
    except Exception as cause:  # damage can make a reader raise any
        raise ValueError(
            f"annotation file {path} cannot be read: "
            f"{str(cause) or type(cause).__name__}"
        ) from cause
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


def join_prefixes(
    entry: Any, prefixes: Mapping[str, str], ann_file: str
) -> dict[str, Any]:
    """Give an entry of a dataset with every prefix joined before its value.

    Parameters
    ----------
    entry : dict
        As the annotation file has it, where it may be anything, or what is known of an
        item of a gulp directory; it is not changed.
    prefixes : mapping of str
        Key of the entry to what is joined before its value.
    ann_file : str
        The file, for messages; empty for an item.

    Returns
    -------
    dict
        A new one.

    Raises
    ------
    AnnotationError
        It is no dict, lacks a key, or has no path there.
    """
    if not isinstance(entry, Mapping):
        shown = reprlib.repr(entry)
        raise AnnotationError(f"{ann_file!r} has {shown}, expected a dict")
    joined = dict(entry)
    one = f"an entry of {ann_file!r}" if ann_file else "an item"
    for key, prefix in prefixes.items():
        if key not in entry:
            raise AnnotationError(
                f"data_prefix has {key!r}, and {one} has not: {entry!r}"
            )
        try:
            joined[key] = os.path.join(prefix, entry[key])  # noqa: PTH118  text
        except TypeError as cause:
            raise AnnotationError(
                f"data_prefix has {key!r}, which is no path in {one}: {entry!r}"
            ) from cause
    return joined


def _load_yaml(data: bytes, path: Path) -> Any:
    try:
        yaml = importlib.import_module("yaml")  # few have files of it
    except ImportError as cause:
        raise MissingDependencyError(
            f"PyYAML is needed to read {path}. Install it with: pip install pyyaml"
        ) from cause
    return yaml.safe_load(data)


_LOADERS: Mapping[str, Callable[[bytes, Path], Any]] = {
    ".json": lambda data, _: json.loads(data),
    ".yaml": _load_yaml,
    ".yml": _load_yaml,
    ".pickle": lambda data, _: load_plain(data),
    ".pkl": lambda data, _: load_plain(data),
}
