"""Small GRUs side by side, as one instruction."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.jit.language.simd import LANES
from pulse.ops.recurrent import Recurrent, RecurrentStream
from pulse.program.kernels.recurrent_gru_small import GATES, GruEightsRow, GruFoursRow, pack_small
from pulse.program.lower.matmul_product import emit_product, stored_of, weights_of
from pulse.program.lower.recurrent_siblings import width_of
from pulse.program.lower.recurrent_start import frame_fields, split_bias, stream_start
from pulse.program.lower.stream_state import StateTiming, restart_each_pulse
from pulse.program.lowering import Lowering, PulsedNode
from pulse.program.table.memory import Value


def lower_side_by_side(cx: Lowering, nodes: Sequence[PulsedNode]) -> list[Value]:
    """Emit one instruction for all nodes; return the results of the first and set the tensors of the others."""
    frames, batch, hidden = cx.fact(OutletId(nodes[0].id)).sizes
    width, op = width_of(hidden), _layer(nodes[0])
    x = cx.temporary((len(nodes), frames, batch, GATES * width), np.dtype(np.float32))
    bias = np.zeros((LANES // width, width), np.float32)
    for number, node in enumerate(nodes):
        _project(cx, node, x.view(x.shape[1:], x.strides[1:], number * x.strides[0]))
        bias[number, :hidden] = split_bias(op.cell, weights_of(cx, node, 3, "its bias"))[1]
    matrices = [stored_of(cx, node, 2, "its recurrent weights").values for node in nodes]
    h, times = _state(cx, nodes, batch, width)
    start = _starts(cx, nodes, width) if times.reload else (cx.constant(np.zeros(LANES, np.float32)), 0)
    y = cx.temporary((frames, batch, LANES), np.dtype(np.float32))
    kind = GruFoursRow if width == 4 else GruEightsRow
    cx.emit(
        kind(
            **frame_fields(nodes[0], op, y, h, start, times),
            count=len(nodes),
            x=x,
            step_x=x.strides[0],
            backwards=sum(1 << number for number, node in enumerate(nodes) if _layer(node).reverse),
            W=cx.constant(pack_small(matrices, width)),
            bias=cx.constant(bias.ravel()),
        )
    )
    starts = [number * width for number in range(len(nodes))]
    results = [[y.part(2, lane, lane + hidden), h.part(1, lane, lane + hidden)] for lane in starts]
    for node, values in zip(nodes[1:], results[1:]):
        for slot, value in enumerate(values):
            cx.set_value(OutletId(node.id, slot), value)
        cx.done.add(node.id)
    return results[0]


def _layer(node: PulsedNode) -> Recurrent:
    """Return the layer of a node, streaming or restarted in every pulse."""
    assert isinstance(node.op, Recurrent | RecurrentStream)
    return node.op if isinstance(node.op, Recurrent) else node.op.op


def _project(cx: Lowering, node: PulsedNode, y: Value) -> None:
    """Multiply all frames of one layer by its input weights: [T, B, 3 * width], in the order in which it reads them."""
    frames, batch, columns = y.shape
    op, w = _layer(node), stored_of(cx, node, 1, "its input weights")
    b, width = weights_of(cx, node, 3, "its bias"), columns // GATES

    def widen(rows: Array) -> Array:
        """Pad the units of each gate with zeros."""
        wide = np.zeros((GATES, width, *rows.shape[1:]), rows.dtype)
        wide[:, : op.hidden] = rows.reshape(GATES, op.hidden, *rows.shape[1:])
        return wide.reshape(columns, *rows.shape[1:])

    bias, _ = split_bias(op.cell, b)
    scales = w.scales_of()
    x = cx.innermost(cx.floats(cx.value(node.inputs[0]), "a recurrent layer"), 2)
    rows = y.offsets([0, 1]).reshape(frames, batch)
    rows = rows[::-1].ravel() if op.reverse else rows.ravel()
    tap, matrix = np.zeros(1, np.int64), widen(w.codes).T
    emit_product(
        cx=cx,
        x=x,
        rows_x=x.offsets([0, 1]),
        taps=tap,
        matrix=matrix,
        bias=widen(bias),
        y=y,
        rows_y=rows,
        scales=None if scales is None else widen(scales),
    )


def _state(cx: Lowering, nodes: Sequence[PulsedNode], batch: int, width: int) -> tuple[Value, StateTiming]:
    """Return the states of all layers [B, 16], and their timing."""
    op = nodes[0].op
    if not isinstance(op, RecurrentStream):
        return cx.temporary((batch, LANES), np.dtype(np.float32)), restart_each_pulse(cx)
    begin, reload = np.zeros((batch, LANES), np.float32), False
    for number, node in enumerate(nodes):
        assert isinstance(node.op, RecurrentStream)
        (initial_state,), reloads = stream_start(cx, node, node.op)
        begin[:, number * width :][:, : initial_state.shape[1]] = initial_state
        reload |= reloads
    times = StateTiming(cx.clock, cx.end(op.length), op.offset, reload)
    return cx.allocate_state(begin, (0, 1)), times


def _starts(cx: Lowering, nodes: Sequence[PulsedNode], width: int) -> tuple[Value, int]:
    """Return the initial states of all layers and their row stride in elements."""
    slots = [_layer(node).optional_slot("h") for node in nodes]
    outlets = [None if slot is None else node.inputs[slot] for node, slot in zip(nodes, slots)]
    values = [_known_start(cx, outlet) for outlet in outlets]
    rows = max(
        (cx.fact(outlet).sizes[0] for outlet, value in zip(outlets, values) if outlet and value is None),
        default=0,
    )
    rows = max([rows, *(value.shape[0] for value in values if value is not None)])
    first = np.zeros((rows, LANES), np.float32)
    for number, value in enumerate(values):
        if value is not None:
            first[:, number * width :][:, : value.shape[1]] = value
    start = cx.constant(first)
    if any(value is None for value in values):
        constants, start = start, cx.temporary(first.shape, first.dtype)
        cx.copy(constants, start)
        for number, (outlet, value) in enumerate(zip(outlets, values)):
            if value is None and outlet is not None:
                initial = cx.floats(cx.value(outlet), "an initial state")
                target = start.part(1, number * width, number * width + initial.shape[1])
                cx.copy(
                    initial.view(
                        target.shape, [initial.strides[0] if initial.shape[0] > 1 else 0, initial.strides[1]]
                    ),
                    target,
                )
    return start, 0 if rows == 1 else LANES


def _known_start(cx: Lowering, outlet: OutletId | None) -> Array | None:
    """Return an initial state that is constant, [1 or B, H]; zeros if there is no input for it."""
    if outlet is None:
        return np.zeros((1, 1), np.float32)
    source = outlet
    while cx.known_value(source) is None and cx.graph.node(source).op.keeps_values:
        source = cx.graph.node(source).inputs[0]
    constant = cx.known_value(source)
    if source == outlet or constant is None:
        return constant
    same = constant.size and (constant == constant.flat[0]).all()
    return np.full((1, cx.fact(outlet).sizes[1]), constant.flat[0], np.float32) if same else None
