"""Numbers as small integers with a scale, and back; functions of codes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, I32, I64, U8, DType, TypedFact, dtype_name
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, SameShape, SameType
from pulse.infer.translators import wire_node
from pulse.onnx.registry import TRANSLATORS, onnx_op, rule
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.unsupported import constant_scales_advice
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Cast
from pulse.ops.quantize import CodeTable
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis, Expand, Reshape, with_dim
from pulse.ops.slice import Slice
from pulse.support.wording import count_of
from pulse.typed import known_value

QUANTIZED = tuple(map(np.dtype, (np.uint8, np.int8, np.uint16, np.int16)))


@onnx_op("QuantizeLinear", "com.microsoft::QuantizeLinear")
def quantize_linear(node: NodeContext) -> OutletId:
    """Wire round to even of x / scale, plus the zero point, cut to the type's range."""
    scale = node.fact(1).dtype
    quantized_dtype = _quantized_dtype(node)
    precision = node.integer("precision", 0)
    dtype = onnx_dtype(precision, f"{node.wire_name} (QuantizeLinear)") if precision else scale
    x = node.cast(node.input(0), dtype, "x")
    s = node.cast(_spread(node, 1, "scale"), dtype, "scale_as_x")
    y = node.apply("div", x, s, suffix="scaled")
    zero = _spread(node, 2, "zero") if node.has(2) else None
    return node.name_result(quantize(node, node.cast(y, F32, "wide"), zero, quantized_dtype))


def _quantized_dtype(node: NodeContext) -> DType:
    code = node.integer("output_dtype", 0)
    quantized_dtype = onnx_dtype(code, f"{node.wire_name} (QuantizeLinear)") if code else None
    if node.has(2):
        quantized_dtype = node.fact(2).dtype
    return quantized_dtype or U8


def quantize(node: NodeContext, x: OutletId, zero: OutletId | None, quantized_dtype: DType) -> OutletId:
    """Quantise scaled f32 numbers to integers: round to even, add the zero point, clip to the type's range.

    Raises LoadError: not a type of 8 or 16 bits
    """
    return limit_codes(node, node.apply("round", x, suffix="rounded"), zero, quantized_dtype)


def limit_codes(node: NodeContext, y: OutletId, zero: OutletId | None, quantized_dtype: DType) -> OutletId:
    """Add the zero point to rounded f32 numbers, clip them to the range of an integer type, and convert them to it.

    Raises LoadError: not a type of 8 or 16 bits
    """
    if quantized_dtype not in QUANTIZED:
        raise node.error(
            f"quantising to {dtype_name(quantized_dtype)} is not supported; use 8-bit or 16-bit integers"
        )
    if zero is not None and not _is_nothing(node, zero):
        y = node.apply("add", y, node.cast(zero, F32, "zero_wide"), suffix="moved")
    bounds = np.iinfo(quantized_dtype)
    for name, bound in (("max", bounds.min), ("min", bounds.max)):
        y = node.apply(name, y, node.constant(np.array(bound, F32), f"bound_{name}"), suffix=f"cut_{name}")
    return node.wire(Cast(quantized_dtype), [y], "quantized")


def _is_nothing(node: NodeContext, zero: OutletId) -> bool:
    """Return whether a zero point is known to be 0."""
    value = known_value(node.graph, zero)
    return value is not None and not value.any()


def _spread(node: NodeContext, slot: int, name: str) -> OutletId:
    """Return a scale or zero point shaped to broadcast with the data: one, one for each entry of an axis, or blocks."""
    x, fact = node.fact(0), node.fact(slot)
    if fact.rank == 0 or (fact.rank == 1 and fact.shape[0] == 1):
        return as_one(node, node.input(slot), name)
    axis = node.axis(node.integer("axis", 1), x.rank)
    block = node.integer("block_size", 0)
    if fact.rank == 1 and not block:
        return spread_row(node, node.input(slot), x, axis, name)
    if fact.rank != x.rank or block < 1:
        raise node.error(f"its {name} {fact} does not fit {x}, axis {axis}, blocks of {block}")
    count = fact.shape[axis]
    if (count * block - x.shape[axis]).prove_ge(block).yes or (x.shape[axis] - count * block).prove_gt(0).yes:
        raise node.error(
            f"attribute block_size is {block}, but its {name} has {count_of(count, 'block')} for the "
            f"{count_of(x.shape[axis], 'entry', 'entries')} of "
            f"axis {axis}"
        )
    with_axis = node.wire(AddAxis(axis + 1), [node.input(slot)], f"{name}_with_axis")
    wide = (*fact.shape[: axis + 1], TDim.of(block), *fact.shape[axis + 1 :])
    blocks = node.wire(Expand(wide), [with_axis], f"{name}_repeated")
    entries = node.wire(Reshape(with_dim(fact.shape, axis, count * block)), [blocks], f"{name}_merged")
    if count * block == x.shape[axis]:
        return entries
    return node.wire(Slice(axis, TDim.of(0), x.shape[axis]), [entries], f"{name}_blocks")


