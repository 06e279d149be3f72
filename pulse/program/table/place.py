"""Places of the tensors of a finished program."""

import numpy as np

from pulse.facts import Array
from pulse.program.table.memory import Region, Value
from pulse.support.record import record


@record
class Place:
    """A tensor of the finished program: its offset and strides in bytes."""

    region: Region
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: "np.dtype[np.generic]"

    @classmethod
    def of(cls, value: Value) -> "Place":
        """The place of a value whose buffer has its offset."""
        size = value.dtype.itemsize
        return cls(
            value.buffer.region,
            value.buffer.offset + value.offset * size,
            value.shape,
            tuple(step * size for step in value.strides),
            value.dtype,
        )

    def view(self, memory: Array) -> Array:
        """The tensor as a view of a region's bytes; an empty tensor has no place there."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory.data, self.offset, self.strides)
