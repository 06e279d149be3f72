"""Recurrent layers."""

from collections.abc import Iterator, Sequence

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, HasSize, SameSize, SameType, SizeMultiple
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.ops.concat import Concat
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import USUAL_ACTIVATIONS, Cell
from pulse.ops.recurrent_gates import GATE_COUNTS, CellKind
from pulse.ops.recurrent_layers import CELL_KINDS, ONNX_ACTIVATIONS, read_activations
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Transpose
from pulse.ops.slice import Slice
from pulse.wiring import wire

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}

LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES = 4, 5, 6, 7
"""The numbers of optional inputs."""


def read_direction(node: NodeContext) -> tuple[bool, ...]:
    """Return whether each layer of a node runs backwards. Raises LoadError: there is no such direction."""
    direction = node.text("direction", "forward")
    node.require(direction in DIRECTIONS, f"direction {direction!r} is not one of {', '.join(DIRECTIONS)}")
    return DIRECTIONS[direction]


@onnx_op(*CELL_KINDS)
def recurrent(node: NodeContext) -> Sequence[OutletId]:
    """Wire one layer for each direction, their outputs side by side; layout 1 is transposed around it."""
    cell_kind = CELL_KINDS[node.op_type]
    backwards = read_direction(node)
    if node.fact(0).rank != 3 or node.fact(1).rank != 3 or node.fact(2).rank != 3:
        raise node.error("input, W and R must have 3 axes")
    batch_first = node.flag("layout")
    x = node.wire(Transpose((1, 0, 2)), [node.input(0)], "time_first") if batch_first else node.input(0)
    cells = _cells(node, cell_kind, len(backwards))
    lengths = _lengths(node, node.graph.fact(x).shape[0])
    hidden = _hidden_size(node, cell_kind)
    layers: list[list[OutletId]] = []
    for index, (cell, reverse) in enumerate(zip(cells, backwards)):
        operands, optional = _operands(node, x, cell, index, hidden, batch_first)
        op = Recurrent(cell, hidden, reverse, lengths, optional)
        name = f"{node.wire_name}.{'reverse' if reverse else 'forward'}"
        layers.append(wire(node.graph, name, op, operands))
    return [stack_directions(node, slot, parts, batch_first) for slot, parts in enumerate(zip(*layers))]


def _hidden_size(node: NodeContext, cell_kind: CellKind) -> int:
    """Return the size of the state, on which the weights and the attribute must agree.

    Raises LoadError: they do not.
    """
    fact = node.fact(2)
    rows, hidden = fact.shape[1:]
    if not rows.is_const or not hidden.is_const or int(rows) != GATE_COUNTS[cell_kind] * int(hidden):
        raise node.error(
            f"its R {fact} is not [directions, {GATE_COUNTS[cell_kind]} * hidden, hidden] of constant sizes"
        )
    attribute = node.integer("hidden_size", int(hidden))
    if attribute != int(hidden):
        raise node.error(
            f"attribute hidden_size is {attribute}, but its R {fact} is for {hidden}; export it again"
        )
    return node.take_elements(attribute, "hidden_size")


def stack_directions(node: NodeContext, slot: int, parts: Sequence[OutletId], batch_first: bool) -> OutletId:
    """Return one output of all directions: y [T, D, B, H] or a state [D, B, H]; with layout 1, batch first."""
    name = node.outputs[slot] if slot < len(node.outputs) else ""
    output_node = node.with_name(name or f"{node.wire_name}.{'yhc'[slot]}")
    to_batch_first = Transpose((2, 0, 1, 3) if slot == 0 else (1, 0, 2)) if batch_first else None
    axis = 1 if slot == 0 else 0
    joins = len(parts) > 1
    with_axis = [
        output_node.wire(AddAxis(axis), [part], f"wide{index}" if joins or to_batch_first else "")
        for index, part in enumerate(parts)
    ]
    y = (
        output_node.wire(Concat(axis), with_axis, "joined" if to_batch_first else "")
        if joins
        else with_axis[0]
    )
    return y if to_batch_first is None else output_node.wire(to_batch_first, [y])


def _operands(
    node: NodeContext, x: OutletId, cell: Cell, direction: int, hidden: int, batch_first: bool
) -> tuple[list[OutletId], tuple[str, ...]]:
    """Return the inputs of one direction's layer, and which optional ones are among them."""
    dtype, batch = node.graph.fact(x).dtype, node.graph.fact(x).shape[1]
    rows = 2 * GATE_COUNTS[cell.kind] * hidden
    bias = (
        direction_part(node, 3, direction, 0)
        if node.has(3)
        else node.constant(np.zeros(rows, dtype), f"bias{direction}")
    )
    operands = [x, direction_part(node, 1, direction, 0), direction_part(node, 2, direction, 0), bias]
    optional: list[str] = []
    axis = 1 if batch_first else 0
    for name, slot in (("h", INITIAL_H), ("c", INITIAL_C), ("p", PEEPHOLES)):
        if node.has(slot):
            optional.append(name)
            operands.append(direction_part(node, slot, direction, 0 if name == "p" else axis))
    if any(name in optional for name in ("h", "c")) and cell.state_count == 2:
        for index, name in enumerate(("h", "c")):
            if name not in optional:
                zero = node.constant(np.zeros((), dtype), f"zero{direction}")
                zeros = node.wire(Expand((batch, TDim.of(hidden))), [zero], f"{name}{direction}")
                optional.insert(index, name)
                operands.insert(4 + index, zeros)
    return operands, tuple(optional)


