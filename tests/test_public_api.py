"""The names and signatures that a program written for GulpIO2 0.0.4 may use, and ours.

A signature is written as in Python, without self: parameter names, their order, their
kinds and their defaults. The 0.0.4 parameters come first and unchanged; whatever this
package adds is keyword-only, so that no call written for 0.0.4 changes its meaning.
"""

from __future__ import annotations

import ast
import dataclasses
import errno
import importlib
import inspect
import pickle
import pkgutil
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import gulpio2
from gulpio2 import adapters, errors, fileio, utils
from gulpio2.types import no_progress

PACKAGE = Path(gulpio2.__file__).parent
# Defaults that are objects, by the name they have in the tables.
NAMED = {
    id(fileio.json_serializer): "json_serializer",
    id(utils.jpeg_bytes_to_img): "jpeg_bytes_to_img",
}

# "module:name" or "module:Class.method" -> the signature of 0.0.4, without self.
ORIGINAL = {
    "gulpio2.fileio:ImgInfo": "loc, pad, length",
    "gulpio2.fileio:AbstractSerializer.load": "file_name",
    "gulpio2.fileio:AbstractSerializer.dump": "thing, file_name",
    "gulpio2.fileio:JSONSerializer": "",
    "gulpio2.fileio:JSONSerializer.load": "file_name",
    "gulpio2.fileio:JSONSerializer.dump": "thing, file_name",
    "gulpio2.fileio:PickleSerializer": "",
    "gulpio2.fileio:PickleSerializer.load": "file_name",
    "gulpio2.fileio:PickleSerializer.dump": "thing, file_name",
    "gulpio2.fileio:extract_input_for_getitem": "element",
    "gulpio2.fileio:calculate_chunk_slices": "items_per_chunk, num_items",
    "gulpio2:GulpDirectory": "output_dir, jpeg_decoder=jpeg_bytes_to_img",
    "gulpio2:GulpDirectory.__getitem__": "element",
    "gulpio2:GulpDirectory.__iter__": "",
    "gulpio2:GulpDirectory.chunks": "",
    "gulpio2:GulpDirectory.new_chunks": "total_new_chunks",
    "gulpio2:GulpDirectory._load_label_dict": "",
    "gulpio2:GulpChunk": (
        "data_file_path, meta_file_path, serializer=json_serializer, "
        "jpeg_decoder=jpeg_bytes_to_img"
    ),
    "gulpio2:GulpChunk.open": 'flag="rb"',
    "gulpio2:GulpChunk.append": "id_, meta_data, frames",
    "gulpio2:GulpChunk.flush": "",
    "gulpio2:GulpChunk.read_frames": "id_, slice_=None",
    "gulpio2:GulpChunk.iter_all": "accepted_ids=None, shuffle=False",
    "gulpio2:GulpChunk.__getitem__": "element",
    "gulpio2:GulpChunk.__contains__": "id_",
    "gulpio2:GulpChunk.__iter__": "",
    "gulpio2:ChunkWriter": "adapter",
    "gulpio2:ChunkWriter.write_chunk": "output_chunk, input_slice",
    "gulpio2:GulpIngestor": "adapter, output_folder, videos_per_chunk, num_workers",
    "gulpio2:GulpIngestor.__call__": "",
    "gulpio2.utils:img_to_jpeg_bytes": "img",
    "gulpio2.utils:jpeg_bytes_to_img": "jpeg_bytes",
    "gulpio2.utils:resize_by_short_edge": "img, size",
    "gulpio2.utils:resize_images": "imgs, img_size=-1",
    "gulpio2.utils:check_ffmpeg_exists": "",
    "gulpio2.utils:burst_frames_to_shm": "vid_path, temp_burst_dir, frame_rate=None",
    "gulpio2.utils:burst_video_into_frames": (
        "vid_path, temp_burst_dir, frame_rate=None"
    ),
    "gulpio2.utils:temp_dir_for_bursting": 'shm_dir_path="/dev/shm"',
    "gulpio2.utils:find_images_in_folder": 'folder, formats=["jpg"]',
    "gulpio2.utils:get_single_video_path": 'folder_name, format_="mp4"',
    "gulpio2.utils:remove_entries_with_duplicate_ids": "output_directory, meta_dict",
    "gulpio2.sanity_utils:check_meta_file_size_larger_zero": "gulp_directory",
    "gulpio2.sanity_utils:check_data_file_size_larger_zero": "gulp_directory",
    "gulpio2.sanity_utils:check_data_file_size": "gulp_directory",
    "gulpio2.sanity_utils:check_for_duplicate_ids": "gulp_directory",
    "gulpio2.sanity_utils:extract_all_ids": "gulp_directory",
    "gulpio2.sanity_utils:get_duplicate_entries": "list_",
    "gulpio2.sanity_utils:check_for_failures": "result",
    "gulpio2.adapters:AbstractDatasetAdapter.iter_data": "slice_element=None",
    "gulpio2.adapters:AbstractDatasetAdapter.__len__": "",
    "gulpio2.adapters:Custom20BNAdapterMixin.check_if_label2idx_exists": "",
    "gulpio2.adapters:Custom20BNAdapterMixin.read_label2idx": "",
    "gulpio2.adapters:Custom20BNAdapterMixin.create_label2idx_dict": "label_name",
    "gulpio2.adapters:Custom20BNAdapterMixin.write_label2idx_dict": "",
    "gulpio2.adapters:Custom20BNJsonVideoAdapter": (
        "json_file, folder, output_folder, shuffle=False, frame_size=-1, "
        'frame_rate=8, shm_dir_path="/dev/shm", label_name="template", '
        "remove_duplicate_ids=False"
    ),
    "gulpio2.adapters:Custom20BNJsonVideoAdapter.read_json": "json_file",
    "gulpio2.adapters:Custom20BNJsonVideoAdapter.read_gz_json": "gz_json_file",
    "gulpio2.adapters:Custom20BNJsonVideoAdapter.get_meta": "",
    "gulpio2.adapters:Custom20BNCsvWebmAdapter": (
        "csv_file, folder, output_folder, shuffle=False, frame_size=-1, "
        'frame_rate=12, shm_dir_path="/dev/shm", label_name="label", '
        "remove_duplicate_ids=False"
    ),
    "gulpio2.adapters:Custom20BNCsvWebmAdapter.read_csv": "csv_file",
    "gulpio2.adapters:Custom20BNCsvWebmAdapter.get_meta": "",
    "gulpio2.adapters:Custom20BNCsvJpegAdapter": (
        "csv_file, folder, output_folder, shuffle=False, frame_size=-1, "
        'shm_dir_path="/dev/shm"'
    ),
    "gulpio2.adapters:Custom20BNCsvJpegAdapter.read_csv": "csv_file",
    "gulpio2.adapters:Custom20BNCsvJpegAdapter.get_meta": "",
    "gulpio2.adapters:ImageListAdapter": (
        'input_file, output_folder, root_folder="", shuffle=False, img_size=-1'
    ),
    "gulpio2.adapters:ImageListAdapter.parse_paths": "input_file",
    "gulpio2.adapters:ImageListAdapter.get_meta": "",
    "gulpio2.adapters:ImageFolderAdapter": (
        'folder, output_folder, file_extensions=[".jpg", ".png"], shuffle=False, '
        "img_size=-1"
    ),
    "gulpio2.adapters:ImageFolderAdapter.parse_folder": "folder",
    "gulpio2.adapters:ImageFolderAdapter.get_meta": "",
    "gulpio2.adapters:VideoFolderAdapter": (
        'folder, output_folder, file_extensions=[".mp4", ".webm"], shuffle=False, '
        'frame_size=-1, shm_dir_path="/dev/shm"'
    ),
    "gulpio2.adapters:VideoFolderAdapter.parse_folder": "folder",
    "gulpio2.adapters:VideoFolderAdapter.get_meta": "",
    "gulpio2.adapters:VideoFolderAdapter.get_bursted_frames": "video_path",
    "gulpio2.adapters:ActivitynetAdapter": (
        'json_file, folder, shuffle=False, frame_size=-1, shm_dir_path="/dev/shm", '
        'phase="training"'
    ),
    "gulpio2.adapters:ActivitynetAdapter.read_json": "json_file",
    "gulpio2.adapters:ActivitynetAdapter.get_bursted_frames": "vid_file",
    "gulpio2.adapters:KineticsAdapter": (
        'json_file, folder, shuffle=False, frame_size=-1, shm_dir_path="/dev/shm"'
    ),
    "gulpio2.adapters:KineticsAdapter.read_json": "json_file",
    "gulpio2.adapters:KineticsAdapter.get_bursted_frames": "vid_file",
}

