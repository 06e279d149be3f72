"""Resizing along one axis: by nearest frames, or by straight lines or cubic curves between frames."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array, TypedFact, volume
from pulse.ops.dims import constant_quotient, require_at_least
from pulse.ops.op import Ends, Env, Op, Pointwise, Relation, Whole, Window
from pulse.ops.resize_sampling import Sampling
from pulse.ops.work import NO_WORK, Work
from pulse.support.record import record
from pulse.support.wording import count_of

Taps: TypeAlias = tuple[tuple[int, float], ...]

MAX_PHASES = 1024
"""The largest numerator or denominator of a ratio that a stream can follow."""


@record
class Interpolate(Op):
    """Another number of frames on an axis whose length is a symbol.

    Input    x [..., X, ...]
    Output   y [..., length, ...]; frame j is at the position in x that ``sampling`` states, clamped to the ends of x
    Stream   with a constant ratio p/q a window: p output frames for each q input frames. Whole where the length
             itself matters (align_corners, no constant ratio), or if the weights differ at the ends
    Source   ONNX Resize-19

    axis      the axis X
    length    the new number of frames
    ratio     the scale; None if it is ``length / X`` and not constant
    sampling  where the output frames are, and how they are interpolated
    """

    axis: int
    length: TDim
    ratio: Fraction | None
    sampling: Sampling

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if self.sampling.coordinates == "pytorch_half_pixel" and (self.ratio is None or self.ratio < 1):
            require_at_least(self.length, TDim.of(2), "pytorch_half_pixel places a single frame differently")
        return [TypedFact(x.dtype, (*x.shape[: self.axis], self.length, *x.shape[self.axis + 1 :]))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        frames, length = x.shape[self.axis], self.length.eval(env)
        if not frames or not length:
            return [np.zeros((*x.shape[: self.axis], length, *x.shape[self.axis + 1 :]), x.dtype)]
        ratio = Fraction(length, frames) if self.ratio is None else self.ratio
        neighbours, weights = self.sampling.table(ratio, frames, length)
        if weights is None:
            return [np.take(x, neighbours[:, 0], self.axis)]
        columns = weights.T.reshape(-1, length, *(1,) * (x.ndim - 1 - self.axis))
        parts = [np.take(x, indices, self.axis) * column for indices, column in zip(neighbours.T, columns)]
        return [np.sum(parts, axis=0).astype(x.dtype, copy=False)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        if self.sampling.rounding is not None:
            return NO_WORK
        return Work(volume(outputs[0].shape) * (2 if self.sampling.cubic is None else 4))

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None:
            return Whole(
                f"it stretches {count_of(inputs[0].shape[self.axis], 'frame')} over the whole stream",
                "resize by a constant factor",
            )
        if axis != self.axis:
            return Pointwise((axis,))
        ratio = self.ratio or constant_quotient(self.length, inputs[0].shape[axis])
        if ratio is None:
            return Whole(
                f"its factor, {count_of(self.length, 'frame')} of {inputs[0].shape[axis]}, depends on the length of "
                "the stream",
                "resize by a constant factor, given as scales",
            )
        if not self.sampling.keeps_positions(ratio):
            return Whole(
                f"with {self.sampling.coordinates} the position of each frame depends on the length of the stream",
                "resize with coordinate_transformation_mode asymmetric or half_pixel",
            )
        if self.sampling.exclude_outside:
            return Whole(
                "with exclude_outside the weights differ at the ends of the stream",
                "resize without exclude_outside",
            )
        if max(ratio.numerator, ratio.denominator) > MAX_PHASES:
            return Whole(
                f"its factor {float(ratio):g} is not a ratio of small numbers", "use one such as 3/2"
            )
        return self._window(ratio)

    def _window(self, ratio: Fraction) -> Window:
        """Return the frames of a period, starting with the frame that has the smallest delay."""
        p, q = ratio.numerator, ratio.denominator
        neighbours, weights = self.sampling.neighbours(np.arange(1 - p, p), ratio, 0, 0)
        mixes = [
            _taps(frames, None if weights is None else weights[index])
            for index, frames in enumerate(neighbours)
        ]
        first, last = (np.array([mix[end][0] for mix in mixes]) for end in (0, -1))
        ready = -(-(np.arange(p) + 1) * q // p)
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
            tuple((frame + before, weight) for frame, weight in mix)
            for mix in mixes[p - 1 - skip : 2 * p - 1 - skip]
        )
        ends = Ends(self.axis, TDim.of(before), TDim.of(after), "edge")
        return Window(self.axis, span, q, p, skip, ends, Polyphase(self.axis, span, q, taps))

    def detail(self) -> str:
        method = self.sampling.rounding or ("linear" if self.sampling.cubic is None else "cubic")
        words = [method, *["antialias"] * self.sampling.antialias, self.sampling.coordinates]
        return f"axis {self.axis} to {self.length} {' '.join(words)}"


def _taps(frames: Array, weights: Array | None) -> Taps:
    """Return the frames with nonzero weights, and their weights."""
    if weights is None:
        return ((int(frames[0]), 1.0),)
    nonzero = [(int(frame), float(weight)) for frame, weight in zip(frames, weights) if weight]
    return ((nonzero[0][0], 1.0),) if len(nonzero) == 1 else tuple(nonzero)


@record
class Polyphase(Op):
    """A resizing by p/q on a run of frames: group g of p output frames comes from the frames ``g*q … g*q + span - 1``.

    y[..., g*p + r, ...] = sum over (k, w) in taps[r] of w * x[..., g*stride + k, ...]

    Input    x [..., n, ...]
    Output   y [..., ((n - span) // stride + 1) * p, ...]

    axis          the axis of the frames
    span, stride  the input frames of a group, and those from one group to the next: q
    taps          for each of the p output frames of a group, its input frames and their weights
    """

    axis: int
    span: int
    stride: int
    taps: tuple[Taps, ...]

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        groups = (x.shape[self.axis] - self.span) // self.stride + 1
        return [x.with_size(self.axis, groups * len(self.taps))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x = np.moveaxis(inputs[0], self.axis, 0)
        groups = max(0, (len(x) - self.span) // self.stride + 1)
        y = np.zeros((groups * len(self.taps), *x.shape[1:]), x.dtype)
        for phase, taps in enumerate(self.taps):
            parts = [x[k : k + groups * self.stride : self.stride][:groups] for k, _ in taps]
            exact = len(taps) == 1
            y[phase :: len(self.taps)] = parts[0] if exact else sum(w * v for (_, w), v in zip(taps, parts))
        return [np.moveaxis(y, 0, self.axis)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        taps = sum(len(phase) for phase in self.taps if len(phase) > 1)
        return Work(volume(outputs[0].shape) * taps // len(self.taps))

    def detail(self) -> str:
        return f"axis {self.axis} span {self.span} stride {self.stride} up {len(self.taps)}"
