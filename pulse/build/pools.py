"""Pools over one, two and three axes."""

from typing import Protocol

from pulse.build.convolutions import AxisSizes, require_pads
from pulse.build.nodes import Node
from pulse.build.operators import as_list, make_node


class PoolFunction(Protocol):
    """A function that makes a pool of a number of axes."""

    def __call__(
        self,
        kernel_dims: AxisSizes,
        name: str = "",
        *,
        stride_dims: AxisSizes = 1,
        padding_dims: AxisSizes = 0,
        dilation_dims: AxisSizes = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
    ) -> Node: ...


def _pool(op_type: str, rank: int) -> PoolFunction:
    def make(
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

    make.__name__ = make.__qualname__ = f"{'MaxPool' if op_type == 'MaxPool' else 'AvgPool'}{rank}D"
    what = "largest value" if op_type == "MaxPool" else "mean"
    make.__doc__ = f"""The {what} of each window over the last {rank} axes.

    kernel_dims, stride_dims, dilation_dims, padding_dims   as in ``Conv{rank}D``
    ceil_mode          a window that reaches beyond the end counts
    count_include_pad  padding counts in a mean
    Raises             InputError: sizes that do not fit
    """
    return make


MaxPool1D, MaxPool2D, MaxPool3D = (_pool("MaxPool", rank) for rank in (1, 2, 3))
AvgPool1D, AvgPool2D, AvgPool3D = (_pool("AveragePool", rank) for rank in (1, 2, 3))