def as_one(node: NodeContext, outlet: OutletId, name: str) -> OutletId:
    """Return a tensor of one element as a scalar."""
    shape: tuple[TDim, ...] = ()
    return (
        outlet if node.graph.fact(outlet).rank == 0 else node.wire(Reshape(shape), [outlet], f"{name}_scalar")
    )


def spread_row(node: NodeContext, row: OutletId, x: TypedFact, axis: int, name: str) -> OutletId:
    """Reshape a row of numbers so that it broadcasts along one axis of x."""
    ones = (TDim.of(1),) * (x.rank - axis - 1)
    return node.wire(Reshape((*node.graph.fact(row).shape, *ones)), [row], f"{name}_along") if ones else row


@onnx_op("DequantizeLinear", "com.microsoft::DequantizeLinear")
def dequantize_linear(node: NodeContext) -> OutletId:
    """Wire (x - zero point) * scale, in f32 inside."""
    x, scale_dtype = node.fact(0), node.fact(1).dtype
    if x.dtype not in (*QUANTIZED, I32):
        raise node.error(f"{dtype_name(x.dtype)} is not supported; use 8-bit, 16-bit or 32-bit integers")
    code = node.integer("output_dtype", 0)
    result = onnx_dtype(code, f"{node.wire_name} (DequantizeLinear)") if code else scale_dtype
    y = subtract_zero(node, node.input(0), _spread(node, 2, "zero") if node.has(2) else None)
    scale = node.cast(_spread(node, 1, "scale"), F32, "scale_wide")
    y = node.apply("mul", node.cast(y, F32, "wide"), scale, suffix="scaled")
    return node.name_result(node.cast(y, result, "narrow"))


def subtract_zero(node: NodeContext, x: OutletId, zero: OutletId | None, name: str = "x") -> OutletId:
    """Subtract the zero point from integers: in f32 if 16 bits or fewer make that exact, otherwise in i32."""
    wide = F32 if node.graph.fact(x).dtype in QUANTIZED else I32
    x = node.cast(x, wide, f"{name}_wide")
    if zero is None or _is_nothing(node, zero):
        return x
    return node.apply("sub", x, node.cast(zero, wide, f"{name}_zero"), suffix=f"{name}_centred")


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: NodeContext) -> list[OutletId]:
    """Quantise to u8 by the range of all elements and 0; return the codes, their scale and zero point."""
    x = node.input(0)
    axes, advice = tuple(range(node.fact(0).rank)), constant_scales_advice()
    highest, lowest = (
        node.apply(
            kind,
            node.wire(Reduce(kind, axes, False, advice), [x], kind) if axes else x,
            0,
            suffix=f"{kind}_0",
        )
        for kind in ("max", "min")
    )
    span = node.apply("sub", highest, lowest, suffix="span")
    steps = node.apply("div", span, 255, suffix="steps")
    flat = node.apply("equal", span, 0, suffix="flat")
    names = [name or f"{node.wire_name}.output{slot}" for slot, name in enumerate(node.outputs)]
    parts = [node.with_name(name) for name in (*names, *(f"{node.wire_name}.unused{i}" for i in range(3)))]
    scale = parts[1].apply("where", flat, 1, steps)
    first = node.apply("div", node.apply("sub", 0, lowest, suffix="below"), scale, suffix="first")
    point = parts[2].name_result(
        quantize(replace(node, wire_name=f"{node.wire_name}.point"), first, None, U8)
    )
    quotient = node.apply("div", x, scale, suffix="scaled")
    return [parts[0].name_result(quantize(node, quotient, point, U8)), scale, point]


@writes(CodeTable)
def write_code_table(w: NodeWriter, op: CodeTable) -> str:
    """Look up an entry by its index in the table, counted from the first."""
    x, table = w.inputs
    dtype, last = w.dtype(), int(w.sizes(1)[0]) - 1
    offset = w.emit("Sub", [x, w.number(op.first, dtype, "first")], "offset")
    low, high = w.number(0, dtype, "low"), w.number(last, dtype, "high")
    position = w.emit(
        "Min", [w.emit("Max", [w.emit("Round", [offset], "rounded"), low], "floor"), high], "clamped"
    )
    return w.emit("Gather", [table, w.cast(position, I64, "index")])


