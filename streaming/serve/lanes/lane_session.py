"""LaneSession: a session whose pulses are stepped by its group, together with other streams' pulses."""

from collections.abc import Mapping, Sequence

from pulse.facts import Array
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.support.not_copyable import NotCopyable
from streaming.session import Session


class LaneSession(NotCopyable, Session, reason="it is a lane among others; take a snapshot of it"):
    """A session in a lane. In place of ``push``: ``feed``, ``take_pulses``, a step of the lanes, ``take_outputs``.

    state  the state of the lane
    """

    def __init__(self, program: Program, state: State) -> None:
        self._begin(program, state, check_finite=True)
        self._input_blocks.is_check_optional = False
        state.reset()
        self._pulses = 0

    @property
    def waiting_pulses(self) -> int:
        """The number of whole waiting pulses."""
        return self._pulses

    @property
    def is_passthrough(self) -> bool:
        """Whether the results of the next pulses are delivered unchanged."""
        return self._output_trim.is_passthrough

    @property
    def frames_out(self) -> Mapping[str, int]:
        """Output name -> valid frames returned."""
        return self._output_trim.sent_frames

    @property
    def received_frames(self) -> Mapping[str, int]:
        """Input name -> frames that have arrived."""
        return self._input_blocks.received_frames

    def feed(self, block: Mapping[str, Array], is_finite: bool = False) -> None:
        """Take more of the stream; no pulse may be waiting. Raises InputError: it does not fit; nothing has changed.

        is_finite  the block is known to fit and to be finite, such as 16-bit samples
        """
        if not is_finite or self.program.limit is not None:
            block = self._input_blocks.check(block)
        self._pulses = self._input_blocks.feed(block)
        if not self._pulses:
            self._input_blocks.keep()

    def take_pulses(self, pulses: int) -> dict[str, Array]:
        """Take the next waiting pulses, joined; valid until the next call."""
        self._pulses -= pulses
        return self._input_blocks.take(pulses)

    def count(self, pulses: int) -> None:
        """Count pulses whose results are delivered unchanged; ``is_passthrough`` says when they may be."""
        if not self._pulses:
            self._input_blocks.keep()
        self._output_trim.count_pulses(pulses)

    def take_outputs(self, results: Sequence[Mapping[str, Array]]) -> Mapping[str, Array]:
        """Take the results of pulses. Returns, for every streaming output, the valid frames that are ready."""
        if not self._pulses:
            self._input_blocks.keep()
        return self._output_trim.take(results, len(results))

    def snapshot(self) -> bytes:
        """Return a snapshot of the stream, waiting pulses included."""
        self._input_blocks.keep()
        return super().snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Restore a snapshot, waiting pulses included. Raises InputError: nothing has changed."""
        super().restore(snapshot)
        waiting = zip(self._input_blocks.pending_by_input, self._input_blocks.received_frames)
        frames = {port.name: port.frames for port in self.program.inputs}
        self._pulses = min(count // frames[name] for count, name in waiting)

    def reset(self) -> None:
        """Begin a new stream; waiting frames are dropped."""
        super().reset()
        self._pulses = 0
