"""Small GRUs side by side, as one instruction."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.facts import F32, Array
from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.recurrent import RecurrentStream
from pulse.program.kernels.recurrent.gru_small import GATES, GruEightsRow, GruFoursRow, pack_small
from pulse.program.lower.matmul_product import emit_product, require_constant, require_stored
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.recurrent_siblings import arrange_siblings, lanes_of_layer
from pulse.program.lower.recurrent_start import frame_fields, initial_states, layer_of, split_bias
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse, stream_timing
from pulse.program.lowering import LowerGroup, Lowering, finds_groups
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@finds_groups
def find_siblings(
    lowering: Lowering, order: Sequence[int]
) -> tuple[list[int], Mapping[tuple[int, ...], LowerGroup]]:
    """Return an order in which layers of a group are adjacent, and the groups."""
    arranged, groups = arrange_siblings(lowering.graph, order)
    return arranged, dict.fromkeys(groups, lower_siblings)


def lower_siblings(lowering: Lowering, nodes: Sequence[PulsedNode]) -> list[list[TensorView]]:
    """Emit one instruction for all nodes; return the results of each."""
    frames, batch, hidden = lowering.fact(OutletId(nodes[0].id)).sizes
    width, op = lanes_of_layer(hidden), layer_of(nodes[0])
    x = lowering.allocate_temporary((len(nodes), frames, batch, GATES * width), F32)
    bias = np.zeros((LANES // width, width), np.float32)
    for layer, node in enumerate(nodes):
        _emit_projection(lowering, node, x.view(x.shape[1:], x.strides[1:], layer * x.strides[0]))
        bias[layer, :hidden] = split_bias(op.cell, require_constant(lowering, node, 3, "its bias"))[1]
    matrices = [require_stored(lowering, node, 2, "its recurrent weights").values for node in nodes]
    h, times = _allocate_state(lowering, nodes, batch, width)
    start = (
        _emit_initial_states(lowering, nodes, width)
        if times.reload
        else (lowering.add_constant(np.zeros(LANES, np.float32)), 0)
    )
    y = lowering.allocate_temporary((frames, batch, LANES), F32)
    row_class = GruFoursRow if width == 4 else GruEightsRow
    lowering.emit(
        row_class(
            **frame_fields(lowering, op, y, h, start, times),
            count=len(nodes),
            x=x,
            step_x=x.strides[0],
            backwards=sum(1 << layer for layer, node in enumerate(nodes) if layer_of(node).reverse),
            W=lowering.add_constant(pack_small(matrices, width)),
            bias=lowering.add_constant(bias.ravel()),
        )
    )
    starts = range(0, len(nodes) * width, width)
    return [[y.part(2, start, start + hidden), h.part(1, start, start + hidden)] for start in starts]


def _emit_projection(lowering: Lowering, node: PulsedNode, y: TensorView) -> None:
    """Multiply all frames of one layer by its input weights: [T, B, 3 * width], in the order of its frames."""
    frames, batch, columns = y.shape
    op, w = layer_of(node), require_stored(lowering, node, 1, "its input weights")
    b, width = require_constant(lowering, node, 3, "its bias"), columns // GATES

    def pad_units(rows: Array) -> Array:
        """Pad the units of each gate with zeros."""
        padded = np.zeros((GATES, width, *rows.shape[1:]), rows.dtype)
        padded[:, : op.hidden] = rows.reshape(GATES, op.hidden, *rows.shape[1:])
        return padded.reshape(columns, *rows.shape[1:])

    bias, _ = split_bias(op.cell, b)
    scales = w.scales_of()
    x = lowering.make_innermost(lowering.require_f32(lowering.value(node.inputs[0]), "a recurrent layer"), 2)
    rows = y.offsets([0, 1]).reshape(frames, batch)
    rows = rows[::-1].ravel() if op.reverse else rows.ravel()
    product = WindowProduct(
        x=x,
        rows_x=x.offsets([0, 1]),
        taps=np.zeros(1, np.int64),
        matrix=pad_units(w.codes).T,
        bias=pad_units(bias),
        y=y,
        rows_y=rows,
        scales=None if scales is None else pad_units(scales),
    )
    emit_product(lowering, product)


def _allocate_state(
    lowering: Lowering, nodes: Sequence[PulsedNode], batch: int, width: int
) -> tuple[TensorView, StateTiming]:
    """Allocate the states of all layers [B, 16]; return them and their timing."""
    op = nodes[0].op
    if not isinstance(op, RecurrentStream):
        return lowering.allocate_temporary((batch, LANES), F32), restart_each_pulse(lowering)
    initial, reload = np.zeros((batch, LANES), np.float32), False
    for layer, node in enumerate(nodes):
        assert isinstance(node.op, RecurrentStream)
        (initial_state,), reloads = initial_states(lowering, node, node.op)
        initial[:, layer * width :][:, : initial_state.shape[1]] = initial_state
        reload |= reloads
    return lowering.allocate_state(initial, (0, 1)), stream_timing(lowering, op, reload)


def _emit_initial_states(
    lowering: Lowering, nodes: Sequence[PulsedNode], width: int
) -> tuple[TensorView, int]:
    """Return the initial states of all layers and their row stride in elements."""
    slots = [layer_of(node).optional_slot("h") for node in nodes]
    outlets = [None if slot is None else node.inputs[slot] for node, slot in zip(nodes, slots)]
    values = [_known_start(lowering, outlet) for outlet in outlets]
    rows = max(
        (
            lowering.fact(outlet).sizes[0]
            for outlet, value in zip(outlets, values)
            if outlet and value is None
        ),
        default=0,
    )
    rows = max([rows, *(value.shape[0] for value in values if value is not None)])
    first = np.zeros((rows, LANES), np.float32)
    for index, value in enumerate(values):
        if value is not None:
            first[:, index * width :][:, : value.shape[1]] = value
    start = lowering.add_constant(first)
    if any(value is None for value in values):
        constants, start = start, lowering.allocate_temporary(first.shape, first.dtype)
        lowering.copy(constants, start)
        for index, (outlet, value) in enumerate(zip(outlets, values)):
            if value is None and outlet is not None:
                initial = lowering.require_f32(lowering.value(outlet), "an initial state")
                target = start.part(1, index * width, index * width + initial.shape[1])
                lowering.copy(
                    initial.view(
                        target.shape, [initial.strides[0] if initial.shape[0] > 1 else 0, initial.strides[1]]
                    ),
                    target,
                )
    return start, 0 if rows == 1 else LANES


def _known_start(lowering: Lowering, outlet: OutletId | None) -> Array | None:
    """Return an initial state that is constant, [1 or B, H]; zeros if there is no input for it."""
    if outlet is None:
        return np.zeros((1, 1), np.float32)
    source = outlet
    while lowering.known_value(source) is None and lowering.graph.node(source).op.keeps_values:
        source = lowering.graph.node(source).inputs[0]
    constant = lowering.known_value(source)
    if source == outlet or constant is None:
        return constant
    is_uniform = constant.size and (constant == constant.flat[0]).all()
    return np.full((1, lowering.fact(outlet).sizes[1]), constant.flat[0], np.float32) if is_uniform else None
