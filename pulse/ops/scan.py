"""A body that runs once for each frame and carries states."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact
from pulse.ops.arithmetic import arithmetic_in_use
from pulse.ops.clock import Clock, frames_at
from pulse.ops.dims import unify
from pulse.ops.op import Cumulative, Env, Op, Relation, Whole
from pulse.ops.stateful import StatefulOnFrames
from pulse.ops.work import Work, graph_work, iteration_seconds
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import OfflineRun, TypedGraph, TypedNetwork


@record
class ScanAxis:
    """How a tensor is scanned: along which axis, and whether from the last frame to the first."""

    axis: int
    backward: bool = False


@record(eq=False)
class Scan(Op):
    """Run a body once for each frame.

    states, frames[j] = body(states, x[j] …, captured)

    Inputs   x… (one for each of ``scanned``: its frames on that axis), initial states…, captured…
    Outputs  one tensor of frames for each of ``gathered``; the last states
    Stream   cumulative where every x streams on the axis of its frames, forward; else whole
    Raises   FactError: x of different lengths, states that change their shape
    Source   ONNX Scan-9

    body      one iteration; its outputs are the states, then the frames
    states    the body's inputs that are states
    frames    its inputs that are frames
    captured  its other inputs
    scanned   the axis and direction of each x
    gathered  the axis and direction of each tensor of frames that it outputs
    """

    iterates = True

    body: TypedNetwork
    states: tuple[str, ...]
    frames: tuple[str, ...]
    captured: tuple[str, ...]
    scanned: tuple[ScanAxis, ...]
    gathered: tuple[ScanAxis, ...]

    @property
    def bodies(self) -> Sequence[TypedGraph]:
        return (self.body.graph,)

    def with_bodies(self, change: Callable[[TypedNetwork], TypedNetwork]) -> "Scan":
        return replace(self, body=change(self.body))

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        frames, states = self._parts(inputs)
        length = frames[0].shape[self.scanned[0].axis]
        for fact, scan_axis in zip(frames, self.scanned):
            length = unify(length, fact.shape[scan_axis.axis], "the frames of its inputs")
        results = [self.body.graph.fact(outlet) for outlet in self.body.graph.outputs]
        for name, before, after in zip(self.states, states, results):
            if not before.agrees(after):
                raise FactError(f"its state {name} begins as {before} and continues as {after}")
        gathered = [
            TypedFact(fact.dtype, (*fact.shape[: scan_axis.axis], length, *fact.shape[scan_axis.axis :]))
            for fact, scan_axis in zip(results[len(self.states) :], self.gathered)
        ]
        return [*gathered, *(TypedFact(fact.dtype, fact.shape) for fact in states)]

    def _parts(self, inputs: Sequence[TypedFact]) -> tuple[Sequence[TypedFact], Sequence[TypedFact]]:
        first = len(self.scanned)
        return inputs[:first], inputs[first : first + len(self.states)]

    def advance(
        self, x: Sequence[Array], states: Sequence[Array], captured: Sequence[Array]
    ) -> tuple[list[list[Array]], list[Array]]:
        """Return the body's outputs for each frame, in the order of the scan, and the states after the last."""
        count = x[0].shape[self.scanned[0].axis]
        scan_outputs: list[list[Array]] = [[] for _ in self.gathered]
        current = list(states)
        outer_values = dict(zip(self.captured, captured))
        run = OfflineRun(self.body, [*self.captured, *self.states, *self.frames])
        for frame in range(count):
            feeds = {**outer_values, **dict(zip(self.states, current))}
            for name, array, scan_axis in zip(self.frames, x, self.scanned):
                index = count - 1 - frame if scan_axis.backward else frame
                feeds[name] = np.take(array, index, scan_axis.axis)
            results = run(feeds, arithmetic_in_use())
            values = [results[name] for name in self.body.graph.output_names]
            current = values[: len(self.states)]
            for frames, value in zip(scan_outputs, values[len(self.states) :]):
                frames.append(value)
        return scan_outputs, current

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        first, last = len(self.scanned), len(self.scanned) + len(self.states)
        scan_outputs, states = self.advance(inputs[:first], inputs[first:last], inputs[last:])
        sequences: list[Array] = []
        outputs = self.body.graph.outputs[len(self.states) :]
        for frames, scan_axis, outlet in zip(scan_outputs, self.gathered, outputs):
            ordered_frames = frames[::-1] if scan_axis.backward else frames
            fact = self.body.graph.fact(outlet)
            empty = np.zeros((0, *(dim.eval(env) for dim in fact.shape)), fact.dtype)
            sequence = np.concatenate([empty, *(frame[None] for frame in ordered_frames)])
            sequences.append(np.moveaxis(sequence, 0, scan_axis.axis))
        return [*sequences, *states]

    def _frames(self, inputs: Sequence[TypedFact]) -> TDim:
        return inputs[0].shape[self.scanned[0].axis]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return graph_work(self.body.graph).times(self._frames(inputs))

    def eval_seconds(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
    ) -> float:
        return size(self._frames(inputs)) * iteration_seconds(self.body.graph, size)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        first = len(self.scanned)
        if any(axis != scan_axis.axis for axis, scan_axis in zip(axes, self.scanned)) or any(
            axis is not None for axis in axes[first:]
        ):
            return Whole(
                "only frames along the axis that it runs over can stream",
                "let every input stream on that axis, and no state or other value",
            )
        if any(scan_axis.backward for scan_axis in (*self.scanned, *self.gathered)):
            return Whole(
                "it runs from the last frame to the first",
                "run it forwards, or on chunks of limited length",
            )
        begin = tuple(np.zeros(fact.sizes, fact.dtype) for fact in inputs[first : first + len(self.states)])

        def make_op(offset: int, length: TDim, past: Sequence[Array] | None) -> ScanStream:
            states = None if past is None else tuple(past[len(self.gathered) :])
            return ScanStream(self, offset, length, states or begin, states is None)

        streams = tuple(scan_axis.axis for scan_axis in self.gathered)
        return Cumulative((*streams, *(None for _ in self.states)), make_op)

    def detail(self) -> str:
        return f"{count_of(len(self.body.graph.nodes), 'node')}, states {', '.join(self.states) or 'none'}"


