"""Convolutions and their transposes."""

from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.read.signatures import WINDOW
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Expression, Name
from pulse.nnef.write.node import OperationWriter
from pulse.support.wording import count_of


def window_arguments(w: OperationWriter, spatial: int) -> dict[str, Any]:
    """Return padding, stride and dilation as NNEF's arguments."""
    pads = list(w.attribute("pads", [0] * 2 * spatial))
    if w.attribute("auto_pad", "NOTSET") != "NOTSET":
        raise w.error("only have numeric padding", "give the node pads instead of auto_pad")
    return {
        "padding": [(int(pads[index]), int(pads[spatial + index])) for index in range(spatial)],
        "stride": [int(stride) for stride in w.attribute("strides", [1] * spatial)],
        "dilation": [int(dilation) for dilation in w.attribute("dilations", [1] * spatial)],
    }


def _bias(w: OperationWriter) -> list[Expression]:
    """Return the bias as NNEF's [1, C]."""
    if not w.has(2):
        return []
    value = w.known_value(2)
    return [w.add_axes(w.x(2), [0], "bias") if value is None else w.tensor(value[None], "bias")]


@writes("Conv")
def write_conv(w: OperationWriter) -> Name:
    groups = int(w.attribute("group", 1))
    spatial = w.rank() - 2
    return w.emit(
        "conv", w.x(), w.x(1), *_bias(w), **window_arguments(w, spatial), groups=groups, border="constant"
    )


