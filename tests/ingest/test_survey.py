"""What a dry run says, against what the run then gives."""

import json
import struct
from dataclasses import replace
from functools import partial

import av
import numpy as np
import pytest
from PIL import Image

from gulpio2 import GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter, ImageFolderAdapter
from gulpio2.cli.survey import survey_lines
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.ingest.sample_plan import plan_of_sizes, sample_positions
from gulpio2.ingest.survey import survey
from gulpio2.ingest.survey_result import Survey
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.video import VideoFrames
from gulpio2.testing import FrameAdapter, make_frames
from gulpio2.types import YuvFrame
from tests.written_once import written_once


class Files(AbstractDatasetAdapter):
    """Video files, in the order given."""

    def __init__(self, paths, **options):
        self.paths = paths
        self.options = options

    def __len__(self):
        return len(self.paths)

    def iter_data(self, slice_element=None):
        for number in range(len(self.paths))[slice_element or slice(None)]:
            frames = VideoFrames(self.paths[number], **self.options)
            yield {"meta": {"n": number}, "frames": frames, "id": f"clip{number}"}

    def item_source(self, position):
        return str(self.paths[position])


@written_once
def write_video(path, num_frames, *, seed=0, pts=None, size=(96, 128)):
    rng = np.random.default_rng(seed)
    rows, columns = size
    noise = rng.integers(0, 256, (rows // 8, columns // 8, 3), np.uint8)
    picture = noise.repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
        for number in range(num_frames):
            moved = np.ascontiguousarray(np.roll(picture, number, axis=1))
            frame = av.VideoFrame.from_ndarray(moved)
            if pts is not None:
                frame.pts = pts[number]
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def stored_bytes(folder):
    return sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in {".gulp", ".gmeta"}
    )


def test_the_size_is_within_a_tenth_of_the_run(tmp_path):
    paths = [
        write_video(tmp_path / f"{n}.mp4", 20 + n, seed=n, size=(96, 128 + 16 * n))
        for n in range(8)
    ]
    adapter = Files(paths * 20)
    found = survey(adapter, EncoderSettings(), least=40)
    assert 40 <= found.sampled < 60
    GulpIngestor(adapter, tmp_path / "out", 50, 1).run()
    actual = stored_bytes(tmp_path / "out")
    assert abs(found.num_bytes / actual - 1) < 0.1
    assert abs(found.num_bytes / actual - 1) < 4 * found.error
    assert found.seconds > 0


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.001, "below 1%"), (0.014, "1%"), (0.5, "50%"), (1, "100%"), (3, "above 100%")],
)
def test_a_share_is_told_as_a_percentage_that_says_something(share, told):
    found = Survey(500, 20, 1000, 10**6, share, 1.0, (), unmet=share)
    lines = "\n".join(survey_lines(found, 1))
    assert f"(standard error {told})" in lines
    assert f"perhaps {told} of the items" in lines


