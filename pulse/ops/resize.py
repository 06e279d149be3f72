"""Resizing along one axis: by nearest frames or by straight lines between frames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, TypedFact
from pulse.ops.op import Env, Op, require_at_least
from pulse.ops.relation import Ends, Pointwise, Relation, Whole, Window

Coordinates: TypeAlias = Literal[
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "align_corners",
]
Rounding: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Taps: TypeAlias = tuple[tuple[int, float], ...]

MOST_PHASES = 1024
"""Larger numbers in a ratio are no rhythm that a stream could follow."""

ROUNDING: dict[Rounding, Callable[[Array, int], Array]] = {
    "floor": lambda number, over: number // over,
    "ceil": lambda number, over: -(-number // over),
    "round_prefer_floor": lambda number, over: -((over - 2 * number) // (2 * over)),
    "round_prefer_ceil": lambda number, over: (2 * number + over) // (2 * over),
}
"""``number / over`` as an integer, exactly."""


@dataclass(frozen=True)
class Sampling:
    """Where output frames lie among input frames; a ``rounding`` takes the nearest one, None a mix of two."""

    coordinates: Coordinates
    rounding: Rounding | None

    def places(self, outputs: Array, ratio: Fraction, frames: int, length: int) -> tuple[Array, int]:
        """The place of each output frame: integers, over one integer."""
        p, q = ratio.numerator, ratio.denominator
        centre = (2 * outputs + 1) * q
        match self.coordinates:
            case "asymmetric":
                return outputs * q, p
            case "align_corners":
                return (outputs * (frames - 1), length - 1) if length > 1 else (0 * outputs, 1)
            case "tf_half_pixel_for_nn":
                return centre, 2 * p
            case "half_pixel_symmetric":
                return centre - p + frames * p - length * q, 2 * p
            case "pytorch_half_pixel" if length == 1:
                return 0 * outputs, 1
            case _:
                return centre - p, 2 * p

    def neighbours(
        self, outputs: Array, ratio: Fraction, frames: int, length: int
    ) -> tuple[Array, Array | None]:
        """For each output frame an input frame and, between two, the weight of the next one; both unclamped."""
        number, over = self.places(outputs, ratio, frames, length)
        if self.rounding is not None:
            return ROUNDING[self.rounding](number, over), None
        below = number // over
        return below, (number - below * over) / over

    def table(self, ratio: Fraction, frames: int, length: int) -> tuple[Array, Array, Array | None]:
        """For all output frames the input frame, the next one, and its weight, the ends repeated."""
        first, weight = self.neighbours(np.arange(length), ratio, frames, length)
        return np.clip(first, 0, frames - 1), np.clip(first + 1, 0, frames - 1), weight

    def steady(self, ratio: Fraction) -> bool:
        """Whether the place of a frame does not depend on how many there are."""
        if self.coordinates == "half_pixel_symmetric":
            return ratio.denominator == 1
        return self.coordinates != "align_corners"


@dataclass(frozen=True)
class Interpolate(Op):
    """Another number of frames on an axis whose length is a symbol.

    Input    x [..., X, ...]
    Output   y [..., length, ...]; frame j is at the place in x that ``sampling`` says, beyond the ends the last frame
    Stream   for a constant ratio p/q: window, p output frames for each q input frames. Whole where the length
             itself matters (align_corners, no constant ratio)
    Source   ONNX Resize-19

    ``ratio`` is the scale; None where it is ``length / X`` and not constant.
    """

    axis: int
    length: TDim
    ratio: Fraction | None
    sampling: Sampling

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if self.sampling.coordinates == "pytorch_half_pixel" and (self.ratio is None or self.ratio < 1):
            require_at_least(self.length, TDim.of(2), "pytorch_half_pixel places a single frame elsewhere")
        return [TypedFact(x.dtype, (*x.shape[: self.axis], self.length, *x.shape[self.axis + 1 :]))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        frames, length = x.shape[self.axis], self.length.eval(env)
        if not frames or not length:
            return [np.zeros((*x.shape[: self.axis], length, *x.shape[self.axis + 1 :]), x.dtype)]
        ratio = Fraction(length, frames) if self.ratio is None else self.ratio
        first, second, weight = self.sampling.table(ratio, frames, length)
        y = np.take(x, first, self.axis)
        if weight is not None:
            column = weight.reshape(-1, *(1,) * (x.ndim - 1 - self.axis))
            y = y * (1 - column) + np.take(x, second, self.axis) * column
        return [y.astype(x.dtype, copy=False)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None:
            return Whole(
                f"it stretches {inputs[0].shape[self.axis]} frames over the whole stream",
                "resize by a constant factor",
            )
        if axis != self.axis:
            return Pointwise((axis,))
        ratio = self.ratio
        if ratio is None:
            return Whole(
                f"its factor, {self.length} frames of {inputs[0].shape[axis]}, depends on the length of the stream",
                "resize by a constant factor, given as scales",
            )
        if not self.sampling.steady(ratio):
            return Whole(
                f"with {self.sampling.coordinates} the place of each frame depends on the length of the stream",
                "resize with coordinate_transformation_mode asymmetric or half_pixel",
            )
        if max(ratio.numerator, ratio.denominator) > MOST_PHASES:
            return Whole(f"its factor {float(ratio):g} is no ratio of small numbers", "use one such as 3/2")
        return self._window(ratio)

    def _window(self, ratio: Fraction) -> Window:
        """The frames of a period, starting with the one that gives the smallest delay."""
        p, q = ratio.numerator, ratio.denominator
        outputs = np.arange(1 - p, p)
        first, weight = self.sampling.neighbours(outputs, ratio, 0, 0)
        last = first if weight is None else first + (weight > 0)
        ready = -(-(outputs[p - 1 :] + 1) * q // p)
        after = max(0, int((last[p - 1 :] + 1 - ready).max()))

        def reach(skip: int) -> tuple[int, int]:
            period = slice(p - 1 - skip, 2 * p - 1 - skip)
            before = max(0, -int(first[period].min()))
            return before, int(last[period].max()) + before + 1

        def delay(skip: int) -> int:
            _, span = reach(skip)
            return -(-(span - q) // q) * p + skip

        skip = min(range(p), key=lambda skip: (delay(skip), reach(skip)))
        before, span = reach(skip)
        taps = tuple(
            _taps(int(first[at]) + before, None if weight is None else float(weight[at]))
            for at in range(p - 1 - skip, 2 * p - 1 - skip)
        )
        ends = Ends(self.axis, TDim.of(before), TDim.of(after), "edge")
        return Window(self.axis, span, q, p, skip, ends, Polyphase(self.axis, span, q, taps))

    def detail(self) -> str:
        how = self.sampling.rounding or "linear"
        return f"axis {self.axis} to {self.length} {how} {self.sampling.coordinates}"


def _taps(first: int, weight: float | None) -> Taps:
    if not weight:
        return ((first, 1.0),)
    return ((first, 1 - weight), (first + 1, weight))


@dataclass(frozen=True)
class Polyphase(Op):
    """A resizing by p/q on a run of frames: group g of p output frames comes from the frames ``g*q … g*q + span - 1``.

    y[..., g*p + r, ...] = sum over (k, w) in taps[r] of w * x[..., g*stride + k, ...]

    Input    x [..., n, ...]
    Output   y [..., ((n - span) // stride + 1) * p, ...]
    """

    axis: int
    span: int
    stride: int
    taps: tuple[Taps, ...]

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        shape = list(x.shape)
        shape[self.axis] = ((shape[self.axis] - self.span) // self.stride + 1) * len(self.taps)
        return [TypedFact(x.dtype, tuple(shape))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x = np.moveaxis(inputs[0], self.axis, 0)
        groups = max(0, (len(x) - self.span) // self.stride + 1)
        y = np.zeros((groups * len(self.taps), *x.shape[1:]), x.dtype)
        for phase, taps in enumerate(self.taps):
            parts = [x[k : k + groups * self.stride : self.stride][:groups] for k, _ in taps]
            exact = len(taps) == 1
            y[phase :: len(self.taps)] = parts[0] if exact else sum(w * v for (_, w), v in zip(taps, parts))
        return [np.moveaxis(y, 0, self.axis)]

    def detail(self) -> str:
        return f"axis {self.axis} span {self.span} stride {self.stride} up {len(self.taps)}"
