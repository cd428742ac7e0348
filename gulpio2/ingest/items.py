"""The items of an adapter, one failing without the rest."""

from __future__ import annotations

import contextlib
import logging
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.errors import AdapterContractError, with_article
from gulpio2.ingest.adapter_errors import as_failure, begin_run, text_of, warn_of
from gulpio2.ingest.report import ItemFailure
from gulpio2.ingest.telling import NOTHING, rest, tell_from_worker, tell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gulpio2.types import Adapter

__all__ = [
    "PlacedItem",
    "begin_worker",
    "check_item",
    "describe_failure",
    "first_item",
    "is_filled_anew",
    "place_items",
    "sized_source",
    "source_of",
    "source_path",
    "unlisted",
]

# What `TableAdapter` puts behind the path of a source, and of an excerpt. One of single
# images has the numbers of its frames.
_ROW = re.compile(r" \(row \d+ of .*\)\Z", re.DOTALL)
_EXCERPT = re.compile(
    r" \(row \d+ of .*, (?:(\S+) s to (\S+) s|frames (\d+) to (\d+))\)\Z", re.DOTALL
)

_logger = logging.getLogger(__name__)

_ITEM_KEYS = ("id", "meta", "frames")
# How a missing value of a table reads as an id: None, NaN, those of pandas.
_MISSING = {"None", "nan", "NaT", "<NA>"}


class PlacedItem(NamedTuple):
    """An item with its position in the adapter, or the error in its place."""

    position: int
    id_: str | None = None
    meta: Any = None
    frames: Any = None
    error: Exception | None = None


# In a worker: what to give in place of items that are not to be asked for, by position.
_in_place: Mapping[int, PlacedItem] = {}


def begin_worker(
    tell: Callable[[int, str | None], None], in_place: Mapping[int, PlacedItem]
) -> None:
    """Have this worker tell which item it is at, in case that item ends it.

    Parameters
    ----------
    tell : callable
        Takes the position of the item, and its id once that is known.
    in_place : mapping
        By position, what to give for items that have ended a worker.
    """
    global _in_place  # one per worker process
    _in_place = in_place
    tell_from_worker(tell)
    begin_run()


def check_item(item: Any, position: int) -> PlacedItem:
    """Take an adapter's item apart.

    Raises
    ------
    AdapterContractError
        Not a mapping with ``id``, ``meta`` and ``frames``; an id that is none.
    """
    if not isinstance(item, Mapping):
        raise AdapterContractError(
            f"the adapter's item at position {position} is "
            f"{with_article(type(item).__name__)}; it must be a dict with the keys "
            "'meta', 'frames' and 'id'"
        )
    for key in _ITEM_KEYS:
        if key not in item:
            raise AdapterContractError(
                f"the adapter's item at position {position} has no {key!r}; it must "
                f"have 'meta', 'frames' and 'id', and has {sorted(map(str, item))}"
            )
    id_ = item["id"]
    # 0.0.4 took whatever str() made of an id. None of these can have been meant.
    is_missing = not isinstance(id_, str) and str(id_) in _MISSING
    if is_missing or isinstance(id_, bytes):
        raise AdapterContractError(
            f"the adapter's item at position {position} has the id {id_!r}; it must be "
            "a string or an integer"
        )
    return PlacedItem(position, str(id_), item["meta"], item["frames"])


