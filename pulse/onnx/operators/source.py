"""Constants and ranges."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from pulse.dim import Ratio, TDim, dim_max
from pulse.facts import I64, DType, is_symbolic
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, HasSizes, HasType, SameType
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.tensors import onnx_dtype
from pulse.onnx.write.registry import writes
from pulse.ops.shape import AddAxis, Expand
from pulse.ops.time_position import Range
from pulse.wiring import size_ratios


@onnx_op("Constant")
def constant(node: NodeContext) -> OutletId:
    """Wire a tensor, a number or a list of numbers."""
    if "value" in node.attributes:
        return node.constant(node.tensor("value"))
    if "value_int" in node.attributes:
        return node.constant(np.array(node.integer("value_int"), dtype=np.int64))
    if "value_ints" in node.attributes:
        return node.constant(np.array(node.integer_list("value_ints"), dtype=np.int64))
    if "value_float" in node.attributes:
        return node.constant(np.array(node.real("value_float"), dtype=np.float32))
    if "value_floats" in node.attributes:
        return node.constant(np.array(node.real_list("value_floats"), dtype=np.float32))
    raise node.error(f"a constant of {', '.join(sorted(node.attributes)) or 'nothing'} is not supported")


@onnx_op("ConstantOfShape")
def constant_of_shape(node: NodeContext) -> OutletId:
    """Repeat one number to a shape."""
    value = node.tensor("value", np.zeros(1, dtype=np.float32))
    node.require(value.size == 1, "attribute value must be a tensor of one element")
    return node.wire(Expand(node.dims(0, "shape")), [node.constant(value.reshape(()), "value")])


@onnx_op("Range")
def range_(node: NodeContext) -> OutletId:
    """Wire numbers at even distances; the length may be symbolic."""
    values = [node.value(slot) for slot in range(3)]
    if any(value is None for value in values):
        values = [size_ratios(node.graph, node.input(slot)) for slot in range(3)]
    if any(value is None for value in values):
        raise node.error(
            "its length is computed while running (from data, or through floats that are rounded), so its shape is not "
            "known; compute start, limit and delta by integer arithmetic on shapes"
        )
    numbers = [value for value in values if value is not None]
    if any(value.size != 1 for value in numbers):
        raise node.error("its start, limit and delta must be one number each")
    if not any(is_symbolic(value) for value in numbers):
        start, limit, delta = (value.reshape(()).item() for value in numbers)
        count = _count(node, (limit - start) / delta) if delta else 0
        if not node.try_take_elements(count):
            return node.wire(Range(start, delta, TDim.of(count), numbers[0].dtype), [])
        return node.constant((start + np.arange(count) * delta).astype(numbers[0].dtype))
    dtype = node.fact(0).dtype
    ends = [Ratio.of(value.reshape(()).item()) for value in numbers]
    return _symbolic_range(node, ends, dtype if dtype.kind == "f" else I64)


def _count(node: NodeContext, ratio: float) -> int:
    """Return how many steps a range has. Raises LoadError: that is not a number."""
    if not abs(ratio) < 1 << 62:
        raise node.error(f"it has {ratio} numbers; give a start, limit and delta that are finite")
    return max(0, math.ceil(ratio))


def _symbolic_range(node: NodeContext, ends: Sequence[Ratio], dtype: DType) -> OutletId:
    start, limit, delta = ends
    node.require(delta.num.is_const and delta.num != 0, f"its delta {delta} must be a constant other than 0")
    length = dim_max(0, ((limit - start) / delta).ceil().num)
    if start.num.is_const:
        return node.wire(Range(_number(start), _number(delta), length, dtype), [])
    if start.den != 1 or delta.den != 1:
        raise node.error(
            f"it begins at {start} and goes in steps of {delta}; begin at a constant, or count in integers"
        )
    multiples = node.wire(Range(0, _number(delta), length, I64), [], "multiples")
    values = node.apply("add", multiples, node.dim_constant(start.num, "start"))
    return node.cast(values, dtype, "cast")


def _number(ratio: Ratio) -> float | int:
    return int(ratio.num) if ratio.den == 1 else int(ratio.num) / ratio.den


@onnx_op("EyeLike")
def eye_like(node: NodeContext) -> OutletId:
    """Wire ones on a diagonal, in the shape of another matrix."""
    fact, k = node.fact(0), node.integer("k", 0)
    node.require(fact.rank == 2, f"{fact} is not a matrix")
    code = node.integer("dtype", 0)
    dtype = onnx_dtype(code, f"{node.wire_name} (EyeLike)") if code else fact.dtype
    rows, columns = (steps(node, dim, name) for dim, name in zip(fact.shape, ("rows", "columns")))
    diagonal = node.apply("add", rows, k, suffix="diagonal")
    column = node.wire(AddAxis(1), [diagonal], "column")
    hit = node.apply("equal", column, columns, suffix="hit")
    return node.name_result(node.cast(hit, dtype, "ones"))


@rule("ConstantOfShape")
def infer_constant_of_shape(node: InferenceNode) -> Iterator[FactRelation]:
    """A tensor of the shape that is listed."""
    sizes, count = node.sizes(0), node.count(0)
    default = np.zeros(1, dtype=np.float32)
    yield HasType([node.output], node.tensor("value", default).dtype)
    if count is not None:
        yield HasRank([node.output], count)
    if sizes is not None:
        yield HasSizes(node.output, sizes)


@rule("Range")
def infer_range(node: InferenceNode) -> Iterator[FactRelation]:
    """Scalars of one type; a vector of it."""
    yield SameType([*node.given_inputs(), node.output])
    yield HasRank([node.output], 1)


writes(Range)(lambda w, op: w.constant(op.eval([], {})[0], "numbers"))


def steps(node: NodeContext, size: TDim, name: str) -> OutletId:
    """Return the integers from 0 up to, not including, ``size``."""
    if size.is_const and node.try_take_elements(int(size)):
        return node.constant(np.arange(int(size)), name)
    return node.wire(Range(0, 1, size, I64), [], name)
