"""Attention whose reach is limited to a band around each frame."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact, dtype_name, volume
from pulse.ops.arithmetic import accumulator_type
from pulse.ops.clock import Clock, frames_at
from pulse.ops.dims import broadcast_shapes, unify
from pulse.ops.norm import SOFTMAX_STEPS
from pulse.ops.op import Banded, Env, Op, Pointwise, Relation, Whole
from pulse.ops.stateful import OnPulses
from pulse.ops.work import ELEMENT_S, Work, numpy_seconds
from pulse.support.record import record

PAIR_STEPS = 40
"""Elementwise operations of numpy for each pair of frames."""


@record(eq=False)
class BandedAttention(Op):
    """Each frame is a mean of nearby frames of v, weighted by the softmax of its query times their keys.

    y[i] = sum_j softmax_j(scale * q[i].k[j] + bias[i mod C, j - i + back]) v[j],  i - back <= j <= i + ahead

    Inputs   q [A..., T, d], k [A..., T, d], v [A..., T, e] of one float type; A... broadcast
    Output   y [A..., T, e]
    Stream   banded on T, pointwise on A
    Raises   FactError: d, T or the types differ, a rank below 2, or the table does not fit

    scale  the factor of the products of queries and keys
    bias   [A..., C, back + 1 + ahead]: -inf where a frame is masked; A... broadcast. C is the period of masks by
           chunks, 1 if the bias depends on j - i alone
    back   how many frames before its own a frame sees; ``ahead`` follows from the width of the table
    empty  the value of a frame that sees no others
    """

    scale: float
    bias: Array
    back: int
    empty: float = np.nan

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        """Return the work of the whole band, also if the stream's ends cut it short."""
        q, _, v = inputs
        pairs = (
            volume(broadcast_shapes([fact.shape[:-2] for fact in inputs], "batch axes"))
            * q.shape[-2]
            * self.width
        )
        return Work(pairs * (q.shape[-1] + v.shape[-1]), pairs * (SOFTMAX_STEPS + 2))

    def eval_seconds(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
    ) -> float:
        """Return the seconds for all pairs of frames, because the oracle computes the whole square."""
        pairs = size(volume(outputs[0].shape[:-1])) * size(inputs[1].shape[-2])
        return numpy_seconds(self.work(inputs, outputs), outputs, size) + ELEMENT_S * PAIR_STEPS * pairs

    @property
    def width(self) -> int:
        """The frames of the band."""
        return self.bias.shape[-1]

    @property
    def ahead(self) -> int:
        """How many frames after its own a frame sees; negative if it sees none of the newest."""
        return self.width - 1 - self.back

    @property
    def ahead_by_frame(self) -> tuple[int, ...]:
        """How many frames after its own each frame of a period sees; at least ``-back - 1``, which is none."""
        table = self.bias.reshape(-1, self.period, self.width).max(axis=0)
        newest: Array = np.where(np.greater(table, -np.inf), np.arange(self.width), -1).max(
            axis=-1, initial=-1
        )
        return tuple((newest - self.back).tolist())

    @property
    def period(self) -> int:
        """The number of frames after which the table repeats."""
        return self.bias.shape[-2]

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        q, k, v = inputs
        if min(fact.rank for fact in inputs) < 2:
            raise FactError("queries, keys and values must be [..., T, channels]")
        if not q.dtype == k.dtype == v.dtype or not np.issubdtype(q.dtype, np.floating):
            types = ", ".join(dtype_name(fact.dtype) for fact in inputs)
            raise FactError(f"queries, keys and values must be of one float type, got {types}")
        unify(q.shape[-1], k.shape[-1], "channels of queries and keys")
        unify(k.shape[-2], v.shape[-2], "frames of keys and values")
        frames = unify(q.shape[-2], k.shape[-2], "frames of queries and keys")
        batch = broadcast_shapes([fact.shape[:-2] for fact in inputs], "batch axes")
        bias_batch = tuple(TDim.of(size) for size in self.bias.shape[:-2])
        if broadcast_shapes([batch, bias_batch], "bias") != batch:
            raise FactError(
                f"a bias of shape {list(self.bias.shape)} does not fit batch axes of {len(batch)}"
            )
        return [TypedFact(v.dtype, (*batch, frames, v.shape[-1]))]

    def full_bias(self, frames: int) -> Array:
        """Return the bias of every pair of frames, [A..., frames, frames]."""
        before, after = max(0, self.back), max(0, -self.back)
        columns = frames + max(before, after + self.width)
        padded = np.full((*self.bias.shape[:-2], frames, columns), -np.inf, self.bias.dtype)
        *lead, row, column = padded.strides
        band = as_strided(
            padded[..., after:], (*padded.shape[:-1], self.width), (*lead, row + column, column)
        )
        band[...] = self.bias[..., np.arange(frames) % self.period, :]
        return padded[..., before : before + frames]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        q, k, v = (x.astype(accumulator_type(x), copy=False) for x in inputs)
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * self.scale + self.full_bias(q.shape[-2])
        return [weigh(scores, v, self.empty).astype(inputs[2].dtype, copy=False)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        rank = max(fact.rank for fact in inputs)
        stream_axes = {None if axis is None else axis - fact.rank for fact, axis in zip(inputs, axes)}
        if stream_axes == {-2}:
            return Banded(
                rank - 2,
                self.back,
                self.ahead,
                lambda offset, length: BandedAttentionStream(self, offset, length),
                self.ahead_by_frame,
            )
        if None not in stream_axes and len(stream_axes) == 1 and max(axis or 0 for axis in stream_axes) < -2:
            return Pointwise((rank + next(axis for axis in stream_axes if axis is not None),))
        return Whole("its queries, keys and values do not stream over the same axis", "stream all of them")

    def detail(self) -> str:
        table = zlib.crc32(self.bias.tobytes())
        return (
            f"back {self.back} ahead {self.ahead} period {self.period} scale {self.scale:g} bias {table:08x}"
        )


def weigh(scores: Array, v: Array, empty: float) -> Array:
    """Return means of v weighted by the softmax of the scores; ``empty`` where all scores of a row are -inf."""
    is_masked = (
        np.all(scores == -np.inf, axis=-1, keepdims=True)
        if scores.shape[-1]
        else np.ones((*scores.shape[:-1], 1), np.bool_)
    )
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(is_masked, 0, top))
    total = powers.sum(axis=-1, keepdims=True)
    y = np.matmul(powers / np.where(is_masked, 1, total), v)
    return np.where(is_masked, empty, y)