# What is new, with its whole signature; read the same way.
_READ = (
    '*, out=None, scale=1, min_size=None, crop=None, colorspace="source"'  # of a clip
)
NEW = {
    **{
        f"gulpio2:{name}.{method}": signature
        for name in ("GulpChunk", "GulpDirectory")
        for method, signature in {
            "item": "id_",
            "read_clip": f"id_, slice_=None, {_READ}",
            "read_clips": f"requests, {_READ}",
            "read_frames_at": 'id_, seconds, *, mode="nearest"',
            "read_jpegs": "id_, slice_=None",
        }.items()
    },
    "gulpio2:GulpDirectory.read_frames": "id_, slice_=None",
    "gulpio2:GulpDirectory.query": "condition",
    "gulpio2:GulpDirectory.view": "ids",
    "gulpio2:GulpDirectory.close": "",
    "gulpio2:GulpDirectory.__len__": "",
    "gulpio2:GulpDirectory.__contains__": "id_",
    "gulpio2:GulpDirectory.__enter__": "",
    "gulpio2:GulpDirectory.__exit__": "kind, error, trace",
    "gulpio2.item:StoredItem.frame_indices_at": 'seconds, mode="nearest"',
    "gulpio2:GulpIngestor.run": "",
    "gulpio2:GulpIngestor.left_to_resume": "",
    "gulpio2:GulpIngestor.output_store": "",
    "gulpio2.adapters:AbstractDatasetAdapter.item_ids": "",
    "gulpio2.adapters:AbstractDatasetAdapter.item_source": "position",
    "gulpio2.adapters:AbstractDatasetAdapter.label_mapping": "",
    "gulpio2.adapters:AbstractDatasetAdapter.describe": "",
    "gulpio2.adapters:VideoFrames": (
        "path, *, frame_rate=None, frame_size=-1, stream=None, threads=1, "
        "max_pixels=67108864, start=None, end=None"
    ),
    "gulpio2.adapters:GulpDirectoryAdapter": 'folder, *, where="", frame_size=-1',
    "gulpio2.adapters:FrameFolderAdapter": (
        'folder, output_folder, *, file_extensions=[".jpg", ".jpeg", ".png"], '
        'prefix="", shuffle=False, frame_size=-1, image_rate=None, first_number=None, '
        'id_rule="label-name"'
    ),
    "gulpio2.adapters:TableAdapter": (
        'table, output_folder=None, *, path_column="path", id_column="id", '
        'label_column=None, root_folder=None, media="auto", frame_size=-1, '
        "frame_rate=None, shuffle=False, delimiter=None, parse_values=True, "
        "start_column=None, end_column=None, id_rule=None, path_template=None, "
        'prefix="", image_rate=None, first_number=None, image_rate_column=None'
    ),
}

