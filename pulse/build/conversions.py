"""Views of another type or layout: the nodes at their borders that convert, and changed parameters."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from pulse.build.canvas import Canvas, is_open
from pulse.build.schemas import OPSET
from pulse.errors import InputError
from pulse.facts import DTYPES, Array, DType
from pulse.graph import InletId, OutletId
from pulse.infer.network import Constant
from pulse.onnx.operators.elementwise import OPERATORS
from pulse.onnx.read.op import OnnxOp
from pulse.onnx.tensors import element_type
from pulse.support.naming import require_name

FLOATS = ("f16", "f32", "f64")
LAYOUTS = ("NCHW", "NHWC")
_SPATIAL = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")
_CHANNELS = (*_SPATIAL, "BatchNormalization")
"""The operators whose first input and output have channels on axis 1."""
_EACH = (*OPERATORS, "Identity", "Dropout", "Gelu", "Clip", "Cast")
"""The operators that treat all axes in the same way."""


def _operator(op_type: str, **attributes: object) -> OnnxOp:
    return OnnxOp(op_type, "", OPSET, "", attributes, (0,), ("y",))


def _insert_before(
    canvas: Canvas, outlet: OutletId, op: OnnxOp, name: str, readers: Iterable[InletId]
) -> OutletId:
    """Put a node between a wire and some of its readers, and return the output of the node."""
    output = canvas.add(name, op, [outlet])
    for inlet in readers:
        canvas.graph.connect(output, inlet)
    return output


def _select_readers(canvas: Canvas, outlet: OutletId, inside: set[int], within: bool) -> list[InletId]:
    return [inlet for inlet in canvas.graph.outlet(outlet).successors if (inlet.node in inside) is within]


def float_type(name: str) -> DType:
    """Return a float type by its short name. Raises InputError: pulse has no such type."""
    return DTYPES[require_name("dtype", name, FLOATS, InputError)]


def convert_types(
    canvas: Canvas, nodes: Iterable[int], inputs: Sequence[OutletId], outputs: Sequence[OutletId], name: str
) -> tuple[list[int], dict[OutletId, OutletId]]:
    """Make a part compute in another float type; around it everything stays f32.

    Return the nodes that cast, one for each input and output of the part; and output -> its wire after the cast
    """
    dtype, inside = float_type(name), set(nodes)
    _convert_parameters(canvas, inside, name, lambda value: value.astype(dtype))
    casts: list[int] = []
    cast, back = (
        _operator("Cast", to=element_type(element_dtype)) for element_dtype in (dtype, DTYPES["f32"])
    )
    for outlet in inputs:
        readers = _select_readers(canvas, outlet, inside, True)
        casts.append(
            _insert_before(canvas, outlet, cast, f"{canvas.graph.label(outlet)}.{name}", readers).node
        )
    new_wires: dict[OutletId, OutletId] = {}
    for outlet in outputs:
        readers = _select_readers(canvas, outlet, inside, False)
        new_wires[outlet] = _insert_before(canvas, outlet, back, f"{canvas.graph.label(outlet)}.f32", readers)
        casts.append(new_wires[outlet].node)
    return casts, new_wires


def round_parameters(canvas: Canvas, nodes: Iterable[int], name: str) -> None:
    """Convert the parameters of a part to values of another float type; their type and all else stay."""
    dtype = float_type(name)
    _convert_parameters(canvas, set(nodes), name, lambda value: value.astype(dtype).astype(value.dtype))


def _convert_parameters(
    canvas: Canvas, inside: set[int], name: str, convert: Callable[[Array], Array]
) -> None:
    """Convert the float parameters of the nodes inside; nodes outside keep the original ones."""
    for node_id in sorted(inside):
        for outlet in dict.fromkeys(canvas.graph.nodes[node_id].inputs):
            op = canvas.op(outlet)
            if not isinstance(op, Constant) or op.value.dtype.kind != "f":
                continue
            value = convert(op.value)
            if value.dtype == op.value.dtype and np.array_equal(value, op.value, equal_nan=True):
                continue
            parameter = canvas.add_constant(f"{canvas.graph.label(outlet)}.{name}", value)
            for inlet in _select_readers(canvas, outlet, inside, True):
                canvas.graph.connect(parameter, inlet)
            canvas.graph.retire(outlet.node)


def convert_layout(
    canvas: Canvas, nodes: Iterable[int], inputs: Sequence[OutletId], outputs: Sequence[OutletId]
) -> tuple[list[int], dict[OutletId, OutletId]]:
    """Put the channels of a part's tensors last: transposes around each operator that has them on axis 1.

    At the borders to other nodes, tensors are transposed too; open inputs, and results that nothing reads, have
    channels last. Return the transposes; and output -> its wire for readers outside
    Raises InputError: an operator of the part names axes
    """
    inside = set(nodes)
    rank = _rank(canvas, inside)
    first, last = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    transposes: list[int] = []

    def insert_transpose(outlet: OutletId, perm: Sequence[int], readers: Iterable[InletId]) -> OutletId:
        op = _operator("Transpose", perm=list(perm))
        transposes.append(
            _insert_before(canvas, outlet, op, f"{canvas.graph.label(outlet)}.turned", readers).node
        )
        return OutletId(transposes[-1])

    inner = {
        node_id: canvas.graph.nodes[node_id].inputs[0]
        for node_id in sorted(inside)
        if canvas.graph.nodes[node_id].op.name in _CHANNELS
    }
    for outlet in inputs:
        if not is_open(canvas.op(outlet)):
            insert_transpose(outlet, last, _select_readers(canvas, outlet, inside, True))
    new_wires: dict[OutletId, OutletId] = {}
    outside = {outlet: _select_readers(canvas, outlet, inside, False) for outlet in outputs}
    for node_id in inner:
        outlet = canvas.graph.nodes[node_id].inputs[0]
        insert_transpose(outlet, first, [InletId(node_id, 0)])
        output = OutletId(node_id)
        new_wires[output] = insert_transpose(output, last, list(canvas.graph.outlet(output).successors))
    for outlet, readers in outside.items():
        if readers:
            insert_transpose(new_wires.get(outlet, outlet), first, readers)
    return transposes, {outlet: new_wires[outlet] for outlet in outputs if outlet in new_wires}


def _rank(canvas: Canvas, nodes: set[int]) -> int:
    """Return the number of axes of the tensors of a part."""
    ranks: set[int] = set()
    for node_id in sorted(nodes):
        op, where = canvas.graph.nodes[node_id].op, canvas.label(node_id)
        if op.name not in (*_CHANNELS, *_EACH) or not isinstance(op, OnnxOp):
            raise InputError(
                f"{where}: names axes, or may not treat all axes in the same way; exclude it from the view"
            )
        constants = [canvas.op(outlet) for outlet in canvas.graph.nodes[node_id].inputs]
        if op.name in _EACH and any(
            isinstance(constant, Constant) and np.size(constant.value) > 1 for constant in constants
        ):
            raise InputError(
                f"{where}: reads a constant whose axes belong to channels first; omit it from the view"
            )
        if op.name in _SPATIAL:
            ranks.add(len(op.attributes["kernel_shape"]) + 2)
    if len(ranks) != 1:
        raise InputError("a layout needs convolutions or pools in the view, all with the same number of axes")
    return ranks.pop()
