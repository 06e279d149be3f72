"""The discrete Fourier transform of an axis of unknown length, and its matrix for a known one."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact, volume
from pulse.ops.op import Env, Op, Pointwise, Relation, Whole
from pulse.ops.work import Work
from pulse.support.record import record
from pulse.support.wording import count_of


def unit_circle(angle: Array) -> Array:
    """Return ``[..., 2]``: cosine and sine; zeros are exact, so real bins of a real signal have no imaginary part."""
    circle = np.stack([np.cos(angle), np.sin(angle)], -1)
    return np.where(np.abs(circle) < 1e-14, 0.0, circle)


def dft_matrix(frames: int, parts: int, length: int, bins: int, inverse: bool) -> Array:
    """Return ``[frames, parts, bins, 2]`` f64: the weight of each frame's real (and imaginary) part in each bin.

    length  points of the transform; ``frames`` at most this many
    """
    cycles = np.outer(np.arange(frames), np.arange(bins)) % length / length
    angle = 2 * np.pi * (cycles if inverse else -cycles)
    scale = 1 / length if inverse else 1.0
    circle = unit_circle(angle) * scale
    quarter_turn = np.stack([-circle[..., 1], circle[..., 0]], -1)
    return np.stack([circle, quarter_turn][:parts], 1)


def half_to_real(length: int, frames: int) -> Array:
    """Return ``[frames, 2, length, 1]``: the real signal of a one-sided spectrum; bins beyond the half are not read."""
    bins = min(frames, length // 2 + 1)
    matrix = np.zeros((frames, 2, length, 1))
    mirrored = np.full(bins, 2.0)
    mirrored[0] = 1.0
    if length % 2 == 0 and bins == length // 2 + 1:
        mirrored[-1] = 1.0
    matrix[:bins] = dft_matrix(bins, 2, length, length, inverse=True)[..., :1] * mirrored[:, None, None, None]
    return matrix


@record
class Dft(Op):
    """Discrete Fourier transform of one axis.

    y[..., k] = sum_n x[..., n] * exp(-2i pi n k / L); with ``inverse`` the conjugate, divided by L

    Input    x [..., X, ..., 1] real or [..., X, ..., 2] real and imaginary part; X is cut or filled with zeros to L
    Output   y [..., L, ..., 2], of ``onesided`` the first L // 2 + 1 bins; with ``inverse`` and ``onesided`` x is
             one-sided and y [..., L, ..., 1] is real
    Stream   pointwise on the other axes, whole on X
    Raises   FactError: the axis is the last one, the last axis is neither 1 nor 2
    Source   ONNX DFT-20

    axis      the axis X
    length    L
    inverse   whether it is the inverse transform
    onesided  whether the spectrum has only the first L // 2 + 1 bins
    """

    axis: int
    length: TDim
    inverse: bool = False
    onesided: bool = False

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        if x.rank < 2 or not 0 <= self.axis < x.rank - 1:
            raise FactError(f"axis {self.axis} is not one of those before the last of {x}")
        if x.shape[-1] not in (TDim.of(1), TDim.of(2)):
            raise FactError(f"the last axis of {x} must be 1 (real) or 2 (real and imaginary)")
        if self.length.is_const and int(self.length) < 1:
            raise FactError(f"a transform of {count_of(self.length, 'point')}")
        shape = list(x.shape)
        shape[self.axis] = self.length // 2 + 1 if self.onesided and not self.inverse else self.length
        shape[-1] = TDim.of(1 if self.onesided and self.inverse else 2)
        return [TypedFact(x.dtype, tuple(shape))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        length = self.length.eval(env)
        values = x[..., 0].astype(np.complex128)
        if x.shape[-1] == 2:
            values = values + 1j * x[..., 1]
        if self.inverse and self.onesided:
            y = np.fft.irfft(values, length, self.axis)[..., None]
            return [y.astype(x.dtype)]
        y = (np.fft.ifft if self.inverse else np.fft.fft)(values, length, self.axis)
        if self.onesided:
            y = np.take(y, range(length // 2 + 1), self.axis)
        return [np.stack([y.real, y.imag], -1).astype(x.dtype)]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        """Return the work of the product with its matrix, which is how constant lengths run."""
        terms = inputs[0].shape[self.axis] * inputs[0].shape[-1]
        return Work(volume(outputs[0].shape) * terms)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        axis = axes[0]
        if axis is None or axis == self.axis:
            return Whole(
                "a Fourier transform over time needs the whole stream",
                "cut the stream into frames of constant length (STFT), transform another axis, or write a "
                "convolution as long as the stream (S4D) in its recurrent form",
            )
        if axis == inputs[0].rank - 1:
            return Whole("real and imaginary part are its last axis", "keep time out of the last axis")
        return Pointwise((axis,))

    def detail(self) -> str:
        text = f"axis {self.axis} length {self.length}"
        return text + (" inverse" if self.inverse else "") + (" onesided" if self.onesided else "")