SUMS_AND_PRODUCTS = {"QLinearAdd": "add", "QLinearMul": "mul"}


@onnx_op(*(f"com.microsoft::{name}" for name in SUMS_AND_PRODUCTS))
def q_linear_arithmetic(node: NodeContext) -> OutletId:
    """Add or multiply quantised numbers, each with a scale and a zero point, and quantise the result."""
    operands = [_floats(node, 0, "a"), _floats(node, 3, "b")]
    y = node.apply(SUMS_AND_PRODUCTS[node.op_type], *operands, suffix="value")
    return _codes(node, y, 6)


FUNCTIONS = "AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid"


@onnx_op(*(f"com.microsoft::QLinear{name}" for name in FUNCTIONS))
def q_linear_function(node: NodeContext) -> OutletId:
    """Apply an operator of one input to quantised numbers, and quantise the result."""
    if node.flag("channels_last"):
        raise node.error("attribute channels_last is not supported; quantise the model with channels first")
    return _codes(node, _apply_to_floats(node, node.opset), 3)


@onnx_op("com.microsoft::QLinearSoftmax")
def q_linear_softmax(node: NodeContext) -> OutletId:
    """Apply softmax to quantised numbers, and quantise the result, as onnxruntime does: by a whole number of steps."""
    y = _apply_to_floats(node, node.integer("opset"))
    steps = node.apply(
        "floor",
        node.apply("div", 1, as_one(node, node.input(3), "y_scale"), suffix="inverse"),
        suffix="steps",
    )
    point = as_one(node, node.input(4), "y_zero") if node.has(4) else None
    scaled = node.apply("mul", y, steps, suffix="scaled")
    return node.name_result(quantize(node, scaled, point, node.fact(0).dtype))


def _apply_to_floats(node: NodeContext, opset: int) -> OutletId:
    """Return what the operator without its prefix makes of the first input as floats."""
    part = replace(
        node,
        op_type=node.op_type.removeprefix("QLinear"),
        opset=opset,
        wire_name=f"{node.wire_name}.value",
        inputs=(_floats(node, 0, "x"),),
    )
    return wire_node(TRANSLATORS[part.op_type], part)[0]


@onnx_op("com.microsoft::QLinearConcat")
def q_linear_concat(node: NodeContext) -> OutletId:
    """Join quantised numbers, each with a scale and a zero point, and quantise the result."""
    parts = [_floats(node, slot, f"x{slot}") for slot in range(2, len(node.inputs), 3)]
    node.require(parts, "it has no inputs; it needs at least one")
    axis = node.axis(node.integer("axis"), node.graph.fact(parts[0]).rank)
    return _codes(node, node.wire(Concat(axis), parts, "value"), 0)


def _floats(node: NodeContext, slot: int, name: str) -> OutletId:
    """Convert quantised numbers to floats; their scale and zero point are the next two inputs."""
    zero = as_one(node, node.input(slot + 2), f"{name}_zero") if node.has(slot + 2) else None
    numbers = node.cast(subtract_zero(node, node.input(slot), zero, name), F32, f"{name}_wide")
    scale = as_one(node, node.input(slot + 1), f"{name}_scale")
    return node.apply("mul", numbers, scale, suffix=f"{name}_scaled")


def _codes(node: NodeContext, y: OutletId, slot: int) -> OutletId:
    """Return the result as quantised numbers of their zero point's type; scale and zero point are at ``slot``.

    Without a zero point they have the type of the first input.
    """
    y = node.apply("div", y, as_one(node, node.input(slot), "y_scale"), suffix="scaled")
    has_zero = node.has(slot + 1)
    point = as_one(node, node.input(slot + 1), "y_zero") if has_zero else None
    return node.name_result(quantize(node, y, point, node.fact(slot + 1 if has_zero else 0).dtype))


@rule("QuantizeLinear", "DequantizeLinear")
def infer_quantization(node: InferenceNode) -> Iterator[FactRelation]:
    """The shape stays; the zero point has the integer type, the scale may have another than the floats."""
    yield SameShape([node.input(0), node.output])
    integers = node.output if node.op_type == "QuantizeLinear" else node.input(0)
    if node.has(2):
        yield SameType([integers, node.input(2)])
