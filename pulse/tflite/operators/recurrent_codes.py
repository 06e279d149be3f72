"""Quantised LSTM layers: 8-bit frames and weights, 16-bit gates and cell state.

gates = sums in steps of 2**-12, through sigmoid and tanh in steps of 2**-15
c = f * c + i * g, in steps of a power of two;  h = o * tanh(c), in steps of the output

Source: the behaviour of LiteRT's integer kernel, whose multipliers have 31 bits and which rounds twice.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, F64, Array
from pulse.graph import OutletId
from pulse.ops.quantize import CodeTable
from pulse.ops.slice import Slice
from pulse.support.record import record
from pulse.tflite import fixed_point
from pulse.tflite.codes import code_range, exact_sum, largest_code, multiply_rows
from pulse.tflite.int16_tables import MAX_CODE, MIN_CODE
from pulse.tflite.multipliers import multiply_rounding_twice, shift_right
from pulse.tflite.node import TfliteNode, subtract_zero
from pulse.tflite.operators.recurrent_frames import scan_frames

GATE_BITS, FUNCTION_BITS = 12, 15
"""Gates are in steps of 2**-12 before their activation, and of 2**-15 after it."""


@record
class LstmWeights:
    """The weights of a layer as the file stores them; gates in the order input, output, forget, cell.

    w, r              [4 * H, I] and [4 * H, H], integers
    w_scale, r_scale  one number for each row of these
    bias              [4 * H], in steps of the sums of frames
    clip              the largest size of the cell; 0: no limit
    """

    w: Array
    w_scale: Array
    r: Array
    r_scale: Array
    bias: Array
    clip: float


def read_weights(node: TfliteNode, gates: Sequence[int]) -> LstmWeights:
    """Return the weights of the gates, in an order of the gates of the file.

    Raises LoadError: weights or biases are not stored in the file
    """

    def read_stored(first: int) -> tuple[Array, Array]:
        values, scales = list[Array](), list[Array]()
        for slot in (first + gate for gate in gates):
            if node.input_tensor(slot).data is None:
                raise node.error(f"its weights {node.input_tensor(slot).name} are not stored in the file")
            value = subtract_zero(node.input_tensor(slot))
            values.append(value)
            scales.append(np.broadcast_to(node.quantization(slot).scale.astype(np.float64), value.shape[:1]))
        return np.concatenate(values), np.concatenate(scales)

    biases: list[Array] = []
    for slot in (12 + gate for gate in gates):
        data = node.input_tensor(slot).data if node.has(slot) else None
        if data is None:
            raise node.error(f"its bias, input {slot}, is not stored in the file")
        biases.append(data.astype(np.int64))
    return LstmWeights(
        *read_stored(1), *read_stored(5), np.concatenate(biases), node.attributes.get("CellClip", 0.0)
    )


def lstm_of_codes(node: TfliteNode, parts: LstmWeights) -> list[OutletId]:
    """Return the layer; its states h (input 18) and c (input 19) are codes as well."""
    cell = node.quantization(19)
    cell_bits = -float(np.log2(cell.scale[0]))
    whole = FUNCTION_BITS - int(cell_bits)
    if (
        node.input_tensor(19).dtype != np.int16
        or cell_bits != int(cell_bits)
        or not 0 <= whole <= 6
        or cell.zero[0]
    ):
        raise node.error(
            f"the state of its cell has steps of {cell.scale[0]:g} from {cell.zero[0]}, and a power of two of "
            "int16 is needed; convert the model again"
        )
    hidden = parts.r.shape[1]
    x_factor = float(node.quantization(0).scale[0]) * parts.w_scale * 2.0**GATE_BITS
    h_factor = float(node.quantization(18).scale[0]) * parts.r_scale * 2.0**GATE_BITS
    x = node.codes(0)
    total = _sum(node, x, parts.w, parts.bias, largest_code(node.input_tensor(0)), "frames")
    x_gates = _clamp(node, multiply_rounding_twice(node, total, x_factor, "frames.gates"), "frames.clamped")

    def frame(body: TfliteNode, x: OutletId, states: Sequence[OutletId]) -> list[OutletId]:
        total = _sum(body, states[0], parts.r, None, largest_code(node.input_tensor(18)), "recurrent")
        recurrent = multiply_rounding_twice(body, total, h_factor, "recurrent.gates")
        gates = _clamp(
            body, body.apply("add", recurrent, body.cast(x, F64, "frame"), suffix="gate_sums"), "gates"
        )
        sigmoids = _look_up(
            body, _share(body, gates, 0, 3 * hidden, "sigmoid_gates"), fixed_point.sigmoid, 3, "sigmoids"
        )
        cell_gate = _share(body, gates, 3 * hidden, 4 * hidden, "cell_gate")
        candidate = _look_up(body, cell_gate, fixed_point.tanh, 3, "candidate")
        names = ("input_gate", "output_gate", "forget_gate")
        i, o, f = (
            body.cast(_share(body, sigmoids, k * hidden, (k + 1) * hidden, name), F64, f"{name}64")
            for k, name in enumerate(names)
        )
        before = body.cast(states[1], F64, "before")
        retained = body.apply("mul", f, before, suffix="retained")
        retained = shift_right(body, retained, FUNCTION_BITS, "retained")
        update = body.apply("mul", i, body.cast(candidate, F64, "candidate64"), suffix="update")
        update = shift_right(body, update, 2 * FUNCTION_BITS - int(cell_bits), "update")
        c = _clamp(
            body,
            body.apply("add", retained, update, suffix="cell64"),
            "cell",
            *_limit(parts.clip, float(cell.scale[0])),
        )
        squashed = body.cast(_look_up(body, c, fixed_point.tanh, whole, "squashed"), F64, "squashed64")
        product = body.apply("mul", o, squashed, suffix="product")
        h = multiply_rounding_twice(
            body, product, np.asarray(2.0 ** (-2 * FUNCTION_BITS) / _hidden_scale(node)), "product.codes"
        )
        low, high = code_range(np.dtype(np.int8), int(node.quantization(18).zero[0]))
        return [_clamp(body, h, "hidden", low, high), c]

    states = [node.input(slot) for slot in (18, 19)]
    return scan_frames(node, x_gates, states, frame, node.flag("TimeMajor"))


def _hidden_scale(node: TfliteNode) -> float:
    """Return the scales of the gates' results; the state's if the file does not state them."""
    quantization = node.inner[4].quantization if len(node.inner) > 4 else None
    return float((quantization or node.quantization(18)).scale[0])


def _limit(clip: float, scale: float) -> tuple[float, float]:
    if clip <= 0:
        return MIN_CODE, MAX_CODE
    max_code = min(max(int(clip / scale), MIN_CODE), MAX_CODE)
    return -max_code, max_code


def _share(node: TfliteNode, x: OutletId, start: int, end: int, name: str) -> OutletId:
    return node.wire(Slice(1, TDim.of(start), TDim.of(end)), [x], name)


def _sum(node: TfliteNode, x: OutletId, rows: Array, bias: Array | None, largest: int, name: str) -> OutletId:
    """Return whole sums of products, f64."""
    within = node.with_name(f"{node.wire_name}.{name}")
    total = exact_sum(within, x, rows.T, bias, 1, largest, partial(multiply_rows, within))
    return within.cast(total, F64, "wide")


def _clamp(
    node: TfliteNode, x: OutletId, name: str, low: float = MIN_CODE, high: float = MAX_CODE
) -> OutletId:
    """Clip to a range, in f32."""
    return node.cast(node.clip(x, float(low), float(high), f"{name}.limited"), F32, name)


def _look_up(
    node: TfliteNode, x: OutletId, function: Callable[[Array, int], Array], whole: int, name: str
) -> OutletId:
    table = function(np.arange(MIN_CODE, MAX_CODE + 1), whole)
    return node.wire(CodeTable(MIN_CODE), [x, node.constant(table, f"{name}.table")], name)
