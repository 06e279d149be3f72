"""Pools over windows."""

from math import prod
from typing import Any

from pulse.nnef.operators.conv import read_window, window_arguments
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.read.signatures import WINDOW
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


def _arguments(w: OperationWriter) -> dict[str, Any]:
    """Return windows with entries for the first two axes, which pools have in NNEF."""
    spatial = w.rank() - 2
    if w.attribute("ceil_mode", 0):
        raise w.error(
            "only round the size of a pool down", "give the node more padding at the end instead of ceil_mode"
        )
    arguments = window_arguments(w, spatial)
    padding, stride, dilation = (arguments[name] for name in ("padding", "stride", "dilation"))
    return {
        "size": [1, 1, *(int(size) for size in w.attributes["kernel_shape"])],
        "padding": [(0, 0), (0, 0), *padding],
        "stride": [1, 1, *stride],
        "dilation": [1, 1, *dilation],
    }


@writes("MaxPool")
def write_max(w: OperationWriter) -> Name:
    if w.has_output(1):
        raise w.error("count the positions of a pool differently", "omit the second output")
    return w.emit("max_pool", w.x(), **_arguments(w), border="ignore")


@writes("AveragePool")
def write_average(w: OperationWriter) -> Name:
    """Write an average; the border determines whether the padding counts."""
    border = "constant" if w.attribute("count_include_pad", 0) else "ignore"
    return w.emit("box", w.x(), **_arguments(w), border=border, normalize=True)


@writes("LpPool")
def write_power(w: OperationWriter) -> Name:
    x, power = w.emit("abs", w.x(), suffix="abs"), int(w.attribute("p", 2))
    if power == 1:
        return w.emit("box", x, **_arguments(w), border="constant", normalize=False)
    raised = w.emit("mul", x, x, suffix="square") if power == 2 else w.apply("pow", x, power, suffix="power")
    total = w.emit("box", raised, suffix="total", **_arguments(w), border="constant", normalize=False)
    return w.emit("sqrt", total) if power == 2 else w.apply("pow", total, 1 / power)


def _read_pool(node: NodeReader) -> tuple[NnefWire, dict[str, Any], str]:
    """Return input, attributes of ONNX and border. Raises LoadError: windows over the first two axes."""
    x, size, border = node.wire("input"), node.integers("size"), node.text("border")
    if x.rank < 3 or len(size) != x.rank or min(size) < 1:
        raise node.error(f"size {size} must be one positive number for each of {x.rank} axes, at least three")
    window = read_window(node, x.rank)
    first = [size[:2], window["strides"][:2], window["dilations"][:2]]
    pads = window.get("pads")
    if any(number != 1 for numbers in first for number in numbers) or (
        pads and any(pads[index] for index in (0, 1, x.rank, x.rank + 1))
    ):
        raise node.error("windows over the first two axes are not supported; transpose the input")
    spatial: dict[str, Any] = {
        "kernel_shape": size[2:],
        "strides": window["strides"][2:],
        "dilations": window["dilations"][2:],
    }
    if pads is None:
        spatial["auto_pad"] = "SAME_UPPER"
    else:
        spatial["pads"] = [*pads[2 : x.rank], *pads[x.rank + 2 :]]
    if border not in ("constant", "ignore") and any(spatial.get("pads", [1])):
        raise node.error(f"the border {border} is not supported; pad the input before")
    return x, spatial, border


def _pooled_sizes(x: NnefWire) -> list[int | None]:
    return [*x.sizes[:2], *[None] * (x.rank - 2)]


@reads("max_pool", parameters=f"input size {WINDOW}")
def read_max(node: NodeReader) -> NnefWire:
    """A constant border is zeros, which may be the largest."""
    return _pool_largest(node)


def _pool_largest(node: NodeReader) -> NnefWire:
    x, window, border = _read_pool(node)
    if border == "constant" and node.standard and any(window.get("pads", [1])):
        raise node.error("a zero border in a max pool is not supported; use border = 'ignore'")
    return node.add("MaxPool", [x], x.dtype, _pooled_sizes(x), **window)


@reads("max_pool_with_index", parameters=f"input size {WINDOW}")
def read_max_with_index(node: NodeReader) -> tuple[NnefWire]:
    """Read a maximum and its indices. The indices are not supported, so nothing may read them."""
    return (_pool_largest(node),)


@reads("box", parameters=f"input size {WINDOW} normalize=False")
def read_box(node: NodeReader) -> NnefWire:
    x, window, border = _read_pool(node)
    if node.boolean("normalize"):
        return _average(node, x, window, border == "constant")
    mean = _average(node, x, window, True, "mean")
    return node.apply("Mul", mean, prod(window["kernel_shape"]))


@reads("avg_pool", parameters=f"input size {WINDOW}")
def read_average(node: NodeReader) -> NnefWire:
    x, window, border = _read_pool(node)
    return _average(node, x, window, border == "constant")


def _average(
    node: NodeReader, x: NnefWire, window: dict[str, Any], counts: bool, suffix: str = ""
) -> NnefWire:
    """Add an average pool. Raises LoadError: a dilation, which AveragePool of opset 17 does not have."""
    dilations = window.pop("dilations")
    if any(step != 1 for step in dilations):
        raise node.error("averages with a dilation are not supported; use a convolution")
    return node.add(
        "AveragePool", [x], x.dtype, _pooled_sizes(x), suffix, count_include_pad=int(counts), **window
    )
