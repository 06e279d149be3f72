"""Pools over windows of the spatial axes."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import I64, Array, TypedFact
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.conv import Pads, pad_spatial, pads_text, require_frames, span_of, windows, without_pad
from pulse.ops.op import Ends, Env, Op, Pointwise, Relation, Whole, Window
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of

PoolKind = Literal["max", "average", "sum", "lp"]


@record
class Pool(Op):
    """Reduce every window of the spatial axes to one value.

    y[n, c, u...] = reduce over k of x[n, c, u*stride + k*dilation - before]

    Input    x [N, C, X...]
    Output   y [N, C, U...],  U = (before + X + after - span) // stride + 1
    Stream   window(span, stride) on a spatial axis, pointwise on N and C. An average that does not count its
             padding has a divisor that depends on the position: ``pulsify`` rewrites it as a quotient of sums
    Raises   FactError: rank differs
    Source   ONNX MaxPool-12, AveragePool-19, LpPool-18

    kind                      max, average, sum or lp: the p-norm
    kernel                    the size of a window on each spatial axis
    strides, dilations, pads  as those of a convolution; the padding is -inf for a maximum, else 0
    count_include_pad         whether an average counts the padding
    extra                     the part of each after-pad that an average never counts (ONNX ceil_mode)
    p                         the exponent of ``lp``
    """

    kind: PoolKind
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    count_include_pad: bool = False
    extra: tuple[TDim, ...] = ()
    p: int = 2

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        rank = len(self.kernel)
        if x.rank != rank + 2:
            raise FactError(
                f"expected {count_of(rank, 'spatial axis', 'spatial axes')}, got x of rank {x.rank}"
            )
        require_frames(x, self.pads)
        spatial = [
            (x.shape[axis + 2] + sum(self.pads[axis], TDim.of(0)) - self.span(axis)) // self.strides[axis] + 1
            for axis in range(rank)
        ]
        return [TypedFact(x.dtype, (*x.shape[:2], *spatial))]

    def span(self, axis: int) -> int:
        """Return input frames that one output frame sees along a spatial axis."""
        return span_of(self.kernel[axis], self.dilations[axis])

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return Work.of_each(outputs[0], math.prod(self.kernel))

    @property
    def counts_position(self) -> bool:
        """Whether the divisor of an average depends on how much padding a window holds."""
        has_padding = any(before != 0 or after != 0 for before, after in self.pads)
        return (
            self.kind == "average"
            and has_padding
            and (not self.count_include_pad or any(e != 0 for e in self.extra))
        )

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        view = self.windows(x.astype(accumulator_type(x), copy=False), env, self._fill(x))
        taps = tuple(range(view.ndim - len(self.kernel), view.ndim))
        if self.kind == "max":
            y = view.max(axis=taps)
        elif self.kind == "lp":
            y = (np.abs(view) ** self.p).sum(axis=taps) ** (1 / self.p)
        else:
            y = view.sum(axis=taps)
        if self.kind == "average":
            y = y / self.divisor(x, env)
        return [np.ascontiguousarray(y.astype(x.dtype, copy=False))]

    def _fill(self, x: Array) -> float:
        if self.kind != "max":
            return 0.0
        return float("-inf") if np.issubdtype(x.dtype, np.floating) else float(np.iinfo(x.dtype).min)

    def windows(self, x: Array, env: Env, fill: float) -> Array:
        """Return the windows of x, padded: [N, C, U..., K...]."""
        return windows(pad_spatial(x, self.pads, env, fill), self.kernel, self.strides, self.dilations)

    def divisor(self, x: Array, env: Env) -> Array | float:
        """Return the divisor of an average: the kernel's size, or the number of counted frames at each position."""
        if not self.counts_position:
            return float(np.prod(self.kernel))
        ones = np.ones((1, 1, *x.shape[2:]))
        if self.count_include_pad:
            extra = self.extra or (TDim.of(0),) * len(self.kernel)
            pads = tuple(
                (before, after - extra_frames) for (before, after), extra_frames in zip(self.pads, extra)
            )
            ones = pad_spatial(ones, pads, env, 1.0)
            rest = tuple((TDim.of(0), extra_frames) for extra_frames in extra)
            view = windows(pad_spatial(ones, rest, env), self.kernel, self.strides, self.dilations)
        else:
            view = self.windows(ones, env, 0.0)
        return view.sum(axis=tuple(range(view.ndim - len(self.kernel), view.ndim)))

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None:
            return Whole("nothing streams here", "fold it before pulsifying")
        if axis < 2:
            return Pointwise((axis,))
        spatial = axis - 2
        before, after = self.pads[spatial]
        if self.counts_position and (before != 0 or after != 0):
            return Whole("its divisor depends on the position", "count the padding, or pad before the pool")
        return Window(
            axis,
            span=self.span(spatial),
            stride=self.strides[spatial],
            ends=Ends(axis, before, after, fill=self._fill(np.empty(0, inputs[0].dtype))),
            op=replace(self, pads=without_pad(self.pads, spatial), extra=()),
        )

    def detail(self) -> str:
        return (
            f"{self.kind} kernel {list(self.kernel)} strides {list(self.strides)} pads {pads_text(self.pads)}"
        )


@record
class MaxPlace(Op):
    """The index among all elements of x of the largest entry of every window; of equal entries, the first.

    Input    x [N, C, X...]
    Output   y [N, C, U...] i64, of the shape of ``pool``
    Stream   whole: the indices depend on the length
    Raises   FactError: rank differs
    Source   ONNX MaxPool-12, its second output

    ``column_major`` says that indices grow along the first spatial axis first.
    """

    pool: Pool
    column_major: bool = False

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(I64, fact.shape) for fact in self.pool.facts(inputs)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        spatial = x.shape[2:]
        locations = np.arange(np.prod(spatial)).reshape(spatial, order="F" if self.column_major else "C")
        values = self.pool.windows(x.astype(np.float64), env, float("-inf"))
        taps = (*values.shape[: x.ndim], -1)
        first = values.reshape(taps).argmax(axis=-1)[..., None]
        windows = self.pool.windows(locations[None, None], env, 0).reshape((1, 1, *taps[2:]))
        winners = np.take_along_axis(
            np.broadcast_to(windows, (*first.shape[:-1], windows.shape[-1])), first, -1
        )
        groups = np.arange(int(x.shape[0] * x.shape[1]))
        column: tuple[int, ...] = (*x.shape[:2], *(1,) * len(spatial))
        return [winners[..., 0] + groups.reshape(column) * locations.size]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        return self.pool.work(inputs, outputs)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Whole("its indices count the elements of the whole stream", "use only the values of the pool")

    def detail(self) -> str:
        return self.pool.detail() + (" column major" if self.column_major else "")
