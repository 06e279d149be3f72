"""EventsOutput: writes the events in an output's frames to a file or a pipe."""

from types import TracebackType
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from streaming.events.detector import Detector
from streaming.events.event import Event
from streaming.events.writers import EventsFile, EventsStream


class EventsOutput(NotCopyable, reason="it writes one file; make another one"):
    """Takes the frames of an output block by block, and writes the events in them.

    detector  the detector
    axis      the time axis
    sink      the writer of events, open as long as the ``with`` block
    """

    def __init__(self, detector: Detector[Any], axis: int, sink: EventsFile | EventsStream) -> None:
        self._detector, self._axis, self._sink = detector, axis, sink
        self.event_count = 0
        """The number of events so far."""

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._sink.name

    def write(self, frames: Array) -> None:
        """Write the events in more frames; all other axes together are the classes.

        Raises InputError: frames that the detector does not take, or they cannot be written
        """
        rows = np.moveaxis(frames, self._axis, 0)
        classes = int(np.prod(rows.shape[1:]))
        self._write_events(self._detector.push(rows.reshape(len(rows), classes)))

    def __enter__(self) -> "EventsOutput":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the last events, unless there was an error, and close."""
        try:
            if error is None:
                self._write_events(self._detector.flush())
        except BaseException as own_error:
            self._sink.__exit__(type(own_error), own_error, own_error.__traceback__)
            raise
        self._sink.__exit__(kind, error, trace)

    def _write_events(self, events: list[Event]) -> None:
        self._sink.write(events)
        self.event_count += len(events)
