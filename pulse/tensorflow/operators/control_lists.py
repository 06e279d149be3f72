"""Lists of tensors (TensorList, TensorArray): one tensor whose first axis counts their elements.

A list that a loop reads or writes at its counter is made by the loop: see ``control_loop``.
"""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, DType, Shape, TypedFact
from pulse.graph import OutletId
from pulse.onnx.operators.gather_progression import progression
from pulse.ops.dims import dims_value
from pulse.ops.gather import Gather
from pulse.ops.op import Env, Op
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.tensorflow.tensors import KnownSizes


@record
class ReservedList(Op):
    """A list without written elements.

    Output   y [count, element...] of zeros; [count] if the elements' shape is not known before they are written
    Stream   none: the loop that writes it makes its elements
    Source   TensorFlow TensorListReserve
    """

    count: TDim
    element: Shape
    dtype: DType
    folds = False

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(self.dtype, (self.count, *self.element))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.zeros(dims_value((self.count, *self.element), env), self.dtype)]


@record
class ListItem(Op):
    """One element of a list.

    Inputs   x [n, element...], place: one integer
    Output   y [element...]
    Stream   whole: elements that a loop takes one by one are made its frames before
    Source   TensorFlow TensorListGetItem

    wraps  whether a negative place counts from the end
    """

    wraps: bool = True
    folds = False

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, _ = inputs
        if not x.rank:
            raise FactError(f"{x} is not a list")
        return [TypedFact(x.dtype, x.shape[1:])]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, index = inputs
        place = int(index.reshape(()))
        if place < 0 and not self.wraps:
            raise IndexError(f"frame {place} is before the first one")
        return [np.asarray(x[place])]


@record
class ListWrite(Op):
    """A list with another element.

    Inputs   x [n, element...] or a reserved list, place: one integer, item [element...]
    Output   y as x
    Stream   whole: a loop that writes by its counter gathers the elements itself
    Source   TensorFlow TensorListSetItem
    """

    folds = False

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        x, _, item = inputs
        if not x.rank:
            raise FactError(f"{x} is not a list")
        return [TypedFact(item.dtype, (x.shape[0], *item.shape) if x.rank > 1 else x.shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        x, index, item = inputs
        y = x.copy() if x.shape[1:] == item.shape else np.zeros((x.shape[0], *item.shape), item.dtype)
        y[int(index.reshape(()))] = item
        return [y]


def _reserve(node: TensorflowNode, count: TDim, dims: KnownSizes, dtype: DType) -> OutletId:
    element = tuple(TDim.of(dim) for dim in dims or () if dim is not None)
    is_known = dims is not None and len(element) == len(dims)
    return node.wire(ReservedList(count, element if is_known else (), dtype), [])


def _count(node: TensorflowNode, slot: int) -> TDim:
    sizes = node.dims(slot, "number of elements")
    node.require(len(sizes) == 1, f"its number of elements is {count_of(len(sizes), 'number')}")
    return sizes[0]


@tensorflow_op("TensorListReserve")
def reserve(node: TensorflowNode) -> OutletId:
    """Make a list of zeros."""
    value = node.value(0)
    dims: KnownSizes = None
    if value is not None and value.ndim == 1 and value.dtype != object:
        dims = tuple(int(dim) if dim >= 0 else None for dim in value.tolist())
    return _reserve(node, _count(node, 1), dims, node.require_dtype("element_dtype"))


@tensorflow_op("TensorListFromTensor", "TensorListStack")
def identity(node: TensorflowNode) -> OutletId:
    """Return the list: it is the tensor of its elements already."""
    return node.input(0)


@tensorflow_op("TensorListLength")
def length(node: TensorflowNode) -> OutletId:
    """Return the number of elements."""
    return node.dim_constant(node.size(0, 0))


@tensorflow_op("TensorListGetItem")
def get_item(node: TensorflowNode) -> OutletId:
    """Read one element."""
    return _item(node, node.input(0))


@tensorflow_op("TensorListSetItem")
def set_item(node: TensorflowNode) -> OutletId:
    """Write one element."""
    return node.wire(ListWrite(), [node.input(0), node.input(1), node.input(2)])


def _item(node: TensorflowNode, x: OutletId) -> OutletId:
    value = node.value(1)
    if value is None or value.dtype == object or not node.graph.fact(x).rank:
        return node.wire(ListItem(), [x, node.input(1)])
    return node.entry(x, 0, node.integer_at(1, "index"))


@tensorflow_op("TensorArrayV3")
def array(node: TensorflowNode) -> list[OutletId]:
    """Make an empty array: its handle is unused here, since the flow has the data."""
    handle = node.constant(np.array(0, np.int32), "handle")
    dims = node.sizes("element_shape")
    return [handle, _reserve(node, _count(node, 0), dims, node.require_dtype("dtype"))]


@tensorflow_op("TensorArrayReadV3")
def read(node: TensorflowNode) -> OutletId:
    """Read one element; inputs are handle, index, flow."""
    return _item(node, node.input(2))


@tensorflow_op("TensorArrayWriteV3")
def write(node: TensorflowNode) -> OutletId:
    """Write one element; inputs are handle, index, value, flow."""
    return node.wire(ListWrite(), [node.input(3), node.input(1), node.input(2)])


@tensorflow_op("TensorArrayScatterV3")
def scatter(node: TensorflowNode) -> OutletId:
    """Write all elements at once; inputs are handle, indices, value, flow."""
    node.require(_are_in_order(node, node.size(2, 0)), "only all elements in their order are supported")
    return node.input(2)


@tensorflow_op("TensorArrayGatherV3")
def gather(node: TensorflowNode) -> OutletId:
    """Read elements as one tensor; inputs are handle, indices, flow."""
    flow = node.input(2)
    if _are_in_order(node, node.size(2, 0)):
        return flow
    return node.wire(Gather(0), [flow, node.input(1)])


def _are_in_order(node: TensorflowNode, count: TDim) -> bool:
    """Return whether input 1, the indices, is 0, 1 … up to a count."""
    value = node.value(1)
    if value is not None and value.dtype != object:
        return count == len(value) and bool((value == np.arange(len(value))).all())
    series = progression(node.graph, node.input(1))
    if series is None or series.starts.size != 1 or series.step != 1 or int(series.starts.reshape(())) != 0:
        return False
    return series.length == count or series.length.prove_eq(count).yes


@tensorflow_op("TensorArraySizeV3")
def size(node: TensorflowNode) -> OutletId:
    """Return the number of elements; inputs are handle and flow."""
    return node.dim_constant(node.size(1, 0))
