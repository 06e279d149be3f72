"""The places of tensors in the memories of a finished program."""

import numpy as np

from pulse.facts import Array
from pulse.program.table.memory import Region, TensorView
from pulse.support.record import record


@record
class Place:
    """The place of a tensor in a finished program.

    region           its memory
    offset, strides  its first byte in the region, and the strides, in bytes
    shape, dtype     as in numpy
    """

    region: Region
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: "np.dtype[np.generic]"

    @classmethod
    def of(cls, value: TensorView) -> "Place":
        """Return the place of a value whose buffer has an offset."""
        size = value.dtype.itemsize
        return cls(
            value.buffer.region,
            value.buffer.offset + value.offset * size,
            value.shape,
            tuple(step * size for step in value.strides),
            value.dtype,
        )

    def view(self, memory: Array) -> Array:
        """Return the tensor as a view of a region's bytes, or a new array if it is empty."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory.data, self.offset, self.strides)
