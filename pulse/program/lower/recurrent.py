"""Recurrent layers: one product of all frames with the input weights, then one instruction for all steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import GATE_COUNTS, Activation
from pulse.program.kernels import recurrent as layers
from pulse.program.kernels.matmul_codes import pack_codes
from pulse.program.kernels.recurrent_codes import (
    GruOfCodes,
    GruResetOfCodes,
    LstmOfCodes,
    RecurrentCodesRow,
    RnnOfCodes,
)
from pulse.program.kernels.recurrent_gates import ACTIVATIONS, pack_gates
from pulse.program.kernels.recurrent_gru import Gru, GruReset
from pulse.program.kernels.recurrent_lstm import Lstm
from pulse.program.lower.matmul_product import emit_product, stored_of, weights_of
from pulse.program.lower.quantize_rows import unrounded_rows
from pulse.program.lower.recurrent_small import lower_side_by_side
from pulse.program.lower.recurrent_start import stream_start
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.program.weights import Stored
from pulse.support.wording import spell


@lowers(Recurrent)
def lower_recurrent(cx: Lowering, node: PulsedNode, op: Recurrent) -> list[Value]:
    """Lower a layer that runs over a whole sequence in every pulse: its state restarts each time, as at clock 0."""
    if node.id in cx.siblings:
        return lower_side_by_side(cx, [cx.graph.nodes[member] for member in cx.siblings[node.id]])
    h = [cx.new(OutletId(node.id, slot), (0, 1)) for slot in range(1, 1 + op.cell.states)]
    return _emit_layer(cx, node, op, h, restart_each_pulse(cx))


@lowers(RecurrentStream)
def lower_recurrent_stream(cx: Lowering, node: PulsedNode, op: RecurrentStream) -> list[Value]:
    """Lower a streaming layer. Its state is memory and also an output."""
    if node.id in cx.siblings:
        return lower_side_by_side(cx, [cx.graph.nodes[member] for member in cx.siblings[node.id]])
    begin, reload = stream_start(cx, node, op)
    state = [cx.allocate_state(first, (0, 1)) for first in begin]
    times = StateTiming(cx.clock, cx.end(op.length), op.offset, reload)
    return _emit_layer(cx, node, op.op, state, times)


def _emit_layer(
    cx: Lowering, node: PulsedNode, op: Recurrent, state: Sequence[Value], times: StateTiming
) -> list[Value]:
    if op.lengths is not None:
        raise CompileError(f"{node.name}: no kernel for sequence_lens; use {spell('backend', 'numpy')}")
    outlet = OutletId(node.id)
    w = stored_of(cx, node, 1, "its input weights")
    r = stored_of(cx, node, 2, "its recurrent weights")
    b = weights_of(cx, node, 3, "its bias")
    y = cx.new(outlet)
    frames, batch, hidden = y.shape
    start, start_step = _initial(cx, node, op, "h")
    functions = [_activation(node, function) for function in op.cell.activations]
    kind, bias, own = _cell_instruction(cx, node, op, r, b, state)
    cx.emit(
        kind(
            x=_project(cx, node, w, bias),
            y=y,
            h=state[0],
            h0=start,
            clock=times.clock,
            end=times.end,
            offset=times.offset,
            T=frames,
            B=batch,
            H=hidden,
            step_h0=start_step,
            frame=y.strides[0],
            step=y.strides[1],
            reverse=op.reverse,
            reload=times.reload,
            clip=op.cell.clip or 0.0,
            **dict(zip(("f", "g", "out"), functions)),
            **own,
        )
    )
    return [y, *state]


def _project(cx: Lowering, node: PulsedNode, w: Stored, bias: Array) -> Value:
    """Multiply all frames by the input weights; the result is dense [T, B, G*H]."""
    source = unrounded_rows(cx, node.inputs[0])
    x = cx.innermost(cx.floats(cx.value(source or node.inputs[0]), "a recurrent layer"), 2)
    y = cx.temporary((*x.shape[:2], len(w.codes)), x.dtype)
    matrix, tap, rows_x, rows_y = w.codes.T, np.zeros(1, np.int64), x.offsets([0, 1]), y.offsets([0, 1])
    rounds_rows = source is not None
    emit_product(
        cx=cx,
        x=x,
        rows_x=rows_x,
        taps=tap,
        matrix=matrix,
        bias=bias,
        y=y,
        rows_y=rows_y,
        scales=w.scales_of(),
        rounds_rows=rounds_rows,
    )
    return y


def _cell_instruction(
    cx: Lowering, node: PulsedNode, op: Recurrent, r: Stored, b: Array, state: Sequence[Value]
) -> tuple[type[layers.RecurrentRow] | type[RecurrentCodesRow], Array, dict[str, Any]]:
    """Return the class of the instruction, the bias of the projection, and the fields specific to the cell."""
    size, half, codes = op.hidden, len(b) // 2, op.cell.rows is not None
    bias = b[:half] + b[half:]
    own = _sums_of_codes(cx, size, GATE_COUNTS[op.cell.kind]) if codes else {}
    if op.cell.kind == "gru" and not op.cell.linear_before_reset:
        weights, scales = _pack(cx, r, size, 0, 2, codes)
        last, last_scales = _pack(cx, r, size, 2, 1, codes)
        own |= {"scratch": cx.temporary((2, size), np.dtype(np.float32))}
        own |= {"W": weights, "scales": scales, "last": last, "last_scales": last_scales}
        return GruResetOfCodes if codes else GruReset, bias, own
    weights, scales = _pack(cx, r, size, 0, GATE_COUNTS[op.cell.kind], codes)
    own |= {"W": weights, "scales": scales}
    if op.cell.kind == "gru":
        bias[2 * size :] = b[2 * size : half]
        own["bias"] = cx.constant(np.ascontiguousarray(b[half + 2 * size :]))
        return GruOfCodes if codes else Gru, bias, own
    if op.cell.kind == "rnn":
        return RnnOfCodes if codes else layers.Rnn, bias, own
    slot = op.optional_slot("p")
    peepholes = (
        np.zeros(3 * size, np.float32) if slot is None else weights_of(cx, node, slot, "its peepholes")
    )
    start, step = _initial(cx, node, op, "c")
    memory = {"c": state[1], "c0": start, "step_c0": step}
    couples = {"peepholes": cx.constant(peepholes), "couples": op.cell.input_forget}
    return LstmOfCodes if codes else Lstm, bias, {**own, **memory, **couples}


def _sums_of_codes(cx: Lowering, size: int, gates: int) -> dict[str, Any]:
    """Return the fields with scratch for the recurrent sums of a frame, and their initial values."""
    return {
        "sums": cx.temporary((gates, size), np.dtype(np.float32)),
        "zeros": cx.constant(np.zeros(gates * size, np.float32)),
    }


def _pack(
    cx: Lowering, r: Stored, size: int, first: int, gates: int, rounds_rows: bool
) -> tuple[Value, Value | None]:
    """Pack some gates of the recurrent matrix for the kernels, and their scales, if any."""
    start, count = first * size, gates * size
    codes, scales = r.codes[start:][:count], r.scales_of(start, count)
    if rounds_rows:
        packed = cx.constant(pack_codes(np.ascontiguousarray(codes.T), 1))
        return packed, None if scales is None else cx.constant(np.ascontiguousarray(scales))
    packed = cx.constant(pack_gates(codes, size))
    return packed, None if scales is None else cx.constant(pack_gates(scales[:, None], size))


def _initial(cx: Lowering, node: PulsedNode, op: Recurrent, name: str) -> tuple[Value, int]:
    """Return an initial state and its row stride in elements."""
    slot = op.optional_slot(name)
    if slot is None:
        return cx.constant(np.zeros(op.hidden, np.float32)), 0
    value = cx.innermost(cx.floats(cx.value(node.inputs[slot]), "an initial state"), 1)
    return value, 0 if value.shape[0] == 1 else value.strides[0]


def _activation(node: PulsedNode, function: Activation) -> layers.ActivationWords:
    if function.name not in ACTIVATIONS:
        raise CompileError(
            f"{node.name}: no kernel for the activation {function}; use {spell('backend', 'numpy')}"
        )
    code = ACTIVATIONS[function.name]
    return layers.ActivationWords(code=code, alpha=function.alpha, beta=function.beta)
