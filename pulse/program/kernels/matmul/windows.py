"""Windows of rows: the common fields of products, depthwise windows and pools."""

from collections.abc import Iterator

from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.span import Reach, run, table
from pulse.program.kernels.row_tuples import RowsFields


class WindowFields(RowsFields):
    """Row m of y begins at ``rows_y[m]``; it is made of the rows of x that begin at ``rows_x[m] + taps[t]``, t < T."""

    T: int
    taps: Operand = reads("i64", "T")

    def window_reaches(self, inputs: int, outputs: int, lanes: int = 1) -> Iterator[Reach]:
        """Yield the ``reaches`` of x and y: rows of ``inputs`` and ``outputs`` elements of ``lanes`` streams."""
        yield self.x, (table(self.rows_x, self.M) + table(self.taps, self.T) + run(inputs)) * lanes
        yield self.y, (table(self.rows_y, self.M) + run(outputs)) * lanes


class ProductFields(WindowFields):
    """Sums over T taps of K elements, for N columns; ``accumulate`` adds the values in y."""

    K: int
    N: int
    accumulate: bool

    def multiply_adds(self) -> int:
        return self.M * self.T * self.K * self.N
