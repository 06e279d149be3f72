"""Channels that a reshape merges, read in place from its input."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.program.lower.shape import matching_axes
from pulse.program.lowering import Lowering
from pulse.program.table.memory import TensorView, dense_strides
from pulse.support.record import record


@record
class SplitChannels:
    """Channels [N, C, X...] that are K contiguous pieces in memory.

    x         the first piece [N, C/K, X...]
    offsets   [K] offset of each piece
    channels  [K, C/K] the channels in each piece
    """

    x: TensorView
    offsets: Array
    channels: Array

    def spread(self, taps: Array, matrix: Array) -> tuple[Array, Array]:
        """Spread taps and weights [T * C, N] of a window product over the pieces of the channels."""
        rows = matrix.reshape(len(taps), self.channels.size, -1)[:, self.channels]
        return np.add.outer(self.offsets, taps).ravel(), rows.swapaxes(0, 1).reshape(matrix.shape)


def split_channels(lowering: Lowering, outlet: OutletId) -> SplitChannels | None:
    """Return the channels of a reshaped wire at their place in the input of the reshape, so that no copy is needed.

    None if they are not contiguous there.
    """
    if not lowering.is_pending(outlet):
        return None
    x, shape = lowering.value(lowering.graph.node(outlet).inputs[0]), lowering.fact(outlet).sizes
    groups = list(matching_axes(list(shape), list(x.shape)))
    strides, channels = list(dense_strides(shape, range(len(shape)))), list[int]()
    for here, there in groups:
        longer = [axis for axis in there if x.shape[axis] > 1]
        if here == [1]:
            channels = longer
        elif len(longer) > 1 or len(here) > 1:
            return None
        elif longer:
            strides[here[0]] = x.strides[longer[0]]
    contiguous_axes = [axis for axis in channels if x.strides[axis] == 1]
    if len(contiguous_axes) != 1:
        return None
    outer_axes = [axis for axis in channels if axis != contiguous_axes[0]]
    sizes, strides[1] = list(shape), 1
    sizes[1] = x.shape[contiguous_axes[0]]
    numbers: Array = np.arange(shape[1]).reshape([x.shape[axis] for axis in channels])
    numbers = np.moveaxis(numbers, channels.index(contiguous_axes[0]), -1).reshape(-1, sizes[1])
    return SplitChannels(x.view(sizes, strides), x.offsets(outer_axes), numbers)