# What this package adds to a callable of 0.0.4, by keyword: parameter and default.
# All of it: a callable that is not here has nothing added.
ADDED: dict[str, dict[str, object]] = {
    "gulpio2:GulpDirectory": {
        "threads": None,
        "verify": "frames",
        "indexed": None,
        "progress": no_progress,
    },
    "gulpio2:GulpChunk": {
        "threads": None,
        "verify": "frames",
        "handles": None,
        "meta_dict": None,
    },
    "gulpio2:GulpChunk.iter_all": {"seed": None},
    "gulpio2:GulpIngestor": {
        "executor": None,
        "chunk_bytes": None,
        "encoder": None,
        "on_duplicate": "raise",
        "allow_failures": False,
        "resume": False,
        "shard": None,
        "ignore_space": False,
        "apart": False,
        "progress": None,
        "on_failure": None,
    },
    "gulpio2.adapters:ImageListAdapter": {"id_rule": "label-name"},
    "gulpio2.adapters:ImageFolderAdapter": {"id_rule": "label-name"},
    "gulpio2.adapters:VideoFolderAdapter": {
        "frame_rate": None,
        "id_rule": "label-name",
    },
    "gulpio2.adapters:ActivitynetAdapter": {"frame_rate": None},
    "gulpio2.adapters:KineticsAdapter": {
        "frame_rate": None,
        "id_rule": "video",
        "skip_unlisted": False,
    },
}