def place_items(
    adapter: Adapter,
    start: int,
    stop: int,
    listed: Sequence[str] = (),
    known: set[str] | None = None,
    on_left: Callable[[PlacedItem], None] = lambda _: None,
) -> Iterator[PlacedItem]:
    """Yield the items of a slice of an adapter; for one that fails, its error.

    Parameters
    ----------
    adapter : Adapter
        Has the items.
    start, stop : int
        The slice.
    listed : sequence of str
        The ids that the adapter lists for these positions, if it lists any.
    known : set of str, optional
        Ids of items before the slice. They are passed over until an item comes that is
        none of them; then the set is emptied.
    on_left : callable, optional
        Called where the adapter's generator is left before its end: it may have begun
        with an item that comes from another call. Gets what stands for that item.

    Notes
    -----
    The adapter is asked for the whole slice at once. After an error its generator is at
    its end, so the rest is asked for one position at a time. The same is done where an
    item comes before its turn: then items were passed over, and counting those that
    came no longer gives their positions.
    """
    begin, known = start, set() if known is None else known
    for position in sorted(n for n in _in_place if start <= n < stop):
        some = listed[begin - start :]
        yield from _place(adapter, begin, position, some, known, on_left)
        yield _in_place[position]
        begin = position + 1
    yield from _place(adapter, begin, stop, listed[begin - start :], known, on_left)


def _place(
    adapter: Adapter,
    start: int,
    stop: int,
    listed: Sequence[str],
    known: set[str],
    on_left: Callable[[PlacedItem], None],
) -> Iterator[PlacedItem]:
    if start >= stop:
        return
    given: set[str] = set()
    listed = listed[: stop - start]
    is_early = _early_ones(listed)
    position, first_error, unexplained = start, None, None
    left: PlacedItem
    is_waiting = False  # where this generator is closed if nobody asks for the rest
    try:
        tell_of(position)
        for item in _fresh(adapter).iter_data(slice(start, stop)):
            placed = _checked(item, position)
            if placed.id_ is not None:
                if listed and is_early(position - start, placed.id_):
                    _logger.debug("position %d: %r; one by one", position, placed.id_)
                    left = placed
                    break
                given.add(placed.id_)
                if placed.id_ in known:
                    continue
                known.clear()
            tell_of(position, placed.id_)
            is_waiting = True
            yield placed
            is_waiting = False
            position += 1
            tell_of(position if position < stop else NOTHING)
        else:
            return
    except BaseException as error:
        if is_waiting:
            raise
        failure = as_failure(error)
        # The position at fault is asked for once more below, and recorded there.
        _logger.debug("position %d: %r; going on one by one", position, error)
        first_error = unexplained = error
        # Of an item that failed nobody knows what its metadata were to be.
        left = PlacedItem(position, error=failure)
    on_left(left)
    for single in range(position, stop):
        tell_of(single)
        is_given = False
        try:
            for item in _fresh(adapter).iter_data(slice(single, single + 1)):
                placed = _checked(item, single)
                if placed.id_ in known:
                    continue
                if placed.id_ is not None:
                    known.clear()
                tell_of(single, placed.id_)
                # An adapter that skips positions may give here what it gave before.
                if placed.id_ is None or placed.id_ not in given:
                    is_given = is_waiting = True
                    yield placed
                    is_waiting = False
                    if listed and placed.id_ is not None:
                        given.add(placed.id_)  # each listed id once
        except BaseException as error:
            if is_waiting:
                raise
            failure = as_failure(error)
            if is_given:  # it comes behind that item, and says nothing of it
                on_left(PlacedItem(single + 1, error=failure))
                warn_of(error, single + 1, is_end=single + 1 == stop)
                continue
            # The first one, where it failed twice: by then the adapter may be changed.
            at_first = first_error if single == position else None
            if at_first is not None:
                unexplained, failure = None, as_failure(at_first)
            yield PlacedItem(single, error=failure)
    if unexplained is not None:
        warn_of(unexplained, position, is_end=position == stop)
    rest()


@contextlib.contextmanager
def first_item(adapter: Adapter, position: int) -> Iterator[PlacedItem | None]:
    """Give an item to look at; None where the adapter gives none.

    As in a run, the adapter waits meanwhile where it gave the item, since its files may
    be open, and then it goes on, since it may have something to clear away.
    """
    items = place_items(adapter, position, position + 1)
    try:
        yield next(items, None)
    finally:
        for _ in items:
            pass


