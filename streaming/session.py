"""Session: one stream that takes any number of frames and gives all frames that are ready."""

from collections.abc import Mapping
from dataclasses import dataclass

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program, State, require_program
from streaming.delivery import Delivery
from streaming.intake import Intake
from streaming.snapshot import pack, unpack


@dataclass(frozen=True)
class Statistics:
    """What a session has done since it began or was reset.

    frames_in       frames of the symbol that have arrived at every input
    pending_frames  frames of the symbol that wait for a pulse to fill, at the input that has most of them
    pulses          pulses run
    frames_out      output name -> valid frames returned
    """

    frames_in: int
    pending_frames: int
    pulses: int
    frames_out: Mapping[str, int]


class Session:
    """One stream of a program: any number of frames in, all valid frames that are ready out.

    program       from ``pulse.stream(…)`` or ``PulsedModel.compile()``
    constants     the inputs that do not stream, by name
    check_finite  refuse NaN in what is pushed; infinities pass
    Raises        InputError: constants that do not fit

    Not safe for use by two threads at once. After an error in ``push`` or ``flush`` nothing has changed,
    but after a FaultError: a node had no result for some value, and the stream has to be reset or restored.
    """

    def __init__(
        self, program: Program, constants: Mapping[str, Array] | None = None, check_finite: bool = True
    ) -> None:
        self.program = require_program(program)
        self._state: State = self.program.spawn(constants)
        self._intake = Intake(program, check_finite)
        self._delivery = Delivery(program)

    @property
    def frames_in(self) -> int:
        """Frames of the symbol that have arrived at every input."""
        return self._intake.frames_in

    @property
    def pending_frames(self) -> int:
        """Frames of the symbol that wait for a pulse to fill, at the input that has most of them."""
        return self._intake.pending_frames

    @property
    def pulses(self) -> int:
        """Pulses run."""
        return self._delivery.pulses

    def statistics(self) -> Statistics:
        """The counters as they are now."""
        return Statistics(self.frames_in, self.pending_frames, self.pulses, dict(self._delivery.sent))

    def push(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Take more of the stream.

        x        an array where one input streams, else input name -> array: the port's shape and dtype, any
                 number of frames (0 too) along its stream axis. An input that is left out gets none.
        returns  every streaming output: the valid frames that are ready, maybe 0, the caller's to keep
        Raises   InputError: a name, shape or dtype that does not fit, NaN, or the stream has been flushed
        """
        self._check_open("push")
        intake, step = self._intake, self._state.step
        pulses = intake.feed(intake.checked(x))
        ready = self._delivery.valid((step(intake.take()) for _ in range(pulses)), pulses)
        intake.keep()
        return ready

    def check(self, x: Array | Mapping[str, Array]) -> None:
        """Raise the InputError that ``push`` would raise."""
        self._check_open("push")
        self._intake.checked(x)

    def flush(self, fill: float = 0.0) -> dict[str, Array]:
        """End the stream: the frames that are still to come, and the outputs that are known only now.

        fill     pads the last pulse; no frame that is returned depends on it
        returns  every output: the rest of those that stream, the whole of those that do not
        Raises   InputError: the inputs end at different moments, or the model needs another length; then the
                 stream goes on. Also if it has been flushed before.
        """
        self._check_open("flush")
        self._delivery.check_end(self.frames_in)
        results = self._state.flush(self._intake.rest(), fill)
        self._intake.clear()
        self._delivery.end = self._state.clock.end
        return {**self._delivery.valid(results, len(results)), **self._delivery.finals()}

    def reset(self) -> None:
        """Begin a new stream; the constants stay."""
        self._state.reset()
        self._intake.reset()
        self._delivery.reset()

    def snapshot(self) -> bytes:
        """All of the stream, the frames that wait included."""
        intake, delivery = self._intake, self._delivery
        counters = [int(delivery.end is not None), *intake.received.values(), *delivery.sent.values()]
        chunks = [self._state.snapshot(), *intake.dump(), *delivery.dump()]
        return pack([*counters, *intake.held, *delivery.kept], chunks)

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same model, pulse and backend. InputError: nothing changed."""
        numbers, (state, *chunks) = unpack(snapshot)
        intake, delivery = self._intake, self._delivery
        inputs, outputs = len(intake.received), len(delivery.sent)
        received, sent = numbers[1 : 1 + inputs], numbers[1 + inputs : 1 + inputs + outputs]
        waiting = numbers[1 + inputs + outputs :]
        held, kept = waiting[:inputs], waiting[inputs:]
        sizes = [intake.nbytes(held) + rest for rest in delivery.nbytes(kept)]
        fits = len(held) == inputs and len(kept) == len(delivery.kept)
        if not fits or [len(chunk) for chunk in chunks] not in sizes:
            raise InputError("the snapshot belongs to another model or pulse; take it from the same program")
        self._state.restore(state)
        intake.load(received, held, chunks)
        delivery.load(sent, kept, chunks[inputs:])
        delivery.pulses, delivery.end = self._state.clock.pulse, self._state.clock.end

    def _check_open(self, call: str) -> None:
        if self._delivery.end is not None:
            raise InputError(f"{call} after flush: the stream has ended; begin a new one with reset()")