@record(eq=False)
class ScanStream(StatefulOnFrames):
    """A scan that carries its states from pulse to pulse.

    Inputs   those of ``op``; frame j of each x is at index j + offset, and there are ``length`` frames
    Outputs  those of ``op``; frames outside the stream are zeros
    State    the body's states, initially ``initial``; the input's, with the first pulse, if ``reload`` is set
    """

    op: Scan
    initial: tuple[Array, ...]
    reload: bool

    @property
    def bodies(self) -> Sequence[TypedGraph]:
        return self.op.bodies

    def with_bodies(self, change: Callable[[TypedNetwork], TypedNetwork]) -> "ScanStream":
        return replace(self, op=self.op.with_bodies(change))

    def buffers(self, name: str) -> list[tuple[str, int]]:
        return [(state, initial.nbytes) for state, initial in zip(self.op.states, self.initial)]

    def initial_state(self) -> list[Array]:
        return [array.copy() for array in self.initial]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        op = self.op
        first, last = len(op.scanned), len(op.scanned) + len(op.states)
        if clock.pulse == 0 and self.reload:
            state[:] = [array.copy() for array in inputs[first:last]]
        frames = inputs[0].shape[op.scanned[0].axis]
        start, stop = clock.span(frames, self.offset, self.length)
        x = [frames_at(array, scan_axis.axis, start, stop) for array, scan_axis in zip(inputs, op.scanned)]
        scan_outputs, state[:] = op.advance(x, state, inputs[last:])
        results: list[Array] = []
        for values, scan_axis, fact in zip(
            scan_outputs, op.gathered, self.facts([TypedFact.of(a) for a in inputs])
        ):
            y = np.zeros(fact.sizes, fact.dtype)
            for index, value in enumerate(values):
                frames_at(y, scan_axis.axis, start + index, start + index + 1)[...] = np.expand_dims(
                    value, scan_axis.axis
                )
            results.append(y)
        return [*results, *(array.copy() for array in state)]
