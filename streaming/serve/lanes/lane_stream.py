"""LaneStream: the data shared by a connection and the worker that steps its lane."""

from collections import deque
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pulse.errors import FaultError, InputError
from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record
from streaming.protocol.errors import ProtocolError
from streaming.protocol.ports import StreamPort
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.lanes.answer_messages import AnswerMessages
from streaming.serve.lanes.lane_session import LaneSession
from streaming.serve.lanes.turn import TurnResults, TurnTimes
from streaming.serve.sound_conversion import SoundConversion
from streaming.serve.stream_events import StreamEvents
from streaming.serve.stream_times import StreamTimes

LaneCommand = Literal["restore", "reset", "close"]
OutgoingMessage = bytes | dict[str, Any]


class Block(NamedTuple):
    """Frames of one input of an epoch, or a packet of ``size`` frames; with their arrival by ``time.monotonic_ns``."""

    epoch: int
    input: str
    frames: Array | bytes
    size: int
    arrived_ns: int


class Flush(NamedTuple):
    """The end of an epoch's input."""

    epoch: int


class Answer(NamedTuple):
    """The messages of a lane for its connection.

    messages    messages to send, in order
    epoch       the epoch to which they belong
    pulses      pulses stepped so far in the epoch
    turn        the times of the turn that stepped the pulses; None if there are none
    error       an error that ends the stream after the messages
    closed      whether the lane is free
    checkpoint  a checkpoint at this point
    """

    messages: tuple[OutgoingMessage, ...]
    epoch: int
    pulses: int
    turn: TurnTimes | None = None
    error: ProtocolError | None = None
    closed: bool = False
    checkpoint: Checkpoint | None = None


@record
class CheckpointSchedule:
    """The schedule of a stream's checkpoints.

    model    the model's name in the server
    pulses   pulses between two checkpoints
    resumed  the checkpoint from which the stream continues
    """

    model: str
    pulses: int
    resumed: Checkpoint | None = None


