"""Tensors with their channels last, as TensorFlow has them, for ops that have them first; and its padding."""

from collections.abc import Sequence
from typing import Protocol

from pulse.dim import ZERO, TDim, ceil_div, dim_max
from pulse.facts import TypedFact
from pulse.graph import Graph, OutletId
from pulse.ops.conv import NO_PAD, Pads
from pulse.ops.op import Op
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice

HeightAndWidth = tuple[TDim, TDim]


class NhwcNode(Protocol):
    """The reader of a node, of TensorFlow or TFLite."""

    @property
    def graph(self) -> Graph[TypedFact, Op]:
        """The graph that is built."""
        ...

    def wire(self, op: Op, inputs: Sequence[OutletId], suffix: str = "") -> OutletId:
        """Add an op for the node."""
        ...


def channels_first(rank: int) -> tuple[int, ...]:
    """Return the order of axes that makes [N, X..., C] of a rank [N, C, X...]."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """Return the order of axes that makes [N, C, X...] of a rank [N, X..., C]."""
    return (0, *range(2, rank), 1)


def span_of(kernel: int, dilation: int) -> int:
    """Return frames from the first tap of a kernel to the last one."""
    return (kernel - 1) * dilation + 1


def same_pair(size: TDim, span: int, stride: int) -> HeightAndWidth:
    """Return the padding SAME of a window over an axis: ``ceil(size / stride)`` outputs; an odd frame is added at the
    end.
    """
    if stride == 1:
        total = TDim.of(span - 1)
    else:
        total = dim_max(0, (ceil_div(size, stride) - 1) * stride + span - size)
    before = total // 2
    return before, total - before


def window_pads(
    same: bool, sizes: tuple[TDim, ...], spans: tuple[int, ...], strides: tuple[int, ...]
) -> Pads:
    """Return the padding SAME or VALID of every spatial axis."""
    return tuple(
        same_pair(size, span, stride) if same else NO_PAD for size, span, stride in zip(sizes, spans, strides)
    )


def remaining_pads(pads: Sequence[TDim], crops: Sequence[TDim], rank: int) -> list[HeightAndWidth] | None:
    """Return the remaining padding at the ends of each axis: padding minus crops, the axes after the batch first.

    None if the numbers do not fit the rank.
    """
    if len(pads) != len(crops) or len(pads) % 2 or len(pads) > 2 * (rank - 1):
        return None
    differences = [pad - crop for pad, crop in zip(pads, crops)]
    ends = [NO_PAD, *zip(differences[::2], differences[1::2])]
    return ends + [NO_PAD] * (rank - len(ends))


def pad_or_crop(node: NhwcNode, x: OutletId, ends: Sequence[HeightAndWidth]) -> OutletId:
    """Pad each end with zeros, or cut it if the number is negative."""
    more = tuple((_above_zero(before), _above_zero(after)) for before, after in ends)
    if any(pair != NO_PAD for pair in more):
        x = node.wire(Pad(more), [x], "padded")
    for axis, (before, after) in enumerate(ends):
        if before.prove_ge(0).no or after.prove_ge(0).no:
            size = node.graph.fact(x).shape[axis]
            x = node.wire(Slice(axis, _above_zero(-before), size - _above_zero(-after)), [x], f"cut{axis}")
    return x


def _above_zero(dim: TDim) -> TDim:
    """Return the dim if it is above 0, else 0."""
    return ZERO if dim.prove_ge(0).no else dim
