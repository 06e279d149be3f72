"""Text formats of events, written one event at a time."""

import csv
import io
import json
from collections.abc import Sequence
from html import escape

from pulse.errors import InputError
from streaming.events.event import Event


class EventFormat:
    """A format of events, as text in UTF-8.

    source  the name of the audio file, if the format contains it
    """

    has_open_events = False
    """Whether events of which only the start is known are written."""

    def __init__(self, source: str = "sound") -> None:
        self._source = source

    def head(self) -> str:
        """Return the text before the first event."""
        return ""

    def text(self, event: Event, number: int) -> str:
        """Format an event; the first one has number 1."""
        raise NotImplementedError

    def body(self, events: Sequence[Event], number: int) -> tuple[str, int]:
        """Format events after this many others; returns the new number, too."""
        parts: list[str] = []
        for event in events:
            if event.end_s is not None or self.has_open_events:
                number += 1
                parts.append(self.text(event, number))
        return "".join(parts), number


class CsvFormat(EventFormat):
    """A table: start_s, end_s, label, score, known_s."""

    has_open_events = True

    def head(self) -> str:
        return _row(["start_s", "end_s", "label", "score", "known_s"])

    def text(self, event: Event, number: int) -> str:
        times = [
            "" if time is None else f"{time:.6f}" for time in (event.start_s, event.end_s, event.known_s)
        ]
        return _row([times[0], times[1], _line(event.label), f"{event.score:.6g}", times[2]])


class JsonLinesFormat(EventFormat):
    """One object per line, with all fields of the event; nothing is rounded."""

    has_open_events = True

    def text(self, event: Event, number: int) -> str:
        return json.dumps(event.as_dict(), allow_nan=False) + "\n"


class AudacityFormat(EventFormat):
    """A label track of Audacity: start, end and label, with tabs between them."""

    def text(self, event: Event, number: int) -> str:
        return f"{event.start_s:.6f}\t{_end_s(event):.6f}\t{_line(event.label)}\n"


class RttmFormat(EventFormat):
    """Rich Transcription Time Marked of NIST: SPEAKER, file, channel, start, duration, and the label as the speaker."""

    def text(self, event: Event, number: int) -> str:
        start, label = event.start_s, _single_word(event.label)
        lasts = _end_s(event) - start
        return f"SPEAKER {_single_word(self._source)} 1 {start:.3f} {lasts:.3f} <NA> <NA> {label} <NA> <NA>\n"


class SrtFormat(EventFormat):
    """SubRip subtitles."""

    def text(self, event: Event, number: int) -> str:
        times = f"{_clock_time(event.start_s, ',')} --> {_clock_time(_end_s(event), ',')}"
        return f"{number}\n{times}\n{_line(event.label).replace('-->', '->')}\n\n"


class VttFormat(EventFormat):
    """WebVTT subtitles."""

    def head(self) -> str:
        return "WEBVTT\n\n"

    def text(self, event: Event, number: int) -> str:
        times = f"{_clock_time(event.start_s, '.')} --> {_clock_time(_end_s(event), '.')}"
        return f"{times}\n{escape(_line(event.label), quote=False)}\n\n"


FORMATS: dict[str, type[EventFormat]] = {
    "csv": CsvFormat,
    "txt": AudacityFormat,
    "rttm": RttmFormat,
    "srt": SrtFormat,
    "vtt": VttFormat,
    "jsonl": JsonLinesFormat,
}
"""By suffix."""


def event_format(name: str, suffix: str) -> type[EventFormat]:
    """Return the format of a suffix, without its dot. Raises InputError: no format has the suffix."""
    try:
        return FORMATS[suffix.lower()]
    except KeyError:
        known = ", ".join(f".{known_suffix}" for known_suffix in FORMATS)
        raise InputError(
            f"{name}: events are written as {known}, not {f'.{suffix}' if suffix else 'this'}"
        ) from None


def _end_s(event: Event) -> float:
    return event.start_s if event.end_s is None else event.end_s


def _row(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _line(label: str) -> str:
    """Return a label as one line, with spaces for control characters."""
    return "".join(character if character.isprintable() else " " for character in label).strip()


def _single_word(label: str) -> str:
    """Return a label without white space and control characters."""
    return "_".join(_line(label).split()) or "<NA>"


def _clock_time(seconds: float, point: str) -> str:
    """Format a time such as 00:01:02,345."""
    seconds_left, thousandths = divmod(round(seconds * 1000), 1000)
    minutes, whole_seconds = divmod(seconds_left, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{whole_seconds:02}{point}{thousandths:03}"
