"""Shapes as tensors, and changes of shape."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.onnx.operators.constants import scalar_dim
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import broadcast_shapes
from pulse.ops.position import Range
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, resolve_shape, volume
from pulse.ops.slice import Slice
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.delayed import delayed_rows
from pulse.tensorflow.registry import tensorflow_op
from pulse.wording import spell


@tensorflow_op("Shape")
def shape(node: TensorflowNode) -> OutletId:
    """The dims of a tensor, symbolic ones as they are."""
    return node.dims_constant(node.fact(0).shape)


@tensorflow_op("ShapeN")
def shapes(node: TensorflowNode) -> list[OutletId]:
    """The dims of each tensor."""
    return [
        node.dims_constant(node.graph.fact(x).shape, f"shape{place}") for place, x in enumerate(node.given())
    ]


@tensorflow_op("Size")
def size(node: TensorflowNode) -> OutletId:
    """The number of elements."""
    return scalar_dim(node, volume(node.fact(0).shape))


@tensorflow_op("Rank")
def rank(node: TensorflowNode) -> OutletId:
    """The number of axes."""
    return node.constant(np.array(node.fact(0).rank, np.int64))


@tensorflow_op("Reshape")
def reshape(node: TensorflowNode) -> OutletId:
    """-1 takes what is left; where only axes of size 1 come or go, they do just that."""
    source, wanted = node.fact(0).shape, node.dims(1, "shape")
    if node.is_complex():
        wanted = (*wanted, TDim.of(2))
    target = resolve_shape(source, wanted)
    if target == source:
        return node.input(0)
    added = _added(source, target)
    if not added:
        late = delayed_rows(node, node.input(0), target)
        return late if late is not None else node.wire(Reshape(target), [node.input(0)])
    x = node.input(0)
    for axis in added:
        x = node.wire(AddAxis(axis), [x], "" if axis == added[-1] else f"axis{axis}")
    return x


def _added(source: Shape, target: Shape) -> list[int]:
    """The axes of the target that are new, where all that happens is that axes of size 1 come."""
    added: list[int] = []
    place = 0
    for axis, dim in enumerate(target):
        if place < len(source) and source[place] == dim:
            place += 1
        elif dim == 1:
            added.append(axis)
        else:
            return []
    return added if place == len(source) else []


@tensorflow_op("ExpandDims")
def expand_dims(node: TensorflowNode) -> OutletId:
    """A new axis of size 1."""
    own = node.fact(0).rank - node.is_complex()
    return node.wire(AddAxis(node.axis(node.whole(1, "axis"), own + 1)), [node.input(0)])


@tensorflow_op("Squeeze")
def squeeze(node: TensorflowNode) -> OutletId:
    """Axes of size 1 taken away; all of them where none is listed."""
    dims = node.fact(0).shape
    own = len(dims) - node.is_complex()
    listed = node.integer_list("squeeze_dims", ()) or node.integer_list("axis", ())
    axes = node.axes(listed, own) if listed else tuple(axis for axis in range(own) if dims[axis] == 1)
    x = node.input(0)
    for axis in reversed(axes):
        x = node.wire(RemoveAxis(axis), [x], "" if axis == axes[0] else f"axis{axis}")
    return x


@tensorflow_op("Transpose")
def transpose(node: TensorflowNode) -> OutletId:
    """Axes in another order."""
    perm = node.integers(1, "perm")
    if node.is_complex():
        perm.append(len(perm))
    count = node.fact(0).rank
    return node.transposed(node.input(0), [node.axis(axis, count) for axis in perm])


@tensorflow_op("ConcatV2", "Concat")
def concat(node: TensorflowNode) -> OutletId:
    """Joined along an axis, which is the last input, or the first of Concat."""
    given = node.given()
    if len(given) < 2:
        raise node.error("nothing to join")
    parts = given[:-1] if node.op_type == "ConcatV2" else given[1:]
    place = len(given) - 1 if node.op_type == "ConcatV2" else 0
    parts = node.alike(parts)
    axis = node.axis(node.whole(place, "axis"), node.graph.fact(parts[0]).rank - node.is_complex())
    return parts[0] if len(parts) == 1 else node.wire(Concat(axis), parts)


@tensorflow_op("Pack")
def pack(node: TensorflowNode) -> OutletId:
    """Stacked along a new axis."""
    parts = node.alike(node.given())
    if not parts:
        raise node.error("nothing to stack")
    axis = node.axis(node.integer("axis", 0), node.graph.fact(parts[0]).rank - node.is_complex() + 1)
    rows = [
        node.wire(AddAxis(axis), [part], "" if len(parts) == 1 else f"row{place}")
        for place, part in enumerate(parts)
    ]
    return rows[0] if len(rows) == 1 else node.wire(Concat(axis), rows)


@tensorflow_op("Unpack")
def unpack(node: TensorflowNode) -> list[OutletId]:
    """Cut into slices of one frame, without the axis."""
    dims = node.fact(0).shape
    axis = node.axis(node.integer("axis", 0), len(dims) - node.is_complex())
    count = node.integer("num")
    if dims[axis] != count:
        raise node.error(
            f"{count} parts of axis {axis} of {node.fact(0)}; give that size with {spell('inputs')}"
        )
    parts: list[OutletId] = []
    for place, name in enumerate(node.outputs):
        cut = Slice(axis, TDim.of(place), TDim.of(place + 1))
        row = node.wire(cut, [node.input(0)], f"row{place}")
        parts.append((node.named(name) if name else node).wire(RemoveAxis(axis), [row]))
    return parts


@tensorflow_op("Fill")
def fill(node: TensorflowNode) -> OutletId:
    """One number everywhere."""
    return node.wire(Expand(node.dims(0, "dims")), [node.input(1)])


@tensorflow_op("BroadcastTo")
def broadcast_to(node: TensorflowNode) -> OutletId:
    """Broadcast to a shape."""
    return node.as_onnx("Expand", [node.input(0), node.input(1)])


@tensorflow_op("BroadcastArgs")
def broadcast_args(node: TensorflowNode) -> OutletId:
    """The shape that two shapes are broadcast to."""
    return node.dims_constant(
        broadcast_shapes([node.dims(0, "shape"), node.dims(1, "shape")], node.wire_name)
    )


@tensorflow_op("MatrixBandPart")
def band_part(node: TensorflowNode) -> OutletId:
    """What lies at most so far below and above the diagonal, zeros elsewhere; a negative distance is any."""
    fact = node.fact(0)
    if fact.rank < 2:
        raise node.error(f"{fact} is no matrix")
    below, above = node.whole(1, "num_lower"), node.whole(2, "num_upper")
    i64 = np.dtype(np.int64)
    row = node.wire(Range(0, 1, fact.shape[-2], i64), [], "row")
    rows = node.wire(AddAxis(1), [row], "rows")
    columns = node.wire(Range(0, 1, fact.shape[-1], i64), [], "columns")
    inside: list[OutletId] = []
    for name, limit, pair in (("below", below, (rows, columns)), ("above", above, (columns, rows))):
        if limit >= 0:
            distance = node.wire(Elementwise("sub"), pair, f"{name}_distance")
            inside.append(
                node.wire(
                    Elementwise("less_equal"), [distance, node.number(limit, i64, f"{name}_most")], name
                )
            )
    if not inside:
        return node.input(0)
    kept = inside[0] if len(inside) == 1 else node.wire(Elementwise("and"), inside, "kept")
    return node.wire(Elementwise("where"), [kept, node.input(0), node.number(0, fact.dtype, "zero")])


@tensorflow_op("Tile")
def tile(node: TensorflowNode) -> OutletId:
    """Repeat along each axis."""
    repeats = node.dims(1, "multiples")
    if node.is_complex():
        repeats = (*repeats, TDim.of(1))
    return (
        node.input(0) if all(times == 1 for times in repeats) else node.wire(Tile(repeats), [node.input(0)])
    )


@tensorflow_op("Range")
def range_(node: TensorflowNode) -> OutletId:
    """Numbers at even distances; the length may be symbolic."""
    return node.as_onnx("Range", node.alike(node.given()))


@tensorflow_op("LinSpace")
def linspace(node: TensorflowNode) -> OutletId:
    """A number of points between two."""
    start, stop = float(node.scalar(0, "start")), float(node.scalar(1, "stop"))
    count = node.count(node.whole(2, "num"), "num")
    return node.constant(np.linspace(start, stop, count).astype(node.fact(0).dtype))


@tensorflow_op("OneHot")
def one_hot(node: TensorflowNode) -> OutletId:
    """On where the index is that of the place, off elsewhere; the new axis is the last one or ``axis``."""
    fact, depth = node.fact(0), node.count(node.whole(1, "depth"), "depth")
    axis = node.integer("axis", -1)
    axis = fact.rank if axis == -1 else node.axis(axis, fact.rank + 1)
    column = node.wire(AddAxis(axis), [node.input(0)], "column")
    places = np.arange(depth).astype(fact.dtype).reshape(-1, *(1,) * (fact.rank - axis))
    hit = node.wire(Elementwise("equal"), [column, node.constant(places, "places")], "hit")
    return node.wire(Elementwise("where"), [hit, node.input(2), node.input(3)])
