"""Batch normalisation."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.norm import moments
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.shape import Reshape


@onnx_op("BatchNormalization")
def batch_norm(node: NodeContext) -> list[OutletId]:
    """Normalise with given statistics, as a multiplication and an addition: x * k + (bias - mean * k).

    In training mode the statistics are those of the batch; the outputs are their mix with the given ones.
    """
    if node.opset < 9 and not node.flag("spatial", True):
        raise node.error("only statistics for each channel are supported")
    if not node.flag("training_mode"):
        return [_normalise(node, node.input(3), node.input(4))]
    mean, variance = _of_the_batch(node)
    y = _normalise(node, mean, variance)
    if not any(node.outputs[1:]):
        return [y]
    return [y, _mix_running(node, 3, mean, "mean"), _mix_running(node, 4, variance, "variance")]


def _of_the_batch(node: NodeContext) -> tuple[OutletId, OutletId]:
    """Return mean and variance of each channel, [C], in the type of the given ones."""
    statistics = moments(node, node.input(0), [axis for axis in range(node.fact(0).rank) if axis != 1])
    rows: list[OutletId] = []
    for x, slot, name in ((statistics.mean, 3, "mean"), (statistics.variance, 4, "variance")):
        row = node.wire(Reshape(node.fact(slot).shape), [x], f"{name}_row")
        rows.append(node.cast(row, node.fact(slot).dtype, f"{name}_cast"))
    return rows[0], rows[1]


def _mix_running(node: NodeContext, slot: int, now: OutletId, name: str) -> OutletId:
    """Return a given statistic mixed with the one of the batch: given * momentum + now * (1 - momentum)."""
    momentum = node.real("momentum", 0.9)
    parts = [
        node.wire(
            Elementwise("mul"),
            [x, node.scalar_constant(share, node.fact(slot), f"{name}_{what}_share")],
            f"{name}_{what}",
        )
        for x, share, what in ((node.input(slot), momentum, "before"), (now, 1 - momentum, "now"))
    ]
    return node.wire(Elementwise("add"), parts, f"running_{name}")


def _normalise(node: NodeContext, mean: OutletId, variance: OutletId) -> OutletId:
    like = node.graph.fact(variance)
    epsilon = node.constant(np.array(node.real("epsilon", 1e-5), dtype=like.dtype), "epsilon")
    spread = node.wire(Elementwise("add"), [variance, epsilon], "spread")
    deviation = node.wire(Elementwise("sqrt"), [spread], "deviation")
    k = node.wire(Elementwise("div"), [node.input(1), deviation], "scale")
    scaled_mean = node.wire(Elementwise("mul"), [mean, k], "moved")
    shift = node.wire(Elementwise("sub"), [node.input(2), scaled_mean], "shift")
    column = (*node.fact(1).shape, *(TDim.of(1),) * max(0, node.fact(0).rank - 2))
    k = node.wire(Reshape(column), [k], "scale_column")
    shift = node.wire(Reshape(column), [shift], "shift_column")
    return node.wire(Elementwise("add"), [node.wire(Elementwise("mul"), [node.input(0), k], "scaled"), shift])