def _swap_channels(filter: Array, groups: int) -> Array:
    """Return a filter with the other channels of each group on its first axis."""
    channels, others, *taps = filter.shape
    swapped = filter.reshape(groups, channels // groups, others, *taps).swapaxes(1, 2)
    return np.ascontiguousarray(swapped).reshape(groups * others, channels // groups, *taps)


@writes("ConvTranspose")
def write_transpose(w: OperationWriter) -> Name:
    """Write the filter as tract stores it: the output's channels first, unlike NNEF."""
    groups, spatial = int(w.attribute("group", 1)), w.rank() - 2
    filter = w.known_value(1)
    if filter is None:
        raise w.error("only take constant filters", "give the model a constant filter")
    weights = w.tensor(_swap_channels(filter, groups), "filter")
    return w.emit(
        "deconv",
        w.x(),
        weights,
        *_bias(w),
        **window_arguments(w, spatial),
        output_shape=[*w.output_shape()[2:]] if any(w.attribute("output_padding", ())) else [],
        groups=groups,
        border="constant",
    )


def read_window(node: NodeReader, size: int) -> dict[str, Any]:
    """Return attributes of ONNX for padding, stride and dilation of ``size`` axes; without padding the size is kept.

    Raises LoadError: a border that is not supported
    """
    attributes: dict[str, Any] = {}
    for name, attribute in (("stride", "strides"), ("dilation", "dilations")):
        numbers = node.integers(name) if node.arguments[name] != [] else [1] * size
        if len(numbers) != size or min(numbers, default=1) < 1:
            raise node.error(f"{name} {numbers} must be {count_of(size, 'positive number')}")
        attributes[attribute] = numbers
    if node.arguments["padding"] == []:
        return {**attributes, "auto_pad": "SAME_UPPER"}
    padding = node.pairs("padding")
    if len(padding) != size or min((min(pair) for pair in padding), default=0) < 0:
        raise node.error(f"padding must be {count_of(size, 'pair')} of numbers that are not negative")
    return {**attributes, "pads": [pair[0] for pair in padding] + [pair[1] for pair in padding]}


def _filter(node: NodeReader) -> tuple[NnefWire, NnefWire, int, list[int]]:
    """Return input, filter, groups and sizes of the filter."""
    x, filter = node.wire("input"), node.wire("filter")
    sizes = [size for size in filter.sizes if size is not None]
    if x.rank < 3 or filter.rank != x.rank or len(sizes) != filter.rank:
        raise node.error(
            f"input and filter have {x.rank} and {count_of(filter.rank, 'axis', 'axes')}; give both [N, C, …] of "
            "known sizes"
        )
    groups = node.integer("groups")
    if groups == 0:
        groups = x.sizes[1] or 0
    if groups < 1:
        raise node.error(
            f"groups is {node.integer('groups')}; it must be at least 1, or 0 if the number of channels is known"
        )
    if node.text("border") != "constant":
        raise node.error(f"the border {node.text('border')} is not supported; pad the input before")
    return x, filter, groups, sizes


def _read_bias(node: NodeReader, x: NnefWire, channels: int) -> list[NnefWire]:
    """Return the bias as [C]; NNEF's is [1, C], or one number."""
    bias = node.wire("bias", x.dtype)
    if bias.value is None:
        sizes = node.integers_tensor([channels], "channels")
        return [node.add("Reshape", [bias, sizes], x.dtype, [channels], "bias")]
    if bias.value.size not in (1, channels):
        raise node.error(
            f"the bias has {count_of(bias.value.size, 'entry', 'entries')} for {count_of(channels, 'channel')}"
        )
    if not bias.value.any():
        return []
    value = np.broadcast_to(bias.value.ravel(), (channels,)).astype(x.dtype)
    return [node.graph.constant(value, f"{node.targets[0]}.bias")]


@reads("conv", parameters=f"input filter bias=0.0 {WINDOW} groups=1")
def read_conv(node: NodeReader) -> NnefWire:
    x, filter, groups, sizes = _filter(node)
    window = read_window(node, x.rank - 2)
    out_sizes = [x.sizes[0], sizes[0], *[None] * (x.rank - 2)]
    return node.add(
        "Conv", [x, filter, *_read_bias(node, x, sizes[0])], x.dtype, out_sizes, group=groups, **window
    )


@reads("deconv", parameters=f"input filter bias=0.0 {WINDOW} output_shape=[] groups=1")
def read_deconv(node: NodeReader) -> NnefWire:
    """In plain NNEF the filter's first axis is the input's channels, in tract's files the output's."""
    x, filter, groups, sizes = _filter(node)
    if not node.standard:
        value = filter.value
        if value is None or sizes[0] % groups:
            raise node.error("its filter must be a constant whose channels the groups divide")
        swapped = _swap_channels(value, groups)
        sizes, filter = [*swapped.shape], node.graph.constant(swapped, f"{node.targets[0]}.filter")
    window = read_window(node, x.rank - 2)
    shape = node.integers("output_shape") if node.arguments["output_shape"] != [] else []
    if shape:
        window["output_padding"] = _surplus_frames(node, x, shape[-(x.rank - 2) :], sizes[2:], window)
    channels = sizes[1] * groups
    out_sizes = [x.sizes[0], channels, *[None] * (x.rank - 2)]
    return node.add(
        "ConvTranspose",
        [x, filter, *_read_bias(node, x, channels)],
        x.dtype,
        out_sizes,
        group=groups,
        **window,
    )


def _surplus_frames(
    node: NodeReader, x: NnefWire, shape: list[int], taps: list[int], window: dict[str, Any]
) -> list[int]:
    """Return the frames by which the given output is longer than the shortest one."""
    spatial = len(taps)
    if "pads" not in window or len(shape) != spatial:
        raise node.error("output_shape needs padding in numbers")
    sizes: list[int] = []
    for index, (size, target) in enumerate(zip(x.sizes[2:], shape)):
        if size is None:
            raise node.error("output_shape of an input whose size is not known; omit it")
        span = (taps[index] - 1) * window["dilations"][index] + 1
        shortest = (
            (size - 1) * window["strides"][index]
            + span
            - window["pads"][index]
            - window["pads"][spatial + index]
        )
        if not 0 <= target - shortest < max(window["strides"][index], window["dilations"][index]):
            raise node.error(f"output_shape {shape} does not follow from the input")
        sizes.append(target - shortest)
    return sizes
