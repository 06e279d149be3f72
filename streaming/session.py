"""Session: a stream that takes any number of frames and returns all frames that are ready."""

from collections.abc import Mapping
from typing import Any

from pulse.errors import FaultError, InputError
from pulse.facts import Array
from pulse.program.program import Program, require_program
from pulse.program.streams.state import State, StateMark
from pulse.support.record import record
from streaming.blocks.input_blocks import InputBlocks, InputMark
from streaming.blocks.output_trim import OutputTrim, TrimMark
from streaming.snapshot import pack, unpack

_OWN = frozenset(
    {"program", "_state", "_input_blocks", "_output_trim", "_changing", "_is_direct", "_direct_pulses"}
)


@record
class SessionStatistics:
    """The counters of a session since it began or was reset.

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
    """A stream of a program: any number of frames in, all valid frames that are ready out.

    program       a program, from ``pulse.stream(…)`` or ``PulsedModel.compile()``
    constants     the inputs that do not stream, by name
    check_finite  refuse NaN in pushed arrays; infinities are accepted
    Raises        InputError: constants that do not fit

    Not safe for use by two threads at once. A copy, or an unpickled one, is an independent session of the same program
    that continues from the same state.

    ``push`` and ``flush`` are all or nothing: after any exception, KeyboardInterrupt too, the session is as it was
    before, or every further call raises InputError until ``reset`` or ``restore``. The latter applies after a
    FaultError: a node had no result for some value.
    """

    def __init__(
        self, program: Program, constants: Mapping[str, Array] | None = None, check_finite: bool = True
    ) -> None:
        self._begin(program, require_program(program).spawn(constants), check_finite)

    def _begin(self, program: Program, state: State, check_finite: bool) -> None:
        self.program = program
        self._state = state
        self._input_blocks = InputBlocks(program, check_finite)
        self._output_trim = OutputTrim(program)
        self._direct_pulses = 0
        """Pulses that bypassed both, and that they have not counted yet."""
        self._end_change()

    def _end_change(self) -> None:
        """Record that the stream is in a consistent state."""
        self._is_direct = self._output_trim.is_passthrough and self._input_blocks.is_empty
        """Whether a block of one pulse bypasses both: no frame waits, and results are delivered unchanged."""
        self._changing = False

    def _begin_change(self) -> None:
        """Record that a call begins to change the stream, or that an exception ended such a call."""
        self._count_direct_pulses()
        self._is_direct, self._changing = False, True

    def _count_direct_pulses(self) -> None:
        pulses = self._direct_pulses
        if pulses:
            self._input_blocks.count_pulses(pulses)
            self._output_trim.count_pulses(pulses)
            self._direct_pulses = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the program, a snapshot of the stream, and attributes of a subclass."""
        attributes = {name: value for name, value in self.__dict__.items() if name not in _OWN}
        return {
            "program": self.program,
            "constants": self._state.constants,
            "check_finite": self._input_blocks.check_finite,
            "snapshot": self.snapshot(),
            "added": attributes,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        program: Program = state["program"]
        self._begin(program, program.spawn(state["constants"]), state["check_finite"])
        self.restore(state["snapshot"])
        self.__dict__.update(state["added"])

    @property
    def frames_in(self) -> int:
        """Frames of the symbol that have arrived at every input."""
        self._count_direct_pulses()
        return self._input_blocks.frames_in

    @property
    def pending_frames(self) -> int:
        """Frames of the symbol that wait for a pulse to fill, at the input that has most of them."""
        return self._input_blocks.max_pending_frames

    @property
    def completed_frames(self) -> int:
        """Frames of the symbol by which ``flush`` continued the inputs with zeros."""
        return self._state.clock.completed

    @property
    def pulses(self) -> int:
        """Pulses run."""
        self._count_direct_pulses()
        return self._output_trim.pulses

    def statistics(self) -> SessionStatistics:
        """Return the present counters."""
        return SessionStatistics(
            self.frames_in, self.pending_frames, self.pulses, dict(self._output_trim.sent_frames)
        )

    def push(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Take more of the stream.

        x        an array if one input streams, else input name -> array: the port's shape and dtype, any
                 number of frames (0 too) along its stream axis. An input that is left out gets none.
        Returns  every streaming output: the valid frames that are ready, perhaps 0, which the caller owns
        Raises   InputError: a wrong name, shape or dtype, NaN, or the stream has been flushed
        """
        state = self._state
        if self._is_direct:
            counter = state.clock.word
            pulse = counter[0]
            try:
                ready = state.try_step(x, None, self._input_blocks.check_finite)
                if ready is not None:
                    if state.counts_faults:
                        state.raise_faults()
                    self._direct_pulses += 1
                    return ready
            except BaseException:
                self._is_direct, self._changing = False, state.changing or counter[0] != pulse
                raise
        self._check_open("push")
        input_blocks, output_trim = self._input_blocks, self._output_trim
        blocks = input_blocks.check(x)
        input_mark, trim_mark, state_mark = input_blocks.mark(), output_trim.mark(), None
        try:
            self._begin_change()
            if output_trim.is_passthrough and input_blocks.is_pulse(blocks):
                ready = state.step(blocks)
                input_blocks.count_pulses(1)
                output_trim.count_pulses(1)
            else:
                pulses = input_blocks.feed(blocks)
                state_mark, step = state.mark() if pulses >= state.min_pulses_to_mark else None, state.step
                ready = output_trim.take((step(input_blocks.take()) for _ in range(pulses)), pulses)
                input_blocks.keep()
            self._end_change()
            return ready
        except FaultError:
            raise
        except BaseException:
            self._rewind(input_mark, trim_mark, state_mark)
            raise

    def check(self, x: Array | Mapping[str, Array]) -> None:
        """Raise the InputError that ``push`` would raise."""
        self._check_open("push")
        self._input_blocks.check(x)

    def flush(self, fill: float = 0.0, complete: bool = False) -> dict[str, Array]:
        """End the stream. Returns the remaining frames, and the outputs that are known only now.

        fill      the value that pads the last pulse; no returned frame depends on it
        complete  continue the inputs with zeros until the model takes the length, such as a multiple of a number
        Returns   every output: the rest if it streams, else the whole
        Raises    InputError: the inputs end at different times, or the model does not take this length; then the
                  stream continues. Also if it has already been flushed.
        """
        self._check_open("flush")
        input_blocks, state, output_trim = self._input_blocks, self._state, self._output_trim
        output_trim.check_end(self.frames_in)
        input_mark, trim_mark, state_mark = input_blocks.mark(), output_trim.mark(), state.mark()
        try:
            self._begin_change()
            results = state.flush(input_blocks.pending_arrays(), fill, complete=complete)
            input_blocks.clear()
            output_trim.end_at(state.clock.end, state.clock.completed, state.clock.whole)
            outputs = {**output_trim.take(results, len(results)), **output_trim.final_outputs()}
            self._end_change()
            return outputs
        except FaultError:
            raise
        except BaseException:
            self._rewind(input_mark, trim_mark, state_mark)
            raise

    def _rewind(self, input_mark: InputMark, trim_mark: TrimMark, state_mark: StateMark | None) -> None:
        """Restore the state before a call; if the state cannot go back, ``_changing`` stays set."""
        self._begin_change()
        if state_mark is not None:
            self._state.rewind(state_mark)
        self._input_blocks.rewind(input_mark)
        self._output_trim.rewind(trim_mark)
        self._changing = self._state.changing or self._state.clock.pulse != self._output_trim.pulses

    def reset(self) -> None:
        """Begin a new stream; the constants stay."""
        self._begin_change()
        self._state.reset()
        self._input_blocks.reset()
        self._output_trim.reset()
        self._end_change()

    def snapshot(self) -> bytes:
        """Return a snapshot, waiting frames included. Raises InputError: an exception has left it in a pulse."""
        self._require_whole()
        self._count_direct_pulses()
        input_blocks, output_trim = self._input_blocks, self._output_trim
        counters = [
            int(output_trim.end is not None),
            *input_blocks.received_frames.values(),
            *output_trim.sent_frames.values(),
        ]
        sections = [self._state.snapshot(), *input_blocks.dump(), *output_trim.dump()]
        return pack([*counters, *input_blocks.pending_by_input, *output_trim.held_frames], sections)

    def restore(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same model, pulse and backend. Raises InputError: nothing has changed."""
        numbers, (state, *sections) = unpack(snapshot)
        input_blocks, output_trim = self._input_blocks, self._output_trim
        inputs, outputs = len(input_blocks.received_frames), len(output_trim.sent_frames)
        received, sent = numbers[1 : 1 + inputs], numbers[1 + inputs : 1 + inputs + outputs]
        other_numbers = numbers[1 + inputs + outputs :]
        pending, trims = other_numbers[:inputs], other_numbers[inputs:]
        sizes = [input_blocks.nbytes(pending) + last for last in output_trim.nbytes(trims)]
        fits = len(pending) == inputs and len(trims) == len(output_trim.held_frames)
        if not fits or [len(section) for section in sections] not in sizes:
            raise InputError("the snapshot belongs to another model or pulse; take it from the same program")
        changing = self._changing
        self._begin_change()
        try:
            self._state.restore(state)
        except InputError:
            self._changing = changing
            raise
        input_blocks.load(received, pending, sections)
        output_trim.load(sent, trims, sections[inputs:])
        output_trim.pulses = self._state.clock.pulse
        output_trim.end_at(self._state.clock.end)
        self._end_change()

    def _require_whole(self) -> None:
        if self._state.has_failed:
            raise self._state.failure("before this call")
        if self._changing:
            raise InputError(
                "an exception has ended push or flush while pulses ran, and they cannot be undone: begin a new stream "
                "with reset(), or restore() a snapshot"
            )

    def _check_open(self, call: str) -> None:
        self._count_direct_pulses()
        if self._changing:
            self._require_whole()
        if self._output_trim.end is not None:
            raise InputError(f"{call} after flush: the stream has ended; begin a new one with reset()")
