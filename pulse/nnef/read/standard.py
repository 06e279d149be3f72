"""Operators that NNEF defines in terms of others, as its standard does."""

from collections.abc import Mapping
from functools import cache

from pulse.nnef.read.parser import parse_fragments
from pulse.nnef.syntax import Fragment

COMPOUND = """
fragment rsqr(x: tensor<scalar>) -> (y: tensor<scalar>) { y = 1.0 / (x * x); }
fragment log2(x: tensor<scalar>) -> (y: tensor<scalar>) { y = log(x) / log(2.0); }
fragment clamp(x: tensor<scalar>, a: tensor<scalar>, b: tensor<scalar>) -> (y: tensor<scalar>) {
    y = max(min(x, b), a);
}
fragment softabs(x: tensor<scalar>, epsilon: scalar) -> (y: tensor<scalar>) { y = sqrt(x * x + epsilon); }
fragment nearest_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>) {
    dims = 2 + length_of(factor);
    output = box(input, size = [1] * dims, stride = [1, 1] + factor, padding = [(0, 0)] * dims);
}
fragment area_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>) {
    dims = 2 + length_of(factor);
    output = box(input, size = [1, 1] + factor, stride = [1, 1] + factor, padding = [(0, 0)] * dims, normalize = true);
}
fragment moments(input: tensor<scalar>, axes: integer[]) -> (mean: tensor<scalar>, variance: tensor<scalar>) {
    mean = mean_reduce(input, axes = axes);
    variance = mean_reduce(sqr(input - mean), axes = axes);
}
fragment rms_pool(
    input: tensor<scalar>, size: integer[], border: string = 'constant', padding: (integer, integer)[] = [],
    stride: integer[] = [], dilation: integer[] = []
) -> (output: tensor<scalar>) {
    output = sqrt(avg_pool(
        sqr(input), size = size, border = border, padding = padding, stride = stride, dilation = dilation
    ));
}
fragment linear(
    input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0
) -> (output: tensor<scalar>) {
    output = matmul(input, filter, transposeB = true) + bias;
}
fragment separable_conv(
    input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter: tensor<scalar>, bias: tensor<scalar> = 0.0,
    border: string = 'constant', padding: (integer, integer)[] = [], stride: integer[] = [], dilation: integer[] = [],
    groups: integer = 1
) -> (output: tensor<scalar>) {
    filtered = conv(
        input, plane_filter, border = border, padding = padding, stride = stride, dilation = dilation, groups = 0
    );
    output = conv(filtered, point_filter, bias, groups = groups);
}
fragment separable_deconv(
    input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter: tensor<scalar>, bias: tensor<scalar> = 0.0,
    border: string = 'constant', padding: (integer, integer)[] = [], stride: integer[] = [], dilation: integer[] = [],
    output_shape: integer[] = [], groups: integer = 1
) -> (output: tensor<scalar>) {
    filtered = deconv(input, point_filter, groups = groups);
    output = deconv(
        filtered, plane_filter, bias, border = border, padding = padding, stride = stride, dilation = dilation,
        output_shape = output_shape, groups = 0
    );
}
fragment local_response_normalization(
    input: tensor<scalar>, size: integer[], alpha: scalar = 1.0, beta: scalar = 0.5, bias: scalar = 1.0
) -> (output: tensor<scalar>) {
    sigma = bias + alpha * box(sqr(input), size = size, normalize = true);
    output = input / (sigma ^ beta);
}
fragment local_mean_normalization(input: tensor<scalar>, size: integer[]) -> (output: tensor<scalar>) {
    output = input - box(input, size = size, normalize = true);
}
fragment local_variance_normalization(
    input: tensor<scalar>, size: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>) {
    sigma = sqrt(box(sqr(input), size = size, normalize = true));
    output = input / max(sigma + bias, epsilon);
}
fragment local_contrast_normalization(
    input: tensor<scalar>, size: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>) {
    centered = local_mean_normalization(input, size = size);
    output = local_variance_normalization(centered, size = size, bias = bias, epsilon = epsilon);
}
fragment l1_normalization(
    input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>) {
    sigma = sum_reduce(abs(input), axes = axes);
    output = input / max(sigma + bias, epsilon);
}
fragment l2_normalization(
    input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0
) -> (output: tensor<scalar>) {
    sigma = sqrt(sum_reduce(sqr(input), axes = axes));
    output = input / max(sigma + bias, epsilon);
}
fragment batch_normalization(
    input: tensor<scalar>, mean: tensor<scalar>, variance: tensor<scalar>, offset: tensor<scalar>,
    scale: tensor<scalar>, epsilon: scalar
) -> (output: tensor<scalar>) {
    output = offset + scale * (input - mean) / sqrt(variance + epsilon);
}
fragment copy_n<?>(x: tensor<?>, times: integer) -> (y: tensor<?>[]) { y = [x] * times; }
"""


@cache
def standard_fragments() -> Mapping[str, Fragment]:
    """Name -> fragment."""
    return {fragment.name: fragment for fragment in parse_fragments(COMPOUND, "the standard")}
