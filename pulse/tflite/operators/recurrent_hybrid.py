"""Float LSTM and RNN layers with quantised weights or a clipped cell state.

If the weights are codes, LiteRT quantises each frame, and the state before it, with one scale for each row.
"""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.matmul import MatMul
from pulse.ops.slice import Slice
from pulse.support.record import record
from pulse.tflite.hybrid import frame_codes
from pulse.tflite.node import TfliteNode, subtract_zero
from pulse.tflite.operators.conv import read_numbers
from pulse.tflite.operators.recurrent_frames import scan_frames


@record
class WeightRows:
    """Weights [rows, size]: f32 for floats, or integers with a scale for each row for codes."""

    values: Array
    scale: Array | None


def read_rows(node: TfliteNode, slots: Sequence[int]) -> WeightRows:
    """Return the weights of several inputs, one below the other. Raises LoadError: they are not constant."""
    tensors = [node.input_tensor(slot) for slot in slots]
    if any(tensor.data is None or not tensor.has_codes or tensor.dtype == np.int16 for tensor in tensors):
        return WeightRows(np.concatenate([read_numbers(node, slot, f"input {slot}") for slot in slots]), None)
    values = [subtract_zero(tensor).astype(np.float32) for tensor in tensors]
    scales = [
        np.broadcast_to(node.quantization(slot).scale, len(value)) for slot, value in zip(slots, values)
    ]
    return WeightRows(np.concatenate(values), np.concatenate(scales).astype(np.float32))


def multiply_rows(node: TfliteNode, x: OutletId, rows: WeightRows, name: str) -> OutletId:
    """Return floats [..., size] times the rows."""
    matrix = node.constant(rows.values.T, f"{name}.matrix")
    if rows.scale is None:
        return node.wire(MatMul(), [x, matrix], name)
    codes, step = frame_codes(
        node.with_name(f"{node.wire_name}.{name}"), x, node.flag("AsymmetricQuantizeInputs")
    )
    total = node.wire(MatMul(), [codes, matrix], f"{name}.sum")
    scale = node.apply("mul", step, node.constant(rows.scale, f"{name}.scale"), suffix=f"{name}.scales")
    return node.apply("mul", total, scale, suffix=name)


def lstm_of_floats(
    node: TfliteNode, w: WeightRows, r: WeightRows, bias: Array, function: str
) -> list[OutletId]:
    """Return an LSTM, gates in the order input, output, forget, cell; ``function`` is the cell's activation."""
    size, clip = r.values.shape[1], node.attributes.get("CellClip", 0.0)
    x = multiply_rows(node, node.values(0), w, "product")
    x = node.apply("add", x, node.constant(bias.astype(np.float32), "bias"), suffix="biased")

    def frame(body: TfliteNode, x: OutletId, states: Sequence[OutletId]) -> list[OutletId]:
        gates = body.apply("add", x, multiply_rows(body, states[0], r, "recurrent"), suffix="gates")
        parts = [
            body.wire(Slice(1, TDim.of(start * size), TDim.of(end * size)), [gates], name)
            for start, end, name in ((0, 1, "i"), (1, 2, "o"), (2, 3, "f"), (3, 4, "g"))
        ]
        i, o, f = (body.apply("sigmoid", part, suffix=f"{name}_gate") for name, part in zip("iof", parts))
        candidate = body.apply(function, parts[3], suffix="candidate")
        update = body.apply("mul", i, candidate, suffix="update")
        retained = body.apply("mul", f, states[1], suffix="retained")
        c = body.apply("add", retained, update, suffix="cell")
        if clip > 0:
            c = body.clip(c, -clip, clip, "clipped")
        return [body.apply("mul", o, body.apply(function, c, suffix="squashed"), suffix="hidden"), c]

    return scan_frames(node, x, [node.input(18), node.input(19)], frame, node.flag("TimeMajor"))


def rnn_of_floats(
    node: TfliteNode, w: WeightRows, r: WeightRows, bias: Array, function: str
) -> list[OutletId]:
    """Return a plain layer."""
    x = multiply_rows(node, node.values(0), w, "product")
    x = node.apply("add", x, node.constant(bias.astype(np.float32), "bias"), suffix="biased")

    def frame(body: TfliteNode, x: OutletId, states: Sequence[OutletId]) -> list[OutletId]:
        total = body.apply("add", x, multiply_rows(body, states[0], r, "recurrent"), suffix="total")
        return [body.apply(function, total, suffix="hidden")]

    return scan_frames(node, x, [node.input(4)], frame, node.flag("TimeMajor"))
