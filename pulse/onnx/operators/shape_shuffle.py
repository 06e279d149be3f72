"""Shuffles between channels and positions."""

from collections.abc import Iterator

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import (
    FactRelation,
    HasRank,
    SameSize,
    SameType,
)
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.ops.shape import Reshape, Transpose, exact_quotient


def _image(node: NodeContext) -> tuple[Shape, TDim]:
    shape = node.fact(0).shape
    size = node.integer("blocksize")
    if len(shape) != 4 or size < 1:
        raise node.error(f"{node.fact(0)} must be [N, C, H, W] and blocksize {size} positive")
    return shape, TDim.of(size)


def _order(node: NodeContext) -> str:
    """Return the mode: DCR (blocks before channels) or CRD (after). Raises LoadError: another mode."""
    mode = node.text("mode", "DCR")
    node.require(mode in ("DCR", "CRD"), f"mode {mode!r} is not supported; use DCR or CRD")
    return mode


@onnx_op("DepthToSpace")
def depth_to_space(node: NodeContext) -> OutletId:
    """Spread channels over blocks of positions, with the block axis before the channels (DCR) or after (CRD)."""
    (batch, channels, height, width), block = _image(node)
    mode = _order(node)
    depth = exact_quotient([channels], [block, block], f"{node.wire_name} (DepthToSpace)")
    inner = (block, block, depth) if mode == "DCR" else (depth, block, block)
    split = node.wire(Reshape((batch, *inner, height, width)), [node.input(0)], "blocks")
    perm = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    transposed = node.wire(Transpose(perm), [split], "positions")
    return node.wire(Reshape((batch, depth, height * block, width * block)), [transposed])


@onnx_op("SpaceToDepth")
def space_to_depth(node: NodeContext) -> OutletId:
    """Gather blocks of positions in channels, with the block axis before the channels (DCR) or after (CRD)."""
    (batch, channels, height, width), block = _image(node)
    rows, columns = (
        exact_quotient([dim], [block], f"{node.wire_name} (SpaceToDepth)") for dim in (height, width)
    )
    split = node.wire(Reshape((batch, channels, rows, block, columns, block)), [node.input(0)], "blocks")
    perm = (0, 3, 5, 1, 2, 4) if _order(node) == "DCR" else (0, 1, 3, 5, 2, 4)
    transposed = node.wire(Transpose(perm), [split], "channels")
    return node.wire(Reshape((batch, channels * block * block, rows, columns)), [transposed])


@rule("DepthToSpace", "SpaceToDepth")
def infer_blocks(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate channels and blocks of an image [N, C, H, W]."""
    x, y = node.input(0), node.output
    yield SameType([x, y])
    yield HasRank([x, y], 4)
    yield SameSize([Axis(x, 0), Axis(y, 0)])
