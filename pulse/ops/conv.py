"""Convolutions and their transposes over any number of spatial axes."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import ZERO, TDim
from pulse.errors import FactError
from pulse.facts import Array, PulsedFact, TypedFact, volume
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.dims import require_at_least, unify
from pulse.ops.op import Ends, Env, Op, Pointwise, Relation, TrimmedWindow, Whole, Window
from pulse.ops.weight_units import ActivationLayout, UnitLayout
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of

Pads = tuple[tuple[TDim, TDim], ...]
NO_PAD = ZERO, ZERO
"""No padding before or after an axis."""


def no_pads(rank: int) -> Pads:
    """Return no padding on any of the spatial axes."""
    return (NO_PAD,) * rank


def pads_text(pads: Pads) -> str:
    """Return padding of each axis as before:after."""
    return " ".join(f"{before}:{after}" for before, after in pads)


def windows(x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """Return every window over the last axes: ``[..., out axes, kernel axes]``, a view; none if x is too short."""
    leading = x.ndim - len(kernel)
    spans = kernel_spans(kernel, dilations)
    sizes, steps = x.shape[leading:], x.strides[leading:]
    counts = [max(0, (n - span) // stride + 1) for n, span, stride in zip(sizes, spans, strides)]
    if not all(counts):
        return np.zeros((*x.shape[:leading], *counts, *kernel), x.dtype)
    shape = (*x.shape[:leading], *counts, *kernel)
    apart = [step * stride for step, stride in zip(steps, strides)]
    within = [step * dilation for step, dilation in zip(steps, dilations)]
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:leading], *apart, *within), writeable=False)


def pad_spatial(x: Array, pads: Pads, env: Env, fill: float = 0.0) -> Array:
    """Pad the last axes with a constant."""
    amounts = [(before.eval(env), after.eval(env)) for before, after in pads]
    if not any(itertools.chain.from_iterable(amounts)):
        return x
    return np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + amounts, constant_values=fill)


def require_frames(x: TypedFact, pads: Pads) -> None:
    """Require that each padded axis has a size: an assumption of the scope if the stream may be too short for it.

    Raises FactError: it never has
    """
    for dim, pair in zip(x.shape[2:], pads):
        if pair != NO_PAD:
            require_at_least(dim, ZERO, f"padding {pair[0]}:{pair[1]}")


def check_ranks(x: TypedFact, w: TypedFact, rank: int) -> int:
    """Return the number of spatial axes. Raises FactError: x or the kernel has another."""
    if x.rank != rank + 2 or w.rank != rank + 2:
        raise FactError(
            f"expected {count_of(rank, 'spatial axis', 'spatial axes')}, got x of rank {x.rank} and w of rank {w.rank}"
        )
    return rank


def finish_sums(y: Array, inputs: Sequence[Array]) -> list[Array]:
    """Return the sums [N, C, X...] plus the bias, if the inputs have one, in the type of the first input."""
    if len(inputs) > 2:
        y = y + inputs[2].astype(y.dtype, copy=False).reshape(-1, *(1,) * (y.ndim - 2))
    return [np.ascontiguousarray(y.astype(inputs[0].dtype, copy=False))]


def span_of(size: int, dilation: int) -> int:
    """Return the frames from the first tap of a kernel to its last, both included."""
    return (size - 1) * dilation + 1


def kernel_spans(kernel: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """Return the span of a kernel along each spatial axis."""
    return list(map(span_of, kernel, dilations))


def kernel_span(w: TypedFact, axis: int, dilations: Sequence[int]) -> int:
    """Return the span of a kernel along a spatial axis."""
    return span_of(int(w.shape[axis + 2]), dilations[axis])


def _zero_taps(kernel: Array | None, axis: int) -> tuple[int, int]:
    """Return how many first and how many last taps along an axis are zeros in all channels, as a window's are."""
    if kernel is None:
        return 0, 0
    taps = range(kernel.shape[axis])
    first = next((tap for tap in taps if kernel.take(tap, axis).any()), None)
    if first is None:
        return 0, 0
    last = next(tap for tap in reversed(taps) if kernel.take(tap, axis).any())
    return first, len(taps) - 1 - last