# Class -> its public methods and properties, of 0.0.4 and new. Attributes that only an
# instance has are looked at below.
MEMBERS = {
    "gulpio2:ChunkWriter": ["write_chunk"],
    "gulpio2:GulpChunk": [
        "append",
        "flush",
        "is_new",
        "item",
        "iter_all",
        "open",
        "read_clip",
        "read_clips",
        "read_frames",
        "read_frames_at",
        "read_jpegs",
    ],
    "gulpio2:GulpDirectory": [
        "all_meta_dicts",
        "chunks",
        "close",
        "index",
        "item",
        "manifest",
        "metainfo",
        "new_chunks",
        "query",
        "read_clip",
        "read_clips",
        "read_frames",
        "read_frames_at",
        "read_jpegs",
        "table",
        "view",
    ],
    "gulpio2:GulpIngestor": ["left_to_resume", "output_store", "run"],
    "gulpio2.adapters:AbstractDatasetAdapter": [
        "describe",
        "item_ids",
        "item_source",
        "iter_data",
        "label_mapping",
    ],
}

# Module -> the names that it exports beyond those of 0.0.4.
NEW_EXPORTS = {
    "gulpio2": ["EncoderSettings"],
    "gulpio2.fileio": ["img_to_jpeg_bytes", "jpeg_bytes_to_img"],
    "gulpio2.utils": [],
    "gulpio2.sanity_utils": [],
    "gulpio2.adapters": [
        "DeferredFrames",
        "FrameFolderAdapter",
        "GulpDirectoryAdapter",
        "ImageFrames",
        "Table",
        "TableAdapter",
        "VideoFrames",
        "number_labels",
        "parse_column",
        "read_table",
    ],
}

# The results of a run, and their fields.
REPORTED = {
    "IngestReport": [
        "items",
        "frames",
        "num_bytes",
        "skipped",
        "resumed",
        "not_given",
        "raised_behind",
        "failures",
        "chunks",
        "seconds",
        "error_behind",
    ],
    "ItemFailure": ["position", "id", "source", "error", "message"],
}

EXPORTED = {
    "gulpio2": [
        "ChunkWriter",
        "GulpChunk",
        "GulpDirectory",
        "GulpIngestor",
        "__version__",
    ],
    "gulpio2.fileio": [
        "AbstractSerializer",
        "ChunkWriter",
        "GulpChunk",
        "GulpDirectory",
        "GulpIngestor",
        "ImgInfo",
        "JSONSerializer",
        "PickleSerializer",
        "calculate_chunk_slices",
        "extract_input_for_getitem",
        "json_serializer",
        "pickle_serializer",
    ],
    "gulpio2.utils": [
        "DuplicateIdException",
        "FFMPEGNotFound",
        "ImageNotFound",
        "_JPEG_WRITE_QUALITY",
        "burst_frames_to_shm",
        "burst_video_into_frames",
        "check_ffmpeg_exists",
        "find_images_in_folder",
        "get_single_video_path",
        "img_to_jpeg_bytes",
        "jpeg_bytes_to_img",
        "remove_entries_with_duplicate_ids",
        "resize_by_short_edge",
        "resize_images",
        "temp_dir_for_bursting",
    ],
    "gulpio2.sanity_utils": [
        "check_data_file_size",
        "check_data_file_size_larger_zero",
        "check_for_duplicate_ids",
        "check_for_failures",
        "check_meta_file_size_larger_zero",
        "extract_all_ids",
        "get_duplicate_entries",
    ],
    "gulpio2.adapters": [
        "AbstractDatasetAdapter",
        "ActivitynetAdapter",
        "Custom20BNAdapterMixin",
        "Custom20BNCsvJpegAdapter",
        "Custom20BNCsvWebmAdapter",
        "Custom20BNJsonVideoAdapter",
        "ImageFolderAdapter",
        "ImageListAdapter",
        "KineticsAdapter",
        "VideoFolderAdapter",
    ],
}


