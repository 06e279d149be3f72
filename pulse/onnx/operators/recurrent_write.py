"""Writes recurrent layers: the ONNX operators, with the state as initial value and the next state as an output."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.onnx.write.scan import ScanWriter
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import USUAL_ACTIVATIONS, Activation
from pulse.ops.recurrent_layers import ONNX_ACTIVATIONS
from pulse.ops.scan import ScanAxis
from pulse.support.record import record


@record(eq=False)
class Layer:
    """An operator with its weights; states are [1, B, H]."""

    w: NodeWriter
    op: Recurrent
    weights: tuple[str, str, str]
    peepholes: str | None

    def run(
        self, x: str, states: Sequence[str], names: Sequence[str | None], writer: NodeWriter | None = None
    ) -> list[str]:
        """Return frames [P, 1, B, H] and the states after them, as far as they have names."""
        inputs = [x, *self.weights, "", *states]
        if self.op.lengths is not None:
            inputs[4] = self.w.constant(np.array(self.op.lengths, np.int32), "lengths")
        if self.peepholes is not None:
            inputs = [*inputs, *[""] * (7 - len(inputs)), self.peepholes]
        while not inputs[-1]:
            inputs.pop()
        return (writer or self.w).emit_all(self.op.cell.kind.upper(), inputs, names, **_attributes(self.op))


def _attributes(op: Recurrent) -> dict[str, Any]:
    cell = op.cell
    attributes: dict[str, Any] = {"hidden_size": op.hidden}
    if op.reverse:
        attributes["direction"] = "reverse"
    if cell.activations != tuple(Activation(name) for name in USUAL_ACTIVATIONS[cell.kind]):
        attributes["activations"] = [ONNX_ACTIVATIONS[function.name] for function in cell.activations]
        alphas, betas = (
            [f.parameters[index] for f in cell.activations if len(f.parameters) > index] for index in (0, 1)
        )
        attributes |= {"activation_alpha": alphas} if alphas else {}
        attributes |= {"activation_beta": betas} if betas else {}
    if cell.clip is not None:
        attributes["clip"] = cell.clip
    if cell.linear_before_reset:
        attributes["linear_before_reset"] = 1
    if cell.input_forget and cell.kind == "lstm":
        attributes["input_forget"] = 1
    return attributes


def _layer(w: NodeWriter, op: Recurrent) -> Layer:
    slot = op.optional_slot("p")
    first, second, third = (
        _with_directions(w, number, name) for number, name in ((1, "w"), (2, "r"), (3, "b"))
    )
    return Layer(w, op, (first, second, third), None if slot is None else _with_directions(w, slot, "p"))


def _with_directions(w: NodeWriter, slot: int, name: str) -> str:
    """Return an input with the axis of directions first."""
    value = w.known_value(slot)
    return w.add_axis(w.inputs[slot], 0, name) if value is None else w.constant(value[None], name)


def _initial(w: NodeWriter, op: Recurrent, name: str, slot: int, batch: int) -> str:
    """Return a given initial state [1, B, H]."""
    sizes, value = (1, batch, op.hidden), w.known_value(slot)
    if value is not None:
        return w.constant(np.broadcast_to(value, sizes[1:])[None], f"initial_{name}")
    state = w.add_axis(w.inputs[slot], 0, f"wide_{name}")
    if w.sizes(slot) == sizes[1:]:
        return state
    return w.emit("Expand", [state, w.integers(sizes, "state_shape")], f"initial_{name}")


@writes(Recurrent)
def write_recurrent(w: NodeWriter, op: Recurrent) -> list[str]:
    """Write a layer that runs over whole sequences in every pulse."""
    batch = w.size(1)
    slots = {name: op.optional_slot(name) for name in ("h", "c")[: op.cell.state_count]}
    states = ["" if slot is None else _initial(w, op, name, slot, batch) for name, slot in slots.items()]
    names = [
        "wide",
        *(f"last_{name}" if w.output_is_used[1 + slot] else None for slot, name in enumerate(slots)),
    ]
    outputs = _layer(w, op).run(w.inputs[0], states, names)
    outputs += [""] * (1 + len(slots) - len(outputs))
    return _narrow(w, outputs)


def _narrow(w: NodeWriter, outputs: Sequence[str]) -> list[str]:
    """Return the outputs without the axis of directions."""
    results = [w.remove_axis(outputs[0], 1)]
    for slot, name in enumerate(outputs[1:], 1):
        results.append(w.remove_axis(name, 0, f"state{slot}") if name and w.output_is_used[slot] else "")
    return results


@writes(RecurrentStream)
def write_recurrent_stream(w: NodeWriter, op: RecurrentStream) -> list[str]:
    """Write a layer whose state is fed back; only frames of the stream change it.

    Frames after the end have no effect if the state is not an output. The frames before the first one end within a
    pulse, always after the same number of frames: the pulse is cut in two there.
    """
    layer = _layer(w, op.op)
    states = _states(w, op)
    letters = ("h", "c")[: op.op.cell.state_count]
    begin = _states_before(w, op, states)
    ends = any(w.output_is_used[1:])
    pulse = w.sizes()[0]
    if ends and (pulse > 1 and len(states) > 1):
        return _frame_by_frame(w, op, layer, states, begin)
    before, cut = divmod(max(0, op.offset), pulse)
    parts: list[str] = []
    current = begin
    for start, stop in ((0, cut), (cut, pulse)):
        if start == stop:
            continue
        x = w.inputs[0]
        x = x if stop - start == pulse else w.crop(x, 0, start, stop, f"frames{start}")
        names = [f"wide{start}", *(f"{letter}{start}" for letter in letters)]
        y, *following = layer.run(x, current, names)
        parts.append(y)
        wait = before + (1 if start == 0 and cut else 0)
        if wait:
            has_begun = w.clock.emit_has_reached(wait)
            following = [
                w.emit("Where", [has_begun, new, old], f"{letter}{start}_updated")
                for letter, new, old in zip(letters, following, current)
            ]
        current = following
    y = parts[0] if len(parts) == 1 else w.emit("Concat", parts, "wide", axis=0)
    if ends:
        current = _write_last_states(w, op, y, begin, current, pulse)
    for state, value in zip(states, current):
        w.graph.keep(state, value)
    return _narrow(w, [y, *current])


def _states(w: NodeWriter, op: RecurrentStream) -> list[str]:
    """Return the inputs that carry h and c."""
    begin = op.initial_state()
    for index, name in enumerate(("h", "c")[: len(begin)]):
        slot = op.op.optional_slot(name)
        value = None if slot is None else w.known_value(slot)
        if op.past is None and value is not None:
            begin[index] = np.broadcast_to(value, begin[index].shape).astype(op.dtype)
    suffixes = ("state",) if len(begin) == 1 else ("h", "c")
    return [
        w.graph.add_state(f"{w.name}.{suffix}", np.ascontiguousarray(first[None]))
        for suffix, first in zip(suffixes, begin)
    ]


def _states_before(w: NodeWriter, op: RecurrentStream, states: Sequence[str]) -> list[str]:
    """Return the states before this pulse; an initial state that is an input is taken with the first pulse."""
    result = list(states)
    for index, name in enumerate(("h", "c")[: len(states)]):
        slot = op.op.optional_slot(name)
        if op.past is None and slot is not None and w.known_value(slot) is None:
            initial = _initial(w, op.op, name, slot, op.batch)
            result[index] = w.emit(
                "Where", [w.clock.emit_has_reached(1), states[index], initial], f"begin_{name}"
            )
    return result


def _write_last_states(
    w: NodeWriter, op: RecurrentStream, y: str, begin: Sequence[str], current: Sequence[str], pulse: int
) -> list[str]:
    """Write the states after the last frame of the stream. Of several frames, h is among the outputs."""
    stop = w.clock.stop(pulse, op.offset, op.length)
    if pulse > 1:
        row = w.emit(
            "Gather", [y, w.clock.add_op("Sub", [stop, w.clock.number(1)], f"{stop}-1")], "last", axis=0
        )
        current = [row]
    has_frames = w.clock.add_op(
        "Greater", [stop, w.clock.start(pulse, op.offset)], f"{stop}>start of {op.offset}"
    )
    return [
        w.emit("Where", [has_frames, new, old], f"{letter}_ended")
        for letter, new, old in zip(("h", "c"), current, begin)
    ]


def _frame_by_frame(
    w: NodeWriter, op: RecurrentStream, layer: Layer, states: Sequence[str], begin: Sequence[str]
) -> list[str]:
    """Return a scan with one step of the layer as its body, which keeps c for frames outside the stream."""
    (pulse, batch, features), hidden = w.sizes(), op.op.hidden
    scan = ScanWriter.begin(w)
    letters, sizes = ("h", "c"), (1, batch, hidden)
    old = [scan.add_state(value, letter, op.dtype, sizes) for letter, value in zip(letters, begin)]
    x = scan.add_frame(w.inputs[0], "x", w.dtype(), (batch, features), ScanAxis(0))
    valid = scan.add_validity(pulse, op.offset, op.length)
    frame = scan.inner.add_axis(x, 0, "frame")
    y, *new = layer.run(frame, old, ["frame_y", "frame_h", "frame_c"], scan.inner)
    for letter, after, before in zip(letters, new, old):
        scan.keep(valid, after, before, letter, op.dtype, sizes)
    scan.add_scan_output(scan.inner.remove_axis(y, 0, "y"), "frames", op.dtype, sizes, ScanAxis(0))
    *current, y = scan.finish(["last_h", "last_c", "wide"])
    for state, value in zip(states, current):
        w.graph.keep(state, value)
    return _narrow(w, [y, *current])
