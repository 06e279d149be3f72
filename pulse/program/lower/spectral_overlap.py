"""Inverse transforms whose frames overlap in the output: each frame is transformed once, and its results are kept.

A transposed convolution reads the last T input frames of each group of ``stride`` outputs, so as a window product it
transforms every frame T times. Here the delay comes after the transform.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.conv import ConvTranspose
from pulse.ops.time import Delay
from pulse.program.kernels.copy import MoveRow
from pulse.program.kernels.pool import PoolRow
from pulse.program.kernels.reduce import SUM
from pulse.program.lower.conv import convolution_input
from pulse.program.lower.conv_transposed import lower_conv_transpose
from pulse.program.lower.matmul_product import emit_product, find_bias, require_stored
from pulse.program.lower.matmul_windows import WindowProduct
from pulse.program.lower.time import lower_delay
from pulse.program.lowering import LowerGroup, Lowering, finds_groups
from pulse.program.spectral_basis import find_dft_basis
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedGraph, PulsedNode


@finds_groups
def find_overlapping_transforms(
    lowering: Lowering, order: Sequence[int]
) -> tuple[list[int], Mapping[tuple[int, ...], LowerGroup]]:
    """Return the order unchanged, and the groups: a delay, and the transposed convolution of a transform after it."""
    graph, groups = lowering.graph, dict[tuple[int, ...], LowerGroup]()
    for node_id in order:
        node = graph.nodes[node_id]
        if isinstance(node.op, ConvTranspose) and _is_overlapping_transform(graph, node, node.op):
            groups[node.inputs[0].node, node_id] = lower_overlapping_transforms
    return list(order), groups


def _is_overlapping_transform(graph: PulsedGraph, node: PulsedNode, op: ConvTranspose) -> bool:
    """Return whether a node computes one channel from windows of overlapping transforms, and alone reads its delay."""
    source, kernel = node.inputs[0], graph.fact(node.inputs[1]).value
    delay = graph.node(source).op
    if not isinstance(delay, Delay) or delay.axis != 2 or graph.is_output(source):
        return False
    if kernel is None or kernel.ndim != 3 or kernel.shape[1] != 1 or graph.fact(source).sizes[0] != 1:
        return False
    biases = [graph.fact(outlet).value for outlet in node.inputs[2:]]
    frames = graph.fact(graph.node(source).inputs[0]).sizes[2]
    return (
        delay.overlap == -(-kernel.shape[2] // op.strides[0]) - 1 > 0
        and op.dilations == (1,)
        and op.pads[0][0] == delay.overlap * op.strides[0]
        and graph.fact(OutletId(node.id)).sizes[2] == frames * op.strides[0]
        and len(graph.outlet(source).successors) == 1
        and all(bias is not None and not bias.any() for bias in biases)
        and find_dft_basis(_frame_matrix(kernel)) is not None
    )


def _frame_matrix(kernel: Array) -> Array:
    """Return the matrix [C, outputs] that spreads a frame over its outputs, from a kernel [C, 1, K].

    A window often begins with zeros, which the kernel of a stream leaves out: they are first columns of the matrix.
    """
    matrix = np.ascontiguousarray(kernel[:, 0])
    if find_dft_basis(matrix) is None:
        forward = find_dft_basis(np.ascontiguousarray(matrix.T))
        if forward is not None:
            return np.pad(matrix, ((0, 0), (forward.points.count - matrix.shape[1], 0)))
    return matrix


def lower_overlapping_transforms(lowering: Lowering, nodes: Sequence[PulsedNode]) -> list[list[TensorView]]:
    """Emit a transform of the new frames, and the sums of the results that overlap; the delay has no value."""
    delay_node, node = nodes
    delay, op = delay_node.op, node.op
    assert isinstance(delay, Delay) and isinstance(op, ConvTranspose)
    source, outlet = OutletId(delay_node.id), OutletId(node.id)
    stored = require_stored(lowering, node, 1, "its kernel")
    if stored.codes.dtype != np.float32 or lowering.is_read_later(source):
        lowering.set_value(source, lower_delay(lowering, delay_node, delay)[0])
        lowering.begin(node.name, op.name)
        return [[lowering.value(source)], lower_conv_transpose(lowering, node, op)]
    lowering.begin(node.name, op.name)
    matrix, stride, taps = _frame_matrix(stored.codes), op.strides[0], delay.overlap + 1
    x = convolution_input(lowering, delay_node.inputs[0], None, 2)
    frames, history = x.shape[2], delay.delay + delay.overlap
    left_out = matrix.shape[1] - stored.codes.shape[2]
    initial = np.zeros((history + frames, left_out + taps * stride), np.float32)
    initial[:history, : matrix.shape[1]] = delay.initial[0].T @ matrix
    memory = lowering.allocate_state(initial, (0, 1))
    newest = memory.part(0, history, history + frames)
    emit_product(
        lowering,
        WindowProduct(
            x=x,
            rows_x=x.offsets([0, 2]),
            taps=np.zeros(1, np.int64),
            matrix=matrix,
            bias=find_bias(lowering, node, 1).repeat(matrix.shape[1]),
            y=newest,
            rows_y=newest.offsets([0]),
        ),
    )
    sent = memory.part(1, left_out, left_out + taps * stride)
    y = lowering.allocate_wire(outlet)
    ages = np.arange(taps)[::-1]
    lowering.emit(
        PoolRow(
            x=sent,
            y=y,
            M=frames,
            rows_x=lowering.add_table(sent.part(0, 0, frames).offsets([0])),
            rows_y=lowering.add_table(np.arange(frames) * stride),
            T=taps,
            taps=lowering.add_table(np.arange(taps) * sent.strides[0] + ages * stride),
            C=stride,
            kind=SUM,
            scale=1.0,
        )
    )
    row_bytes = memory.strides[0] * memory.dtype.itemsize
    kept = memory.part(0, frames, frames + history)
    lowering.emit_ending(MoveRow(dst=memory, src=kept, bytes=history * row_bytes))
    return [[], [y]]