def resolve(name: str) -> Any:
    """Find "module:Class.method"."""
    module, _, path = name.partition(":")
    thing: Any = importlib.import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing


def parameters_of(name: str) -> list[inspect.Parameter]:
    """Give the parameters of a callable, without self."""
    thing = resolve(name)
    parameters = list(inspect.signature(thing).parameters.values())
    if not inspect.isclass(thing) and parameters and parameters[0].name == "self":
        return parameters[1:]
    return parameters


def written(parameters: list[inspect.Parameter]) -> str:
    """Write parameters as the tables do; a tuple may stand for a list."""
    texts = []
    for p in parameters:
        if p.kind == p.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        default = list(p.default) if isinstance(p.default, tuple) else p.default
        text = NAMED.get(id(default), repr(default).replace("'", '"'))
        assert p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY), p
        texts.append(p.name if default is p.empty else f"{p.name}={text}")
    return ", ".join(texts)


def assert_begins_with(name: str, expected: str) -> None:
    """Check a signature; what follows is keyword-only and has a default."""
    actual = parameters_of(name)
    count = len([part for part in split(expected) if part != "*"])
    assert written(actual[:count]) == expected
    for new in actual[count:]:
        assert new.kind in (new.KEYWORD_ONLY, new.VAR_KEYWORD), new
        assert new.kind == new.VAR_KEYWORD or new.default is not new.empty, new


def split(signature: str) -> list[str]:
    """Split a signature into its parameters."""
    return re.findall(r"[^,\[\s](?:\[[^\]]*\]|[^,\[])*", signature)


@pytest.mark.parametrize("name", ORIGINAL)
def test_a_signature_of_the_original_begins_as_there(name):
    assert_begins_with(name, ORIGINAL[name])


@pytest.mark.parametrize("name", NEW)
def test_a_new_name_has_the_promised_signature(name):
    assert written(parameters_of(name)) == NEW[name]


@pytest.mark.parametrize("name", ORIGINAL)
def test_what_is_added_to_the_original_is_keyword_only_with_its_default(name):
    added = {p.name: p for p in parameters_of(name) if p.kind is p.KEYWORD_ONLY}
    assert {key: p.default for key, p in added.items()} == ADDED.get(name, {})


def test_all_that_is_added_is_added_to_what_the_original_has():
    assert set(ADDED) <= set(ORIGINAL)


@pytest.mark.parametrize("name", MEMBERS)
def test_a_class_has_these_public_members_and_no_more(name):
    assert [n for n in dir(resolve(name)) if not n.startswith("_")] == MEMBERS[name]


@pytest.mark.parametrize("name", MEMBERS)
def test_every_public_method_has_a_promised_signature(name):
    methods = {
        f"{name}.{member}"
        for member in MEMBERS[name]
        if inspect.isfunction(inspect.getattr_static(resolve(name), member))
    }
    assert methods <= {*ORIGINAL, *NEW}


def test_the_default_encoder_is_quality_90_with_the_chroma_of_the_source():
    from gulpio2.codecs.jpeg import EncoderSettings

    (encoder,) = (
        p for p in parameters_of("gulpio2:GulpIngestor") if p.name == "encoder"
    )
    assert encoder.default in (None, EncoderSettings())
    assert EncoderSettings().quality == 90
    assert EncoderSettings().subsampling == "source"


@pytest.mark.parametrize(
    ("module", "name"), [(m, n) for m, names in EXPORTED.items() for n in names]
)
def test_a_name_of_the_original_imports_from_its_place(module, name):
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", NEW_EXPORTS)
def test_a_module_exports_these_names_and_no_more(module):
    public = {n for n in EXPORTED[module] if not n.startswith("_")}
    if module == "gulpio2":
        public.add("__version__")
    assert set(importlib.import_module(module).__all__) == {
        *public,
        *NEW_EXPORTS[module],
    }


def modules_of_the_package() -> list[str]:
    """Name every module, without importing any that needs an extra."""
    return [
        info.name
        for info in pkgutil.walk_packages(
            [str(PACKAGE)], "gulpio2.", onerror=lambda _: None
        )
        if not info.name.startswith("gulpio2.torch")
    ]


