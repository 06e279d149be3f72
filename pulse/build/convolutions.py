"""Convolutions over one, two and three axes, and their transposes."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, TypedDict, Unpack

from pulse.build.first_parameters import bias_parameter, parameter
from pulse.build.nodes import Node
from pulse.build.operators import as_list, make_node, operator_function
from pulse.errors import InputError
from pulse.support.wording import count_of

AxisSizes: TypeAlias = int | Sequence[int]


class ConvolutionOptions(TypedDict, total=False):
    """The options that convolutions of each channel separately share with the others."""

    stride_dims: AxisSizes
    padding_dims: AxisSizes
    dilation_dims: AxisSizes
    no_bias: bool
    weight: Any
    bias: Any
    seed: int
    output_padding: AxisSizes | None


def _convolve(
    op_type: str,
    rank: int,
    in_channels: int,
    out_channels: int,
    kernel_dims: AxisSizes,
    name: str = "",
    *,
    stride_dims: AxisSizes = 1,
    padding_dims: AxisSizes = 0,
    dilation_dims: AxisSizes = 1,
    groups: int = 1,
    no_bias: bool = False,
    weight: Any = None,
    bias: Any = None,
    seed: int = 0,
    output_padding: AxisSizes | None = None,
) -> Node:
    location = f"{name or op_type.lower()} ({op_type})"
    transposed = op_type == "ConvTranspose"
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise InputError(
            f"{location}: {groups} groups do not divide {in_channels} and {count_of(out_channels, 'channel')}"
        )
    if output_padding is not None and not transposed:
        raise InputError(f"{location}: only transposed convolutions have output_padding")
    padding = None if output_padding is None else as_list(output_padding, rank, "output_padding", location)
    kernel = as_list(kernel_dims, rank, "kernel_dims", location)
    ends = [in_channels, out_channels // groups] if transposed else [out_channels, in_channels // groups]
    taps = in_channels // groups * math.prod(kernel)
    weights = parameter("weight", weight, [*ends, *kernel], taps, seed, location)
    biases = bias_parameter(no_bias, bias, [out_channels], taps, seed, location)
    return make_node(
        op_type,
        ["x", weights, *biases],
        name,
        output_padding=padding,
        kernel_shape=kernel,
        strides=_positive(stride_dims, rank, "stride_dims", location),
        dilations=_positive(dilation_dims, rank, "dilation_dims", location),
        pads=require_pads(padding_dims, rank, location),
        group=groups,
    )


def _positive(value: AxisSizes, rank: int, subject: str, location: str) -> list[int]:
    values = as_list(value, rank, subject, location)
    if any(value < 1 for value in values):
        raise InputError(f"{location}: {subject} {values} must be at least 1")
    return values


def require_pads(padding: AxisSizes, rank: int, location: str) -> list[int]:
    """Return the padding in the order of ONNX: all before, then all after.

    Raises InputError: another number of values, or a negative one
    """
    pads = [padding] * rank if isinstance(padding, int) else list(padding)
    if len(pads) == rank:
        pads *= 2
    if len(pads) != 2 * rank or any(value < 0 for value in pads):
        raise InputError(
            f"{location}: padding_dims {pads} must be {rank} or {2 * rank} numbers of at least 0: all before the "
            f"axes, then all after them"
        )
    return pads


def _convolve_depthwise(
    op_type: str,
    rank: int,
    nb_channels: int,
    kernel_dims: AxisSizes,
    name: str = "",
    **options: Unpack[ConvolutionOptions],
) -> Node:
    return _convolve(
        op_type, rank, nb_channels, nb_channels, kernel_dims, name, groups=nb_channels, **options
    )


def _describe(op_type: str, rank: int) -> str:
    transposed = op_type == "ConvTranspose"
    across = {1: "[N, C, X]", 2: "[N, C, Y, X]", 3: "[N, C, Z, Y, X]"}[rank]
    return f"""A {"transposed " if transposed else ""}convolution of x {across}.

    kernel_dims, stride_dims, dilation_dims   a number for each axis, or one for all
    padding_dims  zeros around x: as these, or first all before the axes, then all after them
    groups        that channels are cut into
    weight, bias  arrays {"[in, out/groups, kernel]" if transposed else "[out, in/groups, kernel]"}
                  and [out]; random numbers of ``seed`` if they are left out
    Raises        InputError: sizes that do not fit
    """


Conv1D, Conv2D, Conv3D, ConvTranspose1D, ConvTranspose2D, ConvTranspose3D = (
    operator_function(partial(_convolve, op_type, rank), f"{op_type}{rank}D", _describe(op_type, rank))
    for op_type in ("Conv", "ConvTranspose")
    for rank in (1, 2, 3)
)
(
    ConvDepthWise1D,
    ConvDepthWise2D,
    ConvDepthWise3D,
    ConvTransposeDepthWise1D,
    ConvTransposeDepthWise2D,
    ConvTransposeDepthWise3D,
) = (
    operator_function(
        partial(_convolve_depthwise, op_type, rank),
        f"{op_type}DepthWise{rank}D",
        f"``{op_type}{rank}D`` of each channel separately: as many groups as channels.",
    )
    for op_type in ("Conv", "ConvTranspose")
    for rank in (1, 2, 3)
)
