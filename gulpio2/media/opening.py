"""What a file may be opened as, and what is missing from it before it is."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import av

from gulpio2.errors import SourceReadError
from gulpio2.media.wholeness import find_damage

if TYPE_CHECKING:
    from gulpio2.media.wholeness import Damage

__all__ = ["container_options", "damage_of"]

# Demuxers that open what their file names: other files, this one again without end, or
# the network.
_REFERRING = frozenset(
    {"applehttp", "concat", "dash", "hls", "imf", "rtp", "rtsp", "sdp"}
    | {"webm_dash_manifest"}
)


@functools.cache
def container_options() -> dict[str, str]:
    """List the formats that a video may have; an image "a%d.png" is no series."""
    formats = sorted(av.formats_available - _REFERRING)
    return {"format_whitelist": ",".join(formats), "pattern_type": "none"}


def damage_of(name: str) -> Damage | None:
    """Tell what is missing from a file; as `find_damage`.

    Raises
    ------
    SourceReadError
        It cannot be read.
    """
    try:
        return find_damage(name)
    except FileNotFoundError as cause:
        raise SourceReadError(
            f"Video {name!r} does not exist. Check the folder and the name."
        ) from cause
    except OSError as cause:
        raise SourceReadError(
            f"Video {name!r} cannot be read: {cause.strerror or cause}. "
            "Mend that, or leave it out."
        ) from cause
