"""Recurrent layers: one product of all frames with the input weights, then one instruction for all steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.facts import F32, Array
from pulse.graph import OutletId
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.ops.recurrent_gates import CellKind
from pulse.program.kernels.matmul.product_codes import pack_codes
from pulse.program.kernels.recurrent.codes import (
    GruOfCodesRow,
    GruResetOfCodesRow,
    LstmOfCodesRow,
    RecurrentCodesFields,
    RnnOfCodesRow,
)
from pulse.program.kernels.recurrent.gates import pack_gates
from pulse.program.kernels.recurrent.gru import GruResetRow, GruRow
from pulse.program.kernels.recurrent.layer import RecurrentFloatFields
from pulse.program.kernels.recurrent.lstm import LstmRow
from pulse.program.kernels.recurrent.rnn import RnnRow
from pulse.program.lower.matmul_product import emit_product, require_constant, require_stored
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.quantize_activations import unrounded_activations
from pulse.program.lower.recurrent_start import frame_fields, initial_states, split_bias
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse, stream_timing
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.program.weights import StoredWeight
from pulse.pulsify.network import PulsedNode

INSTRUCTIONS: Mapping[
    tuple[CellKind, bool], tuple[type[RecurrentFloatFields], type[RecurrentCodesFields]]
] = {
    ("rnn", False): (RnnRow, RnnOfCodesRow),
    ("gru", False): (GruResetRow, GruResetOfCodesRow),
    ("gru", True): (GruRow, GruOfCodesRow),
    ("lstm", False): (LstmRow, LstmOfCodesRow),
}
"""Cell, whether its reset gate multiplies the product -> its instruction, and that for codes."""


@lowers(Recurrent)
def lower_recurrent(lowering: Lowering, node: PulsedNode, op: Recurrent) -> list[TensorView]:
    """Emit a layer that runs over a whole sequence in every pulse: its state restarts each time, as at clock 0."""
    h = [lowering.allocate_wire(OutletId(node.id, 1 + n), (0, 1)) for n in range(op.cell.state_count)]
    return _emit_layer(lowering, node, op, h, restart_each_pulse(lowering))


@lowers(RecurrentStream)
def lower_recurrent_stream(lowering: Lowering, node: PulsedNode, op: RecurrentStream) -> list[TensorView]:
    """Emit a streaming layer. Its state is memory and also an output."""
    initial, reload = initial_states(lowering, node, op)
    state = [lowering.allocate_state(first, (0, 1)) for first in initial]
    return _emit_layer(lowering, node, op.op, state, stream_timing(lowering, op, reload))


def _emit_layer(
    lowering: Lowering, node: PulsedNode, op: Recurrent, state: Sequence[TensorView], times: StateTiming
) -> list[TensorView]:
    """Emit the projection of all frames, then the instruction of the steps in time; return all outputs."""
    if op.lengths is not None:
        raise lowering.no_kernel("sequence_lens")
    outlet = OutletId(node.id)
    w = require_stored(lowering, node, 1, "its input weights")
    r = require_stored(lowering, node, 2, "its recurrent weights")
    b = require_constant(lowering, node, 3, "its bias")
    y = lowering.allocate_wire(outlet)
    start = _initial_state(lowering, node, op, "h")
    projected, recurrent = split_bias(op.cell, b)
    fields = frame_fields(lowering, op, y, state[0], start, times)
    instruction, cell_fields = _cell_fields(lowering, node, op, r, recurrent, state)
    lowering.emit(
        instruction(
            x=_emit_projection(lowering, node, w, projected), reverse=op.reverse, **fields, **cell_fields
        )
    )
    return [y, *state]


def _emit_projection(lowering: Lowering, node: PulsedNode, w: StoredWeight, bias: Array) -> TensorView:
    """Multiply all frames by the input weights; the result is dense [T, B, G*H]."""
    source = unrounded_activations(lowering, node.inputs[0])
    x = lowering.make_innermost(
        lowering.require_f32(lowering.value(source or node.inputs[0]), "a recurrent layer"), 2
    )
    y = lowering.allocate_temporary((*x.shape[:2], len(w.codes)), x.dtype)
    product = WindowProduct(
        x=x,
        rows_x=x.offsets([0, 1]),
        taps=np.zeros(1, np.int64),
        matrix=w.codes.T,
        bias=bias,
        y=y,
        rows_y=y.offsets([0, 1]),
        scales=w.scales_of(),
        rounds_activations=source is not None,
    )
    emit_product(lowering, product)
    return y


def _cell_fields(
    lowering: Lowering,
    node: PulsedNode,
    op: Recurrent,
    r: StoredWeight,
    recurrent: Array,
    state: Sequence[TensorView],
) -> tuple[type[RecurrentFloatFields] | type[RecurrentCodesFields], dict[str, Any]]:
    """Return the class of the instruction, and the fields specific to the cell."""
    size, codes = op.hidden, op.cell.rows is not None
    instruction = INSTRUCTIONS[op.cell.kind, op.cell.resets_product][codes]
    cell_fields = _sums_of_codes(lowering, size, instruction.gates) if codes else {}
    weights, scales = _pack(lowering, r, size, 0, instruction.packed, codes)
    cell_fields |= {"W": weights, "scales": scales}
    if instruction.packed < instruction.gates:
        last, last_scales = _pack(lowering, r, size, instruction.packed, 1, codes)
        scratch = lowering.allocate_temporary((2, size), F32)
        cell_fields |= {"last": last, "last_scales": last_scales, "scratch": scratch}
    if op.cell.resets_product:
        cell_fields["bias"] = lowering.add_constant(recurrent)
    if op.cell.kind == "lstm":
        cell_fields |= _memory_fields(lowering, node, op, state[1])
    return instruction, cell_fields


def _memory_fields(lowering: Lowering, node: PulsedNode, op: Recurrent, c: TensorView) -> dict[str, Any]:
    """Return the fields of ``LstmFields``."""
    slot = op.optional_slot("p")
    peepholes = (
        np.zeros(3 * op.hidden, np.float32)
        if slot is None
        else require_constant(lowering, node, slot, "its peepholes")
    )
    start, step = _initial_state(lowering, node, op, "c")
    couples = op.cell.input_forget
    return {
        "c": c,
        "c0": start,
        "step_c0_row": step,
        "peepholes": lowering.add_constant(peepholes),
        "couples": couples,
    }


def _sums_of_codes(lowering: Lowering, size: int, gates: int) -> dict[str, Any]:
    """Return the fields with scratch for the recurrent sums of a frame, and their initial values."""
    return {
        "sums": lowering.allocate_temporary((gates, size), F32),
        "zeros": lowering.add_constant(np.zeros(gates * size, np.float32)),
    }


def _pack(
    lowering: Lowering, r: StoredWeight, size: int, first: int, gates: int, rounds_activations: bool
) -> tuple[TensorView, TensorView | None]:
    """Pack some gates of the recurrent matrix for the kernels, and their scales, if any."""
    start, count = first * size, gates * size
    codes, scales = r.codes[start:][:count], r.scales_of(start, count)
    if rounds_activations:
        packed = lowering.add_constant(pack_codes(np.ascontiguousarray(codes.T), 1))
        return packed, None if scales is None else lowering.add_constant(np.ascontiguousarray(scales))
    packed = lowering.add_constant(pack_gates(codes, size))
    return packed, None if scales is None else lowering.add_constant(pack_gates(scales[:, None], size))


def _initial_state(lowering: Lowering, node: PulsedNode, op: Recurrent, name: str) -> tuple[TensorView, int]:
    """Return an initial state and its row stride in elements."""
    slot = op.optional_slot(name)
    if slot is None:
        return lowering.add_constant(np.zeros(op.hidden, np.float32)), 0
    value = lowering.make_innermost(
        lowering.require_f32(lowering.value(node.inputs[slot]), "an initial state"), 1
    )
    return value, 0 if value.shape[0] == 1 else value.strides[0]
