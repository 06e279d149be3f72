"""Batch normalisation."""

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.norm import moments
from pulse.onnx.registry import onnx_op
from pulse.ops.shape import Reshape


@onnx_op("BatchNormalization")
def batch_norm(node: NodeContext) -> list[OutletId]:
    """Normalise with given statistics, as a multiplication and an addition: x * k + (bias - mean * k).

    In training mode the batch has the statistics; the outputs are weighted sums of these and the given ones.
    """
    if node.opset < 9 and not node.flag("spatial", True):
        raise node.error("only statistics for each channel are supported")
    epsilon = node.real("epsilon", 1e-5)
    if not node.flag("training_mode"):
        return [normalise(node, node.input(3), node.input(4), epsilon)]
    statistics = moments(node, node.input(0), [axis for axis in range(node.fact(0).rank) if axis != 1])
    mean, variance = (
        _as_given(node, x, slot, name)
        for x, slot, name in ((statistics.mean, 3, "mean"), (statistics.variance, 4, "variance"))
    )
    y = normalise(node, None, variance, epsilon, centred=statistics.centred)
    if not any(node.outputs[1:]):
        return [y]
    return [y, _mix_running(node, 3, mean, "mean"), _mix_running(node, 4, variance, "variance")]


def _as_given(node: NodeContext, x: OutletId, slot: int, name: str) -> OutletId:
    """Return a statistic of each channel, [C], in the type of the given one."""
    row = node.wire(Reshape(node.fact(slot).shape), [x], f"{name}_row")
    return node.cast(row, node.fact(slot).dtype, f"{name}_cast")


def _mix_running(node: NodeContext, slot: int, now: OutletId, name: str) -> OutletId:
    """Return a given statistic mixed with the batch's: given * momentum + now * (1 - momentum)."""
    momentum = node.real("momentum", 0.9)
    before = node.apply("mul", node.input(slot), momentum, suffix=f"{name}_before")
    share = node.apply("mul", now, 1 - momentum, suffix=f"{name}_now")
    return node.apply("add", before, share, suffix=f"running_{name}")


def normalise(
    node: NodeContext,
    mean: OutletId | None,
    variance: OutletId,
    epsilon: float,
    channels_second: bool = True,
    centred: OutletId | None = None,
) -> OutletId:
    """Compute ``x * k + (bias - mean * k)`` with ``k = scale / sqrt(variance + epsilon)``.

    The inputs are x, scale and bias. If ``centred`` is given, x without its mean, ``centred * k + bias``.
    """
    spread = node.apply("add", variance, epsilon, suffix="spread")
    deviation = node.apply("sqrt", spread, suffix="deviation")
    k = node.apply("div", node.input(1), deviation, suffix="scale")
    shift = node.input(2)
    if mean is not None:
        shift = node.apply("sub", shift, node.apply("mul", mean, k, suffix="moved"), suffix="shift")
    if channels_second:
        column = (*node.fact(1).shape, *(TDim.of(1),) * max(0, node.fact(0).rank - 2))
        k = node.wire(Reshape(column), [k], "scale_column")
        shift = node.wire(Reshape(column), [shift], "shift_column")
    x = node.input(0) if centred is None else centred
    return node.apply("add", node.apply("mul", x, k, suffix="scaled"), shift)
