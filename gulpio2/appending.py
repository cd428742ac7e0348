"""Items into an open data file, each whole or not at all."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from gulpio2.codecs.encoding import FrameEncoder
from gulpio2.codecs.frame_sizes import (
    ItemSizes,
    SizeReader,
    describe_sizes,
    why_not_alike,
)
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.errors import (
    AdapterContractError,
    GulpError,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.edits import check_ids, warn_of_other_keys
from gulpio2.format.entry import (
    EXTRAS_KEY,
    GrowingExtras,
    checked_extras,
    covered_part,
    seal_entry,
)
from gulpio2.format.gmeta import (
    dump_gmeta,
    is_no_metadata,
    join_gmeta,
    validate_entry,
)
from gulpio2.format.metadata import plain_metadata
from gulpio2.frame_sources import (
    SourceFacts,
    facts_of,
    is_source,
    stored_frames,
    whole_ticks,
)
from gulpio2.gathering import GatheredRecords

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Iterable,
        MutableMapping,
    )

    from gulpio2.format.edits import Origins
    from gulpio2.format.records import FrameInfo
    from gulpio2.storage.base import StoreWriter

__all__ = ["ChunkAppender"]

_logger = logging.getLogger(__name__)

_IN_THIS_THREAD = FrameEncoder()
_NONE = SourceFacts()
# Of the items whose frames differ in size a process tells the first: sets of pictures
# may all be so, and are read picture by picture.
_MOST_TOLD = 3
_MORE = ". More such items are not told of here: `gulp2 check --deep` names them all"
_items_of_sizes = count(1)


class ChunkAppender:
    """Appends items to a data file and to the map in memory.

    An item is appended whole or not at all: whatever goes wrong on the way, data
    file and map are as before.

    Parameters
    ----------
    writer : StoreWriter
        The data file.
    meta_dict : mutable mapping
        The map; entries are added to it as items come.
    encoder : EncoderSettings or None
        For frames that are not JPEG bytes already. None: the defaults, as they are
        when a frame is encoded.
    on_frames : callable, optional
        Called with a number of frames and their bytes, each time some were written.
    frame_encoder : FrameEncoder, optional
        Encodes frames in several threads. Default: in this one.
    gather : bool, optional
        Write small items together: not before `flush`, or when there are many.

    Attributes
    ----------
    origins : Origins or None
        What the entries were on the disk, where they may be edited.
    dump : callable or None
        Gives the bytes of a map that is not stored as this package's JSON; metadata
        need not be JSON then, and an entry that JSON cannot hold gets no extras.
    """

    def __init__(
        self,
        writer: StoreWriter,
        meta_dict: MutableMapping[str, Any],
        encoder: EncoderSettings | None,
        *,
        on_frames: Callable[[int, int], None] | None = None,
        frame_encoder: FrameEncoder | None = None,
        gather: bool = False,
    ) -> None:
        self.writer = writer
        self.meta_dict = meta_dict
        self.encoder = encoder
        self.on_frames = on_frames
        self.frame_encoder = frame_encoder or _IN_THIS_THREAD
        self.gather = gather
        self._block = GatheredRecords(writer, on_frames)
        self._size_reader = SizeReader()
        self.origins: Origins | None = None
        self.dump: Callable[[Mapping[str, Any]], bytes] | None = None
        self._growth: dict[str, GrowingExtras | None] = {}
        # Checks of items that did not fit before frames were added to them.
        self._misfits: dict[str, str] = {}
        # JSON of the entries that nobody changes any more.
        self._sealed: dict[str, str] = {}

    def tell(self) -> int:
        """Count the bytes that were appended, written already or not."""
        return self._block.position if self._block.num_bytes else self.writer.tell()

    def flush(self) -> None:
        """Write what was gathered."""
        self._block.flush()

    def append(self, id_: str, meta_data: Any, frames: Iterable[Any]) -> int:
        """Write an item.

        Parameters
        ----------
        id_ : str
            Frames of an id that is there already are added to it.
        meta_data : dict
            Kept by reference until the map is written.
        frames : iterable
            A `FrameSource`, or arrays, images, planes or JPEG bytes.

        Returns
        -------
        int
            Frames written.
        """
        if self.dump is None or not isinstance(meta_data, Mapping):  # refuse first
            plain_metadata(meta_data, f"the metadata of item {id_!r}")
        old_entry = self.meta_dict.get(id_)
        old_lengths = old_entry and {
            key: len(old_entry[key]) for key in ("frame_info", "meta_data")
        }
        growth = self._growth_of(id_)
        num_before = len(growth.crc32) if growth else 0
        self._sealed.pop(id_, None)
        if not self._block.num_bytes:
            self._block = GatheredRecords(self.writer, self.on_frames)
        start = self._block.position
        entry = self.meta_dict.setdefault(id_, {"frame_info": [], "meta_data": []})
        infos: list[FrameInfo] = []
        try:
            times = self._write_frames(id_, frames, infos, growth)
            facts = facts_of(frames, id_, is_new=not num_before) if growth else _NONE
            if facts.time_base is None:
                times = [None] * len(times)  # nothing to read them by
            else:
                times = whole_ticks(times, id_)
        except BaseException:
            self._block.cut(start)
            if old_lengths is None:
                del self.meta_dict[id_]
                self._growth.pop(id_, None)
            elif growth:
                del growth.crc32[num_before:]
            raise
        entry["frame_info"].extend(infos)
        entry["meta_data"].append(meta_data)
        if growth:
            if facts.source is not None and not num_before:
                growth.source = facts.source
            if growth.add(infos, times, facts.time_base):
                _logger.warning(
                    "the frames of item %r lose their times: what is appended has "
                    "none, or another time base, or not each frame has one. Give it "
                    "all times, or an id of its own",
                    id_,
                )
        return len(infos)

    def take_over(
        self, entries: Mapping[str, Mapping[str, Any]], records: Iterable[bytes]
    ) -> dict[str, str]:
        """Write items whose records were made already, in another file.

        Parameters
        ----------
        entries : mapping
            Id to entry, as they are stored there, one behind the other. With extras.
        records : iterable of bytes
            What lies there from the first one's beginning to the last one's end.

        Returns
        -------
        dict
            Id to the JSON of the entry, as `seal` gives it.
        """
        self.flush()
        start = self.writer.tell()
        try:
            for block in records:
                self.writer.write(block)
        except BaseException:
            self.writer.truncate(start)
            raise
        texts: dict[str, str] = {}
        moved: int | None = None
        for id_, entry in entries.items():
            infos = entry["frame_info"]
            if moved is None:
                moved = start - infos[0][0]
            new = {
                **entry,
                "frame_info": [[loc + moved, pad, size] for loc, pad, size in infos],
            }
            # Its check is another one, as the frames lie elsewhere.
            new[EXTRAS_KEY] = {**new.pop(EXTRAS_KEY)}
            new[EXTRAS_KEY].pop("check", None)
            texts[id_] = seal_entry(id_, new)
            self.meta_dict[id_] = new
        self._sealed |= texts
        return texts

    def drop_last(self, id_: str) -> int:
        """Take back the item that was appended last; give its number of frames."""
        entry = self.meta_dict.pop(id_)
        self._growth.pop(id_, None)
        self._sealed.pop(id_, None)
        self._block.cut(entry["frame_info"][0][0])
        return len(entry["frame_info"])

    def _growth_of(self, id_: str) -> GrowingExtras | None:
        """Go on with an item's extras; None where earlier frames have no checksums."""
        entry = self.meta_dict.get(id_)
        if entry is None:  # perhaps not any more
            self._misfits.pop(id_, None)
            self._growth[id_] = GrowingExtras()
        elif id_ not in self._growth:
            if self.origins is not None:
                self.finished_entry(id_)
            self._growth[id_] = GrowingExtras.of(entry, where=f"item {id_!r}")
            check = entry.get(EXTRAS_KEY, {}).get("check")
            if check is not None and covered_part(id_, entry) is None:
                self._misfits[id_] = check
        elif (growth := self._growth[id_]) and not growth.fits(entry):
            self._growth[id_] = None
        return self._growth[id_]

    def _write_frames(
        self,
        id_: str,
        frames: Iterable[Any],
        infos: list[FrameInfo],
        growth: GrowingExtras | None,
    ) -> list[int | None]:
        times: list[int | None] = []
        block = self._block
        # Only a source promises that a frame stays as it is after the next one came.
        encoder = self.frame_encoder if is_source(frames) else _IN_THIS_THREAD
        encoded = encoder.encode(
            stored_frames(frames, is_deferred=encoder.is_helped), self._settings
        )
        crc32: list[int] = [] if growth is None else growth.crc32
        sizes = ItemSizes(self._size_reader)
        try:
            for pts, jpeg in encoded:
                sizes.add(jpeg)
                infos.append(block.take(jpeg))
                times.append(pts)
                crc32.append(crc32_of(jpeg))
        except AdapterContractError as cause:
            raise AdapterContractError(
                f"item {id_!r}, frame {len(infos)}: {cause}"
            ) from cause
        if not self.gather:
            block.flush()
        if len(sizes.first) > 1 and (number := next(_items_of_sizes)) <= _MOST_TOLD:
            _logger.warning(
                "item %r has frames of %s: it is stored so, and %s%s",
                id_,
                describe_sizes(sizes.first),
                why_not_alike(sizes.first),
                _MORE if number == _MOST_TOLD else "",
            )
        return times

    def _settings(self) -> EncoderSettings:
        return self.encoder or EncoderSettings()

    def finished_map(self) -> dict[str, Any]:
        """Give the map as it is to be stored, and complete the entries in memory.

        Raises
        ------
        AdapterContractError
            Metadata that changed, since it was appended, into what JSON cannot hold.
        """
        return {id_: self.finished_entry(id_) for id_ in self.meta_dict}

    def finished_entry(self, id_: str) -> dict[str, Any]:
        """Give one entry as it is to be stored, and complete the one in memory."""
        plain = self._unchecked_entry(id_)
        if self.origins is not None and (fault := validate_entry(plain)):
            raise AdapterContractError(f"item {id_!r} of the map in memory: {fault}")
        if self.origins is not None:
            warn_of_other_keys(id_, plain)
        if EXTRAS_KEY not in plain:
            return plain
        if id_ in self._misfits:
            return plain
        if id_ in self._growth:
            extras = checked_extras(id_, plain)
        elif self.origins is not None:
            # JSON makes a string of an id that is none.
            extras = self.origins.fitting_extras(str(id_), plain)
        else:
            return plain
        for entry in (plain, self.meta_dict[id_]):
            if extras is None:
                del entry[EXTRAS_KEY]
            else:
                entry[EXTRAS_KEY] = extras
        return plain

    def seal(self, id_: str) -> str:
        """Finish an entry that nobody changes any more; give the JSON of it."""
        text = self._sealed.get(id_)
        if text is None:
            plain = self._unchecked_entry(id_)
            fits = id_ in self._growth and id_ not in self._misfits
            if EXTRAS_KEY in plain and fits:
                text = seal_entry(id_, plain)
            else:
                text = json.dumps(plain)
            self._sealed[id_] = text
        return text

    def _unchecked_entry(self, id_: str) -> dict[str, Any]:
        """Give one entry as it is to be stored but for the check of what is new."""
        entry, what = self.meta_dict[id_], f"the metadata of item {id_!r}"
        plain = {**entry}
        if self.dump is None:
            plain["meta_data"] = [
                {} if is_no_metadata(meta) else plain_metadata(meta, what)
                for meta in entry["meta_data"]
            ]
        if id_ not in self._growth:
            return plain
        growth = self._growth[id_]
        before = entry.pop(EXTRAS_KEY, None)
        plain.pop(EXTRAS_KEY, None)
        if before is not None and "check" not in before:
            self._misfits.pop(id_, None)  # taken out: what it says is to count
        # What did not fit its check does not either with more frames, or what is
        # damaged would pass for whole.
        misfit = self._misfits.get(id_)
        if growth and growth.fits(entry):
            extras = growth.dump()
            if misfit is not None:
                extras["check"] = misfit
            entry[EXTRAS_KEY] = plain[EXTRAS_KEY] = extras
        elif misfit is not None:
            entry[EXTRAS_KEY] = plain[EXTRAS_KEY] = before
        return plain

    def dump_map(self) -> bytes:
        """Give the bytes of the map."""
        if self.dump is not None:
            self.finished_map()
            return self.dump(self.meta_dict)
        try:
            if self._sealed.keys() == self.meta_dict.keys():
                return join_gmeta({id_: self._sealed[id_] for id_ in self.meta_dict})
            check_ids(self.meta_dict)
            return dump_gmeta(self.finished_map())
        except (KeyError, TypeError, ValueError, RecursionError) as cause:
            if isinstance(cause, GulpError):
                raise
            raise AdapterContractError(
                f"the map cannot be written as JSON: {cause}"
            ) from cause