class LaneStream(NotCopyable, reason="it is a lane of a running server"):
    """A stream in a lane. A connection fills ``inbox`` and ``commands``; the worker empties them and delivers answers.

    lane        its number in the group
    outputs     the ports that the client requested
    conversion  the rate and the samples in which sound is sent
    events      the detectors of events in the outputs
    deliver     called in the event loop with each answer
    schedule    when checkpoints are made; None: never
    """

    def __init__(
        self,
        lane: int,
        session: LaneSession,
        outputs: tuple[StreamPort, ...],
        conversion: SoundConversion,
        events: StreamEvents,
        deliver: Callable[[Answer], None],
        schedule: CheckpointSchedule | None = None,
    ) -> None:
        self.lane = lane
        self.inbox: deque[Block | Flush] = deque()
        self.commands: deque[LaneCommand] = deque()
        self.unsent_bytes = 0
        """The bytes waiting to be sent, counted by the connection. The lane stalls while they exceed a limit."""
        self.deliver = deliver
        self.times = StreamTimes()
        self._session, self._events = session, events
        self._conversion = conversion
        self._messages = AnswerMessages(session.program, outputs, conversion)
        self._flushed: deque[tuple[str, Array]] = deque()
        self._schedule = schedule
        self.arrived_ns = 0
        """Arrival time of the last sample of the waiting pulses."""
        self._finite_inputs = {
            port.name for port in conversion.inputs if conversion.is_identity and port.is_pcm(conversion.name)
        }
        """Inputs whose values are always finite, whatever a client sends."""
        self._is_passthrough = conversion.is_identity and not events.detects
        self._has_ended = self._input_ended = False

    @property
    def waiting_pulses(self) -> int:
        """The number of pulses to step."""
        return 0 if self._has_ended else self._session.waiting_pulses

    @property
    def has_work(self) -> bool:
        """Whether there is work other than steps."""
        return bool(self.inbox or self.commands)

    def prepare(self) -> Answer | None:
        """Read the inbox until a pulse is complete. Returns an answer that is due earlier; then call it again."""
        if self.commands:
            match self.commands.popleft():
                case "restore":
                    return self._restore()
                case "reset":
                    return self._reset()
                case "close":
                    return self._close()
        while self.inbox and not self.waiting_pulses:
            item = self.inbox.popleft()
            if item.epoch != self._messages.epoch or self._has_ended:
                continue
            try:
                if isinstance(item, Flush):
                    if not self._end_input(item):
                        return self._flush()
                    continue
                frames = self._conversion.decode_input(item.input, item.frames, item.size)
                self._session.feed({item.input: frames}, item.input in self._finite_inputs)
                self.arrived_ns = item.arrived_ns
            except InputError as error:
                return self.fail(error)
            except ProtocolError as error:
                self._has_ended = True
                return self._answer((), error=error)
        return None

    def _end_input(self, end: Flush) -> bool:
        """Feed the rest of the resamplers, input by input. Returns whether there was any.

        Raises InputError: the model does not take the frames
        """
        if not self._input_ended:
            self._input_ended = True
            self._flushed.extend(
                (name, sound.flush()) for name, sound in self._conversion.input_sounds.items()
            )
        if not self._flushed:
            return False
        name, frames = self._flushed.popleft()
        self.inbox.appendleft(end)
        self._session.feed({name: frames})
        return True

    def take_pulses(self, pulses: int) -> dict[str, Array]:
        """Return the next complete pulses, joined; valid until the next call."""
        return self._session.take_pulses(pulses)

    def make_answer(self, results: TurnResults, index: int, turn: TurnTimes) -> Answer:
        """Return the answer for the pulses taken and stepped, whose results are at an index of the turn."""
        session, pulses = self._session, turn.pulses
        self.times.waiting.record_ns(turn.started_ns - turn.arrived_ns, pulses)
        self.times.compute.record_ns(turn.ended_ns - turn.started_ns, pulses)
        pulses_before = session.pulses
        if self._is_passthrough and session.is_passthrough:
            session.count(pulses)
            messages: tuple[OutgoingMessage, ...] = self._messages.encode_passthrough(
                results, index, turn, session.frames_out
            )
        else:
            frames = session.take_outputs(results.of_stream(index, pulses))
            try:
                events = self._events.push(frames)
            except InputError as error:
                return self.fail(error)
            messages = (
                *self._messages.encode_outputs(frames, turn, session.frames_out),
                *self._messages.encode_events(events),
            )
        period = 0 if self._schedule is None else self._schedule.pulses
        saves = period > 0 and session.pulses // period > pulses_before // period and not self._input_ended
        return self._answer(messages, turn, saves=saves)

    def fail(self, error: InputError) -> Answer:
        """End the stream because of an error in its input."""
        self._has_ended = True
        fault = isinstance(error, FaultError)
        hint = "begin a new stream" if fault else ""
        return self._answer((), error=ProtocolError("fault" if fault else "input", str(error), hint))

    def _flush(self) -> Answer:
        """Flush the stream and return the last answer.

        Raises InputError: inputs end at different times, or the model does not take this length
        """
        frames = self._session.flush(complete=True)
        encoder, session = self._messages, self._session
        streaming = {name: array for name, array in frames.items() if name not in encoder.final_names}
        messages: list[OutgoingMessage] = [
            *encoder.encode_outputs(streaming, None, session.frames_out),
            *encoder.encode_rest(),
            *encoder.encode_events(self._events.push(streaming)),
            *encoder.encode_finals(frames),
            *encoder.encode_events(self._events.flush()),
        ]
        received = self._conversion.count_received(session.received_frames)
        sent = self._conversion.count_sent(session.frames_out)
        messages.append({"type": "flushed", "epoch": encoder.epoch, "received": received, "sent": sent})
        return self._answer(tuple(messages))

    def _reset(self) -> Answer:
        self._messages.epoch += 1
        self._input_ended = False
        self._flushed.clear()
        self._conversion.reset()
        self._session.reset()
        self._events.reset()
        return self._answer(({"type": "reset", "epoch": self._messages.epoch},), saves=True)

    def _restore(self) -> Answer:
        """Continue from a checkpoint."""
        assert self._schedule is not None and self._schedule.resumed is not None
        checkpoint = self._schedule.resumed
        try:
            self._session.restore(checkpoint.snapshot)
            self._conversion.restore(checkpoint.sound)
            if self._conversion.count_received(self._session.received_frames) != list(checkpoint.received):
                raise InputError("its frame counts are not those of its snapshot")
        except InputError as error:
            return self._answer((), error=ProtocolError("resume", str(error), "begin a new stream"))
        self._messages.epoch = checkpoint.epoch
        return self._answer((), saves=True)

    def _close(self) -> Answer:
        """Reset the lane for the next stream."""
        self._has_ended = True
        self._session.reset()
        return self._answer((), closed=True)

    def _answer(
        self,
        messages: tuple[OutgoingMessage, ...],
        turn: TurnTimes | None = None,
        error: ProtocolError | None = None,
        closed: bool = False,
        saves: bool = False,
    ) -> Answer:
        checkpoint = self._checkpoint(self._schedule.model) if saves and self._schedule is not None else None
        return Answer(messages, self._messages.epoch, self._session.pulses, turn, error, closed, checkpoint)

    def _checkpoint(self, model: str) -> Checkpoint:
        session = self._session
        snapshot = session.snapshot()
        received = tuple(self._conversion.count_received(session.received_frames))
        sent = tuple(self._conversion.count_sent(session.frames_out))
        return Checkpoint(model, self._messages.epoch, received, sent, snapshot, self._conversion.snapshot())