@pytest.mark.parametrize("name", ["gulpio2", *modules_of_the_package()])
def test_every_module_lists_its_names_and_all_of_them_exist(name):
    module = importlib.import_module(name)
    names = module.__all__  # sorted, which ruff checks
    assert len(set(names)) == len(names)
    assert [n for n in names if not hasattr(module, n)] == []


def test_the_package_exports_the_names_of_the_original_and_its_errors():
    exported = set(gulpio2.__all__)
    assert set(EXPORTED["gulpio2"]) <= exported
    assert set(errors.__all__) & exported == {
        n
        for n in exported
        if isinstance(getattr(gulpio2, n), type)
        and issubclass(getattr(gulpio2, n), Exception)
    }
    public = {
        name
        for name, thing in vars(gulpio2).items()
        if not name.startswith("_")
        and not inspect.ismodule(thing)
        and str(getattr(thing, "__module__", "")).startswith("gulpio2")
    }
    assert public <= exported, "public, and not in __all__"


def test_the_version_is_text_with_three_numbers_that_setup_reads_too():
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z.]+\d+)?", gulpio2.__version__)
    tree = ast.parse((PACKAGE / "__version__.py").read_text("utf-8"))
    values = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    ]
    assert gulpio2.__version__ in values


def test_one_class_has_one_identity_in_every_place_it_imports_from():
    for name in ("ChunkWriter", "GulpChunk", "GulpDirectory", "GulpIngestor"):
        assert getattr(gulpio2, name) is getattr(fileio, name)


def test_the_exceptions_of_the_original_are_names_of_ours():
    for name in ("DuplicateIdException", "FFMPEGNotFound", "ImageNotFound"):
        error = getattr(utils, name)
        assert issubclass(error, Exception)
        assert issubclass(error, errors.GulpError)
    assert utils.DuplicateIdException is errors.DuplicateIdError
    assert utils.FFMPEGNotFound is errors.FfmpegNotFoundError
    assert utils.ImageNotFound is errors.ImageNotFoundError


