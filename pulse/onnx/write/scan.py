"""Bodies that run for every frame of a pulse: ONNX Scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import ValueInfoProto, helper

from pulse.dim import TDim
from pulse.facts import DType, TypedFact
from pulse.onnx.write.graph import value_info
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.onnx.write.walk import write_nodes
from pulse.ops.scan import Course, Scan, ScanStream

BOOL = np.dtype(np.bool_)


@dataclass(frozen=True, eq=False)
class ScanWriter:
    """A Scan under construction.

    w      the node around it
    inner  the same node, adding to the body
    """

    w: NodeWriter
    inner: NodeWriter
    _inputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _outputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _fed: list[str] = field(default_factory=list[str])
    _courses: list[Course] = field(default_factory=list[Course])
    _made: list[Course] = field(default_factory=list[Course])

    @classmethod
    def begin(cls, w: NodeWriter) -> "ScanWriter":
        """An empty body."""
        return cls(w, replace(w, graph=w.graph.body()))

    def state(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> str:
        """A state that begins as ``value``; all states come before the frames."""
        return self._input(value, name, dtype, sizes)

    def frame(self, value: str, name: str, dtype: DType, sizes: Sequence[int], course: Course) -> str:
        """One frame of a wire outside; ``sizes`` without the axis of frames."""
        self._courses.append(course)
        return self._input(value, name, dtype, sizes)

    def valid(self, pulse: int, offset: int, length: TDim | None) -> str | None:
        """Whether the frame is one of the stream; None where all are, or where it does not matter."""
        if offset <= 0 and length is None:
            return None
        positions = self.w.clock.positions(pulse, -offset, pulse)
        inside = self.w.clock.inside(positions, offset > 0, length)
        assert inside is not None
        return self.frame(inside, "valid", BOOL, (), Course(0))

    def keep(
        self, valid: str | None, new: str, old: str, name: str, dtype: DType, sizes: Sequence[int]
    ) -> None:
        """A state after the frame: the old one, if the frame is none of the stream."""
        if valid is not None:
            new = self.inner.emit("Where", [valid, new, old], f"{name}.kept")
        self._output(new, f"{name}.after", dtype, sizes)

    def gather(self, value: str, name: str, dtype: DType, sizes: Sequence[int], course: Course) -> None:
        """What the body gives for each frame; all states come before."""
        self._made.append(course)
        self._output(value, name, dtype, sizes)

    def finish(self, suffixes: Sequence[str | None]) -> list[str]:
        """Add the node; the states after it, then the gathered frames."""
        body = helper.make_graph(self.inner.graph.nodes, f"{self.w.name}.body", self._inputs, self._outputs)
        attributes = {
            "scan_input_axes": [course.axis for course in self._courses],
            "scan_output_axes": [course.axis for course in self._made],
            "scan_input_directions": [int(course.backward) for course in self._courses],
            "scan_output_directions": [int(course.backward) for course in self._made],
        }
        told = {name: values for name, values in attributes.items() if any(values)}
        count = len(self._courses)
        return self.w.emit_all("Scan", self._fed, suffixes, body=body, num_scan_inputs=count, **told)

    def _input(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> str:
        inside = self.w.graph.names.new(f"{self.w.name}.{name}")
        self._inputs.append(value_info(inside, dtype, sizes))
        self._fed.append(value)
        return inside

    def _output(self, value: str, name: str, dtype: DType, sizes: Sequence[int]) -> None:
        """Outputs of a body have names of their own, made by its nodes."""
        own = any(value in node.output for node in self.inner.graph.nodes)
        if not own or any(value == output.name for output in self._outputs):
            value = self.inner.emit("Identity", [value], name)
        self._outputs.append(value_info(value, dtype, sizes))


@writes(Scan)
def write_scan(w: NodeWriter, op: Scan) -> list[str]:
    """All frames with every pulse."""
    first, last = len(op.scanned), len(op.scanned) + len(op.states)
    made = _scanned(w, op, w.inputs[first:last], 0, None)
    return [*made[len(op.states) :], *made[: len(op.states)]]


@writes(ScanStream)
def write_scan_stream(w: NodeWriter, op: ScanStream) -> list[str]:
    """The states are fed back; only frames of the stream touch them."""
    first = len(op.op.scanned)
    begin: list[str] = []
    states: list[str] = []
    for place, (name, zeros) in enumerate(zip(op.op.states, op.begin())):
        slot = first + place
        value = w.known(slot) if op.reload else None
        state = w.graph.state(name, zeros if value is None else value)
        states.append(state)
        if op.reload and value is None:
            state = w.emit("Where", [w.clock.reached(1), state, w.inputs[slot]], f"{name}.begin")
        begin.append(state)
    ends = any(w.used[len(op.op.gathered) :])
    made = _scanned(w, op.op, begin, op.offset, op.length if ends else None)
    after, frames = made[: len(states)], made[len(states) :]
    for state, value in zip(states, after):
        w.graph.keep(state, value)
    return [*frames, *after]


def _scanned(w: NodeWriter, op: Scan, begin: Sequence[str], offset: int, length: TDim | None) -> list[str]:
    """The states after the pulse, then the gathered frames; one frame needs no Scan around it."""
    if w.sizes()[op.scanned[0].axis] == 1:
        return _once(w, op, begin, offset, length)
    scan = ScanWriter.begin(w)
    inside = dict(zip(op.captured, w.inputs[len(op.scanned) + len(op.states) :]))
    results, sizes = _results(op)
    for name, value, fact, shape in zip(op.states, begin, results, sizes):
        inside[name] = scan.state(value, name, fact.dtype, shape)
    for slot, (name, course) in enumerate(zip(op.frames, op.scanned)):
        whole = w.sizes(slot)
        shape = (*whole[: course.axis], *whole[course.axis + 1 :])
        inside[name] = scan.frame(w.inputs[slot], name, w.dtype(slot), shape, course)
    valid = scan.valid(w.sizes()[op.scanned[0].axis], offset, length)
    made = _body(scan.inner, op, inside)
    count = len(op.states)
    for name, value, fact, shape in zip(op.states, made, results, sizes):
        scan.keep(valid, value, inside[name], name, fact.dtype, shape)
    for number, (value, course) in enumerate(zip(made[count:], op.gathered)):
        scan.gather(value, f"frame{number}", results[count + number].dtype, sizes[count + number], course)
    return scan.finish(
        [*(f"{name}.last" for name in op.states), *(f"frames{n}" for n in range(len(op.gathered)))]
    )


def _once(w: NodeWriter, op: Scan, begin: Sequence[str], offset: int, length: TDim | None) -> list[str]:
    """The nodes of the body among those around it."""
    inside = dict(zip(op.captured, w.inputs[len(op.scanned) + len(op.states) :]))
    inside |= dict(zip(op.states, begin))
    for slot, (name, course) in enumerate(zip(op.frames, op.scanned)):
        inside[name] = w.remove_axis(w.inputs[slot], course.axis, name)
    made = _body(w, op, inside)
    after, frames = made[: len(op.states)], made[len(op.states) :]
    valid = None
    if offset > 0 or length is not None:
        valid = w.clock.inside(w.clock.position(1, -offset), offset > 0, length)
    if valid is not None:
        kept = zip(op.states, after, begin)
        after = [w.emit("Where", [valid, new, old], f"{name}.kept") for name, new, old in kept]
    gathered = zip(frames, op.gathered)
    return [
        *after,
        *(w.add_axis(value, course.axis, f"frames{n}") for n, (value, course) in enumerate(gathered)),
    ]


def _results(op: Scan) -> tuple[list[TypedFact], list[tuple[int, ...]]]:
    """The facts of what the body gives, and their shapes in numbers."""
    facts = [op.body.graph.fact(outlet) for outlet in op.body.graph.outputs]
    return facts, [tuple(int(dim) for dim in fact.shape) for fact in facts]


def _body(w: NodeWriter, op: Scan, inside: Mapping[str, str]) -> list[str]:
    """The body's nodes, its inputs being wires that are there; the names of its outputs."""
    graph = op.body.graph
    names = {outlet: inside[graph.label(outlet)] for outlet in graph.inputs if graph.label(outlet) in inside}
    write_nodes(w.graph, w.clock, graph, graph.order(), names, {}, graph.outputs, f"{w.name}.")
    return [names[outlet] for outlet in graph.outputs]
