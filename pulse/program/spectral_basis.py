"""Recognise constant matrices that are Fourier transforms, so that products with them cost N log N."""

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TypeGuard

import numpy as np

from pulse.facts import Array
from pulse.jit.language.simd import LANES
from pulse.ops.spectral import unit_circle
from pulse.support.blake2 import blake2b
from pulse.support.powers import next_power_of_two
from pulse.support.record import record

MIN_MATRIX_ELEMENTS = 2048
"""Minimum number of elements of a matrix; for smaller ones, a product is faster than a transform."""
MAX_ERROR = 5e-7
"""The largest error of an element, relative to the factors of its row and column: a few rounding errors of f32."""
PROBED_POINTS, PROBED_BINS = 8, 4
"""The numbers of points and bins that are compared before all others."""
PROBED_ROWS = 64
"""How many rows are examined for one with much power."""
MAX_COSINE_ERROR = 1e-4
"""The largest error of a cosine that is computed from elements with an error of ``MAX_ERROR``, with a margin."""
MIN_GAIN = 1.5
"""Minimum ratio of the product's work to the transform's; below it, the product is used."""
MAX_CACHED_RESULTS = 64
"""Maximum number of cached results; beyond it, all are dropped."""


@record(eq=False)
class ComplexLayout:
    """The positions of complex points among the rows (or columns) of a matrix, and their factors.

    re, im    indices of rows [points]; im is None if the points are real. A point without an imaginary part, as the
              first and the middle one of a real signal's spectrum, may have the index of another point's real part
    factors   [2, points], factors of the real and the imaginary parts
    has_im    which points have an imaginary part, bool [points]
    """

    re: Array
    im: Array | None
    factors: Array
    has_im: Array

    @property
    def count(self) -> int:
        """The number of points."""
        return len(self.re)


@record(eq=False)
class _PartIndices:
    """Where the parts of complex points may be among the rows (or columns) of a matrix, before their factors are known.

    re, im  as in ``ComplexLayout``
    signs   [points], the sign of the factor of each imaginary part relative to the factor of the real part
    """

    re: Array
    im: Array | None
    signs: Array

    @cached_property
    def first_three(self) -> Sequence[int]:
        """The indices of the real parts of the first three points."""
        return tuple(self.re[:3].tolist())

    @property
    def has_im(self) -> Array:
        """Which points have an imaginary part, at an index that no real part has."""
        return np.zeros(len(self.re), bool) if self.im is None else ~np.isin(self.im, self.re)

    def turn(self) -> "_PartIndices":
        """Turn point n by n quarters: the points of odd n have their parts exchanged."""
        assert self.im is not None
        odd = (np.arange(len(self.re)) % 2 == 1) & self.has_im
        return _PartIndices(
            np.where(odd, self.im, self.re), np.where(odd, self.re, self.im), np.where(odd, -1.0, 1.0)
        )


