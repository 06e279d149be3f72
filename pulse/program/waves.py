"""Which constant matrices are Fourier transforms: with them a product costs N log N."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from pulse.facts import Array
from pulse.program.kernels.simd import LANES

SMALLEST = 2048
"""Elements of a matrix below which a product is not slower."""
CLOSE = 5e-7
"""The largest difference from a transform, of the largest element: a few roundings of f32."""
PROBED = 4
"""Bins that are compared before all of them."""
GAIN = 1.5
"""How much less work a transform must be than the product."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Where the complex points are among the rows (or columns) of a matrix, and what each is multiplied by.

    re, im    numbers of rows [points]; no im: they are real
    factors   [2, points], of the real and the imaginary parts
    """

    re: Array
    im: Array | None
    factors: Array

    @property
    def count(self) -> int:
        """How many points there are."""
        return len(self.re)


@dataclass(frozen=True, eq=False)
class Waves:
    """A matrix [rows, columns] that is a transform of ``length``: ``X[k] = sum_n x[n] exp(2i pi n k / length)``."""

    length: int
    points: Parts
    bins: Parts
    first: int = 0
    """The number k of the first bin."""

    def split(self) -> tuple[int, int, float]:
        """N1 and N2 with the least work, and that work in vectors of 16."""
        best = (1, self.length, float("inf"))
        for first in range(1, self.length + 1):
            if self.length % first == 0:
                work = self._work(first, self.length // first)
                best = min(best, (first, self.length // first, work), key=lambda choice: choice[2])
        return best

    def _work(self, first: int, second: int) -> float:
        blocks = -(-first // LANES)
        inner = 2 if self.points.im is None else 4
        outer = 2 if self.bins.im is None else 4
        rows = -(-self.bins.count // first)
        return blocks * (inner * self.points.count + outer * rows * second)

    def matrix(self) -> Array:
        """The matrix that it stands for, f64 [rows, real parts of the bins, then imaginary ones]."""
        points, bins = self.points, self.bins
        rows = points.count * (1 if points.im is None else 2)
        re, im = (slice(0, bins.count), slice(bins.count, None))
        numbers = self.first + np.arange(bins.count)
        turns = np.outer(np.arange(points.count), numbers) % self.length / self.length
        cos, sin = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
        matrix = np.zeros((rows, bins.count * (1 if bins.im is None else 2)))
        matrix[points.re, re] = np.outer(points.factors[0], bins.factors[0]) * cos
        if bins.im is not None:
            matrix[points.re, im] = np.outer(points.factors[0], bins.factors[1]) * sin
        if points.im is not None:
            matrix[points.im, re] = -np.outer(points.factors[1], bins.factors[0]) * sin
            if bins.im is not None:
                matrix[points.im, im] = np.outer(points.factors[1], bins.factors[1]) * cos
        return matrix


def waves(matrix: Array) -> Waves | None:
    """The transform that a matrix is, if it is one and worth it; whatever the order of its parts, windowed or not."""
    rows, columns = matrix.shape
    if matrix.size < SMALLEST or matrix.dtype != np.float32 or rows < 8 or columns < 8:
        return None
    wide = matrix.astype(np.float64)
    bound = CLOSE * float(np.abs(wide).max())
    if not np.isfinite(bound):
        return None
    for points in _layouts(rows):
        for bins in _layouts(columns):
            if points[1] is None and bins[1] is None:
                continue
            for length in _lengths(len(points[0]), len(bins[0])):
                begin = _begin(wide, length, bins[0])
                if begin is None:
                    continue
                few = _fitted(wide, length, points, bins, begin, slice(begin, begin + PROBED))
                if not _within(few, wide, bound):
                    continue
                found = _fitted(wide, length, points, bins, begin)
                if _within(found, wide, bound):
                    worth = found.split()[2] * GAIN <= rows * -(-columns // LANES)
                    return found if worth else None
    return None


def _within(found: Waves | None, matrix: Array, bound: float) -> TypeGuard[Waves]:
    """Whether a transform is the matrix, in the columns of its bins."""
    if found is None:
        return False
    bins = found.bins
    columns = bins.re if bins.im is None else np.concatenate([bins.re, bins.im])
    return float(np.abs(found.matrix() - matrix[:, columns]).max()) <= bound


def _layouts(size: int) -> Iterator[tuple[Array, Array | None]]:
    """Real points; real and imaginary parts in turns; all real parts, then all imaginary ones."""
    every = np.arange(size)
    yield every, None
    if size % 2 == 0:
        yield every[::2], every[1::2]
        yield every[: size // 2], every[size // 2 :]


def _lengths(points: int, bins: int) -> list[int]:
    """The lengths that so many points and bins can belong to."""
    least = max(points, 2)
    found = {points, bins, 2 * (points - 1), 2 * (bins - 1), 1 << (least - 1).bit_length()}
    return sorted(length for length in found if length >= max(points, bins))


def _begin(matrix: Array, length: int, columns: Array) -> int | None:
    """A bin whose cosines are all 1 or -1, so that its column shows the factors of the rows: the first one, or where
    a window takes that away the middle one.
    """
    middle = [length // 2] if length % 2 == 0 and length // 2 < len(columns) else []
    return next((number for number in (0, *middle) if matrix[:, columns[number]].any()), None)


def _fitted(
    matrix: Array,
    length: int,
    points: tuple[Array, Array | None],
    bins: tuple[Array, Array | None],
    begin: int,
    part: slice = slice(None),
) -> Waves | None:
    """The factors of rows and columns that fit; None where a look at ``part`` of the bins shows that none do."""
    every = np.arange(len(points[0]))
    numbers = np.arange(len(bins[0]))[part]
    re, im = bins[0][part], None if bins[1] is None else bins[1][part]
    into = matrix[points[0], bins[0][begin]] * np.cos(2 * np.pi * (every * begin % length / length))
    strength = float(into @ into)
    if strength == 0:
        return None
    turns = np.outer(every, numbers) % length / length
    seen = into[:, None] * np.cos(2 * np.pi * turns)
    power = (seen**2).sum(axis=0)
    if not power.all():
        return None
    out = (matrix[np.ix_(points[0], re)] * seen).sum(axis=0) / power
    sign_in = sign_out = 1.0
    if im is not None:
        sign_out = _sign(into[:, None] * np.sin(2 * np.pi * turns), matrix[np.ix_(points[0], im)])
    if points[1] is not None:
        seen = -into[:, None] * np.sin(2 * np.pi * turns) * out
        sign_in = _sign(seen, matrix[np.ix_(points[1], re)])
    return Waves(
        length,
        Parts(points[0], points[1], np.stack([into, sign_in * into])),
        Parts(re, im, np.stack([out, sign_out * out])),
        int(numbers[0]),
    )


def _sign(expected: Array, found: Array) -> float:
    return -1.0 if float((expected * found).sum()) < 0 else 1.0


def tables(found: Waves) -> tuple[int, int, Array, Array, Array]:
    """N1, N2, and what the kernel multiplies by: w1 [N1, 2, P], turns [N2, 2, P], w2 [N2, N2, 2], f32."""
    first, second, _ = found.split()
    padded = -(-first // LANES) * LANES
    k1 = np.arange(padded)
    inside = k1 < first
    w1 = _turned(np.outer(np.arange(first), k1) % first / first, inside)
    turns = _turned(np.outer(np.arange(second), k1) % found.length / found.length, inside)
    angle = 2 * np.pi * (np.outer(np.arange(second), np.arange(second)) % second / second)
    w2 = np.stack([np.cos(angle), np.sin(angle)], -1)
    return first, second, w1, turns, w2.astype(np.float32)


def _turned(turns: Array, inside: Array) -> Array:
    angle = 2 * np.pi * turns
    return (np.stack([np.cos(angle), np.sin(angle)], 1) * inside).astype(np.float32)
