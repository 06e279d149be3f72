"""A turn: the pulses that the lanes of a group step before any answer is sent."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pulse.facts import Array
from streaming.protocol.ports import StreamPort


class TurnTimes(NamedTuple):
    """The pulses of one stream in a turn.

    arrived_ns  the arrival time of the last sample
    started_ns  the time at which the steps of the turn began
    ended_ns    the time at which they ended
    pulses      the number of pulses
    """

    arrived_ns: int
    started_ns: int
    ended_ns: int
    pulses: int


class TurnResults:
    """The results of a turn, encoded for all lanes at once.

    steps  the results of each step: output name -> [streams, …]. A stream has the same index in all steps; streams with
           more pulses come first
    """

    def __init__(self, steps: Sequence[Mapping[str, Array]]) -> None:
        self._steps = steps
        self._encoded: dict[tuple[int, int, str], list[bytes]] = {}

    def of_stream(self, index: int, pulses: int) -> list[dict[str, Array]]:
        """Return the results of one stream, pulse by pulse."""
        return [{name: array[index] for name, array in results.items()} for results in self._steps[:pulses]]

    def encode(self, index: int, pulses: int, port: StreamPort, format: str) -> bytes:
        """Encode the values of a stream's pulses in a format."""
        key = port.number, pulses, format
        payloads = self._encoded.get(key)
        if payloads is None:
            payloads = self._encoded[key] = port.encode_all(self._join_pulses(port, pulses), format)
        return payloads[index]

    def _join_pulses(self, port: StreamPort, pulses: int) -> Array:
        """Join the first pulses of all streams that have at least this number: [streams, …]."""
        arrays = [results[port.name] for results in self._steps[:pulses]]
        if pulses == 1:
            return arrays[0]
        streams = len(arrays[-1])
        return np.concatenate([array[:streams] for array in arrays], (port.axis or 0) + 1)