# An error of ours -> the built-in that 0.0.4 let through in its place.
BUILT_IN = {
    "ChunkMismatchError": AssertionError,
    "CorruptFrameError": ValueError,
    "DuplicateIdError": AssertionError,
    "FfmpegNotFoundError": ImportError,
    "FormatError": ValueError,
    "FrameIndexError": IndexError,
    "GulpLookupError": LookupError,
    "ImageNotFoundError": FileNotFoundError,
    "ItemNotFoundError": KeyError,
    "LockedError": OSError,
    "MetaFileError": ValueError,
    "MissingDependencyError": ImportError,
    "ReadRangeError": ValueError,
    "SourceFieldError": (KeyError, IndexError),
    "SourceFormatError": ValueError,
    "SourceNotFoundError": FileNotFoundError,
    "StorageDeniedError": PermissionError,
    "StorageError": OSError,
    "StorageExistsError": FileExistsError,
    "StorageNotFolderError": NotADirectoryError,
    "StorageNotFoundError": FileNotFoundError,
    "UnknownFileFormatError": RuntimeError,
    "UnknownVersionError": ValueError,
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_error_is_also_the_built_in_kind(name):
    error, kinds = getattr(errors, name), BUILT_IN[name]
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        assert issubclass(error, kind)
    assert issubclass(error, errors.GulpError)


ERRORS = [
    name
    for name in errors.__all__
    if isinstance(getattr(errors, name), type)
    and issubclass(getattr(errors, name), Exception)
]


def test_the_tree_of_errors_is_drawn_as_it_is():
    drawn, branch = {}, [""] * 9
    for line in (errors.__doc__ or "").split("::\n\n")[1].splitlines():
        match = re.match(r"( {4,})(\w+)( \(([\w, ]+)\))?", line)
        if not match:
            break
        depth = len(match[1]) // 2
        branch[depth] = match[2]
        above = {branch[depth - 1]} - {""}
        drawn[match[2]] = above | set((match[4] or "").split(", ")) - {""}
    assert drawn == {
        name: {base.__name__ for base in getattr(errors, name).__bases__}
        - {"Exception"}
        for name in ERRORS
    }


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_survives_the_way_to_another_process(name):
    error = getattr(errors, name)("what was wrong")
    error.__notes__ = ["and where"]
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == "what was wrong"
    assert copy.args == error.args
    assert copy.__notes__ == ["and where"]


NUMBERED = {
    errno.ENOENT: errors.StorageNotFoundError,
    errno.EEXIST: errors.StorageExistsError,
    errno.EACCES: errors.StorageDeniedError,
    errno.EPERM: errors.StorageDeniedError,
    errno.ENOTDIR: errors.StorageNotFolderError,
    errno.ENOSPC: errors.StorageError,
    errno.ETIMEDOUT: errors.StorageError,  # a TimeoutError is something else here
    None: errors.StorageError,
}


@pytest.mark.parametrize("number", NUMBERED)
def test_the_number_of_a_storage_error_decides_its_class(number):
    error = errors.StorageError(number, "what was wrong")
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert type(one) is NUMBERED[number]
        assert (one.errno, one.strerror) == (number, "what was wrong")
    assert type(errors.LockedError(number, "")) is errors.LockedError


def test_serializers_have_the_class_tree_of_the_original():
    assert inspect.isabstract(fileio.AbstractSerializer)
    assert issubclass(fileio.JSONSerializer, fileio.AbstractSerializer)
    assert issubclass(fileio.PickleSerializer, fileio.AbstractSerializer)
    assert isinstance(fileio.json_serializer, fileio.JSONSerializer)
    assert isinstance(fileio.pickle_serializer, fileio.PickleSerializer)


def test_adapters_have_the_class_tree_of_the_original():
    base, mixin = adapters.AbstractDatasetAdapter, adapters.Custom20BNAdapterMixin
    assert inspect.isabstract(base)
    assert base.__abstractmethods__ == {"__len__", "iter_data"}
    for name in EXPORTED["gulpio2.adapters"]:
        if name not in ("AbstractDatasetAdapter", "Custom20BNAdapterMixin"):
            assert issubclass(getattr(adapters, name), base)
        if name.startswith("Custom20BN"):
            assert issubclass(getattr(adapters, name), mixin)


def test_a_directory_has_the_attributes_of_the_original(tmp_path):
    directory = gulpio2.GulpDirectory(tmp_path)
    assert directory.output_dir is tmp_path
    assert directory.jpeg_decoder is utils.jpeg_bytes_to_img
    assert directory.chunk_objs_lookup == OrderedDict()
    assert isinstance(directory.chunk_objs_lookup, OrderedDict)
    assert directory.all_meta_dicts == []
    assert directory.num_chunks == 0
    assert dict(directory.chunk_lookup) == {}
    assert directory.merged_meta_dict == {}


def test_a_chunk_has_the_attributes_of_the_original(tmp_path):
    data, meta = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"
    chunk = gulpio2.GulpChunk(data, meta)
    assert chunk.data_file_path is data
    assert chunk.meta_file_path is meta
    assert chunk.serializer is fileio.json_serializer
    assert chunk.jpeg_decoder is utils.jpeg_bytes_to_img
    assert chunk.meta_dict == OrderedDict()
    assert isinstance(chunk.meta_dict, OrderedDict)
    assert chunk.fp is None
    assert list(tmp_path.iterdir()) == []


def test_an_ingestor_has_the_attributes_of_the_original():
    adapter: Any = object()
    ingestor = gulpio2.GulpIngestor(adapter, "some/folder", "10", "2")
    assert ingestor.adapter is adapter
    assert ingestor.output_folder == "some/folder"
    assert (ingestor.videos_per_chunk, ingestor.num_workers) == (10, 2)
    assert gulpio2.ChunkWriter(adapter).adapter is adapter


def test_a_report_and_its_failures_have_the_promised_fields():
    report, failure = (resolve(f"gulpio2.ingest.report:{n}") for n in REPORTED)
    for kind in (report, failure):
        fields = [f.name for f in dataclasses.fields(kind)]
        assert fields == REPORTED[kind.__name__]


@pytest.mark.parametrize("num_workers", [0, -1, "0"])
def test_an_ingestor_without_workers_is_refused(num_workers):
    adapter: Any = object()
    with pytest.raises(AssertionError, match="num_workers"):
        gulpio2.GulpIngestor(adapter, "some/folder", 1, num_workers)
