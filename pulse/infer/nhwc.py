"""Tensors with their channels last, as in TensorFlow and TFLite: orders of axes, padding, and blocks of space."""

from collections.abc import Sequence
from itertools import chain
from math import prod

from pulse.dim import ZERO, TDim, ceil_div, dim_max
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.slices import slice_op
from pulse.ops.conv import NO_PAD, Pads
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice

PadPair = tuple[TDim, TDim]
"""Frames before and after an axis."""


def channels_first(rank: int) -> tuple[int, ...]:
    """Return the order of axes that makes [N, X..., C] of a rank [N, C, X...]."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """Return the order of axes that makes [N, C, X...] of a rank [N, X..., C]."""
    return (0, *range(2, rank), 1)


def split_total(total: TDim, upper: bool = True) -> PadPair:
    """Return the padding before and after; an odd frame is added after (upper) or before."""
    small = total // 2
    return (small, total - small) if upper else (total - small, small)


def same_pair(size: TDim, span: int, stride: int, upper: bool = True) -> PadPair:
    """Return the padding SAME of a window over an axis: ``ceil(size / stride)`` outputs."""
    if stride == 1:
        return split_total(TDim.of(span - 1), upper)
    return split_total(dim_max(0, (ceil_div(size, stride) - 1) * stride + span - size), upper)


def window_pads(
    same: bool, sizes: tuple[TDim, ...], spans: tuple[int, ...], strides: tuple[int, ...]
) -> Pads:
    """Return the padding SAME or VALID of every spatial axis."""
    return tuple(
        same_pair(size, span, stride) if same else NO_PAD for size, span, stride in zip(sizes, spans, strides)
    )


def pad_of_dilation(node: NodeContext, x: OutletId) -> OutletId:
    """Pad the axes after the batch with zeros: input 1, the paddings, minus input 2, the crops; cut below 0.

    Raises LoadError: the numbers do not fit the axes.
    """
    pads, crops, rank = node.dims(1, "paddings"), node.dims(2, "crops"), node.graph.fact(x).rank
    if len(pads) != len(crops) or len(pads) % 2 or len(pads) > 2 * (rank - 1):
        raise node.error(f"its paddings and crops do not fit {node.fact(0)}")
    differences = [pad - crop for pad, crop in zip(pads, crops)]
    ends = [NO_PAD, *zip(differences[::2], differences[1::2])]
    ends += [NO_PAD] * (rank - len(ends))
    pads = tuple((_above_zero(before), _above_zero(after)) for before, after in ends)
    if any(pair != NO_PAD for pair in pads):
        x = node.wire(Pad(pads), [x], "padded")
    for axis, (before, after) in enumerate(ends):
        if before.prove_ge(0).no or after.prove_ge(0).no:
            size = node.graph.fact(x).shape[axis]
            x = node.wire(Slice(axis, _above_zero(-before), size - _above_zero(-after)), [x], f"cut{axis}")
    return x


def _above_zero(dim: TDim) -> TDim:
    """Return the dim if it is above 0, else 0."""
    return ZERO if dim.prove_ge(0).no else dim


def move_blocks_to_batch(node: NodeContext, x: OutletId, is_split: bool) -> OutletId:
    """Move the positions in a block of spatial axes to the batch, or back; inputs 1 and 2 have blocks and ends.

    Raises LoadError: the blocks do not fit the axes or do not divide them
    """
    blocks = node.integers(1, "block_shape")
    ends = node.end_amounts(2, len(blocks), "paddings" if is_split else "crops")
    return (_space_to_batch if is_split else _batch_to_space)(node, x, blocks, ends)


def _space_to_batch(
    node: NodeContext, x: OutletId, blocks: Sequence[int], pads: Sequence[PadPair]
) -> OutletId:
    """Pad the axes after the batch; the positions within their blocks become the outermost part of the batch."""
    _require_blocks(node, x, blocks, pads)
    ends = (NO_PAD, *pads, *(NO_PAD,) * (node.graph.fact(x).rank - 1 - len(pads)))
    if any(pair != NO_PAD for pair in ends):
        x = node.wire(Pad(ends), [x], "padded")
    batch, *sizes = node.graph.fact(x).shape
    count, trailing = len(blocks), sizes[len(blocks) :]
    counts = [_divide(node, size, block, "size") for size, block in zip(sizes, blocks)]
    pairs = chain.from_iterable((size, TDim.of(block)) for size, block in zip(counts, blocks))
    split = [batch, *pairs, *trailing]
    perm = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, len(split))]
    return _rearrange(node, x, split, perm, [batch * prod(blocks), *counts, *trailing])


def _batch_to_space(
    node: NodeContext, x: OutletId, blocks: Sequence[int], crops: Sequence[PadPair]
) -> OutletId:
    """Undo ``_space_to_batch``, then crop the ends."""
    _require_blocks(node, x, blocks, crops)
    batch, *sizes = node.graph.fact(x).shape
    count, trailing = len(blocks), sizes[len(blocks) :]
    batch = _divide(node, batch, prod(blocks), "batch")
    split = [*map(TDim.of, blocks), batch, *sizes]
    pairs = chain.from_iterable((count + 1 + index, index) for index in range(count))
    perm = [count, *pairs, *range(2 * count + 1, len(split))]
    joined = [size * block for size, block in zip(sizes, blocks)]
    x = _rearrange(node, x, split, perm, [batch, *joined, *trailing], "space")
    for axis, (size, (before, after)) in enumerate(zip(joined, crops), 1):
        op = slice_op(node, axis, size, before, size - after, 1)
        x = x if op is None else node.wire(op, [x], f"cut{axis}")
    return node.name_result(x)


def space_to_depth(node: NodeContext, x: OutletId, block: int) -> OutletId:
    """Move the positions within the blocks of an image to its channels. Raises LoadError: they do not divide it."""
    n, h, w, c = _image_sizes(node, x, block)
    size, h, w = TDim.of(block), _divide(node, h, block, "height"), _divide(node, w, block, "width")
    split, perm = [n, h, size, w, size, c], (0, 1, 3, 2, 4, 5)
    return _rearrange(node, x, split, perm, [n, h, w, c * block * block])


def depth_to_space(node: NodeContext, x: OutletId, block: int) -> OutletId:
    """Undo ``space_to_depth``. Raises LoadError: the blocks do not divide the channels."""
    n, h, w, c = _image_sizes(node, x, block)
    size, depth = TDim.of(block), _divide(node, c, block * block, "channels")
    split, perm = [n, h, w, size, size, depth], (0, 1, 3, 2, 4, 5)
    return _rearrange(node, x, split, perm, [n, h * block, w * block, depth])


def _require_blocks(node: NodeContext, x: OutletId, blocks: Sequence[int], ends: Sequence[PadPair]) -> None:
    fact = node.graph.fact(x)
    if len(blocks) != len(ends) or len(blocks) >= fact.rank or any(block < 1 for block in blocks):
        raise node.error(f"blocks of {list(blocks)} with ends for {len(ends)} axes do not fit {fact}")
    if any(dim.prove_ge(0).no for pair in ends for dim in pair):
        raise node.error(f"the ends of its blocks are negative: {[tuple(map(str, pair)) for pair in ends]}")


def _image_sizes(node: NodeContext, x: OutletId, block: int) -> tuple[TDim, ...]:
    fact = node.graph.fact(x)
    if fact.rank != 4 or block < 1:
        raise node.error(f"blocks of {block} for {fact}; only blocks of images in NHWC are supported")
    return fact.shape


def _divide(node: NodeContext, dim: TDim, block: int, subject: str) -> TDim:
    if dim.is_const and int(dim) % block:
        raise node.error(f"its {subject} {dim} does not divide into blocks of {block}")
    return dim // block


def _rearrange(
    node: NodeContext,
    x: OutletId,
    split: Sequence[TDim],
    perm: Sequence[int],
    joined: Sequence[TDim],
    suffix: str = "",
) -> OutletId:
    """Split axes, put them in another order, and join them."""
    x = node.wire(Reshape(tuple(split)), [x], "split")
    x = node.wire(Transpose(tuple(perm)), [x], "transposed")
    return node.wire(Reshape(tuple(joined)), [x], suffix)