def direction_part(node: NodeContext, slot: int, direction: int, axis: int) -> OutletId:
    """Return the part of an input that belongs to one direction, without the axis of directions."""
    outlet, count = node.input(slot), node.fact(slot).shape[axis]
    name = f"in{slot}_{direction}"
    if count != 1:
        part = Slice(axis, TDim.of(direction), TDim.of(direction + 1))
        outlet = node.wire(part, [outlet], f"{name}_direction")
    return node.wire(RemoveAxis(axis), [outlet], name)


def _cells(node: NodeContext, cell_kind: CellKind, directions: int) -> list[Cell]:
    names = node.text_list("activations", USUAL_ACTIVATIONS[cell_kind] * directions)
    activations_per_direction = len(USUAL_ACTIVATIONS[cell_kind])
    if cell_kind == "rnn" and len(names) == 2:
        names = names[:directions]  # the standard's default is two, whatever the direction
    if len(names) != activations_per_direction * directions:
        raise node.error(
            f"it has {len(names)} activations; {directions} directions need {activations_per_direction} each, "
            f"{activations_per_direction * directions} in all"
        )
    alphas, betas = (
        node.real_list(name) if name in node.attributes else ()
        for name in ("activation_alpha", "activation_beta")
    )
    try:
        functions = read_activations(names, alphas, betas)
    except KeyError as error:
        known = ", ".join(ONNX_ACTIVATIONS.values())
        raise node.error(f"activation {error.args[0]} is not one of {known}") from None
    clip = node.real("clip") if "clip" in node.attributes else None
    resets_product = node.flag("linear_before_reset") and cell_kind == "gru"
    couples_gates = node.flag("input_forget")
    return [
        Cell(
            cell_kind,
            tuple(functions[start : start + activations_per_direction]),
            clip,
            resets_product,
            couples_gates,
        )
        for start in range(0, len(functions), activations_per_direction)
    ]


def _lengths(node: NodeContext, time: TDim) -> tuple[int, ...] | None:
    """Return the frames of each sequence; None if each has all of them."""
    if not node.has(LENGTHS):
        return None
    value = node.value(LENGTHS)
    if value is None:
        raise node.error("its sequence_lens are computed while running; only constant ones are supported")
    dims = [TDim.of(dim) for dim in value.ravel().tolist()]
    if all(dim.prove_eq(time).yes for dim in dims):
        return None
    if not all(dim.is_const for dim in dims):
        raise node.error(
            f"its sequence_lens {', '.join(map(str, dims))} depend on a length other than its own {time}"
        )
    return tuple(int(dim) for dim in dims)


@rule(*CELL_KINDS)
def infer_recurrent(node: InferenceNode) -> Iterator[FactRelation]:
    """Shapes of x [T, N, I], W [D, G*H, I], R [D, G*H, H], B [D, 2*G*H], states [D, N, H] -> y [T, D, N, H], states.

    With layout 1 the batch N comes first: x [N, T, I], states [N, D, H], y [N, T, D, H].
    """
    x, w, r = (node.input(slot) for slot in range(3))
    y, *final = node.outlets
    initial = [node.input(slot) for slot in (INITIAL_H, INITIAL_C) if node.has(slot)]
    states = [*initial, *final]
    others = [node.input(slot) for slot in (3, PEEPHOLES) if node.has(slot)]
    yield SameType([x, w, r, *states, *others, y])
    yield HasRank([x, w, r, *states], 3)
    yield HasRank([y], 4)
    yield HasRank(others, 2)
    batch_first = bool(node.flag("layout"))
    time, batch = (1, 0) if batch_first else (0, 1)
    direction_axis = 1 if batch_first else 0
    yield SameSize([Axis(x, time), Axis(y, time)])
    yield SameSize([Axis(x, batch), Axis(y, 0 if batch_first else 2), *_same_axis(states, batch)])
    yield SameSize([Axis(x, 2), Axis(w, 2)])
    yield SameSize([Axis(r, 2), Axis(y, 3), *_same_axis(states, 2)])
    directions = 2 if node.text("direction", "forward") == "bidirectional" else 1
    per_direction = [
        Axis(w, 0),
        Axis(r, 0),
        Axis(y, 2 if batch_first else 1),
        *_same_axis(states, direction_axis),
        *_same_axis(others, 0),
    ]
    yield HasSize(per_direction, TDim.of(directions))
    for matrix in (w, r):
        yield SizeMultiple(Axis(matrix, 1), Axis(r, 2), GATE_COUNTS[CELL_KINDS[node.op_type]])


def _same_axis(wires: list[OutletId], axis: int) -> list[Axis]:
    return [Axis(wire, axis) for wire in wires]
