"""Whether a video file is all there, as far as its container can tell.

FFmpeg reads a file that was cut off as if it had ended there: a WebM of 140 frames cut
in the middle gives 64 and no error. But most containers say how long their parts are,
so a few reads of their structure tell what decoding does not.

* MP4, MOV: the boxes at the top, and those that lead to the frames.
* Matroska, WebM: the segment, and the blocks in its clusters and of which track each
  is, since FFmpeg also leaves out what it does not understand in the middle.
* AVI: the RIFF chunks at the top.
* ASF, WMV: the header, and the parts of frames in all packets, unless it was recorded
  from a broadcast.
* Ogg: all pages, with their checksums and numbers, since FFmpeg leaves out those that
  are damaged.
* FLV: all tags.
* NUT: all packets with their checksums, and all frames.
* IVF: all frames. MXF: all triplets, and where its footer is.
* GIF: all blocks up to the trailer, and of images whether they are filled.
* PNG that moves: all chunks up to the last, with their checksums.
* Y4M: all frames, which are of one size.
* MPEG-PS: whether its last packet is whole.
* MPEG-TS: whether it ends between two packets. DV: all frames, by their length.

Other containers (raw streams) do not say how long they are; there, a cut is
noticed only where it goes through a frame and the decoder minds.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, TYPE_CHECKING

from gulpio2.media.asf_packets import ASF, check_asf
from gulpio2.media.cut import Damage, Found, cut, read_at
from gulpio2.media.flv_tags import FLV, check_flv
from gulpio2.media.gif_blocks import check_gif
from gulpio2.media.matroska import EBML, walk_matroska
from gulpio2.media.mp4_boxes import BOXES, check_boxes
from gulpio2.media.nut_packets import NUT, check_nut
from gulpio2.media.ogg_pages import check_ogg
from gulpio2.media.part_walks import (
    KLV_KEY,
    check_dv,
    check_ivf,
    check_mxf,
    check_png,
    check_units,
    check_y4m,
    dv_unit,
    transport_packet,
)
from gulpio2.media.png import PNG
from gulpio2.media.program_packs import PACK, check_program

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = ["look_through"]


def look_through(path: StrPath) -> Found:
    """Compare a file with what its own structure says about its length.

    Parameters
    ----------
    path : str or path object
        A video file; the kind is known by its first bytes.

    Returns
    -------
    Found
        Without damage where nothing is missing, or the kind of file does not say.

    Raises
    ------
    OSError
        The file cannot be read.

    Notes
    -----
    Reads headers only: some for MP4 and AVI, one per block for others. But Ogg and PNG
    are read as a whole, for their checksums, at about a gigabyte per second, as GIF is;
    and ASF at a third of it.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116  # any StrPath
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "not a regular file")  # a pipe would wait for ever
    with open(path, "rb", buffering=4096) as file:  # noqa: PTH123  # any StrPath
        size = os.fstat(file.fileno()).st_size
        start = file.read(16)
        if int.from_bytes(start[:4], "big") == EBML:
            return walk_matroska(file, size)
        return Found(_damage_in(file, size, start))


def _damage_in(file: IO[bytes], size: int, start: bytes) -> Damage | None:
    """Look at a file that begins with these bytes, and is no Matroska."""
    if start[4:8] in BOXES:
        return check_boxes(file, size)
    if start[:4] == b"RIFF" and start[8:12] == b"AVI ":
        return _check_riff(file, size)
    if start == ASF:
        return check_asf(file, size)
    if start[:4] == b"OggS":
        return check_ogg(file, size)
    if start == NUT[: len(start)]:
        return check_nut(file, size)
    if start[:4] == b"GIF8":
        return check_gif(file)
    if start[:4] == PACK:
        return check_program(file, size)
    if start[:4] == FLV:
        return check_flv(file, size)
    if start[:10] == b"YUV4MPEG2 ":
        return check_y4m(file, size)
    if start[:4] == b"DKIF":
        return check_ivf(file, size)
    if start[:8] == PNG:
        return check_png(file, size)
    if start[:4] == KLV_KEY:
        return check_mxf(file, size)
    if dv := dv_unit(start):
        return check_dv(file, size, dv)
    if packet := transport_packet(file):
        return check_units(file, size, packet)
    return None


def _check_riff(file: IO[bytes], size: int) -> Damage | None:
    position = 0
    while position + 8 <= size:
        header = read_at(file, position, 8)
        length = int.from_bytes(header[4:], "little")
        if header[:4] != b"RIFF" or length == 0:
            return None  # a recorder that was switched off leaves 0
        end = position + 8 + length
        if end > size:
            return cut("its RIFF chunk", end, size, excusable=True)
        position = end + length % 2
    return None
