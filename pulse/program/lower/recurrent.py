"""Recurrent layers: one product of all frames with the input weights, then one instruction for all steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_cells import CellKind
from pulse.program.kernels.matmul_codes import pack_codes
from pulse.program.kernels.recurrent import RecurrentFloatFields, RnnRow
from pulse.program.kernels.recurrent_codes import (
    GruOfCodesRow,
    GruResetOfCodesRow,
    LstmOfCodesRow,
    RecurrentCodesFields,
    RnnOfCodesRow,
)
from pulse.program.kernels.recurrent_gates import pack_gates
from pulse.program.kernels.recurrent_gru import GruResetRow, GruRow
from pulse.program.kernels.recurrent_lstm import LstmRow
from pulse.program.lower.matmul_product import emit_product, stored_of, weights_of
from pulse.program.lower.quantize_rows import unrounded_rows
from pulse.program.lower.recurrent_small import lower_side_by_side
from pulse.program.lower.recurrent_start import frame_fields, split_bias, stream_start
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value
from pulse.program.weights import Stored
from pulse.support.wording import spell

INSTRUCTIONS: Mapping[
    tuple[CellKind, bool], tuple[type[RecurrentFloatFields], type[RecurrentCodesFields]]
] = {
    ("rnn", False): (RnnRow, RnnOfCodesRow),
    ("gru", False): (GruResetRow, GruResetOfCodesRow),
    ("gru", True): (GruRow, GruOfCodesRow),
    ("lstm", False): (LstmRow, LstmOfCodesRow),
}
"""A cell, and whether its reset gate multiplies the product -> its instruction, and the one of codes."""


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
    start = _initial(cx, node, op, "h")
    projected, inside = split_bias(op.cell, b)
    fields = frame_fields(node, op, y, state[0], start, times)
    kind, cell_fields = _cell_fields(cx, node, op, r, inside, state)
    cx.emit(kind(x=_project(cx, node, w, projected), reverse=op.reverse, **fields, **cell_fields))
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


def _cell_fields(
    cx: Lowering, node: PulsedNode, op: Recurrent, r: Stored, inside: Array, state: Sequence[Value]
) -> tuple[type[RecurrentFloatFields] | type[RecurrentCodesFields], dict[str, Any]]:
    """Return the class of the instruction, and the fields specific to the cell."""
    size, codes = op.hidden, op.cell.rows is not None
    kind = INSTRUCTIONS[op.cell.kind, op.cell.resets_product][codes]
    cell_fields = _sums_of_codes(cx, size, kind.gates) if codes else {}
    weights, scales = _pack(cx, r, size, 0, kind.packed, codes)
    cell_fields |= {"W": weights, "scales": scales}
    if kind.packed < kind.gates:
        last, last_scales = _pack(cx, r, size, kind.packed, 1, codes)
        scratch = cx.temporary((2, size), np.dtype(np.float32))
        cell_fields |= {"last": last, "last_scales": last_scales, "scratch": scratch}
    if op.cell.resets_product:
        cell_fields["bias"] = cx.constant(inside)
    if op.cell.kind == "lstm":
        cell_fields |= _memory_fields(cx, node, op, state[1])
    return kind, cell_fields


def _memory_fields(cx: Lowering, node: PulsedNode, op: Recurrent, c: Value) -> dict[str, Any]:
    """Return the fields of ``LstmFields``."""
    slot = op.optional_slot("p")
    peepholes = (
        np.zeros(3 * op.hidden, np.float32) if slot is None else weights_of(cx, node, slot, "its peepholes")
    )
    start, step = _initial(cx, node, op, "c")
    couples = op.cell.input_forget
    return {"c": c, "c0": start, "step_c0": step, "peepholes": cx.constant(peepholes), "couples": couples}


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
