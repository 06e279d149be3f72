"""Running sums."""

from collections.abc import Iterator

from pulse.jit.language.raw import as_f32, as_f64, as_i32, as_i64
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, updates, writes
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run, table
from pulse.program.kernels.dtypes import F32_CODE, F64_CODE, I32_CODE, I64_CODE, width_of
from pulse.program.kernels.time import stream_span


class CumSumRow(Instruction):
    """``y[t] = x[0] + … + x[t]`` for M columns, or without x[t] itself; frames outside the stream become zeros.

    Frame j, of ``end`` frames, is at index j + offset of the concatenated pulses. The running totals are f64 for floats
    and int64 for integers; they start at zero if the clock is 0 and ``reload`` is set. Columns of x begin
    at ``columns_x``, and their elements are ``step_x`` apart; ``columns_y`` and ``step_y`` are the same for y.
    """

    x: Operand = reads(None)
    y: Operand = writes(None)
    sums: Operand = updates(None)
    dtype: int
    T: int
    M: int
    columns_x: Operand = reads("i64", "M")
    columns_y: Operand = reads("i64", "M")
    step_x: int
    step_y: int
    exclusive: bool
    reverse: bool
    clock: Operand = reads("i64", 1)
    end: Operand = reads("i64", 1)
    offset: int
    reload: bool

    def reaches(self) -> Iterator[Reach]:
        require(
            self.dtype in (F32_CODE, F64_CODE, I64_CODE, I32_CODE), f"sums of elements of type {self.dtype}"
        )
        width = width_of(self.dtype)
        yield self.x, (run(self.T, self.step_x) + table(self.columns_x, self.M)) * width
        yield self.y, (run(self.T, self.step_y) + table(self.columns_y, self.M)) * width
        yield self.sums, run(self.M) * 8


@device
def running_sums(row: CumSumRow, x: Pointer, y: Pointer, total: Pointer, start: int, stop: int) -> None:
    """Compute the frames ``start .. stop - 1``; write zeros to the others."""
    T, M, columns_x, columns_y = row.T, row.M, row.columns_x, row.columns_y
    step_x, step_y, exclusive, reverse = row.step_x, row.step_y, row.exclusive, row.reverse
    for i in range(T):
        t = T - 1 - i if reverse else i
        source, target = x + t * step_x, y + t * step_y
        if start <= i < stop:
            for m in range(M):
                previous = total[m]
                current = previous + source[columns_x[m]]
                total[m] = current
                target[columns_y[m]] = previous if exclusive else current
        else:
            for m in range(M):
                target[columns_y[m]] = 0


@kernel
def cum_sum(row: CumSumRow) -> None:
    """Run ``running_sums`` for the element type of the columns."""
    x, y, sums, dtype = row.x, row.y, row.sums, row.dtype
    start, stop = stream_span(row.clock, row.end, row.offset, row.T)
    if row.reload and row.clock[0] == 0:
        for m in range(row.M):
            as_i64(sums)[m] = 0
    if dtype == F32_CODE:
        running_sums(row, as_f32(x), as_f32(y), as_f64(sums), start, stop)
    elif dtype == F64_CODE:
        running_sums(row, as_f64(x), as_f64(y), as_f64(sums), start, stop)
    elif dtype == I64_CODE:
        running_sums(row, as_i64(x), as_i64(y), as_i64(sums), start, stop)
    else:
        running_sums(row, as_i32(x), as_i32(y), as_i64(sums), start, stop)
