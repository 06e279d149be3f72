"""Outputs: what the model says of a live stream, for Python."""

from collections.abc import Mapping

from pulse.facts import Array
from streaming.delivery import Delivery
from streaming.live.line import Line, Record
from streaming.native import line_words as w


class Outputs:
    """Valid frames of every output, in order, from the records of a line.

    line  with ``Behaviour.records``
    lost  pulses whose outputs nobody took in time
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._deliveries = self._new(0)
        self._begun_at = -1

    @property
    def lost(self) -> int:
        """Pulses whose outputs nobody took in time."""
        return int(self._line.words[w.RECORDS_LOST])

    def ready(self) -> list[dict[str, Array]]:
        """For each stream, every output's frames since the last call; ``Session.push`` gives them so."""
        records = self._line.records()
        begun_at = int(self._line.words[w.LOADED_AT])
        before = [record for record in records if begun_at < 0 or record.pulse < begun_at]
        parts = self._delivered(before)
        if begun_at != self._begun_at:
            self._begun_at = begun_at
            self._deliveries = self._new(int(self._line.words[w.SECOND]))
        if len(before) < len(records):
            later = self._delivered(records[len(before) :])
            parts = [joined(one, other, self._line) for one, other in zip(parts, later)]
        return parts

    def flush(self) -> list[dict[str, Array]]:
        """End the streams: the frames that are still to come. Nobody may use the line any more."""
        parts = self.ready()
        filled, frames = int(self._line.words[w.FILLED]), self._line.slots
        ends: list[dict[str, Array]] = []
        for number, (state, delivery) in enumerate(zip(self._line.voices.states, self._deliveries)):
            if self._line.native:
                state.clock.pulse = int(self._line.voices.words[number, w.RAN])
            port = next(port for port in state.program.inputs if port.streams)
            shape = [filled if axis == port.axis else 1 for axis in range(len(port.shape))]
            results = state.flush(frames[number, :filled].reshape(shape))
            delivery.end = state.clock.end
            ready = delivery.valid(results, len(results))
            ends.append({**joined(parts[number], ready, self._line), **delivery.finals()})
        return ends

    def _new(self, pulses: int) -> list[Delivery]:
        made = [Delivery(self._line.program) for _ in range(self._line.streams)]
        for delivery in made:
            delivery.pulses = pulses
        return made

    def _delivered(self, records: list[Record]) -> list[dict[str, Array]]:
        return [
            delivery.valid((record.outputs[number] for record in records), len(records))
            for number, delivery in enumerate(self._deliveries)
        ]


def joined(first: Mapping[str, Array], then: Mapping[str, Array], line: Line) -> dict[str, Array]:
    """Frames one behind the other, for each output."""
    import numpy as np

    axes = {port.name: port.axis or 0 for port in line.program.outputs}
    return {name: np.concatenate([first[name], then[name]], axes[name]) for name in first}
