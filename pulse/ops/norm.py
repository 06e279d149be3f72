"""Normalisations whose statistics come from the tensor itself."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import FactError
from pulse.facts import Array, TypedFact, dtype_name
from pulse.ops.arithmetic import accumulator_type, round_inside
from pulse.ops.dims import broadcast_shapes, require_axis
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.ops.work import Work
from pulse.support.record import record

SOFTMAX_STEPS = 5
"""Operations per element: maximum, difference, exponential, sum, quotient."""
NORM_STEPS = 5
"""Operations per element: sum, difference, square, sum of squares, quotient; scale and bias are one each."""


@record
class Softmax(Op):
    """Exponentials of one axis divided by their sum, or the logarithm of that.

    Input    x [..., X, ...]
    Output   y, of the shape of x
    Stream   pointwise on the other axes, whole on X
    Raises   FactError: the axis is out of range
    Source   ONNX Softmax-13, LogSoftmax-13
    """

    axis: int
    log: bool = False
    steps = SOFTMAX_STEPS
    normalises_scores = True
    detail_format = "axis {axis}"

    @property
    def name(self) -> str:
        return "log_softmax" if self.log else "softmax"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        require_axis(self.axis, x)
        if not np.issubdtype(x.dtype, np.floating):
            raise FactError(f"{self.name} is defined for floats, not for {dtype_name(x.dtype)}")
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        if not x.size:
            return [x]
        wide = x.astype(accumulator_type(x), copy=False)
        with np.errstate(all="ignore"):
            shifted = wide - wide.max(axis=self.axis, keepdims=True)
            total = np.exp(shifted).sum(axis=self.axis, keepdims=True)
            if self.log:  # runtimes round the sum to f32
                y = shifted - np.log(total.astype(np.result_type(x, np.float32)))
            else:
                y = np.exp(shifted) / total
        return [y.astype(x.dtype, copy=False)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        assert axis is not None
        if axis == self.axis:
            return Whole(
                "a softmax over time divides by a sum over the whole stream",
                "take it over another axis, or over a window of past frames",
            )
        return Pointwise((axis,))


@record
class LayerNorm(Op):
    """Subtract the mean and divide by the standard deviation of all axes from ``axis`` on.

    y = (x - mean) / sqrt(variance + epsilon) * scale + bias

    Inputs   x [A..., X...], scale and bias (optional) that broadcast to [X...]
    Output   y, of the shape of x
    Stream   pointwise on A, whole on X
    Raises   FactError: the axis is out of range, scale or bias do not fit
    Source   ONNX LayerNormalization-17
    """

    axis: int
    epsilon: float = 1e-5
    detail_format = "axis {axis} epsilon {epsilon:g}"

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x = inputs[0]
        require_axis(self.axis, x)
        for fact in inputs[1:]:
            if broadcast_shapes([x.shape, fact.shape], "scale and bias") != x.shape:
                raise FactError(f"{fact} does not broadcast to {x}")
            if not np.issubdtype(fact.dtype, np.floating):
                raise FactError(f"its scale and bias must be floats, not {dtype_name(fact.dtype)}")
        return [TypedFact(x.dtype, x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x = inputs[0]
        wide = x.astype(accumulator_type(x), copy=False)
        axes = tuple(range(self.axis, x.ndim))
        centred = wide - round_inside(wide.mean(axis=axes, keepdims=True))
        variance = np.square(centred).mean(axis=axes, keepdims=True)
        y = centred / np.sqrt(variance + self.epsilon) * inputs[1]
        if len(inputs) > 2:
            y = y + inputs[2]
        return [y.astype(x.dtype, copy=False)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(inputs[0], NORM_STEPS + len(inputs) - 1)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None or any(other is not None for other in axes[1:]):
            return Whole("its scale or bias is a stream", "give scale and bias as constants")
        if axis >= self.axis:
            return Whole(
                "its mean and variance over time need the whole stream",
                "normalise only the axes after time, or use running statistics",
            )
        return Pointwise((axis,))
