"""The ten console scripts take and print what those of GulpIO2 0.0.4 do.

The same arguments on the same files: the mapping that is printed first, exit codes, and
the directory that comes out. What differs on purpose is a table, with its reason.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory, adapters
from tests.compat.folders import printed_mapping
from tests.compat.measure import psnr

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.original

SCRIPTS = [
    "gulp2_20bn_csv_jpeg",
    "gulp2_20bn_csv_webm",
    "gulp2_20bn_json_videos",
    "gulp2_activitynet",
    "gulp2_image_folder",
    "gulp2_image_list",
    "gulp2_kinetics",
    "gulp2_register_adapter",
    "gulp2_sanity_check",
    "gulp2_video_folder",
]

# Script -> the arguments that give it something to do in the folder `sources` makes.
JOBS: dict[str, list[str]] = {
    "gulp2_20bn_csv_jpeg": ["list.csv", "jpegs"],
    "gulp2_20bn_csv_webm": ["list.csv", "webms"],
    "gulp2_20bn_json_videos": ["list.json", "json_videos"],
    "gulp2_activitynet": ["--phase=training", "activitynet.json", "activitynet"],
    "gulp2_image_folder": ["images/"],
    "gulp2_image_list": ["--root_path=images", "list.txt"],
    "gulp2_kinetics": ["kinetics.json"],  # the folder is absolute, see `arguments_of`
    "gulp2_video_folder": ["videos/"],
}


@pytest.fixture
def sources(tmp_path: Path, make_video: Any, frame: Any) -> Path:
    """Make a miniature of every input that the eight ingest scripts take."""
    pil = pytest.importorskip("PIL.Image")

    def picture(path: Path, seed: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        pil.fromarray(frame(seed, 48, 64)).save(path)

    for k, label in enumerate(["walk", "run"], start=1):
        make_video(tmp_path / "webms" / f"{k}.webm", num_frames=12)
        make_video(tmp_path / "json_videos" / str(k) / f"{k}.mp4", num_frames=12)
        make_video(tmp_path / "activitynet" / f"v_{k}.mp4", num_frames=6)
        make_video(
            tmp_path / "kinetics" / label / f"yt{k}_000001_000011.mp4", num_frames=6
        )
        # One extension: 0.0.4 looks at the last of its defaults alone (defect 11).
        make_video(tmp_path / "videos" / label / f"clip{k}.webm", num_frames=6)
        for n in range(3):
            picture(tmp_path / "jpegs" / str(k) / f"{n:03d}.jpg", 3 * k + n)
        picture(tmp_path / "images" / label / f"photo{k}.png", k)
        picture(tmp_path / "images" / f"flat{k}.png", k)
    (tmp_path / "list.csv").write_text("1;walk\n2;run\n")
    (tmp_path / "list.txt").write_text("flat1.png,walk\nflat2.png,run\n")
    rows = [{"id": k, "template": t, "more": 0} for k, t in ((1, "walk"), (2, "run"))]
    (tmp_path / "list.json").write_text(json.dumps(rows))
    with gzip.open(tmp_path / "list.json.gz", "wt") as file:
        json.dump(rows, file)
    records = {
        "v_1": {"subset": "training", "url": "u1", "annotations": [{"a": [0.5, 1]}]},
        "v_2": {"subset": "validation", "url": "u2"},
    }
    (tmp_path / "activitynet.json").write_text(json.dumps({"database": records}))
    clips = {f"yt{k}": {"annotations": {"label": "x"}, "k": k} for k in (1, 2)}
    (tmp_path / "kinetics.json").write_text(json.dumps(clips))
    return tmp_path


def arguments_of(script_name: str, sources: Path, out: str) -> list[str]:
    """Give the whole command line of a job."""
    # 0.0.4 joins a relative folder twice (defect 1).
    folder = [str(sources / "kinetics")] if script_name == "gulp2_kinetics" else []
    return [*JOBS[script_name], *folder, out]


# ------------------------------------------------------------------ what they take
@pytest.mark.parametrize("name", SCRIPTS)
def test_help_names_every_option_and_positional_of_the_original(name, original, script):
    theirs, ours = original.script(name, "--help"), script(name, "--help")
    assert (theirs.code, ours.code) == (0, 0)
    assert ours.err == ""
    usage = theirs.out[theirs.out.index("Usage:") :]
    options = set(re.findall(r"--[a-z0-9_]+", usage))
    assert options <= set(re.findall(r"--[a-z0-9_]+", ours.out)), ours.out
    calls = usage.split("Arguments:")[0].split(f"{name} (-h")[0]
    without_options = re.sub(r"\[[^\]]*\]", "", calls)
    positionals = re.findall(r"<([a-z_]+)>", without_options)
    assert positionals, usage
    found = re.findall(r"|".join(positionals), ours.out, flags=re.IGNORECASE)
    assert set(map(str.lower, found)) >= set(positionals), ours.out
    assert script(name, "-h").out == ours.out


@pytest.mark.parametrize("name", SCRIPTS)
def test_bad_usage_prints_the_usage_on_stderr_and_exits_with_1(name, original, script):
    for arguments in ([], ["one", "two", "three", "four"], ["--nonsense", "a", "b"]):
        theirs, ours = original.script(name, *arguments), script(name, *arguments)
        assert theirs.code == ours.code == 1, arguments
        assert "usage" in ours.err.lower(), arguments
        assert ours.out == ""


# Script -> option -> ours; the default of the original is a fault (defects 24 and 25),
# or the script did not state one.
DIFFERENT_DEFAULTS: dict[str, dict[str, Any]] = {
    "gulp2_image_list": {"--root_path": ("", None)},
    "gulp2_activitynet": {"--phase": ("training",)},
}


@pytest.mark.parametrize("name", JOBS)
def test_the_mapping_printed_first_is_that_of_the_original(
    name, sources, original, script
):
    """With no option at all, so that it holds every default."""
    positionals = [
        argument
        for argument in arguments_of(name, sources, "out")
        if not argument.startswith("--")
    ]
    theirs = printed_mapping(original.script(name, *positionals).out)
    ours = printed_mapping(script(name, *positionals, cwd=sources).out)
    for option, allowed in DIFFERENT_DEFAULTS.get(name, {}).items():
        theirs.pop(option)
        assert ours.pop(option) in allowed
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gulp2_20bn_csv_webm", ["--frame_rate", "4", "--num_workers=2", "--shuffle"]),
        ("gulp2_20bn_csv_webm", ["--frame_r=4", "--num=2", "--ext", "--vid=1"]),
        ("gulp2_20bn_json_videos", ["--label_name=more", "--remove_duplicates"]),
        ("gulp2_20bn_csv_jpeg", ["--shm_dir=/tmp", "--image_size", "16"]),
    ],
    ids=["written out", "prefixes", "20bn json", "jpeg"],
)
def test_options_are_taken_before_and_after_the_positionals_as_there(
    name, given, sources, original, script
):
    mappings: list[dict[str, Any]] = []
    for run, options in ((original.script, {}), (script, {"cwd": sources})):
        for k, line in enumerate(
            [
                [*given, *arguments_of(name, sources, "OUT")],
                [*arguments_of(name, sources, "OUT"), *given],
            ]
        ):
            out = f"out_{len(mappings)}_{k}"
            line = [out if part == "OUT" else part for part in line]
            mapping = printed_mapping(run(name, *line, **options).out)
            mapping.pop("<output_directory>")
            mappings.append(mapping)
    assert mappings[0] == mappings[1] == mappings[2] == mappings[3]


# ------------------------------------------------------------------ what they make
# 0.0.4 takes the files of these in the order of the file system; ours are sorted.
UNSORTED = {"gulp2_activitynet": ["v_1"], "gulp2_kinetics": ["yt2", "yt1"]}


def content_of(folder: Path) -> dict[str, Any]:
    """Give ids, metadata and frame shapes of a directory, and its labels."""
    directory = GulpDirectory(folder)
    labels = folder / "label2idx.json"
    return {
        "chunks": {
            n: list(c.meta_dict) for n, c in directory.chunk_objs_lookup.items()
        },
        "meta": {
            id_: entry["meta_data"] for id_, entry in directory.merged_meta_dict.items()
        },
        "shapes": {
            id_: [frame.shape for frame in directory[id_][0]]
            for id_ in directory.merged_meta_dict
        },
        "labels": labels.read_bytes() if labels.exists() else None,
    }


@pytest.mark.parametrize("size", [-1, 24])
@pytest.mark.parametrize("name", JOBS)
def test_the_same_job_gives_the_same_items_metadata_and_labels(
    name, size, sources, original, script
):
    videos = {"gulp2_20bn_csv_webm", "gulp2_20bn_json_videos", "gulp2_video_folder"}
    option = "--frame_size" if name in videos else "--image_size"
    per_chunk = "images" if "gulp2_image" in name else "videos"
    common = ["--num_workers=1", f"--{per_chunk}_per_chunk=1", f"{option}={size}"]
    theirs = original.script(name, *common, *arguments_of(name, sources, "theirs"))
    ours = script(name, *common, *arguments_of(name, sources, "ours"), cwd=sources)
    assert (theirs.code, ours.code) == (0, 0), ours.err
    expected, actual = content_of(sources / "theirs"), content_of(sources / "ours")
    assert expected["meta"], "the original made nothing to compare with"
    if name in UNSORTED:
        expected.pop("chunks")
        one_by_one = [[id_] for id_ in UNSORTED[name]]
        assert list(actual.pop("chunks").values()) == one_by_one
    assert actual == expected
    a, b = GulpDirectory(sources / "theirs"), GulpDirectory(sources / "ours")
    for id_ in a.merged_meta_dict:
        for one, two in zip(a[id_][0], b[id_][0], strict=True):
            assert psnr(one, two) > 34, f"{id_} shows something else"


def test_png_files_are_stored_as_the_same_bytes(sources, original, script):
    name = "gulp2_image_folder"
    original.script(name, "--num_workers=1", "images/", "theirs")
    script(name, "--num_workers=1", "images/", "ours", cwd=sources)
    theirs, ours = (sources / out / "data_0.gulp" for out in ("theirs", "ours"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_gzipped_table_is_read_by_both(sources, original, script):
    name, table = "gulp2_20bn_json_videos", ["list.json.gz", "json_videos"]
    original.script(name, *table, "theirs")
    script(name, *table, "ours", cwd=sources)
    assert content_of(sources / "ours") == content_of(sources / "theirs")


def test_duplicates_are_removed_and_a_directory_extended_as_there(
    sources, original, script
):
    rows = [{"id": k, "template": "walk"} for k in (1, 1, 2)]
    (sources / "more.json").write_text(json.dumps(rows))
    name = "gulp2_20bn_json_videos"
    (sources / "first.json").write_text(json.dumps(rows[:1]))
    for run, out, options in (
        (original.script, "theirs", {}),
        (script, "ours", {"cwd": sources}),
    ):
        run(name, "first.json", "json_videos", out, **options)
        result = run(
            name, "more.json", "json_videos", out, "--remove_duplicates", **options
        )
        assert result.code == 0, result.err
        assert "Id 1 more than once in json file, I skip it!" in result.out
        assert "Id 1 already in GulpDirectory, I skip it!" in result.out
    assert content_of(sources / "ours") == content_of(sources / "theirs")
    assert list(GulpDirectory(sources / "ours").merged_meta_dict) == ["1", "2"]


def test_our_check_and_theirs_agree_on_a_whole_directory(
    make_directory, grey, original, script
):
    folder = make_directory({"a": [grey(1)]}, {"b": [grey(2)]})
    theirs = original.script("gulp2_sanity_check", folder)
    ours = script("gulp2_sanity_check", folder)
    assert (theirs.code, ours.code) == (0, 0)
    lines = [line for line in theirs.out.splitlines() if line.strip()]
    assert [line for line in ours.out.splitlines() if line in lines] == lines


# ------------------------------------------------------------------ adapters
CONSTRUCTED: dict[str, list[Any]] = {
    "Custom20BNCsvJpegAdapter": ["list.csv", "jpegs", "OUT"],
    "Custom20BNCsvWebmAdapter": ["list.csv", "webms", "OUT"],
    "Custom20BNJsonVideoAdapter": ["list.json", "json_videos", "OUT"],
    "ActivitynetAdapter": ["activitynet.json", "activitynet"],
    "KineticsAdapter": ["kinetics.json", "ABSOLUTE/kinetics"],
    "ImageFolderAdapter": ["images/", "OUT"],
    "ImageListAdapter": ["list.txt", "OUT", "images"],
    "VideoFolderAdapter": ["videos/", "OUT"],
}


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_an_adapter_has_the_attributes_and_yields_the_items_of_the_original(
    name, sources, original, monkeypatch
):
    def arguments(out: str) -> list[Any]:
        given = [str(a).replace("ABSOLUTE", str(sources)) for a in CONSTRUCTED[name]]
        return [out if argument == "OUT" else argument for argument in given]

    # 0.0.4 writes label2idx.json itself and needs its folder; ours needs none.
    (sources / "theirs").mkdir()
    theirs = original.json("attributes.py", name, json.dumps(arguments("theirs")))
    monkeypatch.chdir(sources)
    adapter = getattr(adapters, name)(*arguments("ours"))
    missing = [n for n in theirs["names"] if not hasattr(adapter, n)]
    assert missing == []
    assert len(adapter) == theirs["length"]
    items = list(adapter.iter_data(slice(0, len(adapter))))
    assert len(items) == len(theirs["items"])
    if name == "KineticsAdapter":  # theirs come in the order of the file system
        theirs["items"].sort(key=lambda item: ["yt2", "yt1"].index(item["id"]))
    for ours, expected in zip(items, theirs["items"], strict=True):
        assert list(ours)[: len(expected["keys"])] == expected["keys"]
        assert ours["id"] == expected["id"]
        assert type(ours["id"]) is type(expected["id"])
        assert json.dumps(ours["meta"]) == json.dumps(expected["meta"])
        assert len(list(ours["frames"])) == expected["num_frames"]
