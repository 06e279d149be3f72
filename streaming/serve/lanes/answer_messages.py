"""AnswerMessages: encodes the results of a lane as messages to its client."""

from collections.abc import Iterable, Mapping
from typing import Any

from pulse.facts import Array
from pulse.program.program import Program
from streaming.protocol.binary_messages import EPOCH_MODULUS, FINAL, OUTPUT, Header, pack_frames
from streaming.protocol.ports import StreamPort
from streaming.serve.lanes.turn import TurnResults, TurnTimes
from streaming.serve.port_sound import Coded
from streaming.serve.sound_conversion import SoundConversion


class AnswerMessages:
    """The messages of one stream.

    outputs     the ports that the client requested
    conversion  the rate and the samples in which sound is sent
    epoch       the epoch of the messages
    """

    def __init__(
        self, program: Program, outputs: tuple[StreamPort, ...], conversion: SoundConversion
    ) -> None:
        self.epoch = 0
        self._outputs, self._conversion, self._format = outputs, conversion, conversion.name
        frames = {port.name: port.frames for port in program.outputs}
        self._pulse_frames = [(port, frames[port.name]) for port in outputs]
        self._finals = [port for port in outputs if port.kind == "final"]
        self.final_names = {port.name for port in self._finals}
        """The names of the requested outputs that do not stream."""

    def encode_passthrough(
        self, results: TurnResults, index: int, turn: TurnTimes, sent_frames: Mapping[str, int]
    ) -> tuple[bytes, ...]:
        """Encode the results at an index of a turn that need no conversion.

        sent_frames  output name -> frames sent so far, these included
        """
        times, epoch = _microseconds(turn), self.epoch % EPOCH_MODULUS
        messages: list[bytes] = []
        for port, frames in self._pulse_frames:
            count = turn.pulses * frames
            header = Header(OUTPUT, port.number, epoch, count, sent_frames[port.name] - count, *times)
            messages.append(pack_frames(header, results.encode(index, turn.pulses, port, self._format)))
        return tuple(messages)

    def encode_outputs(
        self, frames: Mapping[str, Array], turn: TurnTimes | None, sent_frames: Mapping[str, int]
    ) -> list[bytes]:
        """Encode frames of streaming outputs.

        sent_frames  output name -> frames sent so far, these included
        """
        times, epoch = _microseconds(turn), self.epoch % EPOCH_MODULUS
        messages: list[bytes] = []
        for port in self._outputs:
            array = frames.get(port.name)
            if array is None or port.axis is None or not (count := array.shape[port.axis]):
                continue
            if port.name in self._conversion.output_sounds:
                messages += self._encode_sound(
                    port, self._conversion.output_sounds[port.name].push(array), turn
                )
                continue
            header = Header(OUTPUT, port.number, epoch, count, sent_frames[port.name] - count, *times)
            messages.append(pack_frames(header, port.encode(array, self._format)))
        return messages

    def encode_rest(self) -> list[bytes]:
        """Encode the sound that conversions hold at the end of the stream."""
        messages: list[bytes] = []
        for port in self._outputs:
            if port.name in self._conversion.output_sounds:
                messages += self._encode_sound(port, self._conversion.output_sounds[port.name].flush(), None)
        return messages

    def encode_finals(self, values: Mapping[str, Array]) -> list[bytes]:
        """Encode the outputs that do not stream."""
        messages: list[bytes] = []
        for port in self._finals:
            value = values[port.name]
            count = 1 if port.axis is None else value.shape[port.axis]
            header = Header(FINAL, port.number, self.epoch % EPOCH_MODULUS, count, 0)
            messages.append(pack_frames(header, port.encode(value, self._format)))
        return messages

    def encode_events(self, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Add the epoch to events."""
        return [{**event, "epoch": self.epoch} for event in events]

    def _encode_sound(self, port: StreamPort, coded: Iterable[Coded], turn: TurnTimes | None) -> list[bytes]:
        times, epoch = _microseconds(turn), self.epoch % EPOCH_MODULUS
        return [
            pack_frames(Header(OUTPUT, port.number, epoch, count, first, *times), values)
            for first, count, values in coded
        ]


def _microseconds(turn: TurnTimes | None) -> tuple[int, int]:
    """Return how long pulses waited, and how long their steps took, in microseconds."""
    if turn is None:
        return 0, 0
    return (turn.started_ns - turn.arrived_ns) // 1000, (turn.ended_ns - turn.started_ns) // 1000
