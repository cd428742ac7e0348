"""Key frames from which decoding gives exactly what decoding from the beginning gives.

A container marks key frames, and means frames that can be decoded without others. For
random access nothing before one may be needed for the frames that follow it either. Of
most codecs that is what a key frame is. H.264 and HEVC have others, too: an I-frame in
an open group of pictures, where those that are shown before it are predicted from what
came earlier, or a recovery point, from which the picture is whole only after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["is_random_access_point"]

# Codecs whose decoders forget everything at a key frame, or where each frame is one.
_FORGETFUL = frozenset(
    {"av1", "dnxhd", "ffv1", "ffvhuff", "huffyuv", "mjpeg", "mpeg1video", "mpeg2video"}
    | {"mpeg4", "msmpeg4v3", "png", "prores", "rawvideo", "utvideo", "vp8", "vp9"}
)
# ITU-T H.264, table 7-1: a slice of an IDR picture, of another one, and SEI; D.1.1: the
# payload of a recovery point.
_IDR, _OTHER_SLICE, _SEI, _RECOVERY_POINT = 5, 1, 6, 6
# ITU-T H.265, table 7-1: pictures of random access, and all with slices.
_IRAP, _PICTURES = range(16, 24), range(32)
# Where the header of a stream tells how many bytes the length of a unit has: ISO/IEC
# 14496-15, 5.3.3.1 and 8.3.3.1. It begins with version 1; start codes begin with 0.
_LENGTH_AT = {"h264": 4, "hevc": 21}
_VERSION = 1


def is_random_access_point(packet: Any, codec: Any) -> bool:
    """Tell whether all frames from that of a packet on are exact without earlier ones.

    Parameters
    ----------
    packet : av.Packet
        The first one that is decoded.
    codec : av.VideoCodecContext
        Of its stream.

    Returns
    -------
    bool
        False where it is not known, too. Frames that are shown before that of the
        packet are not meant.
    """
    if not packet.is_keyframe:
        return False
    name = codec.codec.canonical_name
    if name in _FORGETFUL:
        return True
    tell = _OF_UNITS.get(name)
    units = _units(bytes(packet), name, codec.extradata or b"")
    return tell is not None and tell(units)


def _units(data: bytes, name: str, header: bytes) -> Iterator[bytes]:
    """Give the units of a packet; none where they do not come with their lengths."""
    place = _LENGTH_AT.get(name, 0)
    if header[:1] != bytes([_VERSION]) or len(header) <= place:
        return
    size = (header[place] & 3) + 1
    position = 0
    while position + size < len(data):
        begin = position + size
        position = begin + int.from_bytes(data[position:begin], "big")
        yield data[begin:position]


def _is_exact_h264(units: Iterator[bytes]) -> bool:
    is_recovered = False
    for unit in units:
        kind = unit[0] & 31 if unit else 0
        if kind == _IDR:
            return True
        if kind == _OTHER_SLICE:
            return is_recovered
        if kind == _SEI:
            is_recovered = is_recovered or _has_exact_recovery(unit)
    return False


def _is_exact_hevc(units: Iterator[bytes]) -> bool:
    for unit in units:
        kind = (unit[0] >> 1) & 63 if unit else 63
        if kind in _PICTURES:
            return kind in _IRAP
    return False


_OF_UNITS: dict[str, Callable[[Iterator[bytes]], bool]] = {
    "h264": _is_exact_h264,
    "hevc": _is_exact_hevc,
}


def _has_exact_recovery(sei: bytes) -> bool:
    """Tell whether SEI has a recovery point that is at once, and exact (D.2.8)."""
    data = sei[1:].replace(b"\0\0\3", b"\0\0")
    position = 0
    while position + 2 < len(data):
        numbers = []
        for _ in range(2):  # kind and size, each with 255 for as much as it says
            number = 0
            while data[position : position + 1] == b"\xff":
                number, position = number + 255, position + 1
            numbers.append(
                number + int.from_bytes(data[position : position + 1], "big")
            )
            position += 1
        kind, size = numbers
        if kind == _RECOVERY_POINT:
            # One bit for a count of no frames, then that it is exact, then that no link
            # is broken.
            return bool(size) and data[position] & 0xE0 == 0xC0
        position += size
    return False
