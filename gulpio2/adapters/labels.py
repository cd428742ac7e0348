"""Labels to indices, and the ``label2idx.json`` that keeps them.

The one place where labels get their numbers. A label that a directory has already
numbered keeps its number for ever, since stored items hold it in their metadata.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gulpio2.adapters.label_numbers import LabelNumbers, label_key, number_labels
from gulpio2.adapters.tables import read_delimited
from gulpio2.errors import IngestError, MetaFileError
from gulpio2.format.labels import numbered_label
from gulpio2.format.layout import LABELS_NAME
from gulpio2.format.manifest import file_check
from gulpio2.format.wording import counted
from gulpio2.storage.base import read_if_there, read_manifest
from gulpio2.storage.beside_writers import read_settled_map, settled_listing
from gulpio2.storage.local import open_store
from gulpio2.storage.paths import is_there

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gulpio2.types import Meta, StrPath

__all__ = [
    "Custom20BNAdapterMixin",
    "FolderLabelMixin",
    "LabelFileMixin",
    "labelled_rows",
    "merge_labels",
    "read_label_file",
    "refuse_lost_labels",
    "stored_labels",
    "write_label_file",
]

logger = logging.getLogger(__name__)

_ADVICE = (
    "ingest into another folder, or make the adapter with this output folder so that "
    "it starts from its labels"
)

# To number labels afresh would give stored numbers other labels.
_MEND = (
    "Mend it, or put the right one back: the items have label and number in their "
    "metadata (gulp2 ls --long)."
)


def merge_labels(
    existing: Mapping[str, int],
    mapping: Mapping[str, int],
    *,
    where: str,
    other: str = "this run",
    advice: str = _ADVICE,
) -> dict[str, int]:
    """Join two mappings that must not contradict each other.

    Parameters
    ----------
    existing, mapping : mapping of str to int
        What is on disk, and what a run made.
    where, other : str
        Where the first and the second are from, for the message.
    advice : str
        What to do about a contradiction.

    Returns
    -------
    dict of str to int
        `existing` in its order, then what is new.

    Raises
    ------
    IngestError
        A label has two indices, or an index would get a second label.
    """
    merged = dict(existing)
    owners = {index: label for label, index in existing.items()}
    for label, index in mapping.items():
        if merged.get(label, index) != index:
            problem = f"has {label!r} as {merged[label]}, {other} as {index}"
        elif owners.get(index, label) != label:
            problem = f"has {owners[index]!r} as {index}, {other} {label!r}"
        else:
            merged[label] = index
            continue
        raise IngestError(
            f"{where} {problem}. Items are stored with these numbers, so they cannot "
            f"change: {advice}."
        )
    return merged


def read_label_file(folder: StrPath) -> dict[str, int]:
    """Read the labels of a directory.

    Parameters
    ----------
    folder : str or path object
        A gulp directory; it may be missing.

    Returns
    -------
    dict of str to int
        In the order of the file; empty where there is none.

    Raises
    ------
    MetaFileError
        The file is not a JSON object of integers, or has a label twice.
    """
    store = open_store(folder)
    try:
        # A list is an array of JSON: pairs are kept, as a label may be there twice.
        content = json.loads(store.read(LABELS_NAME), object_pairs_hook=tuple)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as cause:
        raise MetaFileError(
            f"{store.path(LABELS_NAME)} is no JSON ({cause}). {_MEND}"
        ) from cause
    finally:
        store.close()
    if not isinstance(content, tuple) or not all(
        isinstance(index, int) and not isinstance(index, bool) for _, index in content
    ):
        raise MetaFileError(
            f"{store.path(LABELS_NAME)} is not one JSON object of label to integer. "
            f"{_MEND}"
        )
    labels = dict(content)
    if len(labels) < len(content):
        raise MetaFileError(f"{store.path(LABELS_NAME)} has a label twice. {_MEND}")
    return labels


def refuse_lost_labels(folder: StrPath) -> None:
    """Refuse to number labels where the numbers of stored items are lost.

    Raises
    ------
    IngestError
        ``gulp.json`` tells of a ``label2idx.json`` that is not there, or another
        program has added chunks and left one that contradicts stored items.
    """
    store = open_store(folder)
    manifest = read_manifest(store)
    known = manifest.files.get(LABELS_NAME)
    if known is None:
        return
    data = read_if_there(store, LABELS_NAME)
    path = store.path(LABELS_NAME)
    if data is None:
        raise IngestError(
            f"{path} is missing, in which the labels of the stored "
            "items have their numbers; other labels would get the same ones. Put it "
            "back: the items have label and number in their metadata (gulp2 ls --long)"
        )
    written = {number for run in manifest.runs for number in run.chunks}
    chunks = settled_listing(store).chunks
    if file_check(data) == known or written.issuperset(chunks):
        return
    labels = read_label_file(folder)
    for number in written.intersection(chunks):
        for id_, entry in read_settled_map(store, number)[1].items():
            label, index = numbered_label(entry["meta_data"]) or ("", -1)
            if index >= 0 and labels.get(label) != index:
                now = f"{labels[label]} there" if label in labels else "missing there"
                raise IngestError(
                    f"{path} was replaced by another program, which has added chunks, "
                    f"as GulpIO2 0.0.4 does: the label {label!r} of item {id_!r} has "
                    f"the number {index} in its metadata, and is {now}. Put back the "
                    "file as it was, with the new labels in numbers of their own, or "
                    "write it anew from the metadata (gulp2 ls --long)"
                )


def stored_labels(folder: StrPath) -> dict[str, int]:
    """Give the numbers of labels by the metadata of stored items.

    For directories whose ``label2idx.json`` nothing tells of, as where it was not
    copied with the chunks, or where the adapter that wrote them has no labels and its
    metadata are those of another directory.

    Parameters
    ----------
    folder : str or path object
        A gulp directory; it may be missing.

    Returns
    -------
    dict of str to int
        In the order of their numbers; empty where items have none, or contradict each
        other, as where ``idx`` is the number of something else.

    Notes
    -----
    It reads all maps.
    """
    store = open_store(folder)
    try:
        labels: dict[str, int] = {}
        for number in settled_listing(store).chunks:
            _, entries = read_settled_map(store, number)
            for entry in entries.values():
                label, index = numbered_label(entry["meta_data"]) or ("", -1)
                if index >= 0 and labels.setdefault(label, index) != index:
                    return {}
    finally:
        store.close()
    if len(set(labels.values())) < len(labels):
        return {}
    return dict(sorted(labels.items(), key=lambda pair: pair[1]))


def write_label_file(folder: StrPath, mapping: Mapping[str, int]) -> None:
    """Add labels to the label file of a directory, by an atomic replace.

    Parameters
    ----------
    folder : str or path object
        The gulp directory; made where it is missing.
    mapping : mapping of str to int
        Label to index. What the file has already must agree with it. The file is laid
        out as GulpIO2 0.0.4 does.

    Raises
    ------
    IngestError
        The file has another index for a label; nothing is written.
    MetaFileError
        The file is not a JSON object of integers; nothing is written.
    StorageError
        The disk refused; the file is what it was.
    """
    store = open_store(folder)
    try:
        where = store.path(LABELS_NAME)
        merged = merge_labels(read_label_file(folder), mapping, where=where)
        store.make()
        store.write_atomically(LABELS_NAME, json.dumps(merged).encode("ascii"))
    finally:
        store.close()


class LabelFileMixin:
    """The label file of an adapter that has rows in ``data`` and an output folder.

    The mapping is in the attribute that a subclass names; see `FolderLabelMixin` and
    `Custom20BNAdapterMixin`.
    """

    output_folder: StrPath | None
    data: list[Meta]

    _mapping_attribute: str

    def check_if_label2idx_exists(self) -> bool:
        """Tell whether the output folder has a label file already."""
        return self.output_folder is not None and is_there(
            Path(self.output_folder) / LABELS_NAME
        )

    def read_label2idx(self) -> dict[str, int]:
        """Read the label file of the output folder; empty where there is none."""
        return {} if self.output_folder is None else read_label_file(self.output_folder)

    def write_label2idx_dict(self) -> None:
        """Write the label file now; the ingest does so itself at its end.

        Raises
        ------
        IngestError
            There is no output folder, or its label file contradicts this mapping.
        """
        if self.output_folder is None:
            raise IngestError(
                f"{type(self).__name__} was made without output_folder, so there is "
                f"no place for {LABELS_NAME}. Give output_folder to its constructor."
            )
        write_label_file(self.output_folder, self.label_mapping() or {})

    def label_mapping(self) -> dict[str, int] | None:
        """Give label to index, or None where the adapter has no labels."""
        mapping = getattr(self, self._mapping_attribute, None)
        return None if mapping is None else dict(mapping)

    def _number_rows(self, label_name: str) -> dict[str, int]:
        labels = (row[label_name] for row in self.data)
        exists = self.check_if_label2idx_exists()
        known = self.read_label2idx() if exists else {}
        return LabelNumbers(number_labels(labels, known))


class FolderLabelMixin(LabelFileMixin):
    """Labels of the image and video adapters, which keep them in ``label2idx``."""

    label2idx: dict[str, int]

    _mapping_attribute = "label2idx"

    def create_label2idx_dict(self) -> dict[str, int]:
        """Give an index to the labels of all rows, after those of the label file.

        Returns
        -------
        dict of str to int
            Label to index; see `number_labels`.
        """
        return self._number_rows("label")

    def get_meta(self) -> list[Meta]:
        """Give what is known of all items: the rows of ``data`` with ``idx``."""
        return [
            {**row, "idx": self.label2idx[label_key(row["label"])]} for row in self.data
        ]


class Custom20BNAdapterMixin(LabelFileMixin):
    """Labels of the 20BN adapters, which keep them in ``labels2idx``."""

    labels2idx: dict[str, int]

    _mapping_attribute = "labels2idx"

    def create_label2idx_dict(self, label_name: str) -> dict[str, int]:
        """Give an index to the labels of all rows, after those of the label file.

        Parameters
        ----------
        label_name : str
            Key of the label in the rows.

        Returns
        -------
        dict of str to int
            Label to index; see `number_labels`.
        """
        return self._number_rows(label_name)


def labelled_rows(table: StrPath) -> Iterator[tuple[int, list[str]]]:
    """Read rows of ``id;label``, and tell of cells behind the label.

    A label that holds a semicolon was cut there, unless it stands in quotes.

    Yields
    ------
    (int, list of str)
        As `read_delimited` does.
    """
    lines = []
    for line, row in read_delimited(table, ";"):
        if any(row[2:]):
            lines.append(line)
        yield line, row
    if lines:
        have = "has" if len(lines) == 1 else "have"
        logger.warning(
            "%s: %s more than 'id;label', the first in line %d; all that is "
            "behind the label is left out. Put labels with semicolons in double quotes",
            os.fspath(table),
            f"{counted(len(lines), 'row')} {have}",
            lines[0],
        )
