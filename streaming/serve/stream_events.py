"""StreamEvents: the events in the outputs of one stream, as messages."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.program.program import Program
from streaming.events.choice import DetectorChoice
from streaming.events.event import Event


class StreamEvents:
    """Detectors of a stream's outputs.

    choices  output name -> its detector
    rate_hz  frames of the model's symbol per second
    client_hz  frames per second of the client's sound, the unit of messages
    Raises   InputError: an invalid parameter, or the rate is unknown
    """

    def __init__(
        self,
        choices: Mapping[str, DetectorChoice],
        program: Program,
        rate_hz: int | None,
        client_hz: int | None,
    ) -> None:
        self._client_hz = client_hz or 0
        self._detectors = {
            port.name: (choices[port.name].of_port(port, rate_hz), port.axis or 0)
            for port in program.outputs
            if port.name in choices
        }

    @property
    def detects(self) -> bool:
        """Whether there are any detectors."""
        return bool(self._detectors)

    def push(self, frames: Mapping[str, Array]) -> list[dict[str, Any]]:
        """Return the events that these frames of outputs decide. Raises InputError: they are not probabilities."""
        messages: list[dict[str, Any]] = []
        for name, (detector, axis) in self._detectors.items():
            rows = np.moveaxis(frames[name], axis, 0)
            if len(rows):
                events = detector.push(rows.reshape(len(rows), -1))
                messages += [self._message(name, event) for event in events]
        return messages

    def flush(self) -> list[dict[str, Any]]:
        """Return the events that only the end decides."""
        return [
            self._message(name, event)
            for name, (detector, _) in self._detectors.items()
            for event in detector.flush()
        ]

    def reset(self) -> None:
        """Begin a new stream."""
        for detector, _ in self._detectors.values():
            detector.reset()

    def _message(self, output: str, event: Event) -> dict[str, Any]:
        return {
            "type": "event",
            "output": output,
            "start": self._frame(event.start_s),
            "end": None if event.end_s is None else self._frame(event.end_s),
            "known": self._frame(event.known_s),
            "label": event.label,
            "score": event.score,
        }

    def _frame(self, seconds: float) -> int:
        return round(seconds * self._client_hz)
