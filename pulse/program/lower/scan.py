"""Scans: the instructions of the body, repeated for each frame."""

from collections.abc import Iterator, Sequence

from pulse.errors import CompileError, PulsifyError
from pulse.graph import OutletId
from pulse.ops.scan import Scan, ScanAxis, ScanStream
from pulse.program.kernels.scan import KeepFrameRow
from pulse.program.lower.fault import CheckedFrames, frames_of_every_pulse, make_fault_checker
from pulse.program.lowering import FaultChecker, Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.constants import transfer_constants
from pulse.pulsify.network import PulsedGraph, PulsedNode
from pulse.support.wording import count_of, spell

MAX_INSTRUCTIONS = 4096
"""Maximum number of instructions of a scan, to which each frame adds the whole body; more are refused."""


@lowers(Scan)
def lower_scan(lowering: Lowering, node: PulsedNode, op: Scan) -> list[TensorView]:
    """Emit the body for all frames of a pulse; the states stay in the memory of its results."""
    frames = _Frames(lowering, node, op)
    check_faults = lowering.body_checker(node, lambda: make_fault_checker(frames_of_every_pulse(lowering)))
    states = frames.initial
    for frame in range(frames.count):
        states = frames.emit(frame, states, check_faults)
    return [*frames.gathered, *states]


@lowers(ScanStream)
def lower_scan_stream(lowering: Lowering, node: PulsedNode, op: ScanStream) -> list[TensorView]:
    """Emit a streaming scan. Its states are memory and also outputs; only frames of the stream replace them."""
    frames = _Frames(lowering, node, op.op)
    first = len(op.op.scanned)
    states: list[TensorView] = []
    for outlet, start, zeros in zip(node.inputs[first:], frames.initial, op.initial_state()):
        constant = lowering.known_value(outlet) if op.reload else None
        state = lowering.allocate_state(zeros if constant is None else constant, range(zeros.ndim))
        states.append(state)
        if op.reload and constant is None:
            _emit_keep_frame(
                lowering,
                lowering.order_axes(start, range(zeros.ndim)),
                state,
                lowering.add_table([1]),
                pulse=1,
                frame=0,
                offset=0,
            )
    end = lowering.length_register(op.length)
    first_table, gate = lowering.add_table([0]), lowering.add_table([0])
    for frame in range(frames.count):
        check_faults = make_fault_checker(
            CheckedFrames(None, frames.count, frame - op.offset, first_table, end, gate)
        )
        fresh = [_keep_apart(lowering, value, states) for value in frames.emit(frame, states, check_faults)]
        for value, state in zip(fresh, states):
            _emit_keep_frame(lowering, value, state, end, frames.count, frame, op.offset)
    return [*frames.gathered, *states]


def _emit_keep_frame(
    lowering: Lowering,
    new: TensorView,
    state: TensorView,
    end: TensorView,
    pulse: int,
    frame: int,
    offset: int,
) -> None:
    """Copy a new state into memory, if frame ``frame`` of the pulse belongs to the stream."""
    size = state.size * state.dtype.itemsize
    clock = lowering.clock
    lowering.emit(
        KeepFrameRow(new=new, state=state, clock=clock, end=end, P=pulse, i=frame, offset=offset, bytes=size)
    )


def _keep_apart(lowering: Lowering, new: TensorView, states: Sequence[TensorView]) -> TensorView:
    """Return a new state in row-major order, outside the memories that are about to be replaced."""
    order = range(len(new.shape))
    if all(new.buffer is not state.buffer for state in states):
        return lowering.order_axes(new, order)
    target = lowering.allocate_temporary(new.shape, new.dtype, order)
    lowering.copy(new, target)
    return target


class _Frames:
    """The frames of one pulse, and the body that runs for each of them.

    count     the number of frames
    initial   the initial states that the node reads
    gathered  the node's outputs that collect frames
    """

    def __init__(self, lowering: Lowering, node: PulsedNode, op: Scan) -> None:
        first, last = len(op.scanned), len(op.scanned) + len(op.states)
        inputs = [lowering.value(outlet) for outlet in node.inputs]
        self._lowering, self._node, self._op = lowering, node, op
        self._body, self._inputs = _pulsify_body(node, op)
        self._x, self.initial, self._captured = inputs[:first], inputs[first:last], inputs[last:]
        self.count = inputs[0].shape[op.scanned[0].axis]
        self.gathered = [lowering.allocate_wire(OutletId(node.id, slot)) for slot in range(len(op.gathered))]
        self._emitted = len(lowering.builder.instructions)

    def emit(
        self, frame: int, states: Sequence[TensorView], check_faults: FaultChecker | None
    ) -> list[TensorView]:
        """Emit one frame, in the order of the run; return the states after it."""
        lowering, op = self._lowering, self._op
        others = zip((*op.states, *op.captured), (*states, *self._captured))
        inputs = {self._inputs[name]: value for name, value in (*others, *self._frame_inputs(frame))}
        results = lowering.lower_body(self._body, inputs, check_faults)
        for value, y, scan_axis in zip(results[len(states) :], self.gathered, op.gathered):
            lowering.copy(value, self._take_frame(y, scan_axis, frame))
        if len(lowering.builder.instructions) - self._emitted > MAX_INSTRUCTIONS:
            raise CompileError(
                f"{self._node.name}: its body for {count_of(self.count, 'frame')} is more than {MAX_INSTRUCTIONS} "
                f"instructions; take fewer frames, or use {spell('backend', 'numpy')}"
            )
        return results[: len(states)]

    def _frame_inputs(self, frame: int) -> Iterator[tuple[str, TensorView]]:
        """Yield the name and the tensor of each input of the body that is one frame of a scanned input."""
        for name, x, scan_axis in zip(self._op.frames, self._x, self._op.scanned):
            yield name, self._take_frame(x, scan_axis, frame)

    def _take_frame(self, value: TensorView, scan_axis: ScanAxis, frame: int) -> TensorView:
        """Return a frame, in the order of the run, without its axis."""
        axis, index = scan_axis.axis, self.count - 1 - frame if scan_axis.backward else frame
        shape, strides = (tuple(a[:axis]) + tuple(a[axis + 1 :]) for a in (value.shape, value.strides))
        return value.view(shape, strides, index * value.strides[axis])


def _pulsify_body(node: PulsedNode, op: Scan) -> tuple[PulsedGraph, dict[str, OutletId]]:
    """Return the body as a graph of constant shapes, its nodes named after the scan, and its input wires by name.

    Raises CompileError: some shape in it is not constant.
    """
    source, graph = op.body.graph, PulsedGraph()
    try:
        mapping = transfer_constants(source, graph, prefix=f"{node.name}/")
    except PulsifyError as error:
        raise CompileError(f"{node.name}: in its body {error}, or use {spell('backend', 'numpy')}") from error
    graph.set_outputs([mapping[outlet] for outlet in source.outputs], source.output_names)
    return graph, {name: mapping[source.find(name)] for name in (*op.states, *op.frames, *op.captured)}
