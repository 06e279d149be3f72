"""Convolutions whose taps lie where data says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulse.extend import Array, Env, FactError, Op, Relation, TDim, TypedFact, Whole
from pulse_images.grid import bilinear


@dataclass(frozen=True)
class DeformConv(Op):
    """A convolution over two axes, each tap moved by an offset for each output place.

    y[n, o, u] = b[o] + sum_ck w[o, c, k] * mask[n, k, u] * x[n, c, u*stride + k*dilation - pad + offset[n, k, u]]

    Inputs   x [N, C, H, W], w [O, C/group, KH, KW], offset [N, offset_group * KH * KW * 2, UH, UW], b [O],
             mask [N, offset_group * KH * KW, UH, UW]
    Output   y [N, O, UH, UW]
    Stream   whole
    Raises   FactError: the shapes do not fit
    Source   ONNX DeformConv-22

    pads           before, and after, of each axis
    offset_groups  groups of channels that share offsets
    """

    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[tuple[int, int], tuple[int, int]]
    groups: int
    offset_groups: int

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, w, offset = inputs[:3]
        if x.rank != 4 or w.rank != 4 or offset.rank != 4:
            raise FactError(f"x {x}, the kernel {w} and offsets {offset} must have 4 axes")
        spatial: list[TDim] = []
        for axis in range(2):
            before, after = self.pads[axis]
            span = (w.shape[2 + axis] - 1) * self.dilations[axis] + 1
            spatial.append((x.shape[2 + axis] + before + after - span) // self.strides[axis] + 1)
        return [TypedFact(x.dtype, (x.shape[0], w.shape[0], *spatial))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, w, offset = (array.astype(np.float64) for array in inputs[:3])
        bias = inputs[3].astype(np.float64) if len(inputs) > 3 else np.zeros(len(w))
        taps = w.shape[2:]
        height, width = offset.shape[2:]
        shape = (len(x), self.offset_groups, *taps, height, width)
        moves = offset.reshape(*shape[:4], 2, height, width)
        mask = inputs[4].astype(np.float64).reshape(shape) if len(inputs) > 4 else np.ones(shape)
        y = np.empty((len(x), len(w), height, width))
        for n, image in enumerate(x):
            columns = self._columns(image, moves[n], mask[n], (height, width))
            grouped = columns.reshape(self.groups, -1, height * width)
            kernels = w.reshape(self.groups, len(w) // self.groups, -1)
            y[n] = np.matmul(kernels, grouped).reshape(len(w), height, width) + bias[:, None, None]
        return [y.astype(inputs[0].dtype)]

    def _columns(self, image: Array, moves: Array, mask: Array, sizes: tuple[int, int]) -> Array:
        """Return the input of each tap at each output position, [C, KH, KW, UH, UW]."""
        taps = moves.shape[1:3]
        bases: list[Array] = [
            np.arange(taps[a])[:, None] * self.dilations[a]
            + np.arange(sizes[a]) * self.strides[a]
            - self.pads[a][0]
            for a in range(2)
        ]
        channels = image.shape[0] // self.offset_groups
        parts: list[Array] = []
        for group in range(self.offset_groups):
            rows = bases[0][:, None, :, None] + moves[group, :, :, 0]
            columns = bases[1][None, :, None, :] + moves[group, :, :, 1]
            parts.append(
                bilinear(image[group * channels : (group + 1) * channels], rows, columns) * mask[group]
            )
        return np.concatenate(parts)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Whole("its offsets may reach any frame", "use a convolution with constant dilation")
