"""Sampling positions and weights of a resized axis."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from pulse.facts import Array
from pulse.support.record import record

Coordinates: TypeAlias = Literal[
    "asymmetric",
    "half_pixel",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
    "tf_half_pixel_for_nn",
    "align_corners",
    "tf_crop_and_resize",
]
NearestMode: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Crop: TypeAlias = tuple[Fraction, Fraction]

WHOLE: Crop = Fraction(0), Fraction(1)

ROUNDING: dict[NearestMode, Callable[[Array, int], Array]] = {
    "floor": lambda number, over: number // over,
    "ceil": lambda number, over: -(-number // over),
    "round_prefer_floor": lambda number, over: -((over - 2 * number) // (2 * over)),
    "round_prefer_ceil": lambda number, over: (2 * number + over) // (2 * over),
}
"""``number / over`` as an integer, exactly."""


def simple_fraction(number: float) -> Fraction:
    """Return the simplest fraction that is this float32."""
    simple = Fraction(number).limit_denominator(1000)
    return simple if np.float32(float(simple)) == np.float32(number) else Fraction(number)


def linear(distance: Array) -> Array:
    """Return the weight of a frame at a distance from a position, on straight lines."""
    return np.clip(1 - np.abs(distance), 0, None)


def cubic(distance: Array, a: float) -> Array:
    """Return the weight of a frame at a distance from a position, on the curves of Keys with coefficient ``a``."""
    x = np.abs(distance)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0))


@record
class Sampling:
    """Where output frames lie among input frames; a ``rounding`` takes the nearest one, None a mix of several.

    coordinates      the position of an output frame among the input frames
    rounding         which input frame a position takes; None: a mix of several
    cubic            the coefficient of cubic curves; None for straight lines
    antialias        whether downsampling widens the curves, so that every input frame counts
    exclude_outside  whether frames beyond the ends do not count; else the ends are repeated
    crop             for tf_crop_and_resize: the part of the axis that is kept, from 0 to 1
    """

    coordinates: Coordinates
    rounding: NearestMode | None
    cubic: float | None = None
    antialias: bool = False
    exclude_outside: bool = False
    crop: Crop = WHOLE

    def input_positions(self, outputs: Array, ratio: Fraction, frames: int, length: int) -> tuple[Array, int]:
        """Return the position of each output frame: integers, over one integer."""
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
            case "tf_crop_and_resize":
                return self._crop(outputs, frames - 1, length - 1)
            case "pytorch_half_pixel" if length == 1:
                return 0 * outputs, 1
            case _:
                return centre - p, 2 * p

    def _crop(self, outputs: Array, last: int, last_made: int) -> tuple[Array, int]:
        """Return the positions in the crop, as numerators and their denominator.

        The corners of the crop are the first and the last output frame; a single frame is its centre.
        """
        start, end = self.crop
        first, step = start * last, Fraction((end - start) * last, last_made or 1)
        if last_made == 0:
            first, step = (start + end) * last / 2, Fraction(0)
        over = math.lcm(first.denominator, step.denominator)
        return outputs.astype(object) * int(step * over) + int(first * over), over

    def positions_outside(self, ratio: Fraction, frames: int, length: int) -> Array:
        """Return which output frames lie beyond the ends of the input."""
        numerators, denominator = self.input_positions(np.arange(length), ratio, frames, length)
        return np.asarray((numerators < 0) | (numerators > (frames - 1) * denominator), np.bool_)

    def neighbours(
        self, outputs: Array, ratio: Fraction, frames: int, length: int
    ) -> tuple[Array, Array | None]:
        """Return for each output frame its input frames ``[n, k]``, not clamped, and weights; None of the nearest."""
        numerators, denominator = self.input_positions(outputs, ratio, frames, length)
        if self.rounding is not None:
            return np.asarray(ROUNDING[self.rounding](numerators, denominator), np.int64)[:, None], None
        below = numerators // denominator
        share = np.asarray((numerators - below * denominator) / denominator, np.float64)[:, None]
        squeeze = min(Fraction(1), ratio) if self.antialias else Fraction(1)
        start = math.floor(-(1 if self.cubic is None else 2) / squeeze) + 1
        steps = np.arange(start, 2 - start)
        distance = (steps - share) * float(squeeze)
        weights = linear(distance) if self.cubic is None else cubic(distance, self.cubic)
        return np.asarray(below, np.int64)[:, None] + steps, weights / weights.sum(axis=1, keepdims=True)

    def table(self, ratio: Fraction, frames: int, length: int) -> tuple[Array, Array | None]:
        """Return, for all output frames, their input frames ``[length, k]`` and the weights, the ends repeated."""
        neighbours, weights = self.neighbours(np.arange(length), ratio, frames, length)
        inside = np.clip(neighbours, 0, frames - 1)
        if weights is not None and self.exclude_outside:
            weights = np.where(neighbours == inside, weights, 0)
            weights = weights / weights.sum(axis=1, keepdims=True)
        return inside, weights

    def keeps_positions(self, ratio: Fraction) -> bool:
        """Return whether the position of a frame does not depend on the number of frames."""
        if self.coordinates == "half_pixel_symmetric":
            return ratio.denominator == 1
        return self.coordinates not in ("align_corners", "tf_crop_and_resize")
