"""Regions of an image brought to one size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pulse.extend import Array, Check, DType, Env, FactError, Op, Relation, TDim, TypedFact, Whole, unify


@dataclass(frozen=True)
class RoiAlign(Op):
    """The mean or maximum of samples between pixels, in each of the bins of a region.

    Inputs   x [N, C, H, W], regions [R, 4] (left, top, right, bottom), which image each belongs to [R]
    Output   y [R, C, height, width]
    Stream   whole
    Raises   FactError: the shapes do not fit
    Source   ONNX RoiAlign-22

    samples  number of samples along each axis of a bin; 0: as many as pixels
    scale    factor from the coordinates of regions to pixels
    half     whether pixel 0 lies at 0.5 of the coordinates, or at 0
    """

    kind: Literal["avg", "max"]
    height: int
    width: int
    samples: int
    scale: float
    half: bool

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, regions, images = inputs
        if x.rank != 4 or regions.rank != 2 or images.rank != 1 or regions.shape[1] != 4:
            raise FactError(f"regions {regions} of images {images} do not fit {x}")
        count = unify(regions.shape[0], images.shape[0], "regions")
        return [TypedFact(x.dtype, (count, x.shape[1], TDim.of(self.height), TDim.of(self.width)))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, regions, images = inputs
        pooled = [self._region(x[image].astype(np.float64), region) for region, image in zip(regions, images)]
        shape = (len(pooled), x.shape[1], self.height, self.width)
        return [np.array(pooled).reshape(shape).astype(x.dtype)]

    def _region(self, image: Array, region: Array) -> Array:
        left, top, right, bottom = region.astype(np.float64) * self.scale - (0.5 if self.half else 0)
        sizes = (bottom - top, right - left)
        if not self.half:
            sizes = (max(sizes[0], 1.0), max(sizes[1], 1.0))
        bins = sizes[0] / self.height, sizes[1] / self.width
        counts = [self.samples or max(1, int(np.ceil(size))) for size in bins]
        rows, columns = (
            start + (np.arange(n)[:, None] + (np.arange(count) + 0.5) / count) * size
            for start, n, count, size in zip((top, left), (self.height, self.width), counts, bins)
        )
        parts = [_neighbours(rows, image.shape[1]), _neighbours(columns, image.shape[2])]
        corners = [
            (image[:, r[:, :, None, None], c[None, None]] * (wr[:, :, None, None] * wc[None, None]))
            for r, wr in parts[0]
            for c, wc in parts[1]
        ]
        if self.kind == "avg":
            return np.sum(corners, axis=0).mean(axis=(2, 4))
        return np.max(corners, axis=0).max(axis=(2, 4))

    def checks(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[DType]) -> list[Check]:
        return [Check(2, 0, shapes[0][0] - 1)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Whole("a region may lie anywhere in the stream", "cut windows of constant size")

    def detail(self) -> str:
        return f"{self.kind} {self.height}x{self.width}"


def _neighbours(places: Array, size: int) -> list[tuple[Array, Array]]:
    """Return the two pixels next to each place, and their weights; none of a place more than one pixel outside."""
    inside = (places >= -1) & (places <= size)
    clipped = np.clip(places, 0, size - 1)
    low = np.minimum(np.floor(clipped), size - 1).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    share = clipped - low
    return [(low, np.where(inside, 1 - share, 0)), (high, np.where(inside, share, 0))]
