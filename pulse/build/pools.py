"""Pools over one, two and three axes."""

from functools import partial

from pulse.build.convolutions import AxisSizes, require_pads
from pulse.build.nodes import Node
from pulse.build.operators import as_list, make_node, operator_function


def _pool(
    op_type: str,
    rank: int,
    kernel_dims: AxisSizes,
    name: str = "",
    *,
    stride_dims: AxisSizes = 1,
    padding_dims: AxisSizes = 0,
    dilation_dims: AxisSizes = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Node:
    location = f"{name or op_type.lower()} ({op_type})"
    return make_node(
        op_type,
        ["x"],
        name,
        kernel_shape=as_list(kernel_dims, rank, "kernel_dims", location),
        strides=as_list(stride_dims, rank, "stride_dims", location),
        dilations=as_list(dilation_dims, rank, "dilation_dims", location),
        pads=require_pads(padding_dims, rank, location),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad or None,
    )


def _describe(value: str, rank: int) -> str:
    return f"""The {value} of each window over the last {rank} axes.

    kernel_dims, stride_dims, dilation_dims, padding_dims   as in ``Conv{rank}D``
    ceil_mode          a window that reaches beyond the end counts
    count_include_pad  padding counts in a mean
    Raises             InputError: sizes that do not fit
    """


MaxPool1D, MaxPool2D, MaxPool3D, AvgPool1D, AvgPool2D, AvgPool3D = (
    operator_function(partial(_pool, op_type, rank), f"{title}{rank}D", _describe(value, rank))
    for op_type, title, value in (("MaxPool", "MaxPool", "largest value"), ("AveragePool", "AvgPool", "mean"))
    for rank in (1, 2, 3)
)
