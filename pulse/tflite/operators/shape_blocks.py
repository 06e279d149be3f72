"""Blocks of space as batches or channels and back."""

from collections.abc import Sequence
from itertools import chain

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.ops.conv import NO_PAD
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.shape import requantize_input, require_real
from pulse.tflite.registry import tflite_op


def _rearrange(
    node: TfliteNode,
    x: OutletId,
    block_shape: Sequence[TDim],
    perm: Sequence[int],
    shape: Sequence[TDim],
    suffix: str = "",
) -> OutletId:
    """Split axes, put them in another order, and join them."""
    parts = node.wire(Reshape(tuple(block_shape)), [x], f"{suffix}split")
    transposed = node.wire(Transpose(tuple(perm)), [parts], f"{suffix}transposed")
    return node.wire(Reshape(tuple(shape)), [transposed], suffix)


def _blocks(node: TfliteNode, pairs: int) -> tuple[list[int], list[tuple[TDim, TDim]]]:
    """Return the sizes of blocks, and the padding or crop at the ends of their axes. Raises LoadError."""
    require_real(node)
    sizes, amounts = node.integers(1, "block"), node.dims(2, "amounts")
    if len(amounts) != 2 * len(sizes) or pairs < len(sizes) + 1 or any(size < 1 for size in sizes):
        raise node.error(f"blocks {sizes} with {len(amounts)} amounts for {pairs} axes")
    return sizes, list(zip(amounts[::2], amounts[1::2]))


def _divide(node: TfliteNode, dim: TDim, size: int, what: str) -> TDim:
    if dim.is_const and int(dim) % size:
        raise node.error(f"its {what} {dim} does not divide into blocks of {size}")
    return dim // size


@tflite_op("SPACE_TO_BATCH_ND")
def space_to_batch(node: TfliteNode) -> OutletId:
    """Every block's entries at one position become a batch of their own."""
    rank = node.fact(0).rank
    sizes, amounts = _blocks(node, rank)
    pads = (NO_PAD, *amounts, *(NO_PAD,) * (rank - 1 - len(sizes)))
    x = requantize_input(node)
    x = x if all(pair == NO_PAD for pair in pads) else node.wire(Pad(pads), [x], "padded")
    shape, count = node.graph.fact(x).shape, len(sizes)
    inner = [_divide(node, dim, size, "size") for dim, size in zip(shape[1:], sizes)]
    block_shape = [shape[0], *chain.from_iterable((dim, TDim.of(size)) for dim, size in zip(inner, sizes))]
    trailing_shape = shape[1 + count :]
    perm = [
        *range(2, 2 * count + 1, 2),
        0,
        *range(1, 2 * count, 2),
        *range(2 * count + 1, 2 * count + 1 + len(trailing_shape)),
    ]
    batch = shape[0]
    for size in sizes:
        batch = batch * size
    return _rearrange(node, x, [*block_shape, *trailing_shape], perm, [batch, *inner, *trailing_shape])


@tflite_op("BATCH_TO_SPACE_ND")
def batch_to_space(node: TfliteNode) -> OutletId:
    """Undo ``space_to_batch``, then crop the ends."""
    shape = node.fact(0).shape
    sizes, amounts = _blocks(node, len(shape))
    batch, count = shape[0], len(sizes)
    for size in sizes:
        batch = _divide(node, batch, size, "batch")
    trailing_shape: Shape = shape[1 + count :]
    block_shape = [*(TDim.of(size) for size in sizes), batch, *shape[1:]]
    pairs = chain.from_iterable((count + 1 + index, index) for index in range(count))
    perm = [count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(trailing_shape))]
    joined_sizes = [dim * size for dim, size in zip(shape[1:], sizes)]
    x = _rearrange(
        node, requantize_input(node), block_shape, perm, [batch, *joined_sizes, *trailing_shape], "space"
    )
    for axis, (dim, (before, after)) in enumerate(zip(joined_sizes, amounts), 1):
        if before != 0 or after != 0:
            x = node.wire(Slice(axis, before, dim - after), [x], f"cut{axis}")
    return node.name_result(x)


@tflite_op("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def depth_to_space(node: TfliteNode) -> OutletId:
    """Channels as blocks of height and width, or blocks as channels."""
    require_real(node)
    shape, size = node.fact(0).shape, node.integer("BlockSize", 1)
    if len(shape) != 4 or size < 1:
        raise node.error(f"blocks of {size} for {len(shape)} axes; it takes 4")
    n, h, w, c = shape
    block = TDim.of(size)
    if node.op_type == "DEPTH_TO_SPACE":
        depth = _divide(node, c, size * size, "channels")
        block_shape = [n, h, w, block, block, depth]
        return _rearrange(
            node, requantize_input(node), block_shape, (0, 1, 3, 2, 4, 5), [n, h * size, w * size, depth]
        )
    h, w = _divide(node, h, size, "height"), _divide(node, w, size, "width")
    block_shape = [n, h, block, w, block, c]
    return _rearrange(
        node, requantize_input(node), block_shape, (0, 1, 3, 2, 4, 5), [n, h, w, c * size * size]
    )
