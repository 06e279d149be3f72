"""LSTM layers whose input and state are quantised by their range, as onnxruntime's dynamic quantiser writes them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, Array
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.scan_body import ScanBody
from pulse.onnx.operators.quantize_integer import dynamic_quantize_mat_mul
from pulse.onnx.operators.recurrent import (
    INITIAL_C,
    INITIAL_H,
    LENGTHS,
    PEEPHOLES,
    direction_part,
    read_direction,
    stack_directions,
)
from pulse.onnx.registry import onnx_op
from pulse.ops.recurrent_cells import USUAL_ACTIVATIONS
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import AddAxis, Expand, RemoveAxis
from pulse.ops.slice import Slice
from pulse.typed import known_value

WEIGHTS, STATE_WEIGHTS, BIAS, SCALE, STATE_SCALE = 1, 2, 3, 8, 10
"""The numbers of inputs; the zero point of weights is after their scale."""


@onnx_op("com.microsoft::DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: NodeContext) -> Sequence[OutletId]:
    """Wire one layer for each direction: the product of all frames, quantised together, and a scan over the frames.

    In each frame the state is quantised by its own range.
    """
    backwards = read_direction(node)
    _require_plain(node, len(backwards))
    _require_shapes(node, len(backwards))
    layers = [_layer(node, index, backward) for index, backward in enumerate(backwards)]
    return [stack_directions(node, slot, parts, False) for slot, parts in enumerate(zip(*layers))]


def _require_plain(node: NodeContext, directions: int) -> None:
    usual = USUAL_ACTIVATIONS["lstm"] * directions
    activations = tuple(name.lower() for name in node.text_list("activations", usual))
    for name, is_given in (
        ("activations", activations not in ((), usual)),
        ("clip", "clip" in node.attributes),
        ("input_forget", node.flag("input_forget")),
        ("sequence_lens", node.has(LENGTHS)),
        ("P", node.has(PEEPHOLES)),
    ):
        node.require(not is_given, f"{name} is not supported in a quantised layer; load the model of floats")


def _require_shapes(node: NodeContext, directions: int) -> None:
    """Check the ranks of the inputs, and their sizes against those of R. Raises LoadError: they do not fit."""
    facts = {slot: node.fact(slot) for slot in range(len(node.inputs)) if node.has(slot)}
    ranks = {0: (3,), WEIGHTS: (3,), STATE_WEIGHTS: (3,), BIAS: (2,), INITIAL_H: (3,), INITIAL_C: (3,)}
    ranks |= dict.fromkeys((SCALE, SCALE + 1, STATE_SCALE, STATE_SCALE + 1), (1, 2))
    missing = [slot for slot in ranks if slot not in facts and slot not in (BIAS, INITIAL_H, INITIAL_C)]
    wrong = [
        f"input {slot} is {fact}" for slot, fact in facts.items() if fact.rank not in ranks.get(slot, ())
    ]
    if missing or wrong:
        absent = [f"input {slot} is missing" for slot in missing]
        raise node.error(f"{'; '.join((*wrong, *absent))}; export it again")
    (_, batch, inputs), size = facts[0].shape, facts[STATE_WEIGHTS].shape[1]
    shapes = {
        WEIGHTS: (inputs, 4 * size),
        STATE_WEIGHTS: (size, 4 * size),
        BIAS: (8 * size,),
        INITIAL_H: (batch, size),
        INITIAL_C: (batch, size),
    }
    for slot, fact in facts.items():
        if slot and (fact.shape[0] != directions or fact.shape[1:] != shapes.get(slot, fact.shape[1:])):
            raise node.error(
                f"input {slot} is {fact}, which does not fit {directions} directions, x {facts[0]} and R "
                f"{facts[STATE_WEIGHTS]}; export it again"
            )
    hidden_size = node.integer("hidden_size", int(size) if size.is_const else -1)
    if size != hidden_size:
        raise node.error(
            f"attribute hidden_size is {hidden_size}, but its R {facts[STATE_WEIGHTS]} is for {size}"
        )


def _layer(node: NodeContext, direction: int, backward: bool) -> list[OutletId]:
    """Return all frames of one direction [T, B, H], and its last state and cell [B, H]."""
    node = replace(node, wire_name=f"{node.wire_name}.{'reverse' if backward else 'forward'}")
    x, batch = node.input(0), node.fact(0).shape[1]
    weights = [direction_part(node, slot, direction, 0) for slot in (WEIGHTS, SCALE, SCALE + 1)]
    products = _multiply(node, x, weights, "product")
    if node.has(BIAS):
        bias = direction_part(node, BIAS, direction, 0)
        half = node.graph.fact(bias).shape[0] // 2
        halves = [
            node.wire(Slice(0, half * part, half * (part + 1)), [bias], f"bias{part}") for part in (0, 1)
        ]
        products = node.apply("add", products, node.apply("add", *halves, suffix="bias"), suffix="biased")
    size = int(node.graph.fact(products).shape[2]) // 4
    states = [
        direction_part(node, slot, direction, 0)
        if node.has(slot)
        else node.wire(
            Expand((batch, TDim.of(size))), [node.constant(np.zeros((), F32), f"zero{slot}")], f"first{slot}"
        )
        for slot in (INITIAL_H, INITIAL_C)
    ]
    state_weights = [
        _constant(node, direction_part(node, slot, direction, 0))
        for slot in (STATE_WEIGHTS, STATE_SCALE, STATE_SCALE + 1)
    ]
    if node.graph.fact(products).shape[0] == 1:
        h, c = _update(node, node.wire(RemoveAxis(0), [products], "frame"), states, state_weights)
        return [node.wire(AddAxis(0), [h], "frames"), h, c]
    body, axis = ScanBody(), ScanAxis(0, backward)
    frame = body.add_frames("frame", node.graph.fact(products).without_axis(0), products, axis)
    before = [body.add_state(name, node.graph.fact(state), state) for name, state in zip(("h", "c"), states)]
    after = _update(replace(node, graph=body.graph), frame, before, state_weights)
    return body.wire(node, f"{node.wire_name}.frames", after, [after[0]], axis)


def _update(
    node: NodeContext, products: OutletId, states: Sequence[OutletId], weights: Sequence[Array]
) -> list[OutletId]:
    """Return the state and the cell after a frame, from the products of its input [B, 4 * H]."""
    matrix = [node.constant(value, f"state_weights{index}") for index, value in enumerate(weights)]
    gates = node.apply("add", products, _multiply(node, states[0], matrix, "recurrent"), suffix="gates")
    i, o, f, g = (
        node.apply(function, part, suffix=f"{name}_gate")
        for name, function, part in zip(
            "iofg", ("sigmoid", "sigmoid", "sigmoid", "tanh"), _quarters(node, gates)
        )
    )
    kept = node.apply("mul", f, states[1], suffix="kept")
    c = node.apply("add", kept, node.apply("mul", i, g, suffix="new"), suffix="cell")
    return [node.apply("mul", o, node.apply("tanh", c, suffix="squashed"), suffix="state"), c]


def _quarters(node: NodeContext, gates: OutletId) -> list[OutletId]:
    size = node.graph.fact(gates).shape[1] // 4
    return [node.wire(Slice(1, size * part, size * (part + 1)), [gates], f"gate{part}") for part in range(4)]


def _multiply(node: NodeContext, x: OutletId, weights: Sequence[OutletId], name: str) -> OutletId:
    """Return floats, quantised by their range, times weights: codes, their scale and zero point."""
    part = replace(node, wire_name=f"{node.wire_name}.{name}", outputs=(), inputs=(x, *weights))
    return dynamic_quantize_mat_mul(part)


def _constant(node: NodeContext, outlet: OutletId) -> Array:
    value = known_value(node.graph, outlet)
    if value is None:
        raise node.error("its R, R_scale and R_zero_point must be constant; export it again")
    return value
