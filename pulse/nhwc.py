"""Tensors with their channels last, as TensorFlow has them, for ops that have them first; and its padding."""

from pulse.dim import TDim, ceil_div, dim_max
from pulse.ops.conv import Pads

Pair = tuple[TDim, TDim]


def channels_first(rank: int) -> tuple[int, ...]:
    """The order of axes that makes [N, X..., C] of a rank [N, C, X...]."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of axes that makes [N, C, X...] of a rank [N, X..., C]."""
    return (0, *range(2, rank), 1)


def span_of(kernel: int, dilation: int) -> int:
    """Frames from the first tap of a kernel to the last one."""
    return (kernel - 1) * dilation + 1


def same_pair(size: TDim, span: int, stride: int) -> Pair:
    """The padding SAME of a window over an axis: ``ceil(size / stride)`` outputs, the odd frame behind."""
    if stride == 1:
        total = TDim.of(span - 1)
    else:
        total = dim_max(0, (ceil_div(size, stride) - 1) * stride + span - size)
    before = total // 2
    return before, total - before


def window_pads(
    same: bool, sizes: tuple[TDim, ...], spans: tuple[int, ...], strides: tuple[int, ...]
) -> Pads:
    """The padding SAME or VALID of every spatial axis."""
    none = (TDim.of(0), TDim.of(0))
    return tuple(
        same_pair(size, span, stride) if same else none for size, span, stride in zip(sizes, spans, strides)
    )
