"""Writers of events: to a file that is complete when it appears, or to a pipe as events occur."""

import os
from collections.abc import Sequence
from pathlib import Path

from pulse.errors import InputError, file_errors
from pulse.support.not_copyable import NotCopyable
from streaming.events.event import Event
from streaming.events.event_formats import EventFormat, event_format
from streaming.files.partial import PartialFile, write_all


class EventsFile(NotCopyable, reason="it writes one file; make another one with another path"):
    """A file of events, written one by one; it appears only when the ``with`` block ends without error.

    path    .csv, .txt (Audacity), .rttm, .srt, .vtt or .jsonl
    source  the name of the audio file, which .rttm contains
    Raises  InputError: an unknown suffix, or a folder that cannot be written to
    """

    def __init__(self, path: str | Path, source: str = "sound") -> None:
        self.path = Path(path)
        self.name = str(path)
        self._format: EventFormat = event_format(str(path), self.path.suffix.removeprefix("."))(source)
        if not self.path.absolute().parent.is_dir():
            raise InputError(f"{path}: no such folder; make it first")
        self._part = PartialFile(self.path)
        self._number = 0
        self._part.append(self._format.head().encode())

    def write(self, events: Sequence[Event]) -> None:
        """Append events. Raises InputError: for instance, the disk is full; then none of these are written."""
        text, next_number = self._format.body(events, self._number)
        self._part.append(text.encode())
        self._number = next_number

    def __enter__(self) -> "EventsFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._part.publish()
        else:
            self._part.discard()


class EventsStream(NotCopyable, reason="it writes one stream; make another one"):
    """A stream of events, each written at once.

    name           the name in messages
    descriptor     is closed at the end of the ``with`` block
    events_format  the format of events
    """

    def __init__(self, name: str, descriptor: int, events_format: EventFormat) -> None:
        self.name = name
        self._descriptor, self._format = descriptor, events_format
        self._number = 0
        try:
            self._put(events_format.head())
        except InputError:
            os.close(descriptor)
            raise

    def write(self, events: Sequence[Event]) -> None:
        """Write events at once. Raises InputError: the pipe is closed, or a disk is full."""
        text, self._number = self._format.body(events, self._number)
        self._put(text)

    def _put(self, text: str) -> None:
        with file_errors(self.name, "written", InputError):
            write_all(lambda data: os.write(self._descriptor, data), text.encode())

    def __enter__(self) -> "EventsStream":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