def spatial_stream(axes: Sequence[int | None]) -> int | Pointwise | Whole:
    """Return the stream axis of x [N, C, X...] if it is a spatial one, else the relation."""
    axis = axes[0]
    if axis is None or any(other is not None for other in axes[1:]):
        return Whole("the kernel itself is a stream", "give the kernel as a constant")
    if axis == 0:
        return Pointwise((0,))
    if axis == 1:
        return Whole("a convolution mixes all channels, and time is its channel axis", "convolve over time")
    return axis


@record
class Conv(Op):
    """Slide kernels over the spatial axes.

    y[n, o, u...] = b[o] + sum_ck w[o, c, k...] * x[n, g*C/group + c, u*stride + k*dilation - before]

    Inputs   x [N, C, X...], w [O, C/group, K...], b [O] (optional), of one float type
    Output   y [N, O, U...],  U = (before + X + after - span) // stride + 1,  span = (K-1)*dilation + 1
    Stream   window(span, stride) on a spatial axis, pointwise on N; whole on C
    Raises   FactError: channels or ranks differ
    Source   ONNX Conv-22

    strides, dilations, pads  the stride, the dilation, and the zeros before and after each spatial axis
    group                     the channels are divided into this many groups, each with its own kernels
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    group: int = 1

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, w = inputs[0], inputs[1]
        check_ranks(x, w, len(self.strides))
        unify(x.shape[1], w.shape[1] * self.group, "input channels")
        if int(w.shape[0]) % self.group:
            raise FactError(
                f"{count_of(w.shape[0], 'output channel')} cannot be divided into {count_of(self.group, 'group')}"
            )
        if len(inputs) > 2:
            unify(inputs[2].shape[0], w.shape[0], "bias")
        require_frames(x, self.pads)
        spatial = [
            (x.shape[axis + 2] + sum(pads, ZERO) - kernel_span(w, axis, self.dilations)) // stride + 1
            for axis, (pads, stride) in enumerate(zip(self.pads, self.strides))
        ]
        return [TypedFact(x.dtype, (x.shape[0], w.shape[0], *spatial))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, w = inputs[0], inputs[1]
        accumulator = accumulator_type(x)
        padded = pad_spatial(x, self.pads, env).astype(accumulator, copy=False)
        batch, channels = padded.shape[:2]
        kernel = w.shape[2:]
        view = windows(padded, kernel, self.strides, self.dilations)
        out = view.shape[2 : 2 + len(kernel)]
        per_group, units = channels // self.group, w.shape[0] // self.group
        depth = per_group * math.prod(kernel)
        rows = view.reshape(batch, self.group, per_group, *out, *kernel)
        spatial, taps = list(range(3, 3 + len(out))), list(range(3 + len(out), 3 + 2 * len(out)))
        rows = rows.transpose(1, 0, *spatial, 2, *taps).reshape(self.group, batch * math.prod(out), depth)
        matrix = w.astype(accumulator, copy=False).reshape(self.group, units, depth).transpose(0, 2, 1)
        with np.errstate(invalid="ignore"):  # frames outside the stream may be infinite, after a maximum
            y = (rows @ matrix).reshape(self.group, batch, *out, units)
        positions = list(range(1, len(out) + 1))
        y = y.transpose(1, *(axis + 1 for axis in positions), 0, len(out) + 2)
        y = y.reshape(batch, *out, w.shape[0]).transpose(0, len(out) + 1, *positions)
        return finish_sums(y, inputs)

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        bias = volume(outputs[0].shape) if len(inputs) > 2 else ZERO
        return Work(volume(outputs[0].shape) * volume(inputs[1].shape[1:]), bias)

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        kernel = inputs[1].sizes
        if slot != 1 or is_depthwise(self, kernel):
            return None
        return UnitLayout(kernel, tuple(range(1, len(kernel))), ActivationLayout(0, 1, self.group))

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = spatial_stream(axes)
        if not isinstance(axis, int):
            return axis
        spatial = axis - 2
        before, after = self.pads[spatial]
        dilation = self.dilations[spatial]
        first, last = _zero_taps(inputs[1].value, axis)
        window = Window(
            axis,
            span=kernel_span(inputs[1], spatial, self.dilations),
            stride=self.strides[spatial],
            ends=Ends(axis, before, after),
            op=replace(self, pads=without_pad(self.pads, spatial)),
            blank=first * dilation,
        )
        if not last:
            return window
        visible = after - last * dilation
        ends = Ends(axis, before, visible if visible.prove_ge(0).yes else ZERO)
        shorter = replace(window, span=window.span - last * dilation, ends=ends)
        taps = int(inputs[1].shape[axis])
        return replace(window, trimmed=TrimmedWindow(shorter, 1, axis, 0, taps - last))

    def detail(self) -> str:
        text = f"strides {list(self.strides)} dilations {list(self.dilations)} pads {pads_text(self.pads)}"
        return text + (f" group {self.group}" if self.group > 1 else "")


def _add_columns(y: Array, columns: Array, strides: Sequence[int], dilations: Sequence[int]) -> None:
    """Add columns [N, O, K..., X...] to y [N, O, U...] where each tap of each input frame belongs.

    It loops over the taps, or over the frames if these are fewer; both add the terms of an output in the same order.
    """
    rank = len(strides)
    kernel, sizes = columns.shape[2 : 2 + rank], columns.shape[2 + rank :]
    if math.prod(kernel) <= math.prod(sizes):
        for tap in itertools.product(*map(range, kernel)):
            places = _strided_slices(strides, [t * dilation for t, dilation in zip(tap, dilations)], sizes)
            y[:, :, *places] += columns[:, :, *tap]
    else:
        for frame in itertools.product(*(reversed(range(size)) for size in sizes)):
            places = _strided_slices(dilations, [i * stride for i, stride in zip(frame, strides)], kernel)
            y[:, :, *places] += columns[:, :, ..., *frame]


def _strided_slices(steps: Sequence[int], starts: Sequence[int], counts: Sequence[int]) -> Iterator[slice]:
    """Yield the slice of each axis that has ``count`` positions from ``start`` on, every ``step``."""
    for step, start, count in zip(steps, starts, counts):
        yield slice(start, start + (count - 1) * step + 1, step) if count else slice(0, 0)


def without_pad(pads: Pads, spatial: int) -> Pads:
    """Return the pads without those of one axis."""
    return tuple(NO_PAD if axis == spatial else pad for axis, pad in enumerate(pads))


@record
class ConvTranspose(Op):
    """Spread each input frame over a kernel and add what overlaps.

    y[n, o, i*stride + k*dilation - before...] += w[c, o, k...] * x[n, c, i...], plus b[o]

    Inputs   x [N, C, X...], w [C, O/group, K...], b [O] (optional), of one float type
    Output   y [N, O, U...],  U = (X-1)*stride + span + output_padding - before - after
    Stream   window of ceil(span/stride) input frames for each ``stride`` output frames
    Raises   FactError: channels or ranks differ
    Source   ONNX ConvTranspose-22

    strides, dilations, pads  the stride, the dilation, and the frames cut before and after on each spatial axis
    output_padding            frames added after the last one, on each spatial axis
    group                     the channels are divided into this many groups, each with its own kernels
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: Pads
    output_padding: tuple[int, ...]
    group: int = 1

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, w = inputs[0], inputs[1]
        rank = check_ranks(x, w, len(self.strides))
        unify(x.shape[1], w.shape[0], "input channels")
        if int(w.shape[0]) % self.group:
            raise FactError(
                f"{count_of(w.shape[0], 'input channel')} cannot be divided into {count_of(self.group, 'group')}"
            )
        if len(inputs) > 2:
            unify(inputs[2].shape[0], w.shape[1] * self.group, "bias")
        spatial = [
            (x.shape[axis + 2] - 1) * self.strides[axis]
            + kernel_span(w, axis, self.dilations)
            + self.output_padding[axis]
            - sum(self.pads[axis], TDim.of(0))
            for axis in range(rank)
        ]
        return [TypedFact(x.dtype, (x.shape[0], w.shape[1] * self.group, *spatial))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, w = inputs[0], inputs[1]
        accumulator = accumulator_type(x)
        kernel, sizes = w.shape[2:], x.shape[2:]
        spans = kernel_spans(kernel, self.dilations)
        full = [
            max(size - 1, 0) * stride + span + extra
            for size, stride, span, extra in zip(sizes, self.strides, spans, self.output_padding)
        ]
        groups, per_group = self.group, w.shape[1]
        by_group = x.astype(accumulator, copy=False).reshape(x.shape[0], groups, -1, math.prod(sizes))
        matrix = w.astype(accumulator, copy=False).reshape(groups, -1, per_group * math.prod(kernel))
        columns = np.matmul(matrix.transpose(0, 2, 1), by_group)
        columns = columns.reshape(x.shape[0], groups * per_group, *kernel, *sizes)
        y = np.zeros(
            (x.shape[0], groups * per_group, *(max(size, span) for size, span in zip(full, spans))),
            accumulator,
        )
        _add_columns(y, columns, self.strides, self.dilations)
        crop = tuple(
            slice(before.eval(env), size - after.eval(env)) for (before, after), size in zip(self.pads, full)
        )
        y = y[(slice(None), slice(None), *crop)]
        return finish_sums(y, inputs)

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        bias = volume(outputs[0].shape) if len(inputs) > 2 else ZERO
        return Work(volume(inputs[0].shape) * volume(inputs[1].shape[1:]), bias)

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        kernel = inputs[1].sizes
        if slot != 1 or is_depthwise(self, kernel):
            return None
        groups = self.group, kernel[0] // self.group, *kernel[1:]
        return UnitLayout(groups, (1, *range(3, len(groups))))

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = spatial_stream(axes)
        if not isinstance(axis, int):
            return axis
        spatial = axis - 2
        before = self.pads[spatial][0]
        if not before.is_const:
            return Whole(
                f"its padding {before} depends on the length of the stream", "use a constant padding"
            )
        span = kernel_span(inputs[1], spatial, self.dilations)
        window = self._window(axis, span, int(before), 0)
        first, _ = _zero_taps(inputs[1].value, axis)
        if not first:
            return window
        skipped = first * self.dilations[spatial]
        trimmed = self._window(axis, span - skipped, int(before), skipped)
        return replace(window, trimmed=TrimmedWindow(trimmed, 1, axis, first, int(inputs[1].shape[axis])))

    def _window(self, axis: int, span: int, before: int, skipped: int) -> Window:
        """Return the window in which each frame spreads over ``span`` frames, from ``skipped`` frames after its own.

        The groups before the first one that receives a frame are empty.
        """
        spatial = axis - 2
        stride, extra = self.strides[spatial], self.output_padding[spatial]
        overlap = span - stride
        reach, early = max(0, -(-overlap // stride)), -(-skipped // stride)
        inner = (TDim.of(reach * stride), TDim.of(max(0, overlap)))
        pads = tuple(inner if i == spatial else pad for i, pad in enumerate(self.pads))
        fill = tuple(max(0, -overlap) if i == spatial else size for i, size in enumerate(self.output_padding))
        return Window(
            axis,
            span=reach + 1,
            up=stride,
            skip=before + early * stride - skipped,
            ends=Ends(axis, TDim.of(reach + early), TDim.of(reach + extra)),
            op=replace(self, pads=pads, output_padding=fill),
        )

    def detail(self) -> str:
        text = f"strides {list(self.strides)} dilations {list(self.dilations)} pads {pads_text(self.pads)}"
        text += f" output_padding {list(self.output_padding)}" if any(self.output_padding) else ""
        return text + (f" group {self.group}" if self.group > 1 else "")


def is_depthwise(op: Conv | ConvTranspose, kernel: Sequence[int]) -> bool:
    """Return whether every channel has its own kernel and one output channel."""
    return op.group > 1 and kernel[0] == op.group and kernel[1] == 1
