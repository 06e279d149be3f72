"""Running sums."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, DType, TypedFact
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.clock import Clock, frames_at
from pulse.ops.dims import require_axis
from pulse.ops.op import Cumulative, Env, Op, Pointwise, Relation, Whole
from pulse.ops.stateful import StatefulOnFrames
from pulse.support.record import record


def sum_dtype(dtype: DType) -> DType:
    """Return the type in which a stream keeps a running sum: f64 for floats, i64 for integers.

    The oracle adds int32 in int32 (``accumulator_type``): both wrap around, so the low 32 bits are equal.
    """
    return np.dtype(np.float64 if np.issubdtype(dtype, np.floating) else np.int64)


@record
class CumSum(Op):
    """Sums along one axis.

    y[j] = x[0] + … + x[j]

    Input    x [..., X, ...]
    Outputs  y, of the shape of x; the sum of all, [..., 1, ...]
    Stream   cumulative on X (whole in reverse), pointwise on the others
    Raises   FactError: the axis is out of range
    Source   ONNX CumSum-14

    axis       the axis of the sums
    exclusive  without x[j] itself
    reverse    whether it sums from the last one backwards
    """

    axis: int
    exclusive: bool = False
    reverse: bool = False
    steps = 1

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        return [TypedFact(x.dtype, x.shape), x.with_size(self.axis, 1)]

    def sums(self, x: Array, before: Array) -> tuple[Array, Array]:
        """Return the running sums and the total, continued from ``before``, in the dtype in which the oracle sums."""
        joined = np.flip(x, self.axis) if self.reverse else x
        joined = np.concatenate([before, joined.astype(accumulator_type(x))], self.axis)
        running = np.cumsum(joined, self.axis, dtype=joined.dtype)
        count = x.shape[self.axis]
        y = frames_at(running, self.axis, 0 if self.exclusive else 1, count + (0 if self.exclusive else 1))
        total = frames_at(running, self.axis, count, count + 1)
        return (np.flip(y, self.axis) if self.reverse else y), total

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        shape = list(x.shape)
        shape[self.axis] = 1
        return [sums.astype(x.dtype) for sums in self.sums(x, np.zeros(shape, accumulator_type(x)))]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis != self.axis:
            return Pointwise((axis, axis))
        if self.reverse:
            return Whole("a sum from the end needs the last frame first", "sum forwards")
        sizes = tuple(1 if index == axis else int(dim) for index, dim in enumerate(inputs[0].shape))

        def make_op(offset: int, length: TDim, past: Sequence[Array] | None) -> CumSumStream:
            return CumSumStream(self, offset, length, sizes, inputs[0].dtype, past)

        return Cumulative((axis, None), make_op)

    def detail(self) -> str:
        words = ["exclusive"] * self.exclusive + ["reverse"] * self.reverse
        return " ".join([f"axis {self.axis}", *words])


@record(eq=False)
class CumSumStream(StatefulOnFrames):
    """Running sums that continue from pulse to pulse.

    Input    x [..., P, ...], whose frame j is at index j + offset and which has ``length`` frames
    Outputs  y [..., P, ...], zeros outside the stream; the sum so far
    State    the sum, initially that of ``past``

    op            the op of the offline model
    sizes, dtype  the shape and type of the sum
    past          the op's outputs for the frames of a prefix; None: no prefix
    """

    op: CumSum
    sizes: tuple[int, ...]
    dtype: DType
    past: Sequence[Array] | None

    def initial_state(self) -> list[Array]:
        first = np.zeros(self.sizes, self.dtype) if self.past is None else self.past[1]
        return [first.astype(accumulator_type(first))]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        (x,) = inputs
        axis = self.op.axis
        start, stop = clock.span(x.shape[axis], self.offset, self.length)
        y = np.zeros_like(x)
        sums, state[0] = self.op.sums(frames_at(x, axis, start, stop), state[0])
        frames_at(y, axis, start, stop)[...] = sums
        return [y, state[0].astype(x.dtype)]