def is_filled_anew(
    meta: Mapping[Any, Any], before: Mapping[Any, Any], following: PlacedItem | None
) -> bool:
    """Tell whether an adapter has filled an item's dict of metadata for the next item.

    Parameters
    ----------
    meta : mapping
        The metadata of an item that is stored.
    before : mapping
        A copy, made when its frames had been taken.
    following : PlacedItem or None
        What came next. If it is an error, the dict may have values of the item that
        failed.
    """
    # Keys that were only added are its own: they may come until the next item does.
    return (following is not None and following.error is not None) and any(
        key not in meta or meta[key] is not value for key, value in before.items()
    )


def _early_ones(listed: Sequence[str]) -> Callable[[int, str], bool]:
    """Make the function that tells whether an id is listed behind the place it has."""
    last: dict[str, int] = {}

    def is_early(place: int, id_: str) -> bool:
        if place >= len(listed) or listed[place] == id_:
            return False
        if not last:
            last.update((id_, place) for place, id_ in enumerate(listed))
        return last.get(id_, -1) > place

    return is_early


def unlisted(id_: str, start: int, stop: int) -> AdapterContractError:
    """Make the error of an id that is not listed for the slice it was given in."""
    return AdapterContractError(
        f"the adapter gives the id {id_!r}, which its item_ids() does not list for "
        f"positions {start} to {stop - 1}. Both must give the same ids; or item_ids() "
        "gives None"
    )


def _fresh(adapter: Adapter) -> Adapter:
    """Copy an adapter for one call, as 0.0.4 gave each chunk a copy of its own.

    A call may change the adapter. The adapter of 0.0.4 for lists of images keeps only
    what it is asked for: ``self.data = self.data[slice_element]``.
    """
    cls = type(adapter)
    # The `__del__` of a copy may close what it shares with the adapter. `copy.copy`
    # would call what the adapter does to be pickled, which may take long.
    if hasattr(cls, "__del__") or any(
        vars(base).get("__slots__") for base in cls.mro()
    ):
        return adapter
    try:
        copy: Adapter = object.__new__(cls)
    except TypeError:  # of a class that is not written in Python
        return adapter
    vars(copy).update(vars(adapter))
    return copy


def _checked(item: Any, position: int) -> PlacedItem:
    try:
        return check_item(item, position)
    except AdapterContractError as error:
        return PlacedItem(position, error=error)


def describe_failure(
    adapter: Adapter, position: int, id_: str | None, cause: BaseException
) -> ItemFailure:
    """Record why an item was not stored."""
    error = as_failure(cause)
    return ItemFailure(
        position=position,
        id=id_,
        source=None if id_ is None else source_of(adapter, position),
        error=type(error).__name__,
        message=text_of(error),
    )


def source_of(adapter: Adapter, position: int) -> str | None:
    """Say where an item comes from; None where the adapter cannot tell."""
    try:
        tell = getattr(adapter, "item_source", None)
        source = None if tell is None else tell(position)
        return None if source is None else str(source)
    except BaseException as error:  # noqa: BLE001  # for a message only
        as_failure(error)
        return None


def source_path(adapter: Adapter, position: int) -> str:
    """Give what may be the path of an item's source: without the row of its table."""
    return _ROW.sub("", source_of(adapter, position) or "")


def sized_source(adapter: Adapter, position: int) -> tuple[str, float | None]:
    """Give `source_path`, and of an excerpt its seconds, or how many frames it has.

    The size of the file tells that of the item, but that of a recording says nothing of
    its excerpts.
    """
    source = source_of(adapter, position) or ""
    path, times = _ROW.sub("", source), _EXCERPT.search(source)
    if times is None:
        return path, None
    try:
        start, end = map(float, filter(None, times.groups()))
    except ValueError:  # of an adapter that has other words there
        return path, 0.0
    length = end - start
    return path, length if 0 < length < math.inf else 0.0
