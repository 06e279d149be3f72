"""Window products as data: the rows, the taps and the weights of a product.

A window product reads, for each output row, T segments of K contiguous floats of the input: the taps of a
convolution, each over its channels. So channels are innermost in memory, and time outermost.
"""

from collections.abc import Sequence

from pulse.facts import Array
from pulse.program.kernels.matmul.epilogue import NO_EPILOGUE, Epilogue
from pulse.program.table.memory import TensorView, grid_offsets
from pulse.support.record import record


def batch_offsets(value: TensorView, batch: Sequence[int]) -> Array:
    """Return the offset of each matrix of the last two axes, with the batch axes broadcast."""
    missing = len(batch) - (len(value.shape) - 2)
    steps = [step if size != 1 else 0 for size, step in zip(value.shape[:-2], value.strides[:-2])]
    return grid_offsets([0] * missing + steps, batch)


@record
class WindowProduct:
    """A window product; of a depthwise window, each channel is multiplied only by its own weights.

    x            the operand of the windows
    rows_x       [M], the element of x at which each row begins
    taps         [T], the first element of each tap, counted from the start of its row
    matrix       [T*K, N], weights or their codes; of a depthwise window [T, N]
    bias         [N]
    y            the result
    rows_y       [M], the element of y at which each row of N begins
    scales       [N], for int8 codes
    epilogue       the steps that follow; see ``FusedEpilogue.steps_on``
    rounds_activations  whether each tap of x is rounded to the form of the codes
    """

    x: TensorView
    rows_x: Array
    taps: Array
    matrix: Array
    bias: Array
    y: TensorView
    rows_y: Array
    scales: Array | None = None
    epilogue: Epilogue = NO_EPILOGUE
    rounds_activations: bool = False

    @property
    def depth(self) -> int:
        """K, the number of elements of a tap."""
        return self.matrix.shape[0] // max(1, len(self.taps))

    @property
    def columns(self) -> int:
        """N, the number of columns."""
        return self.matrix.shape[1]
