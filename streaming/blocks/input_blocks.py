"""InputBlocks: checks and counts input blocks of any size, and re-blocks them into pulses for the machine."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NoReturn, TypeAlias, cast

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, dtype_name, widen_f16
from pulse.interface import Port
from pulse.program.streams.state import StreamedProgram
from pulse.support.wording import count_of, current_spelling, in_python, spell
from streaming.blocks.reblocking import Reblocker, ReblockerMark

InputBlock: TypeAlias = Array | Mapping[str, Array]
"""A block of input: the array of the only input that streams, or input name -> array."""
InputMark: TypeAlias = tuple[Sequence[ReblockerMark], Mapping[str, int], int]

_is_empty = attrgetter("is_empty")


class InputBlocks:
    """The streaming inputs of one stream.

    program       the program of the stream
    check_finite  refuse NaN in a block; infinities are accepted

    A block goes through ``check``, which changes nothing, then ``feed``; its pulses are taken, then the rest is
    copied so that the caller may reuse the block. ``rewind`` returns to the last ``mark``.
    """

    def __init__(self, program: StreamedProgram, check_finite: bool = True) -> None:
        self.program = program
        self.check_finite = check_finite
        self.is_check_optional = True
        """Whether callers can disable the check, so that its error says how."""
        self._queues = {port.name: Reblocker(port) for port in program.inputs if port.streams}
        self._all = tuple(self._queues.values())
        self._frames = [(name, queue.frames) for name, queue in self._queues.items()]
        self._floating = {
            name for name, queue in self._queues.items() if np.issubdtype(queue.port.dtype, np.floating)
        }
        self._only = next(iter(self._queues)) if len(self._queues) == 1 else None
        self._fed_queues: list[Reblocker] = []
        self._received: Mapping[str, int] = dict.fromkeys(self._queues, 0)
        self._passed_pulses = 0
        """Pulses that bypassed the queues and are not yet counted in ``_received``."""
        self.dropped_pulses = 0
        """Pulses that were taken but not run."""

    @property
    def received_frames(self) -> Mapping[str, int]:
        """Input name -> frames that have arrived."""
        if not self._passed_pulses:
            return self._received
        return {name: self._received[name] + self._passed_pulses * frames for name, frames in self._frames}

    @property
    def frames_in(self) -> int:
        """Frames of the symbol that have arrived at every input."""
        return min(int(count / self._queues[name].port.rate) for name, count in self.received_frames.items())

    @property
    def max_pending_frames(self) -> int:
        """Frames of the symbol that wait for a pulse to fill, at the input that has most of them."""
        return max(int(queue.pending_frames / queue.port.rate) for queue in self._queues.values())

    @property
    def min_pending_frames(self) -> int:
        """Frames of the symbol that wait for a pulse to fill, at the input that has fewest of them."""
        return min(int(queue.pending_frames / queue.port.rate) for queue in self._queues.values())

    def check(self, x: Array | Mapping[str, Array]) -> dict[str, Array]:
        """Return a block by input name. Raises InputError: a wrong name, shape or dtype, NaN, or too many frames."""
        blocks = self._blocks_by_name(x)
        for name, block in blocks.items():
            queue = self._queues.get(name)
            if queue is None:
                raise InputError(f"{name} is not a streaming input; push {self._describe_inputs()}")
            port = queue.port
            block = blocks[name] = widen_f16(block, port.dtype)
            if block.shape != port.shape and not queue.fits(block):
                raise InputError(
                    f"{name}: expected {_port_text(port)}, got shape {list(block.shape)}"
                    f"{_reshape_advice(port, block.shape)}"
                )
            if block.dtype != port.dtype:
                raise InputError(
                    f"{name}: expected {_port_text(port)}, got {dtype_name(block.dtype)}; convert it with "
                    f".astype(np.{port.dtype.name})"
                )
            if self.check_finite and name in self._floating and b"\1" in np.isnan(block).tobytes():
                self._refuse_nan(name, block)
        if self.program.limit is not None:
            self._check_limit(blocks, self.program.limit)
        return blocks

    @property
    def is_empty(self) -> bool:
        """Whether no frame waits."""
        return all(map(_is_empty, self._all))

    def is_pulse(self, blocks: Mapping[str, Array]) -> bool:
        """Return whether checked blocks are exactly one pulse: none waits, and each has its input's size."""
        for name, queue in self._queues.items():
            block = blocks.get(name)
            if block is None or block.shape != queue.port.shape or not queue.is_empty:
                return False
        return True

    def count_pulses(self, pulses: int) -> None:
        """Count pulses that bypassed the queues and will not be undone."""
        self._passed_pulses += pulses

    def mark(self) -> InputMark:
        """Return the present state, between two blocks, for ``rewind``."""
        return [queue.mark() for queue in self._all], self.received_frames, self.dropped_pulses

    def rewind(self, mark: InputMark) -> None:
        """Restore the state at the last mark."""
        queue_marks, self._received, self.dropped_pulses = mark
        for queue, queue_mark in zip(self._all, queue_marks):
            queue.rewind(queue_mark)
        self._fed_queues.clear()
        self._passed_pulses = 0

    def feed(self, blocks: Mapping[str, Array]) -> int:
        """Add checked blocks. Returns how many pulses to take; take them all, then ``keep``."""
        received = dict(self.received_frames)
        for name, block in blocks.items():
            queue = self._queues[name]
            queue.feed(block)
            self._fed_queues.append(queue)
            received[name] += block.shape[queue.axis]
        self._received, self._passed_pulses = received, 0
        return min([queue.pending_frames // queue.frames for queue in self._queues.values()])

    def take(self, pulses: int = 1) -> dict[str, Array]:
        """Return the next pulses, joined, valid until the next call."""
        return {name: queue.take(pulses) for name, queue in self._queues.items()}

    def keep(self) -> None:
        """Copy the rest of the blocks, so that the caller may change them."""
        for queue in self._fed_queues:
            queue.keep()
        self._fed_queues.clear()

    def pending_arrays(self) -> dict[str, Array]:
        """Return views of all waiting frames."""
        return {name: queue.pending_block() for name, queue in self._queues.items()}

    def clear(self) -> None:
        """Forget the waiting frames."""
        for queue in self._queues.values():
            queue.clear()

    def reset(self) -> None:
        """Begin a new stream."""
        self.clear()
        self._received = dict.fromkeys(self._queues, 0)
        self._passed_pulses = self.dropped_pulses = 0

    @property
    def pending_by_input(self) -> list[int]:
        """Frames of each input that wait for a pulse to fill."""
        return [queue.pending_frames for queue in self._queues.values()]

    def dump(self) -> list[bytes]:
        """Return the waiting frames of each input as bytes."""
        return [queue.dump() for queue in self._queues.values()]

    def nbytes(self, pending: Sequence[int]) -> list[int]:
        """Return the sizes of ``dump`` if this many frames of each input wait."""
        return [queue.nbytes(frames) for queue, frames in zip(self._queues.values(), pending)]

    def load(self, received: Sequence[int], pending: Sequence[int], sections: Sequence[bytes]) -> None:
        """Restore the waiting frames from ``received_frames``, ``pending_by_input`` and ``dump``."""
        self._received, self._passed_pulses = dict(zip(self._queues, received)), 0
        for queue, section, frames in zip(self._queues.values(), sections, pending):
            queue.load(section, frames)

    def _check_limit(self, blocks: Mapping[str, Array], limit: int) -> None:
        counts = dict(self.received_frames)
        for name, block in blocks.items():
            counts[name] += block.shape[self._queues[name].axis]
        received_frames = max(count / self._queues[name].port.rate for name, count in counts.items())
        dropped = self.dropped_pulses * self.program.pulse
        if received_frames - dropped > limit:
            frames = f"{count_of(limit, 'frame')} of {self.program.model.symbol.name}"
            raise InputError(
                f"the model takes at most {frames} and has received "
                f"{self.frames_in - dropped}, without these: give fewer frames, end the stream and begin a new one, or "
                f"compile the model with a larger {spell('max_context')} if that sets the limit"
            )

    def _refuse_nan(self, name: str, block: Array) -> NoReturn:
        axis = self._queues[name].axis
        others = tuple(other for other in range(block.ndim) if other != axis)
        frame = self.received_frames[name] + int(np.argmax(np.isnan(block).any(others)))
        is_optional = self.is_check_optional and current_spelling() is in_python
        advice = f", or let it pass with {spell('check_finite', False)}" if is_optional else ""
        raise InputError(f"{name}: NaN at frame {frame}; replace it{advice}")

    def _blocks_by_name(self, x: object) -> dict[str, Array]:
        if self._only is not None and isinstance(x, np.ndarray):
            return {self._only: x}
        if isinstance(x, Mapping):
            return {name: np.asarray(array) for name, array in cast("Mapping[str, Array]", x).items()}
        if self._only is None:
            raise InputError(
                f"{len(self._queues)} inputs stream: push them by name, {self._describe_inputs()}"
            )
        return {self._only: np.asarray(x)}

    def _describe_inputs(self) -> str:
        return "; ".join(f"{queue.port.name}: {_port_text(queue.port)}" for queue in self._queues.values())


def _port_text(port: Port) -> str:
    """Return a block's shape and dtype, the stream axis marked: [1, any, 80] f32."""
    dims = ["any" if axis == port.axis else str(size) for axis, size in enumerate(port.shape)]
    return f"[{', '.join(dims)}] {dtype_name(port.dtype)}"


def _reshape_advice(port: Port, shape: Sequence[int]) -> str:
    """Return how to reshape a block of a port that differs only in axes of size 1 and in the place of the time axis.

    Empty if it differs otherwise
    """
    others = [size for axis, size in enumerate(port.shape) if axis != port.axis and size != 1]
    axes = [axis for axis in range(len(shape)) if _sizes_without(shape, axis) == others]
    before = sum(size != 1 for size in port.shape[: port.axis])
    dims = ", ".join("-1" if axis == port.axis else str(size) for axis, size in enumerate(port.shape))
    if not axes:
        return ""
    if any(sum(size != 1 for size in shape[:axis]) == before for axis in axes):
        return f"; reshape it with .reshape({dims})"
    (axis, *_) = axes
    name = port.name if port.name.isidentifier() else "array"
    rest = [size for other, size in enumerate(shape) if other != axis]
    if port.axis is not None and rest == [*port.shape[: port.axis], *port.shape[port.axis + 1 :]]:
        return f"; its time axis is {axis}: move it with numpy.moveaxis({name}, {axis}, {port.axis})"
    target = next(
        index for index in range(len(rest) + 1) if sum(size != 1 for size in rest[:index]) == before
    )
    moved = f"numpy.moveaxis({name}, {axis}, {target}).reshape({dims})"
    return f"; its time axis is {axis}: move it with {moved}"


def _sizes_without(shape: Sequence[int], axis: int) -> list[int]:
    """Return the sizes that are not 1, without an axis."""
    return [size for other, size in enumerate(shape) if other != axis and size != 1]
