"""Settings in which runs differ whose frames are in one directory, or come into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.format.rates import parse_frame_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gulpio2.format.manifest import Run
    from gulpio2.types import JsonValue, StrPath

__all__ = [
    "KnownSettings",
    "SettingChange",
    "changed_settings",
    "warning_of",
    "warning_of_part",
]

# What decides on the stored frames. Where they come from, and which items there are,
# is another matter: that is what one appends for.
_OF_ENCODER = ("codec", "quality", "subsampling")
# Option of an adapter -> what it sets. The image adapters of 0.0.4 say img_size.
_OF_ADAPTER = {
    "frame_size": "frame_size",
    "img_size": "frame_size",
    "frame_rate": "frame_rate",
    "image_rate": "image_rate",
    "first_number": "first_number",
    "prefix": "prefix",
}
# Those of which None is what the source has.
_OF_SOURCE = frozenset({"frame_size", "img_size", "frame_rate"})


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that a run has otherwise than earlier runs."""

    setting: str
    """``quality`` or ``subsampling``, or the adapter's word: ``frame_size``,
    ``img_size``, ``frame_rate``, and of images ``prefix``, ``image_rate`` and
    ``first_number``."""
    before: tuple[JsonValue, ...]
    """What the runs before had, each value once; None for what the source has, or
    where there is none."""
    now: JsonValue
    """What this run has."""

    def __str__(self) -> str:
        """Give name, new and old value."""
        none = "as in the source" if self.setting in _OF_SOURCE else "none"
        now, *before = (
            none if value in (None, "") else str(value)
            for value in (self.now, *self.before)
        )
        return f"{self.setting} {now} (until now {' and '.join(before)})"


def changed_settings(
    runs: Iterable[Run], options: Mapping[str, Any], encoder: Mapping[str, Any]
) -> list[SettingChange]:
    """Compare a run with those that have stored something in the same directory.

    Parameters
    ----------
    runs : iterable of Run
        As the manifest lists them.
    options : mapping
        Constructor arguments of the adapter, as for the manifest.
    encoder : mapping
        Settings of the encoder, as for the manifest.

    Returns
    -------
    list of SettingChange
        What any of the earlier runs had otherwise. What one of the two does not know,
        such as the frame rate of images, is not compared.

    Examples
    --------
    >>> from gulpio2.format.manifest import Run
    >>> old = Run("A", {"frame_size": -1}, {"quality": 90}, "1", chunks=(0,))
    >>> for change in changed_settings([old], {"frame_size": 128}, {"quality": 90}):
    ...     print(change)
    frame_size 128 (until now as in the source)
    """
    known = KnownSettings()
    for run in runs:
        known.add(run)
    return known.changes(options, encoder)


class KnownSettings:
    """The settings of runs that have stored something, each value once.

    A merge of thousands of parts asks for the changes of each, and adds its runs then.
    """

    def __init__(self) -> None:
        # By what they mean: the rates 8 and "8" are the same.
        self._shown: dict[str, dict[str, JsonValue]] = {}

    def add(self, run: Run) -> None:
        """Note the settings of a run, if it has chunks."""
        if run.chunks:
            for kind, setting in _settings(run.options, run.encoder).items():
                self._shown.setdefault(kind, {})[setting.meaning] = setting.shown

    def changes(
        self, options: Mapping[str, Any], encoder: Mapping[str, Any]
    ) -> list[SettingChange]:
        """Compare another run with them, as `changed_settings` does."""
        changes = []
        for kind, setting in _settings(options, encoder).items():
            before = self._shown.get(kind, {})
            if before.keys() - {setting.meaning}:
                old_values = tuple(before.values())
                changes.append(SettingChange(setting.name, old_values, setting.shown))
        return changes


def warning_of(changes: Iterable[SettingChange], folder: StrPath) -> str:
    """Say on one line what differs, and what to do where that is not meant."""
    return (
        f"{folder} holds frames that were ingested with other settings: "
        f"{', '.join(map(str, changes))}. New items are added with those of this run; "
        "if all are to be alike, give the settings of before, or another folder"
    )


def warning_of_part(
    changes: Iterable[SettingChange], part: StrPath, target: StrPath
) -> str:
    """Say the same of a directory whose chunks are merged into another."""
    return (
        f"{part} holds frames that were ingested with other settings than those that "
        f"come before it in {target}: {', '.join(map(str, changes))}. They are merged "
        "as they are; if all are to be alike, ingest its items again with the settings "
        "of before, or merge it into another folder"
    )


class _Setting(NamedTuple):
    """What a run was told to make of its frames, in one respect."""

    name: str
    meaning: str
    """The same for values that have the same effect."""
    shown: JsonValue


def _settings(
    options: Mapping[str, Any], encoder: Mapping[str, Any]
) -> dict[str, _Setting]:
    found = {}
    for name in _OF_ENCODER:
        if name in encoder:
            found[name] = _Setting(name, repr(encoder[name]), encoder[name])
    for name, kind in _OF_ADAPTER.items():
        # An adapter of somebody's own may call anything its prefix.
        if name in options and (kind != "prefix" or "image_rate" in options):
            value = options[name]
            meaning = _MEANINGS.get(kind, str)(value)
            shown = None if meaning is None else value
            found[kind] = _Setting(name, repr(meaning), shown)
    return found


def _size(value: Any) -> Any:
    try:
        size = int(value)  # as adapters read it, also out of a text
    except (TypeError, ValueError, OverflowError):
        return value
    return None if size < 1 else size


def _rate(value: Any) -> Any:
    try:
        return parse_frame_rate(value)
    except ValueError:  # of an adapter that has rules of its own
        return value


# Of the others the text, as a command line gives it.
_MEANINGS: dict[str, Callable[[Any], Any]] = {
    "frame_size": _size,
    "frame_rate": _rate,
    "image_rate": _rate,
}