@record(eq=False)
class BandedAttentionStream(OnPulses):
    """Banded attention on pulses.

    Inputs   q [A..., P, d], k [A..., back + wait + P, d], v [A..., back + wait + P, e], wait <= ahead: row r of a pulse
             is frame ``i = n*P + r - offset``, and column c is frame ``i + c - r - back``. Frames of the band after the
             last column are masked for this row
    Output   y [A..., P, e]; zeros outside the stream of ``length`` frames
    """

    op: BandedAttention

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        q, k, v = inputs
        batch = broadcast_shapes([fact.shape[:-2] for fact in inputs], "batch axes")
        frames, span = int(q.shape[-2]), int(k.shape[-2])
        shortest, longest = frames + max(0, self.op.back + min(0, self.op.ahead)), frames + self.op.width - 1
        if v.shape[-2] != span or not shortest <= span <= longest:
            raise FactError(f"keys and values must have {shortest} to {longest} frames, got {k} and {v}")
        return [TypedFact(v.dtype, (*batch, q.shape[-2], v.shape[-1]))]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        op = self.op
        q, k, v = (x.astype(accumulator_type(x), copy=False) for x in inputs)
        pulse, rank = q.shape[-2], max(x.ndim for x in inputs)
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in inputs))
        y = np.zeros((*batch, pulse, v.shape[-1]), inputs[2].dtype)
        start, stop = clock.span(pulse, self.offset, self.length)
        first, length = clock.pulse * pulse - self.offset, clock.frames(self.length)
        for r in range(start, stop):
            i = first + r
            low = max(0, op.back - i)
            high = max(low, min(op.width, length - i + op.back, k.shape[-2] - r))
            keys, values = (frames_at(x, x.ndim - 2, r + low, r + high) for x in (k, v))
            bias = op.bias[..., i % op.period, low:high]
            query = frames_at(q, q.ndim - 2, r, r + 1)
            scores = np.matmul(query, np.swapaxes(keys, -1, -2)) * op.scale + bias[..., None, :]
            frames_at(y, rank - 2, r, r + 1)[...] = weigh(scores, values, op.empty)
        return [y]