def test_it_tells_how_many_items_it_may_not_have_met_where_no_files_tell(tmp_path):
    class Rare(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                times = 200 if item["id"] in {"item17", "item430"} else 1
                yield {**item, "frames": times * list(item["frames"])}

    adapter = Rare(num_items=500, num_frames=2)
    found = survey(adapter, EncoderSettings())
    assert (found.sampled, found.frames) == (20, 1000)  # and not 1796
    assert found.error < 0.01
    assert found.unmet == pytest.approx(0.139, abs=0.001)
    assert "perhaps 14% of the items" in "".join(survey_lines(found, 1))
    assert survey(adapter, EncoderSettings(), positions=range(20)).unmet == 0
    video = write_video(tmp_path / "a.mp4", 2)
    empty, missing = tmp_path / "empty.mp4", tmp_path / "missing.mp4"
    empty.touch()
    for paths in ([video] * 500, [video] * 40 + [empty], [video] * 40 + [missing]):
        told = survey(Files(paths), EncoderSettings())
        assert told.unmet == 0
        assert "perhaps" not in "".join(survey_lines(told, 1))


@pytest.mark.parametrize("num_long", [1, 3, 12])
def test_the_size_is_right_where_a_few_items_are_very_long(tmp_path, num_long):
    short = write_video(tmp_path / "short.mp4", 4, size=(48, 64))
    long = write_video(tmp_path / "long.mp4", 250, seed=1, size=(48, 64))
    paths = [short] * 200
    for number in range(num_long):
        paths[37 + 11 * number] = long
    found = survey(Files(paths), EncoderSettings())
    assert found.sampled < 60
    GulpIngestor(Files(paths), tmp_path / "out", 50, 1).run()
    actual = stored_bytes(tmp_path / "out")
    assert abs(found.num_bytes / actual - 1) < 0.1
    assert abs(found.frames / (4 * 200 + 246 * num_long) - 1) < 0.1
    (oddity,) = found.oddities
    assert (oddity.kind, oddity.expected) == ("odd length", num_long)


@pytest.mark.parametrize("seed", range(4))
def test_the_size_is_right_where_images_are_of_all_sizes(tmp_path, seed):
    rng = np.random.default_rng(seed)
    folder = tmp_path / "images" / "any"
    folder.mkdir(parents=True)
    for number, edge in enumerate(np.exp(rng.normal(4, 0.8, 300)).astype(int) + 1):
        coarse = rng.integers(0, 256, (edge // rng.integers(1, 12) + 1,) * 2 + (3,))
        image = Image.fromarray(coarse.astype(np.uint8)).resize((edge, edge))
        image.save(folder / f"{number}.{('png', 'jpg')[number % 2]}")
    adapter = ImageFolderAdapter(
        tmp_path / "images", tmp_path / "out", [".png", ".jpg"]
    )
    found = survey(adapter, EncoderSettings())
    GulpIngestor(adapter, tmp_path / "out", 100, 1).run()
    assert abs(found.num_bytes / stored_bytes(tmp_path / "out") - 1) < 0.1
    assert found.error < 0.05


def test_what_an_adapter_says_of_its_sources_need_be_no_path(tmp_path):
    video = write_video(tmp_path / "short.mp4", 4, size=(48, 64))

    class Texts(Files):
        def item_source(self, position):
            return ["row \0", "http://x", None, "", str(tmp_path)][position % 5]

    found = survey(Texts([video] * 30), EncoderSettings())
    assert (found.sampled, found.frames) == (20, 120)


class Given(FrameAdapter):
    """Items of the frames that are given."""

    def __init__(self, items):
        super().__init__(num_items=len(items))
        self.items = items

    def iter_data(self, slice_element=None):
        chosen = self.items[slice_element or slice(None)]
        for item, frames in zip(super().iter_data(slice_element), chosen, strict=True):
            yield {**item, "frames": frames}


def flicker(num_frames, *, seed, dark=0):
    """Draw frames of noise, of which the first are dark."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (num_frames, 48, 64, 3), np.uint8)
    images[:dark] = 0
    return list(images)


@pytest.mark.parametrize("num_frames", [1, 2, 4, 16])
def test_items_of_few_frames_are_encoded_as_a_whole(tmp_path, num_frames):
    items = [flicker(num_frames, seed=n, dark=n % 2) for n in range(10)]
    adapter = Given(items)
    found = survey(adapter, EncoderSettings())
    GulpIngestor(adapter, tmp_path / "out", 50, 1).run()
    assert abs(found.num_bytes / stored_bytes(tmp_path / "out") - 1) < 0.05
    assert found.error == 0


@pytest.mark.parametrize("num_items", [1, 20])
def test_what_differs_inside_of_items_is_in_the_error(tmp_path, num_items):
    adapter = Given([flicker(30, seed=n, dark=10) for n in range(num_items)])
    found = survey(adapter, EncoderSettings())
    GulpIngestor(adapter, tmp_path / "out", 50, 1).run()
    assert found.error > 0.01
    off = abs(found.num_bytes / stored_bytes(tmp_path / "out") - 1)
    assert off < 3 * found.error


def test_the_first_frames_of_items_are_no_more_than_others():
    """Key frames and fades are there: always taken, they count too often."""
    adapter = Given([flicker(20, seed=n, dark=1) for n in range(40)])
    bright = Given([flicker(20, seed=n) for n in range(40)])
    found, other = (survey(each, EncoderSettings()) for each in (adapter, bright))
    assert found.num_bytes / other.num_bytes == pytest.approx(0.95, abs=0.025)


def test_real_videos_are_within_a_tenth(tmp_path, shared_videos):
    paths = sorted(path for path in shared_videos.iterdir())
    adapter = Files(paths)
    found = survey(adapter, EncoderSettings())
    report = GulpIngestor(adapter, tmp_path / "out", 50, 1).run()
    assert found.sampled == len(paths)
    assert found.frames == report.frames
    assert abs(found.num_bytes / stored_bytes(tmp_path / "out") - 1) < 0.1
    kinds = {oddity.kind: oddity for oddity in found.oddities}
    assert "corrupted.mp4" in kinds["unreadable"].examples[0]
    assert kinds["unreadable"].fails
    (rotated,) = [n for n, path in enumerate(paths) if path.suffix == ".mov"]
    assert f"item 'clip{rotated}'" in kinds["rotated"].examples[0]


def test_a_sample_of_a_mixed_set_is_within_a_tenth(tmp_path, shared_videos):
    # Small and large, short and long, one that is damaged: a fifth of them is seen.
    names = ("h264_6fps", "mpeg4_audio", "vp8_audio", "odd_width_vp9.", "rotated")
    paths = [
        path
        for path in sorted(shared_videos.iterdir())
        if path.name.startswith((*names, "corrupted"))
    ]
    assert len(paths) == 6
    GulpIngestor(Files(paths), tmp_path / "out", 50, 1).run()
    order = np.random.default_rng(0).permutation(60 * len(paths))
    mixed = [paths[number % len(paths)] for number in order]
    found = survey(Files(mixed), EncoderSettings())
    assert 20 <= found.sampled < len(mixed) / 3
    assert abs(found.num_bytes / (60 * stored_bytes(tmp_path / "out")) - 1) < 0.1
    kinds = {oddity.kind: oddity for oddity in found.oddities}
    assert 30 <= kinds["unreadable"].expected <= 90
    assert kinds["rotated"].expected > 0


@pytest.mark.parametrize(
    ("quality", "others"), [(90, [75, 60]), (75, [60, 90]), (50, [75, 60])]
)
def test_two_other_qualities_and_two_other_sizes_are_compared(
    tmp_path, quality, others
):
    paths = [write_video(tmp_path / "a.mp4", 40, size=(256, 320))]
    found = survey(Files(paths * 30), EncoderSettings(quality))
    settings = [(variant.quality, variant.short_edge) for variant in found.variants]
    assert settings == [
        (quality, None),
        *((other, None) for other in others),
        (quality, 224),
        (quality, 128),
    ]
    asked, first, second, small, smaller = found.variants
    assert asked.num_bytes == pytest.approx(found.num_bytes, rel=1e-6)
    for variant in (first, second):
        assert (variant.num_bytes < asked.num_bytes) == (variant.quality < quality)
    assert smaller.num_bytes < min(small.num_bytes, asked.num_bytes)
    # How fast they are is for a benchmark to say: here, that it was measured.
    assert all(v.read_frames_per_second > 0 for v in found.variants)


def test_the_speed_of_reading_is_that_of_frames_from_all_of_the_sample(monkeypatch):
    """It was that of the first items, whatever the others are."""

    class Growing(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                edge = 16 if item["meta"]["number"] < 10 else 64
                yield {**item, "frames": [np.zeros((edge, edge), np.uint8)] * 100}

    edges = []

    def decode(jpeg):
        pixels = decode_frame(jpeg)
        edges.append(len(pixels))
        return pixels

    monkeypatch.setattr("gulpio2.ingest.survey.decode_frame", decode)
    monkeypatch.setattr("gulpio2.ingest.survey._READ_SECONDS", 1e-9)
    survey(Growing(num_items=20, num_frames=1), EncoderSettings())
    assert len(edges) < 2 * 5 * 200
    small, large = edges.count(16), edges.count(64)
    assert large / (small + large) == pytest.approx(0.5, abs=0.1)


def test_what_a_lower_quality_would_give_is_within_a_tenth(tmp_path):
    paths = [write_video(tmp_path / f"{n}.mp4", 40, seed=n) for n in range(3)]
    lower = survey(Files(paths), EncoderSettings(90)).variants[1]
    encoder = EncoderSettings(lower.quality)
    GulpIngestor(Files(paths), tmp_path / "out", 50, 1, encoder=encoder).run()
    assert abs(lower.num_bytes / stored_bytes(tmp_path / "out") - 1) < 0.1


def test_of_few_images_each_is_tried_with_other_settings(tmp_path):
    items = [flicker(1, seed=n, dark=n % 2) for n in range(12)]
    lower = survey(Given(items), EncoderSettings(90)).variants[1]
    encoder = EncoderSettings(lower.quality)
    GulpIngestor(Given(items), tmp_path / "out", 50, 1, encoder=encoder).run()
    assert lower.num_bytes == pytest.approx(stored_bytes(tmp_path / "out"), rel=0.02)


class Sized(Files):
    """Videos that are brought to a size."""

    def __init__(self, paths, frame_size=-1):
        super().__init__(paths, frame_size=frame_size)


@pytest.mark.parametrize("size", [(96, 128), (240, 320), (162, 90)])
def test_what_other_sizes_would_give_is_within_a_tenth(tmp_path, size):
    """Also where that makes frames larger, as the option does."""
    paths = [write_video(tmp_path / f"{n}.mp4", 30, seed=n, size=size) for n in (1, 2)]
    found = {each.short_edge: each for each in survey_of(Sized(paths)).variants[3:]}
    assert set(found) == {224, 128}
    for edge, variant in found.items():
        output = tmp_path / f"{edge}"
        GulpIngestor(Sized(paths, edge), output, 50, 1).run()
        assert variant.num_bytes == pytest.approx(stored_bytes(output), rel=0.1)


def test_images_of_all_sizes_are_brought_to_one(tmp_path):
    folder = tmp_path / "images" / "any"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, edge in enumerate((40, 60, 100, 150, 300, 400)):
        coarse = rng.integers(0, 256, (10, 12, 3), np.uint8)
        image = Image.fromarray(coarse).resize((edge * 6 // 5, edge))
        image = image.convert("L") if number == 1 else image
        image.save(folder / f"{number}.{('png', 'jpg')[number % 2]}")
    source = partial(ImageFolderAdapter, tmp_path / "images", tmp_path / "out")
    for variant in survey_of(source()).variants[3:]:
        output = tmp_path / f"{variant.short_edge}"
        GulpIngestor(source(img_size=variant.short_edge), output, 50, 1).run()
        assert variant.num_bytes == pytest.approx(stored_bytes(output), rel=0.1)


def survey_of(adapter):
    return survey(adapter, EncoderSettings())


@pytest.mark.parametrize(("asked", "edges"), [(160, [128]), (128, []), (300, 2)])
def test_no_size_is_compared_that_is_larger_than_the_one_asked_for(
    tmp_path, asked, edges
):
    paths = [write_video(tmp_path / "a.mp4", 3, size=(96, 128))]
    told = [each.short_edge for each in survey_of(Sized(paths, asked)).variants[3:]]
    assert told == ([224, 128] if edges == 2 else edges)


def test_a_frame_that_cannot_have_a_size_is_stored_all_the_same():
    line = np.zeros((1, 60_000, 3), np.uint8)
    found = survey_of(Given([[line]] * 3))
    assert (found.frames, found.oddities) == (3, ())
    assert [each.short_edge for each in found.variants] == [None] * 3


def test_frames_of_all_kinds_are_resized():
    grey = np.zeros((20, 30), np.uint8)
    mask = np.ones((20, 30), bool)
    kinds = [grey, grey[..., None], mask, Image.new("P", (30, 20)), grey[::2, ::2]]
    found = survey_of(Given([[frame] for frame in kinds]))
    assert (found.frames, found.oddities) == (5, ())
    assert len(found.variants) == 5


def test_oddities_are_counted_and_named(tmp_path):
    usual = write_video(tmp_path / "usual.mp4", 20)
    long = write_video(tmp_path / "long.mp4", 150)
    uneven = write_video(tmp_path / "uneven.mp4", 20, pts=[n * n for n in range(20)])
    sound = tmp_path / "sound.mkv"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(
            np.zeros((1, 8000), np.int16), format="s16", layout="mono"
        )
        frame.sample_rate = 8000
        for packet in [*stream.encode(frame), *stream.encode()]:
            container.mux(packet)
    paths = [usual] * 8 + [long, uneven, sound, tmp_path / "missing.mp4"]
    found = survey(Files(paths), EncoderSettings())
    kinds = {oddity.kind: oddity for oddity in found.oddities}
    assert set(kinds) == {
        "odd length",
        "variable frame rate",
        "no video stream",
        "unreadable",
    }
    assert [kinds[kind].fails for kind in sorted(kinds)] == [True, False, True, False]
    assert "clip8" in kinds["odd length"].examples[0]
    assert "clip9" in kinds["variable frame rate"].examples[0]
    assert "clip10" in kinds["no video stream"].examples[0]
    assert "missing.mp4" in kinds["unreadable"].examples[0]


@pytest.mark.parametrize("form", ["jpeg", "array", "pillow", "planes"])
def test_frames_of_several_sizes_are_told(form):
    make = {
        "jpeg": lambda image: encode_frame(image, EncoderSettings()),
        "array": lambda image: image,
        "pillow": Image.fromarray,
        "planes": lambda image: YuvFrame(*np.moveaxis(image, 2, 0).copy()),
    }[form]

    class OfTwoSizes(FrameAdapter):
        def iter_data(self, slice_element=None):
            frames = [*make_frames(3, 24, 32), *make_frames(2, 24, 18)]
            for item in super().iter_data(slice_element):
                yield {**item, "frames": [make(image) for image in frames]}

    (oddity,) = survey(OfTwoSizes(num_items=4), EncoderSettings()).oddities
    assert oddity.kind.startswith("frames of several sizes")
    assert (oddity.fails, oddity.expected) == (False, 4)
    first = "2 sizes (width x height): frame 0 is 32x24, frame 3 18x24"
    assert {example.partition(": ")[2] for example in oddity.examples} == {first}


@pytest.mark.parametrize(
    "grey",
    [
        lambda image: image[..., 0],
        lambda image: image[..., :1],
        lambda image: Image.fromarray(image).convert("L"),
        lambda image: Image.fromarray(image).convert("LA"),
        lambda image: Image.fromarray(image[..., 0].astype(np.uint16) << 8),
        lambda image: encode_frame(image[..., 0], EncoderSettings()),
    ],
    ids=["array", "channel", "L", "LA", "16 bits", "JPEG"],
)
def test_grey_frames_beside_others_are_told(grey):
    class Mixed(FrameAdapter):
        def iter_data(self, slice_element=None):
            first, second = make_frames(2, 24, 32)
            planes = YuvFrame(*np.moveaxis(first, 2, 0).copy())
            lab = Image.fromarray(first).convert("LAB")
            others = [first, np.dstack([first, first[..., :1]]), planes, lab]
            for item in super().iter_data(slice_element):
                yield {**item, "frames": [*others, grey(second)]}

    (oddity,) = survey(Mixed(num_items=4), EncoderSettings()).oddities
    assert oddity.kind.startswith("frames grey and not")
    first = "grey and not: frame 0 is 32x24, frame 4 32x24 grey"
    assert all(example.endswith(first) for example in oddity.examples)


def _given(source):
    return source


@pytest.mark.parametrize("is_late", [False, True])
def test_a_rate_makes_no_even_video_a_variable_one(tmp_path, is_late):
    class Late(Files):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                source = item["frames"]
                frames = DeferredFrames(partial(_given, source))
                yield {**item, "frames": frames if is_late else source}

    even = write_video(tmp_path / "even.mp4", 20)
    uneven = write_video(tmp_path / "uneven.mp4", 20, pts=[n * n for n in range(20)])
    for rate in (8, 60):
        found = survey(Late([even, uneven], frame_rate=rate), EncoderSettings())
        kinds = {oddity.kind: oddity for oddity in found.oddities}
        assert kinds["variable frame rate"].sampled == 1
        assert "clip1" in kinds["variable frame rate"].examples[0]


@pytest.mark.parametrize(
    ("start", "end", "frame_rate", "told"),
    [
        (0.4, 2.0, None, "0.4 of 1.6 seconds"),
        (0.4, 2.0, 10, "0.4 of 1.6 seconds"),
        (None, 1.7, None, "0.8 of 1.7 seconds"),
        (0.4, 1.2, None, None),  # half of it is there
        (0.4, 0.8, None, None),
        (0.4, None, None, None),
    ],
)
def test_excerpts_that_are_mostly_behind_their_video_are_told(
    tmp_path, start, end, frame_rate, told
):
    video = write_video(tmp_path / "a.mp4", 20)  # 0.8 seconds
    adapter = Files([video], start=start, end=end, frame_rate=frame_rate)
    found = {each.kind: each for each in survey(adapter, EncoderSettings()).oddities}
    kind = "excerpts of which their videos have less than half"
    assert (kind in found) == (told is not None)
    if told:
        assert found[kind].examples == (f"item 'clip0': {told}",)
        assert not found[kind].fails


def turn(path, matrix):
    """Write the four numbers that turn the picture into the header of an MP4 file."""
    a, b, c, d = (value << 16 for value in matrix)
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 44
    data[start : start + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


def test_mirrored_videos_are_told_from_rotated_ones(tmp_path):
    matrices = [
        (1, 0, 0, 1),
        (-1, 0, 0, 1),
        (1, 0, 0, -1),
        (0, 1, 1, 0),
        (-1, 0, 0, -1),
    ]
    paths = [
        turn(write_video(tmp_path / f"{n}.mp4", 3), matrix)
        for n, matrix in enumerate(matrices)
    ]
    found = survey(Files(paths), EncoderSettings())
    assert {each.kind: each.examples for each in found.oddities} == {
        "mirrored": (
            "item 'clip1': left and right",
            "item 'clip2': top and bottom",
            "item 'clip3': and turned by -90 degrees",
        ),
        "rotated": ("item 'clip4': by -180 degrees",),
    }


def test_workers_beyond_the_cores_make_no_run_shorter(monkeypatch):
    found = replace(survey_of(FrameAdapter(num_items=3, num_frames=2)), seconds=80.0)
    monkeypatch.setattr("gulpio2.cli.survey.usable_cores", lambda: 4)
    for workers, seconds in ((1, 80), (2, 40), (4, 20), (16, 20)):
        told = f"about {seconds}.0 s, workers: {workers}"
        assert told in "".join(survey_lines(found, workers))


def test_jpegs_that_are_copied_have_the_same_size_at_any_quality():
    """As the run copies them; another size has them encoded anew."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (20, 24, 3), np.uint8).repeat(10, 0).repeat(10, 1)
    jpeg = encode_frame(image, EncoderSettings(95))

    class Copies(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": [jpeg] * 5}

    found = survey(Copies(num_items=4), EncoderSettings(90))
    assert found.frames == 20
    asked, lower, _, _, smaller = found.variants
    assert asked.num_bytes == lower.num_bytes > 0
    assert asked.num_bytes > smaller.num_bytes > 0


def test_what_other_settings_give_of_png_and_jpeg_is_within_a_tenth(tmp_path):
    folder = tmp_path / "images" / "any"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(16):
        image = Image.fromarray(rng.integers(0, 256, (128, 160, 3), np.uint8))
        image.save(folder / f"{number}.{('jpg', 'png')[number % 2]}")
    source = partial(ImageFolderAdapter, tmp_path / "images", tmp_path / "out")
    _, *qualities, _, same = survey_of(source()).variants
    for variant in (*qualities, same):
        encoder = EncoderSettings(variant.quality)
        output = tmp_path / f"{variant.quality}-{variant.short_edge}"
        adapter = source(img_size=variant.short_edge or -1)
        GulpIngestor(adapter, output, 50, 1, encoder=encoder).run()
        assert variant.num_bytes == pytest.approx(stored_bytes(output), rel=0.1)


def test_a_sample_without_a_readable_item_gives_zeros():
    found = survey(FrameAdapter(num_items=3, bad=[0, 1, 2]), EncoderSettings())
    assert (found.frames, found.num_bytes, found.error) == (0, 0, 0.0)
    assert found.oddities[0].expected == 3
    assert json.loads(json.dumps(found.to_json()))["oddities"][0]["fails"]


@pytest.mark.parametrize("num_items", [0, 1, 19, 20, 21, 1999, 2001, 100_000])
def test_the_sample_is_one_percent_and_at_least_twenty(num_items):
    plan = plan_of_sizes([0] * num_items)
    assert plan.first == min(num_items, max(20, -(-num_items // 100)))


def test_a_period_in_the_items_is_met():
    positions = sample_positions(1000, 100)
    assert positions == sorted(set(positions))
    assert len({position % 10 for position in positions}) == 10


def test_ids_that_are_taken_are_seen_where_the_adapter_lists_none():
    class Repeating(FrameAdapter):
        def item_ids(self):
            return None

        def iter_data(self, slice_element=None):
            for number in range(len(self))[slice_element or slice(None)]:
                (item,) = super().iter_data(slice(number, number + 1))
                yield {**item, "id": str(number % 6)}

    found = survey(
        Repeating(num_items=8, num_frames=2), EncoderSettings(), stored=["3"]
    )
    (oddity,) = found.oddities
    assert (oddity.kind, oddity.sampled, oddity.fails) == ("id taken", 3, True)
    assert sorted(oddity.examples) == ["item '0'", "item '1'", "item '3'"]
    assert found.frames == 2 * 5, "they are not stored"


class WithMeta(FrameAdapter):
    """Items with further metadata."""

    def __init__(self, value):
        super().__init__(num_items=5, num_frames=2)
        self.value = value

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "meta": {"value": self.value}}


def test_metadata_are_counted_as_they_are_stored(tmp_path):
    adapter = WithMeta(np.linspace(0, 1, 5000))
    found = survey(adapter, EncoderSettings())
    GulpIngestor(adapter, tmp_path, 100, 1).run()
    stored = sum((tmp_path / n).stat().st_size for n in ("data_0.gulp", "meta_0.gmeta"))
    assert found.num_bytes == pytest.approx(stored, rel=0.02)


@pytest.mark.parametrize("value", [{1, 2}, b"bytes"])
def test_metadata_that_cannot_be_stored_are_foretold(value):
    (oddity,) = survey(WithMeta(value), EncoderSettings()).oddities
    assert (oddity.fails, oddity.expected) == (True, 5)
    assert "cannot be stored as JSON" in oddity.examples[0]
