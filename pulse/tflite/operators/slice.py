"""Parts of tensors."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.operators.slice import FAR_END, slice_op
from pulse.ops.op import unify
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.shape import own_rank, parts, requantize_input, require_real
from pulse.tflite.registry import tflite_op


@tflite_op("STRIDED_SLICE")
def strided_slice(node: TfliteNode) -> OutletId:
    """Bounds and steps with their masks, which have one bit for each entry of the bounds."""
    begin, end = node.dims(1, "begin"), node.dims(2, "end")
    strides = node.integers(3, "strides")
    masks = {
        name: node.integer(f"{name}Mask", 0) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")
    }
    if not len(begin) == len(end) == len(strides):
        raise node.error(f"{len(begin)} begins, {len(end)} ends and {len(strides)} strides")

    def has(name: str, bit: int) -> bool:
        return bool(masks[name] >> bit & 1)

    x, axis = requantize_input(node), 0
    rank, plain = own_rank(node), sum(not has("NewAxis", index) for index in range(len(begin)))
    last: list[int] = []
    for index, (first, stop, step) in enumerate(zip(begin, end, strides)):
        if has("Ellipsis", index):
            axis += rank - (plain - 1)
            continue
        if has("NewAxis", index):
            x = node.wire(AddAxis(axis), [x], f"axis{axis}")
            axis += 1
            continue
        size = node.graph.fact(x).shape[axis] if axis < node.graph.fact(x).rank else TDim.of(0)
        if axis >= node.graph.fact(x).rank - len(parts(node)):
            raise node.error(f"{len(begin)} bounds for {rank} axes")
        if has("ShrinkAxis", index):
            x = _entry(node, x, axis, first, size)
            last.append(axis)
        else:
            low = TDim.of(FAR_END if step < 0 else 0) if has("Begin", index) else first
            high = TDim.of(-FAR_END if step < 0 else FAR_END) if has("End", index) else stop
            op = slice_op(node, axis, size, low, high, step)
            x = x if op is None else node.wire(op, [x], f"slice{axis}")
        axis += 1
    for axis in reversed(last):
        x = node.wire(RemoveAxis(axis), [x], f"without{axis}")
    return node.name_result(x)


def _entry(node: TfliteNode, x: OutletId, axis: int, index: TDim, size: TDim) -> OutletId:
    """Return one entry of an axis, which stays with size 1."""
    if index.is_const and size.is_const and not -int(size) <= int(index) < int(size):
        raise node.error(f"entry {index} of axis {axis}, which has {size}")
    at = index + size if index.prove_ge(0).no else index
    return node.wire(Slice(axis, at, at + 1), [x], f"entry{axis}")


@tflite_op("SLICE")
def slice_(node: TfliteNode) -> OutletId:
    """This many entries from ``begin`` on; a size of -1 goes to the end."""
    require_real(node)
    begin, sizes, shape = node.dims(1, "begin"), node.dims(2, "size"), node.fact(0).shape
    if not len(begin) == len(sizes) == len(shape):
        raise node.error(f"{len(begin)} begins and {len(sizes)} sizes for {len(shape)} axes")
    x = requantize_input(node)
    for axis, (first, size, whole) in enumerate(zip(begin, sizes, shape)):
        end = whole if size == -1 else first + size
        if (first.is_const and int(first) < 0) or (end.is_const and whole.is_const and int(end) > int(whole)):
            raise node.error(f"entries {first} to {end} of axis {axis}, which has {whole}")
        if first != 0 or end != whole:
            x = node.wire(Slice(axis, first, end), [x], f"axis{axis}")
    return node.name_result(x)


@tflite_op("SPLIT")
def split(node: TfliteNode) -> list[OutletId]:
    """Equal parts of an axis; the axis comes first."""
    shape = node.fact(1).shape
    axis, count = node.axis(node.integer_at(0, "axis"), len(shape)), len(node.output_tensors)
    size = shape[axis]
    if size.is_const and int(size) % count:
        raise node.error(f"{size} entries of axis {axis} do not divide into {count} parts")
    return _parts(node, 1, axis, [size // count] * count)


@tflite_op("SPLIT_V")
def split_v(node: TfliteNode) -> list[OutletId]:
    """Parts of an axis; a size of -1 is inferred from the others."""
    shape, sizes = node.fact(0).shape, list(node.dims(1, "sizes"))
    axis = node.axis(node.integer_at(2, "axis"), len(shape))
    if len(sizes) != len(node.output_tensors):
        raise node.error(f"{len(sizes)} sizes for {len(node.output_tensors)} parts")
    remaining_size = shape[axis] - sum((size for size in sizes if size != -1), TDim.of(0))
    sizes = [remaining_size if size == -1 else size for size in sizes]
    unify(sum(sizes, TDim.of(0)), shape[axis], f"{node.wire_name} (SPLIT_V): the parts of axis {axis}")
    return _parts(node, 0, axis, sizes)


def _parts(node: TfliteNode, slot: int, axis: int, sizes: Sequence[TDim]) -> list[OutletId]:
    require_real(node)
    outlets: list[OutletId] = []
    start = TDim.of(0)
    for index, size in enumerate(sizes):
        x = requantize_input(node, slot, f"moved{index}", index)
        outlets.append(node.with_name(node.outputs[index]).wire(Slice(axis, start, start + size), [x]))
        start = start + size
    return outlets


@tflite_op("REVERSE_V2")
def reverse(node: TfliteNode) -> OutletId:
    """Axes from the last entry to the first."""
    require_real(node)
    x, shape = requantize_input(node), node.fact(0).shape
    for axis in node.axes(node.integers(1, "axes"), len(shape)):
        x = node.wire(Slice(axis, shape[axis] - 1, TDim.of(-1), -1), [x], f"axis{axis}")
    return node.name_result(x)
