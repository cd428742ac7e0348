"""Image files as frames: JPEG byte for byte, all others as arrays."""

from __future__ import annotations

import io
import pickle
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
import simplejpeg
from PIL import Image

from gulpio2.codecs.jpeg import read_header
from gulpio2.errors import DamagedImageError, ImageNotFoundError, SourceReadError
from gulpio2.media.image_files import read_image
from gulpio2.media.images import ImageFrames
from gulpio2.types import FrameSource


@pytest.fixture
def drawn(pictures):
    return Image.fromarray(pictures(1, 60, 80)[0])


def stored(path, **options):
    (frame,) = ImageFrames([path], **options).stored()
    assert frame.pts is None
    return frame.image


def array(path, **options):
    (pixels,) = ImageFrames([path], **options)
    return pixels


def save(path, image, **options):
    image.save(path, **options)
    return path


def test_it_is_a_frame_source(tmp_path):
    frames = ImageFrames([tmp_path / "a.jpg", str(tmp_path / "b.jpg")])
    assert isinstance(frames, FrameSource)
    assert len(frames) == 2
    assert frames.time_base is None
    assert frames.source_info() == {}
    assert repr(frames) == "ImageFrames(2 files)"
    assert repr(pickle.loads(pickle.dumps(frames))) == repr(frames)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="baseline"),
        pytest.param({"progressive": True}, id="progressive"),
        pytest.param({"subsampling": 0}, id="4:4:4"),
        pytest.param({"keep_rgb": True}, id="rgb"),
        pytest.param({"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}, id="exif"),
    ],
)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_jpeg_is_stored_byte_for_byte(tmp_path, drawn, mode, options):
    path = save(tmp_path / "a.jpg", drawn.convert(mode), **options)
    data = stored(path)
    assert data == path.read_bytes()
    assert read_header(data).shape[:2] == (60, 80)


def test_a_jpeg_that_has_the_size_already_is_stored_byte_for_byte(tmp_path, drawn):
    path = save(tmp_path / "a.jpg", drawn)
    assert stored(path, frame_size=60) == path.read_bytes()
    assert stored(path, frame_size=30).shape == (30, 40, 3)
    assert stored(path, frame_size=90).shape == (90, 120, 3)


@pytest.mark.parametrize("behind", [b"\0\0\0", b"SEFT junk", None], ids=repr)
def test_what_follows_the_end_of_the_image_is_left_out(tmp_path, drawn, behind):
    path = save(tmp_path / "a.jpg", drawn)
    data = path.read_bytes()
    path.write_bytes(data + (data if behind is None else behind))
    assert stored(path) == data
    assert np.array_equal(array(path), simplejpeg.decode_jpeg(data))


@pytest.mark.parametrize("revision", [b"\0\0", b"\x02\x01"])
def test_a_jpeg_whose_revision_is_unknown_can_be_stored_and_read(
    tmp_path, drawn, revision
):
    path = save(tmp_path / "a.jpg", drawn)
    data = path.read_bytes()
    assert data[6:13] == b"JFIF\0\x01\x01"
    path.write_bytes(data[:11] + revision + data[13:])
    assert stored(path) == data
    assert stored(path, frame_size=30).shape == (30, 40, 3)
    assert array(path).shape == (60, 80, 3)


def test_a_cmyk_jpeg_becomes_rgb(tmp_path, drawn, psnr):
    path = save(tmp_path / "a.jpg", drawn.convert("CMYK"), quality=98)
    pixels = stored(path)
    assert psnr(pixels, np.asarray(drawn)) > 35
    assert np.array_equal(pixels, array(path))


def test_a_real_cmyk_jpeg_is_that_of_pillow(shared_images):
    path = shared_images / "cmyk.jpg"
    with Image.open(path) as image:
        expected = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(stored(path) - expected).max() <= 1


def test_real_jpegs_are_stored_byte_for_byte_and_decoded_exactly(shared_images):
    paths = [p for p in sorted(shared_images.glob("*.jpg")) if p.stem != "cmyk"]
    assert len(paths) == 5
    for path, frame, pixels in zip(
        paths, ImageFrames(paths).stored(), ImageFrames(paths), strict=True
    ):
        assert frame.image == path.read_bytes()
        with Image.open(path) as image:
            assert np.array_equal(pixels, np.asarray(image))


@pytest.mark.parametrize("format_", ["png", "bmp", "tiff", "webp", "ppm", "gif"])
def test_other_formats_become_arrays(tmp_path, drawn, format_):
    options = {"lossless": True} if format_ == "webp" else {}
    path = save(tmp_path / f"a.{format_}", drawn, **options)
    if not cv2.haveImageReader(str(path)):
        pytest.skip(f"OpenCV {cv2.__version__} reads no {format_}")
    pixels = stored(path)
    with Image.open(path) as image:
        expected = np.asarray(image.convert("RGB"))
    assert np.array_equal(pixels, expected)
    assert format_ == "gif" or np.array_equal(pixels, np.asarray(drawn))
    assert array(path, frame_size=30).shape == (30, 40, 3)


