"""Images sampled at points between their pixels."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from pulse.extend import Array, Env, FactError, Op, Pointwise, Relation, TypedFact, Whole, unify

SampleMode: TypeAlias = Literal["nearest", "linear", "cubic"]
Border: TypeAlias = Literal["zeros", "border", "reflection"]
CUBIC = -0.75
"""The slope of the cubic kernel."""


@dataclass(frozen=True)
class GridSample(Op):
    """Samples of an image at points given as -1 … 1 from one end of each axis to the other, the last axis first.

    y[n, c, p...] = sum over neighbouring pixels i of weight(i - place(grid[n, p...])) * x[n, c, i...]

    Inputs   x [N, C, D...], grid [N, P..., len(D)]
    Output   y [N, C, P...]
    Stream   pointwise on N, on C of x, and on P of the grid; else whole
    Raises   FactError: the ranks do not fit
    Source   ONNX GridSample-22

    mode     which neighbours count, and how much
    border   what lies outside: zeros, the nearest pixel, or the mirrored image
    corners  whether -1 and 1 are the centres of the outermost pixels, or their outer edges
    """

    mode: SampleMode
    border: Border
    corners: bool

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, grid = inputs
        if x.rank < 3 or grid.rank != x.rank or grid.shape[-1] != x.rank - 2:
            raise FactError(f"a grid {grid} does not fit {x}")
        batch = unify(x.shape[0], grid.shape[0], "batches")
        return [TypedFact(x.dtype, (batch, x.shape[1], *grid.shape[1:-1]))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, grid = inputs
        sizes = x.shape[2:]
        y = [
            self._sample(image, self._places(points, sizes))
            for image, points in zip(x.astype(np.float64), grid)
        ]
        shape = (*x.shape[:2], *grid.shape[1:-1])
        return [np.array(y, np.float64).reshape(shape).astype(x.dtype)]

    def _places(self, points: Array, sizes: Sequence[int]) -> list[Array]:
        """Return the pixel coordinate of each point, an array for each axis."""
        turned = np.moveaxis(points.astype(np.float64), -1, 0)[::-1]
        if self.corners:
            places = [(point + 1) / 2 * (size - 1) for point, size in zip(turned, sizes)]
        else:
            places = [((point + 1) * size - 1) / 2 for point, size in zip(turned, sizes)]
        if self.mode == "nearest":
            places = [np.rint(position) for position in places]
        return (
            places if self.mode == "cubic" else [self._hold_inside(p, size) for p, size in zip(places, sizes)]
        )

    def _hold_inside(self, coordinate: Array, size: int) -> Array:
        """Return a coordinate inside the image, where the border says so."""
        if self.border == "border":
            return np.clip(coordinate, 0, size - 1)
        if self.border == "zeros":
            return coordinate
        low, high = (0.0, size - 1.0) if self.corners else (-0.5, size - 0.5)
        if high == low:
            return np.zeros_like(coordinate)
        turn = np.mod(coordinate - low, 2 * (high - low))
        return np.clip(low + np.minimum(turn, 2 * (high - low) - turn), 0, size - 1)

    def _sample(self, image: Array, places: Sequence[Array]) -> Array:
        reach = {"nearest": (0, 1), "linear": (0, 2), "cubic": (-1, 3)}[self.mode]
        floors = [np.floor(position) for position in places]
        y = np.zeros((image.shape[0], *places[0].shape))
        for steps in itertools.product(range(*reach), repeat=len(places)):
            weight = np.ones(places[0].shape)
            index: list[Array] = []
            for step, position, floor, size in zip(steps, places, floors, image.shape[1:]):
                pixel = floor + step
                weight = weight * self._weight(position - pixel)
                pixel = self._hold_inside(pixel, size)
                inside = (pixel >= 0) & (pixel < size)
                weight = np.where(inside, weight, 0)
                index.append(np.where(inside, pixel, 0).astype(np.int64))
            y += weight * image[(slice(None), *index)]
        return y

    def _weight(self, distance: Array) -> Array:
        away = np.abs(distance)
        if self.mode == "nearest":
            return np.ones_like(away)
        if self.mode == "linear":
            return 1 - away
        near = ((CUBIC + 2) * away - (CUBIC + 3)) * away**2 + 1
        outer = ((CUBIC * away - 5 * CUBIC) * away + 8 * CUBIC) * away - 4 * CUBIC
        return np.where(away <= 1, near, outer)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        x_axis, point = axes
        if x_axis == 0 and point == 0:
            return Pointwise((0,))
        if x_axis == 1 and point is None:
            return Pointwise((1,))
        if x_axis is None and point is not None and 0 < point < inputs[1].rank - 1:
            return Pointwise((point + 1,))
        return Whole("any point may need any frame", "let only the grid, or channels, depend on time")

    def detail(self) -> str:
        return f"{self.mode} {self.border}{' corners' if self.corners else ''}"


def bilinear(image: Array, rows: Array, columns: Array) -> Array:
    """Return samples [C, points…] of an image [C, H, W] between its pixels, zeros outside."""
    y = np.zeros((image.shape[0], *rows.shape))
    for down, right in itertools.product((0, 1), repeat=2):
        row, column = np.floor(rows) + down, np.floor(columns) + right
        weight = (1 - np.abs(rows - row)) * (1 - np.abs(columns - column))
        inside = (row >= 0) & (row < image.shape[1]) & (column >= 0) & (column < image.shape[2])
        pixel = tuple(np.where(inside, index, 0).astype(np.int64) for index in (row, column))
        y += np.where(inside, weight, 0) * image[:, pixel[0], pixel[1]]
    return y
