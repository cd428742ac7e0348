"""Numbers in the header of a JPEG that the codec says something of, and nobody needs.

Where they are none, the codec says so as if they were damage: the revision of JFIF, how
Adobe's programs have transformed colours, and the frequencies of a sequential scan,
which are always all of them. So it does where the parts of a colour profile are not
those of one, by the rules of libjpeg's ``jdicc.c``; the profile is not applied here.
"""

from __future__ import annotations

__all__ = ["Remarks"]

_APP0, _JFIF, _REVISION = 0xE0, b"JFIF\0", b"\x01\x01"
_APP14, _ADOBE, _YCC, _YCCK = 0xEE, b"Adobe", 1, 2
# Behind the name of a profile's part are its number, from 1, and how many there are.
_APP2, _PROFILE, _OTHER_NAME = 0xE2, b"ICC_PROFILE\0", b"icc_profile\0"
_ALL_FREQUENCIES = b"\0\x3f\0"


class Remarks:
    """Bytes that the codec takes exception to, found as a JPEG is walked through.

    Parameters
    ----------
    data : bytes
        The JPEG.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._found: list[tuple[int, bytes]] = []
        self._adobe, self._has_jfif = 0, False
        self._profile: list[tuple[int, int]] = []

    def sequential_scan(self, position: int, length: int) -> None:
        """Note the header of a scan of all frequencies, at its length."""
        if length >= 8:
            self._found.append((position + length - 3, _ALL_FREQUENCIES))

    def segment(self, marker: int, position: int, length: int, num_scans: int) -> None:
        """Note a segment that a program may have added, at its length."""
        data = self._data
        if marker == _APP0 and data.startswith(_JFIF, position + 2) and length >= 16:
            self._has_jfif = self._has_jfif or not num_scans
            if data[position + 7] != _REVISION[0]:
                self._found.append((position + 7, _REVISION))
        elif num_scans:  # nobody asks for what comes behind a scan
            return
        elif marker == _APP14 and data.startswith(_ADOBE, position + 2):
            self._adobe = position + 13 if length >= 14 else self._adobe
        elif marker == _APP2 and data.startswith(_PROFILE, position + 2):
            self._profile += [(position, length)] if length >= 16 else []

    def all(self, num_components: int) -> tuple[tuple[int, bytes], ...]:
        """Give offsets, and what is to be there instead of what is."""
        data, found, adobe = self._data, self._found, self._adobe
        # Of 0, which is RGB or CMYK, nothing is said; nor of what nobody asks for: grey
        # has no colours, and three of JFIF are YCbCr.
        if adobe and data[adobe] and num_components == 4:
            found.append((adobe, bytes([_YCCK])))
        elif adobe and data[adobe] and num_components == 3 and not self._has_jfif:
            found.append((adobe, bytes([_YCC])))
        if not self._is_profile():
            # Of another name they are nothing that the codec knows.
            found += [(position + 2, _OTHER_NAME) for position, _ in self._profile]
        return tuple(
            (at, right) for at, right in found if not data.startswith(right, at)
        )

    def _is_profile(self) -> bool:
        """Tell whether each part of a profile is there once; true without any."""
        parts = [
            (self._data[position + 14], self._data[position + 15], length - 16)
            for position, length in self._profile
        ]
        numbers = sorted(number for number, _, _ in parts)
        return not parts or (
            {count for _, count, _ in parts} == {len(parts)}
            and numbers == [*range(1, len(parts) + 1)]
            and any(num_bytes for _, _, num_bytes in parts)
        )
