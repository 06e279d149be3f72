"""Frames that are repeated."""

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.ops.shape import AddAxis, Expand, Reshape
from pulse.tflite.codes import requantize_input
from pulse.tflite.node import TfliteNode
from pulse.tflite.registry import tflite_op

MAX_SCALE = 64
"""A length that grows by a larger factor is refused."""


@tflite_op("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(node: TfliteNode) -> OutletId:
    """Repeat every frame of height and width; the new size must be a multiple."""
    sizes, x = node.dims(1, "size"), requantize_input(node)
    if node.fact(0).rank != 4 or len(sizes) != 2 or node.flag("AlignCorners"):
        raise node.error("it takes 4 axes, two sizes, and corners that are not aligned")
    for axis, size in enumerate(sizes, 1):
        shape = node.graph.fact(x).shape
        times = _growth(node, shape[axis], size)
        if times == 1:
            continue
        x = node.wire(AddAxis(axis + 1), [x], f"each{axis}")
        x = node.wire(
            Expand((*shape[: axis + 1], TDim.of(times), *shape[axis + 1 :])), [x], f"repeated{axis}"
        )
        x = node.wire(Reshape((*shape[:axis], shape[axis] * times, *shape[axis + 1 :])), [x], f"joined{axis}")
    return node.name_result(x)


def _growth(node: TfliteNode, dim: TDim, target: TDim) -> int:
    for times in range(1, MAX_SCALE + 1):
        if dim * times == target:
            return times
    raise node.error(f"{dim} frames become {target}, which is not a multiple up to {MAX_SCALE}")