@pytest.mark.parametrize("mode", ["P", "RGBA", "RGB"])
def test_a_png_of_any_colour_type_becomes_rgb(tmp_path, drawn, mode):
    image = drawn.convert(mode)
    path = save(tmp_path / "a.png", image)
    assert np.array_equal(stored(path), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("mode", ["L", "LA", "1"])
def test_a_grey_png_stays_grey(tmp_path, drawn, mode):
    image = drawn.convert(mode)
    path = save(tmp_path / "a.png", image)
    assert np.array_equal(stored(path), np.asarray(image.convert("L")))


def test_a_transparent_pixel_keeps_its_colour(tmp_path):
    image = Image.new("RGBA", (2, 1), (200, 100, 50, 0))
    assert stored(save(tmp_path / "a.png", image)).tolist() == [[[200, 100, 50]] * 2]


def write_png_16(path, values):
    """Write a 16-bit PNG: ``(H, W)`` grey or ``(H, W, 3)`` RGB."""

    def chunk(name, content):
        check = zlib.crc32(name + content)
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
        )

    height, width = values.shape[:2]
    kind = 0 if values.ndim == 2 else 2
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
    return path


@pytest.mark.parametrize("shape", [(40, 50), (40, 50, 3)], ids=["grey", "rgb"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, shape):
    values = np.random.default_rng(0).integers(0, 65536, shape)
    pixels = stored(write_png_16(tmp_path / "a.png", values))
    assert pixels.shape == shape
    assert np.abs(pixels - values * (255 / 65535)).max() <= 0.5


@pytest.mark.parametrize("bits", [10, 12, 16])
@pytest.mark.parametrize(
    ("pix_fmt", "ending"),
    [("gray{}le", "jp2"), ("gray{}le", "j2k"), ("gbrp{}le", "jp2")],
)
def test_jpeg_2000_of_any_depth_is_scaled_to_eight_bits(
    tmp_path, pix_fmt, ending, bits
):
    ramp = np.arange(64, dtype=np.uint16)[np.newaxis].repeat(40, axis=0)
    most = (1 << bits) - 1
    values = (ramp * (most // 63)).astype("<u2")
    frame = av.VideoFrame(64, 40, pix_fmt.format(bits))
    for plane in frame.planes:
        rows = np.zeros((40, plane.line_size // 2), "<u2")
        rows[:, :64] = values
        plane.update(rows.tobytes())
    path = str(tmp_path / f"a.{ending}")
    with av.open(path, "w", format="image2") as file:
        stream = file.add_stream("jpeg2000", rate=1)
        stream.width, stream.height, stream.pix_fmt = 64, 40, frame.format.name
        stream.codec_context.options = {"format": ending, "pred": "dwt53"}
        for part in (frame, None):
            file.mux(stream.encode(part))
    channels = read_image(path).reshape(40, 64, -1)
    assert np.abs(channels - values[..., None] * (255 / most)).max() <= 1


@pytest.mark.skipif(
    not cv2.haveImageWriter("a.avif"), reason="this OpenCV writes no AVIF"
)
@pytest.mark.parametrize("bits", [8, 10, 12])
def test_avif_of_any_depth_is_scaled_to_eight_bits(tmp_path, drawn, bits):
    values = np.asarray(drawn)[..., ::-1].astype(np.uint16) << (bits - 8)
    path = str(tmp_path / "a.avif")
    deep = values if bits > 8 else values.astype(np.uint8)
    options = [cv2.IMWRITE_AVIF_DEPTH, bits, cv2.IMWRITE_AVIF_QUALITY, 100]
    assert cv2.imwrite(path, deep, options)
    assert np.abs(read_image(path) - np.asarray(drawn, np.float64)).mean() < 2


@pytest.mark.parametrize("format_", ["jpg", "png", "webp"])
def test_orientation_in_exif_is_not_applied(tmp_path, drawn, format_):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    path = save(tmp_path / f"a.{format_}", drawn, exif=exif)
    assert read_image(path).shape == (60, 80, 3)
    image = stored(path)
    shape = read_header(image).shape if isinstance(image, bytes) else image.shape
    assert shape == (60, 80, 3)


@pytest.mark.parametrize("frame_size", [-1, 20])
@pytest.mark.parametrize("side", ["height", "width"])
def test_a_jpeg_without_rows_or_columns_is_damaged(tmp_path, drawn, side, frame_size):
    path = save(tmp_path / "a.jpg", drawn)
    data = bytearray(path.read_bytes())
    at = data.index(b"\xff\xc0") + (5 if side == "height" else 7)
    data[at : at + 2] = b"\0\0"
    path.write_bytes(data)
    with pytest.raises(ImageNotFoundError, match=r"damaged JPEG: it is \d+x\d+ pixels"):
        next(ImageFrames([path], frame_size=frame_size).stored())


@pytest.mark.parametrize("method", ["stored", "__iter__"])
@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        pytest.param("none.jpg", None, ImageNotFoundError, "does not exist", id="none"),
        pytest.param("a.jpg", b"", DamagedImageError, "no image", id="empty"),
        pytest.param("a.jpg", b"text", DamagedImageError, "no image", id="text"),
        pytest.param("a.jpg", b"\xff\xd8\xff", DamagedImageError, "damaged",
                     id="start"),
        pytest.param("a.png", b"\x89PNG\r\n\x1a\n" + bytes(99), DamagedImageError,
                     "damaged PNG", id="png"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_named(tmp_path, method, name, data, error, message):
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(error, match=message) as caught:
        next(getattr(ImageFrames([path]), method)())
    assert type(caught.value) is error
    assert issubclass(error, ImageNotFoundError)  # as 0.0.4 called them all
    assert repr(str(path)) in str(caught.value)


@pytest.mark.parametrize("part", [0.3, 0.6, 0.99])
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.bmp", "a.tiff"])
def test_a_cut_file_is_an_error(tmp_path, drawn, name, part):
    path = save(tmp_path / name, drawn)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    for read in (stored, read_image):
        with pytest.raises(ImageNotFoundError, match=name):
            read(path)


def test_a_jpeg_damaged_inside_is_an_error_where_it_is_decoded(tmp_path, drawn):
    path = save(tmp_path / "a.jpg", drawn)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 60] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(ImageNotFoundError, match="cannot be decoded"):
        stored(path, frame_size=30)


def test_float_values_are_refused(tmp_path, drawn):
    path = save(tmp_path / "a.tiff", drawn.convert("F"))
    with pytest.raises(SourceReadError, match=r"a\.tiff.*float32"):
        stored(path)


def test_a_folder_is_no_image(tmp_path):
    with pytest.raises(ImageNotFoundError, match="is a folder"):
        stored(tmp_path)


@pytest.mark.parametrize("format_", ["PNG", "JPEG", "GIF", "BMP"])
def test_a_header_cannot_make_it_set_aside_gigabytes(tmp_path, drawn, format_):
    file = io.BytesIO()
    drawn.save(file, format_)
    data = bytearray(file.getvalue())
    place, numbers = {
        "PNG": (16, ">II"),
        "JPEG": (data.find(b"\xff\xc0") + 5, ">HH"),
        "GIF": (6, "<HH"),
        "BMP": (18, "<II"),
    }[format_]
    struct.pack_into(numbers, data, place, 60000, 60000)
    path = tmp_path / "huge"
    path.write_bytes(data)
    for use in (stored, array):
        with pytest.raises(SourceReadError, match="60000x60000 pixels"):
            use(path)


def test_an_image_that_packs_well_is_refused_for_its_size_too(tmp_path):
    path = tmp_path / "huge.tif"
    Image.new("1", (12000, 12000)).save(path, compression="group4")
    assert path.stat().st_size < 20_000
    with pytest.raises(SourceReadError, match="12000x12000 pixels, above the limit"):
        stored(path, frame_size=64)


def test_the_files_before_a_bad_one_come_first(tmp_path, drawn):
    good = save(tmp_path / "a.jpg", drawn)
    frames = ImageFrames([good, tmp_path / "none.jpg", good]).stored()
    assert next(frames).image == good.read_bytes()
    with pytest.raises(ImageNotFoundError):
        next(frames)


def test_images_may_have_times(tmp_path):
    """As those of a camera whose log tells when each was taken."""
    names = ["a.jpg", "b.png"]
    paths = [save(tmp_path / name, Image.new("RGB", (8, 8))) for name in names]
    tick = Fraction(1, 1000)
    frames = ImageFrames(paths, pts=[40, 81], time_base=tick)
    assert [frame.pts for frame in frames.stored()] == [40, 81]
    assert pickle.loads(pickle.dumps(frames)).time_base == tick
    with pytest.raises(ValueError, match=r"pts are 1 time for 2 files; give one for"):
        ImageFrames(paths, pts=[40], time_base=tick)
    with pytest.raises(ValueError, match="give time_base, the seconds of one"):
        ImageFrames(paths, pts=[40, 81])


@pytest.mark.parametrize("paths", ["/a/cat.jpg", Path("/a/cat.jpg"), b"/a/cat.jpg"])
def test_a_single_path_is_no_list_of_them(paths):
    with pytest.raises(TypeError, match="a single one; give a list: a file for each"):
        ImageFrames(paths)
