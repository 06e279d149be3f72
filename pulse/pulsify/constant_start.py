"""Replace mirrored frames before the stream by zeros. This is another model, whose first frames need no waiting."""

import warnings
from dataclasses import replace

from pulse.dim import Symbol, TDim
from pulse.errors import PulseWarning, PulsifyError
from pulse.graph import OutletId
from pulse.ops.pad import Pad
from pulse.patch import Patch
from pulse.typed import TypedNetwork


def constant_start(model: TypedNetwork, symbol: Symbol, fill: float) -> TypedNetwork:
    """Pad with ``fill`` before the stream; paddings mirror or repeat frames at its end only.

    Warns   PulseWarning: names the nodes whose meaning changes
    Raises  PulsifyError: no padding mirrors or repeats frames before the stream
    """
    result = model.copy()
    node_names: list[str] = []
    for node_id in result.graph.order():
        node = result.graph.nodes[node_id]
        if not isinstance(node.op, Pad) or node.op.mode == "constant":
            continue
        axes = result.graph.fact(node.inputs[0]).symbolic_axes(symbol)
        if any(node.op.pads[axis][0] != 0 for axis in axes):
            node_names.append(node.name)
            _pad_with_constant(result, node_id, node.op, axes, fill)
    if not node_names:
        raise PulsifyError(
            f"{model.title} mirrors or repeats no frames before the stream, so a constant start would change nothing"
        )
    warnings.warn(
        f"{model.title}: the frames before the stream are {fill:g} instead of mirrored or repeated ones at "
        f"{', '.join(node_names)}; this is a different model, whose first frames differ",
        PulseWarning,
        stacklevel=3,
    )
    return result.copy()


def _pad_with_constant(model: TypedNetwork, node_id: int, op: Pad, axes: list[int], fill: float) -> None:
    node, nothing = model.graph.nodes[node_id], TDim.of(0)
    ends = tuple((nothing if axis in axes else before, after) for axis, (before, after) in enumerate(op.pads))
    starts = tuple((before if axis in axes else nothing, nothing) for axis, (before, _) in enumerate(op.pads))
    patch = Patch(model.graph)
    x = patch.wire(f"{node.name}.end", replace(op, pads=ends), [patch.tap(node.inputs[0])])[0]
    patch.shunt(OutletId(node_id), patch.wire(node.name, Pad(starts, fill=fill), [x])[0])
    patch.apply()