@record(eq=False)
class DftBasis:
    """A matrix [rows, columns] that is a transform of ``length``: ``X[k] = sum_n x[n] exp(2i pi n k / length)``.

    length  the length of the transform
    points  the rows that are its points
    bins    the columns that are its bins
    first   the number k of the first bin
    """

    length: int
    points: ComplexLayout
    bins: ComplexLayout
    first: int = 0

    def best_factors(self) -> tuple[int, int, float]:
        """Return the N1 and N2 with the smallest work, and that work in vectors of 16."""
        best = (1, self.length, float("inf"))
        for first in range(1, self.length + 1):
            if self.length % first == 0:
                work = self._work(first, self.length // first)
                best = min(best, (first, self.length // first, work), key=lambda choice: choice[2])
        return best

    def _work(self, first: int, second: int) -> float:
        blocks = -(-first // LANES)
        point_parts = 1 if self.points.im is None else 2
        bin_parts = 1 if self.bins.im is None else 2
        rows = min(-(-self.bins.count // first), second // 2 + 1)
        return blocks * (point_parts * self.length + bin_parts * rows * second)

    def matrix(self) -> Array:
        """Return the matrix itself, f64 [rows, real parts of the bins, then imaginary ones]."""
        points, bins = self.points, self.bins
        rows = 1 + int(max(points.re.max(), 0 if points.im is None else points.im.max()))
        re, im = (slice(0, bins.count), slice(bins.count, None))
        numbers = self.first + np.arange(bins.count)
        turns = np.outer(np.arange(points.count), numbers) % self.length / self.length
        cos, sin = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
        matrix = np.zeros((rows, bins.count * (1 if bins.im is None else 2)))
        nonzero = points.factors[0] != 0
        rows_re = points.re[nonzero]
        matrix[rows_re, re] = np.outer(points.factors[0], bins.factors[0])[nonzero] * cos[nonzero]
        if bins.im is not None:
            matrix[rows_re, im] = np.outer(points.factors[0], bins.factors[1])[nonzero] * sin[nonzero]
        if points.im is not None:
            rows_im, inside = points.im[points.has_im], points.has_im
            matrix[rows_im, re] = (-np.outer(points.factors[1], bins.factors[0]) * sin)[inside]
            if bins.im is not None:
                matrix[rows_im, im] = (np.outer(points.factors[1], bins.factors[1]) * cos)[inside]
        return matrix

    def rest_of(self, matrix: Array) -> Array:
        """Return the elements of the matrix in columns that the transform leaves zero.

        The sines of the middle bin are all zero, but not if they were computed in floats: then this column is tiny.
        """
        bins, rest = self.bins, np.zeros_like(matrix)
        if bins.im is not None:
            columns = bins.im[bins.has_im & (bins.factors[1] == 0)]
            rest[:, columns] = matrix[:, columns]
        return rest


_CACHE: "dict[tuple[tuple[int, ...], bytes], DftBasis | None]" = {}


def find_dft_basis(matrix: Array) -> DftBasis | None:
    """Return the Fourier transform that a matrix computes, its parts in any order, windowed or not, or None.

    Its rows may begin after the first point of the transform. The last results are cached, since the same matrices
    are examined several times.
    """
    rows, columns = matrix.shape
    if matrix.size < MIN_MATRIX_ELEMENTS or matrix.dtype != np.float32 or rows < 8 or columns < 8:
        return None
    if next(_plausible_layouts(matrix), None) is None and next(_plausible_paddings(matrix), None) is None:
        return None
    key = matrix.shape, blake2b(matrix.tobytes()).digest()
    with suppress(KeyError):
        return _CACHE[key]
    if len(_CACHE) >= MAX_CACHED_RESULTS:
        _CACHE.clear()
    basis = _CACHE[key] = _find(matrix)
    return basis


def _find(matrix: Array) -> DftBasis | None:
    rows, columns = matrix.shape
    exact = matrix.astype(np.float64)
    bound = MAX_ERROR * float(np.abs(exact).max())
    if not np.isfinite(bound):
        return None
    basis = _search(exact, bound) or _search_padded(exact, bound)
    if basis is None or basis.best_factors()[2] * MIN_GAIN > rows * -(-columns // LANES):
        return None
    return basis


def _search(matrix: Array, bound: float) -> DftBasis | None:
    """Return the first layout and length whose transform fits; None if none does."""
    used: Array = (matrix != 0).any(axis=0)
    plausible: dict[tuple[int, bytes, bytes], bool] = {}
    for points, bins in _plausible_layouts(matrix):
        for length in _lengths(len(points.re), len(bins.re)):
            reference_bin = _find_reference_bin(used, length, bins.re)
            if reference_bin is None:
                continue
            probed_bins = slice(reference_bin, reference_bin + PROBED_BINS)
            rows, columns = points.re[:PROBED_POINTS], bins.re[probed_bins]
            key = length, rows.tobytes(), columns.tobytes()
            if key not in plausible:
                plausible[key] = _may_fit(matrix[np.ix_(rows, columns)], length, reference_bin, bound)
            if not plausible[key]:
                continue
            probe = _fit(matrix, length, points, bins, reference_bin, bound, probed_bins)
            if not _is_close(probe, matrix):
                continue
            basis = _fit(matrix, length, points, bins, reference_bin, bound)
            if _is_close(basis, matrix):
                return basis
    return None


def _plausible_layouts(matrix: Array) -> Iterator[tuple[_PartIndices, _PartIndices]]:
    """Yield the layouts of points and bins whose first elements may be those of a transform.

    This reads a few elements, and there are none for nearly all matrices that are not transforms.
    """
    plausible: dict[tuple[Sequence[int], Sequence[int]], bool] = {}
    layouts_of_bins = _layouts(matrix.shape[1])
    for points in _layouts(matrix.shape[0], turned=True):
        for bins in layouts_of_bins:
            if bins.im is None and points.im is None:
                continue
            corner = points.first_three, bins.first_three
            if corner not in plausible:
                plausible[corner] = not matrix[:, bins.re[0]].any() or _has_cosines(matrix, *corner)
            if plausible[corner]:
                yield points, bins


def _has_cosines(matrix: Array, rows: Sequence[int], columns: Sequence[int]) -> bool:
    """Return whether the first three points and bins may have the cosines of multiples of one angle, of any length."""
    (m00, m01, m02), *others = ([float(matrix[row, column]) for column in columns] for row in rows)
    if 0 in (m00, m01, m02, others[0][0], others[1][0]):
        return True  # a window may begin with zeros
    (c11, c12), (c21, c22) = (
        (m00 * middle / (first * m01), m00 * last / (first * m02)) for first, middle, last in others
    )
    errors = c12 - (2 * c11 * c11 - 1), c21 - c12, c22 - (2 * c12 * c12 - 1)
    return abs(c11) <= 1 + MAX_COSINE_ERROR and max(map(abs, errors)) <= MAX_COSINE_ERROR


def _may_fit(part: Array, length: int, reference_bin: int, bound: float) -> bool:
    """Return whether the real parts of the first points and of a few bins fit, which many layouts share."""
    cosines = _first_cosines(length, reference_bin)[: part.shape[0], : part.shape[1]]
    wave = part[:, :1] * cosines[:, :1] * cosines
    power = (wave * wave).sum(axis=0)
    if not power.all():
        return True  # a window may begin with zeros
    bin_factors = (part * wave).sum(axis=0) / power
    return float(np.abs(part - wave * bin_factors).max()) <= 2 * bound


@functools.lru_cache(maxsize=256)
def _first_cosines(length: int, reference_bin: int) -> Array:
    """Return the cosines of the first points and of a few bins, f64 [points, bins]."""
    turns = np.outer(np.arange(PROBED_POINTS), reference_bin + np.arange(PROBED_BINS)) % length / length
    return np.cos(2 * np.pi * turns)


def _search_padded(matrix: Array, bound: float) -> DftBasis | None:
    """Return a transform of real points whose first ones are missing: padded with points of weight 0."""
    for missing in _plausible_paddings(matrix):
        basis = _search(np.pad(matrix, ((missing, 0), (0, 0))), bound)
        if basis is not None and basis.points.im is None:
            points = replace(basis.points, re=np.maximum(basis.points.re - missing, 0))
            return replace(basis, points=points)
    return None


def _plausible_paddings(matrix: Array) -> Iterator[int]:
    """Yield how many points may be missing before the first one, by the phases of a row with much power."""
    step = -(-len(matrix) // PROBED_ROWS)
    with np.errstate(over="ignore"):
        row = step * int(np.abs(matrix[::step]).sum(axis=1).argmax())
    if not np.isfinite(matrix[row]).all():
        return
    known: set[int] = set()
    for bins in _layouts(matrix.shape[1]):
        if bins.im is None:
            continue
        for length in sorted({len(bins.re), 2 * (len(bins.re) - 1)}):
            for missing in _missing_points(matrix[row], row, bins.re, bins.im, length):
                if 0 < missing <= length - len(matrix) and missing not in known:
                    known.add(missing)
                    yield missing


def _missing_points(row_values: Array, row: int, re: Array, im: Array, length: int) -> set[int]:
    """Return the possible numbers of points missing before a row, from the phase of its second bin with either sign."""
    sign = -1.0 if row_values[re[0]] < 0 else 1.0
    turn = math.atan2(sign * float(row_values[im[1]]), sign * float(row_values[re[1]])) / (2 * math.pi)
    points = (turn * length, -turn * length)
    return {round(point % length) - row for point in points if abs(point - round(point)) < 1e-2}


def _is_close(basis: DftBasis | None, matrix: Array) -> TypeGuard[DftBasis]:
    """Return whether a transform equals the matrix in the columns of its bins.

    The error of each element is relative to the factors of its point and bin, so that a large row hides no other.
    """
    if basis is None:
        return False
    points, bins = basis.points, basis.bins
    columns = bins.re if bins.im is None else np.concatenate([bins.re, bins.im])
    inside = np.concatenate([np.ones(bins.count, bool), bins.has_im])[: len(columns)]
    rows = np.zeros(len(matrix))
    rows[points.re] = np.abs(points.factors[0])
    if points.im is not None:
        rows[points.im[points.has_im]] = rows[points.re[points.has_im]]
    size = np.outer(rows, np.tile(np.abs(bins.factors[0]), 1 if bins.im is None else 2))
    error = np.abs(basis.matrix() - matrix[:, columns])
    return bool((error <= MAX_ERROR * size)[:, inside].all())


@functools.lru_cache(maxsize=8)  # neighbouring layers have the same sizes; few arrays are kept
def _layouts(size: int, turned: bool = False) -> Sequence[_PartIndices]:
    """Return the layouts of points.

    Real points; alternating real and imaginary parts; real parts, then imaginary ones; both of these packed, with the
    real part of the middle bin of a real signal in place of the imaginary part of the first.

    turned  the complex ones turned, too: as the points of an inverse transform that begins at a quarter of its length
    """
    indices = np.arange(size)
    layouts = [_PartIndices(indices, None, np.ones(size))]
    if size % 2 == 0:
        half = size // 2
        for re, im in ((indices[::2], indices[1::2]), (indices[:half], indices[half:])):
            middle = im[0]
            for packed in (False, True):
                parts = (np.append(re, middle), np.append(im, middle)) if packed else (re, im)
                layout = _PartIndices(*parts, np.ones(len(parts[0])))
                layouts += [layout, layout.turn()] if turned else [layout]
    return layouts


def _lengths(points: int, bins: int) -> list[int]:
    """Return the transform lengths that fit this many points and bins."""
    lengths = {points, bins, 2 * (points - 1), 2 * (bins - 1), next_power_of_two(max(points, 2))}
    return sorted(length for length in lengths if length >= max(points, bins))


def _find_reference_bin(used: Array, length: int, columns: Array) -> int | None:
    """Find a bin whose cosines are all 1 or -1, so that its column holds the factors of the rows.

    That is the first bin, or the middle one if a window cancels the first.

    used  which columns of the matrix are not zero
    """
    middle = [length // 2] if length % 2 == 0 and length // 2 < len(columns) else []
    return next((number for number in (0, *middle) if used[columns[number]]), None)


def _fit(
    matrix: Array,
    length: int,
    points: _PartIndices,
    bins: _PartIndices,
    reference_bin: int,
    bound: float,
    part: slice = slice(None),
) -> DftBasis | None:
    """Fit the factors of rows and columns; None if some of the bins already show that none fit.

    bound  how far the largest elements of a matrix may be from their transform
    Imaginary parts whose columns or sines are zero get the factor 0, so that they stay zero despite rounding.
    """
    numbers_in = np.arange(len(points.re))
    numbers = np.arange(len(bins.re))[part]
    re, im = bins.re[part], None if bins.im is None else bins.im[part]
    turns = numbers_in * reference_bin % length / length
    point_factors = matrix[points.re, bins.re[reference_bin]] * np.cos(2 * np.pi * turns)
    if float(point_factors @ point_factors) == 0:
        return None
    turns = np.outer(numbers_in, numbers) % length / length
    wave = point_factors[:, None] * np.cos(2 * np.pi * turns)
    power = (wave**2).sum(axis=0)
    if not power.all():
        return None
    real = matrix[np.ix_(points.re, re)]
    bin_factors = (real * wave).sum(axis=0) / power
    if float(np.abs(real - wave * bin_factors).max()) > 2 * bound:
        return None
    sign_in = sign_out = 1.0
    if im is not None:
        sign_out = _sign(point_factors[:, None] * np.sin(2 * np.pi * turns), matrix[np.ix_(points.re, im)])
    if points.im is not None:
        wave = -(point_factors * points.signs)[:, None] * np.sin(2 * np.pi * turns) * bin_factors
        sign_in = _sign(wave, matrix[np.ix_(points.im, re)])
    into_im = sign_in * point_factors * points.signs * (1.0 if points.im is None else points.has_im)
    out_im = sign_out * bin_factors
    if im is not None:
        out_im = out_im * (bins.has_im[part] & matrix[:, im].any(axis=0))
        if points.im is None:
            out_im[2 * numbers % length == 0] = 0.0
    return DftBasis(
        length,
        ComplexLayout(points.re, points.im, np.stack([point_factors, into_im]), points.has_im),
        ComplexLayout(re, im, np.stack([bin_factors, out_im]), bins.has_im[part]),
        int(numbers[0]),
    )


def _sign(expected: Array, actual: Array) -> float:
    return -1.0 if float((expected * actual).sum()) < 0 else 1.0


def dft_tables(basis: DftBasis) -> tuple[int, int, Array, Array, Array]:
    """Return N1, N2 and the tables of the kernel: w1 [N1, 2, P], twiddles [N2, 2, P], w2 [N2, N2, 2], f32."""
    first, second, _ = basis.best_factors()
    columns = -(-first // LANES) * LANES
    k1 = np.arange(columns)
    inside = k1 < first
    w1 = _twiddle_factors(np.outer(np.arange(first), k1) % first / first, inside)
    twiddles = _twiddle_factors(np.outer(np.arange(second), k1) % basis.length / basis.length, inside)
    angle = 2 * np.pi * (np.outer(np.arange(second), np.arange(second)) % second / second)
    return first, second, w1, twiddles, unit_circle(angle).astype(np.float32)


def _twiddle_factors(angles: Array, inside: Array) -> Array:
    return (np.moveaxis(unit_circle(2 * np.pi * angles), -1, 1) * inside).astype(np.float32)
