"""The index of a directory, compared with the maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.errors import MetaFileError
from gulpio2.format.layout import INDEX_NAME, list_chunks, meta_name
from gulpio2.format.problems import Problem
from gulpio2.format.scan import UnusualMapError
from gulpio2.format.wording import cannot_be_read, first_of

if TYPE_CHECKING:
    from gulpio2.sanity.report import Findings
    from gulpio2.storage.local import LocalStore

__all__ = ["check_index_of"]

_LOST = (
    "is not in the map any more, was not deleted, and its frames are there: was an "
    "older map put back? Put the newer one back, or, if there is none, move this one "
    "away, and `gulp2 repair` takes its items from the index. If a program has taken "
    "it out of the map, `gulp2 index` makes the index without it"
)
_KEEP_INDEX = "It alone tells of what maps have lost: let it be until they are back"
_UNKNOWN = (
    "Not all could be read that tells whether maps have lost items: let it be, and "
    "check again"
)
# Times that an index is compared in which faults are found that may be no more.
_TRIES = 3
_INDEX_ADVICE = "readers build it anew from the maps, `gulp2 index` replaces it"


def check_index_of(store: LocalStore, findings: Findings, present: set[str]) -> None:
    """Compare the index, which can be made anew at any time, with the maps.

    Parameters
    ----------
    store : LocalStore
        The directory.
    findings : Findings
        Takes what is found.
    present : set of str
        Items that are in any map.
    """
    # Loaded here: most checks need none of these.
    from gulpio2.storage.index.keeping import check_index, index_state
    from gulpio2.storage.index.loading import TRY_AGAIN
    from gulpio2.storage.index.lost import lost_items

    def note(text: str) -> None:
        findings.add([], [Problem("stale-index", text, INDEX_NAME)])

    unread: list[Problem] = []

    def tell(name: str, offset: int | None, cause: OSError) -> None:
        text = f"{cannot_be_read(cause)}. Check again"
        unread.append(Problem("unreadable-file", text, name, offset=offset))

    def tell_of_map(name: str, cause: OSError) -> None:
        tell(name, None, cause)

    try:
        state = index_state(store.folder, thorough=True, unread=tell_of_map)
        stale = state.stale
        there = set(store.names())
        if gone := [name for name in stale if name not in there]:
            note(
                f"tells of {first_of(gone, 'map')}, no longer there: were the chunks "
                "removed or renamed, or were they not copied? If all is there that "
                "should be, `gulp2 index` brings it up to date"
            )
        if changed := [name for name in stale if name in there]:
            numbers = list_chunks(changed).meta_only
            lost = [
                Problem("lost-item", _LOST, meta_name(number), item=id_)
                for number, id_ in lost_items(store, numbers, present, tell)
            ]
            findings.add(lost)
            advice = _UNKNOWN if unread else "`gulp2 index` brings it up to date"
            note(
                f"was made before {first_of(changed, 'map')} took its present form; "
                "readers do without those rows. " + (_KEEP_INDEX if lost else advice)
            )
        if stale or unread:
            return
        for _ in range(_TRIES):
            faults = check_index(store.folder)
            if not faults:
                break
            # Somebody may write meanwhile: then it is older than a map, and no worse.
            if index_state(store.folder, thorough=True).stale:
                note("was not looked at to its end, as maps have changed meanwhile")
                return
    except ImportError as cause:
        note(f"was not looked at: {cause}")
    except (MetaFileError, UnusualMapError, FileNotFoundError):
        note("was not looked at, as a map is damaged or missing")
    except OSError as cause:
        why = str(cause.strerror or cause).removesuffix(f". {TRY_AGAIN}")
        text = f"cannot be compared with the maps: {why}. Check again"
        unread.append(Problem("unreadable-file", text, INDEX_NAME))
    except (ValueError, LookupError, OverflowError) as cause:
        text = f"cannot be compared with the maps ({cause}): {_INDEX_ADVICE}"
        findings.add([Problem("bad-index", text, INDEX_NAME)])
    else:
        findings.add(
            [
                Problem("bad-index", f"{fault}: {_INDEX_ADVICE}", INDEX_NAME)
                for fault in faults
            ]
        )
    finally:
        findings.add(_news(unread, findings.report.problems))


def _news(unread: list[Problem], known: list[Problem]) -> list[Problem]:
    """Leave out what was found before, as by looking for damage in the same file."""
    places: set[tuple[str, int | None]] = set()
    for problem in known:
        if problem.code == "unreadable-file":
            places.add((problem.file, problem.offset))
    news = []
    for problem in unread:
        place = (problem.file, problem.offset)
        if places.isdisjoint((place, (problem.file, None))):
            news.append(problem)
            places.add(place)
    return news
