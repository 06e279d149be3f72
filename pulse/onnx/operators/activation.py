"""Functions of single elements, and of neighbouring channels, made of simpler ones."""

import math

import numpy as np

from pulse.budget import spending
from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.search import steps
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.ops.reduce import ArgReduce
from pulse.ops.shape import Reshape, volume
from pulse.ops.slice import Slice


@onnx_op("IsInf")
def is_inf(node: NodeContext) -> OutletId:
    """Whether an element is an infinity, of both signs or one."""
    signs = [
        (sign, name)
        for sign, name in ((1, "positive"), (-1, "negative"))
        if node.flag(f"detect_{name}", True)
    ]
    x, fact = node.input(0), node.fact(0)
    found = [
        node.wire(
            Elementwise("equal"), [x, node.scalar_constant(sign * math.inf, fact, f"{name}_infinity")], name
        )
        for sign, name in signs
    ]
    if not found:
        return node.wire(Elementwise("less"), [x, x])
    return node.finished(found[0] if len(found) == 1 else node.wire(Elementwise("or"), found))


@onnx_op("Shrink")
def shrink(node: NodeContext) -> OutletId:
    """Towards zero by ``bias`` outside of -lambd … lambd, zero inside."""
    x, fact = node.input(0), node.fact(0)
    limit, bias = node.real("lambd", 0.5), node.real("bias", 0.0)
    numbers = {"low": -limit, "high": limit, "bias": bias, "zero": 0.0}
    low, high, moved, zero = (
        node.constant(np.array(value).astype(fact.dtype), name) for name, value in numbers.items()
    )
    below, above = (
        node.wire(Elementwise("less"), [x, low], "below"),
        node.wire(Elementwise("greater"), [x, high], "above"),
    )
    up, down = (
        node.wire(Elementwise("add"), [x, moved], "up"),
        node.wire(Elementwise("sub"), [x, moved], "down"),
    )
    inner = node.wire(Elementwise("where"), [above, down, zero], "inner")
    return node.wire(Elementwise("where"), [below, up, inner])


@onnx_op("SwiGLU")
def swiglu(node: NodeContext) -> OutletId:
    """Swish of one tensor times the other."""
    gate = node.wire(Elementwise("swish", (node.real("alpha", 1.0),)), [node.input(0)], "gate")
    return node.wire(Elementwise("mul"), [gate, node.input(1)])


@onnx_op("Hardmax")
def hardmax(node: NodeContext) -> OutletId:
    """One at the first largest entry of an axis, else zero; before opset 13 of all axes from ``axis`` on together."""
    x, shape = node.input(0), node.fact(0).shape
    axis = node.axis(node.integer("axis", -1 if node.opset >= 13 else 1), len(shape))
    flat = node.opset < 13 and axis < len(shape) - 1
    if flat:
        x = node.wire(Reshape((*shape[:axis], volume(shape[axis:]))), [x], "flat")
    fact = node.graph.fact(x)
    place = node.wire(ArgReduce("max", axis, True, False), [x], "place")
    row = steps(node, fact.shape[axis], "steps")
    if fact.rank - axis > 1:
        row = node.wire(Reshape((fact.shape[axis], *(TDim.of(1),) * (fact.rank - axis - 1))), [row], "along")
    hit = node.cast(node.wire(Elementwise("equal"), [row, place], "hit"), fact.dtype, "one")
    return node.finished(node.wire(Reshape(shape), [hit]) if flat else hit)


@onnx_op("LRN")
def lrn(node: NodeContext) -> OutletId:
    """X / (bias + alpha / size * the sum of squares of neighbouring channels) ** beta."""
    x, fact = node.input(0), node.fact(0)
    size = node.integer("size")
    if fact.rank < 2 or size < 1:
        raise node.error(f"a neighbourhood of {size} channels does not fit {fact}")
    spending().unfold(size, f"{node.wire_name} (LRN), size {size}")
    before = (size - 1) // 2
    none = (TDim.of(0), TDim.of(0))
    edges = (none, (TDim.of(before), TDim.of(size - 1 - before)), *(none,) * (fact.rank - 2))
    wide = node.wire(Pad(edges), [node.wire(Elementwise("mul"), [x, x], "squares")], "wide")
    parts = [
        node.wire(Slice(1, TDim.of(first), fact.shape[1] + first), [wide], f"neighbour{first}")
        for first in range(size)
    ]
    total = node.wire(Elementwise("sum"), parts, "sums")
    numbers = {
        "rate": node.real("alpha", 1e-4) / size,
        "bias": node.real("bias", 1.0),
        "beta": node.real("beta", 0.75),
    }
    rate, bias, beta = (node.scalar_constant(value, fact, name) for name, value in numbers.items())
    scaled = node.wire(Elementwise("mul"), [total, rate], "scaled")
    power = node.wire(
        Elementwise("pow"), [node.wire(Elementwise("add"), [scaled, bias], "biased"), beta], "power"
    )
    return node.wire(Elementwise("div"), [x, power])
