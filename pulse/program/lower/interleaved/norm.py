"""Softmax and layer normalisation for sixteen streams with interleaved memories."""

from pulse.program.kernels.norm import LayerNormRow, SoftmaxRow
from pulse.program.kernels.norm_interleaved import InterleavedLayerNormRow, InterleavedSoftmaxRow
from pulse.program.lower.interleaved.lowering import interleaves_alike

interleaves_alike(LayerNormRow, InterleavedLayerNormRow, "scale", "bias", "rows_x", "rows_y")
interleaves_alike(SoftmaxRow, InterleavedSoftmaxRow, "rows_x", "rows_y")
